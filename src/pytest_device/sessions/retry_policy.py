"""When a call is sent again: how often, after which pause, and what an answer says of it. Pure.

Both senders follow it: the reaper, and the client that calls by itself.
"""

import json
import re
from typing import Final, cast

from pytest_device.sessions.partial import nodes_of, session_id_in, url_in

ATTEMPTS: Final = 3
"""How often a create call that certainly never left, and a call of the client that is safe to repeat, is tried: the
pauses outlast a dropped connection, and more would delay the error that somebody waits for."""
BACKOFF_SECONDS: Final = 0.5
"""Before the second attempt; doubled before each further one."""
PAUSE_MOST_SECONDS: Final = 15.0
"""The longest pause before a stop is tried again, whatever the service says: the session goes on costing, by the
minute at most services, while a stop that comes too early costs one call."""
GET_PAUSE_MOST_SECONDS: Final = 5.0
"""The longest ``Retry-After`` that ``get`` waits for by itself, as long as polls are apart: its caller has a limit."""
RETRY_AFTER_MOST_SECONDS: Final = 86_400.0
GONE_SECONDS: Final = 60.0
"""How long the service has to go on saying that it knows no such session before it is believed: a deployment and a
replica that lags behind are over sooner."""

_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_PASSING: Final = frozenset({408, 425, _TOO_MANY_REQUESTS})
_SERVER_ERRORS: Final = 500
_NOT_FOUND: Final = 404
_SUCCEEDED: Final = range(200, 300)
_REFUSED: Final = range(300, 500)
_SECONDS: Final = re.compile(r"[0-9]{1,300}(\.[0-9]{1,300})?")


def pause_after(attempts: int, retry_after_seconds: float | None = None) -> float:
    """Return how many seconds to wait after so many attempts, at least as the last one's answer asked."""
    backoff = BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 10)
    return min(max(backoff, retry_after_seconds or 0.0), PAUSE_MOST_SECONDS)


def is_passing_status(status: int) -> bool:
    """Return whether the same call may succeed later: it came at a wrong time, or the server failed."""
    return status in _PASSING or status >= _SERVER_ERRORS


def is_success(status: int) -> bool:
    """Return whether a call succeeded; the document shows 200 only."""
    return status in _SUCCEEDED


def is_page(body: bytes) -> bool:
    """Return whether an answer is a page of HTML: something on the way sent it, whatever its status says."""
    return body.lstrip()[:1] == b"<"


def is_missing(status: int, body: bytes) -> bool:
    """Return whether the service itself says that it knows no such session."""
    return status == _NOT_FOUND and _has_code(body)


def is_refusal(status: int, body: bytes) -> bool:
    """Return whether the service itself refuses a call, which waiting a moment is not likely to change."""
    return status in _REFUSED and not is_passing_status(status) and not is_page(body)


def created_nothing(status: int, body: bytes, retry_after_seconds: float | None) -> bool:
    """Return whether a whole answer to a create call refuses it, so that there is no session.

    A redirect carries nothing out, and a status of the 4xx is the service's own. A gateway has lost the service's good
    answer with 502, 504, and 503 too: those of AWS and Envoy say 503 when the service took too long, in JSON or plain
    text, and Varnish adds a ``Retry-After`` to its page of HTML. So 503 is a refusal only where it says when to come
    back and is no page of HTML, or where it has an error code of the service's own, a text, as the document shows one.
    What cannot be kept apart counts as unknown, and is never repeated.
    """
    if url_in(body):
        return False
    if status != _UNAVAILABLE:
        return status in _REFUSED
    if session_id_in(body) is not None or is_page(body):
        return False
    return retry_after_seconds is not None or _has_code(body)


def has_no_capacity(status: int, body: bytes, retry_after_seconds: float | None) -> bool:
    """Return whether a whole answer to a create call refuses it for now, so that the same call may succeed later."""
    return status in {_TOO_MANY_REQUESTS, _UNAVAILABLE} and created_nothing(status, body, retry_after_seconds)


def retry_after(value: str | None, date: str | None, now: float) -> float | None:
    """Return in how many seconds an answer asks to be asked again, None when it does not.

    ``value`` and ``date`` are its headers ``Retry-After`` and ``Date``. A time is compared with the service's own
    clock, or with ``now`` (Unix seconds) where that is not given.
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return min(float(value), RETRY_AFTER_MOST_SECONDS)
    at = _unix_seconds(value)
    if at is None:
        return None
    there = _unix_seconds(date)
    return min(max(0.0, at - (now if there is None else there)), RETRY_AFTER_MOST_SECONDS)


def _unix_seconds(date: str | None) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime  # its memory would stay with the reaper

    try:
        at = parsedate_to_datetime(date or "")
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):  # no date
        return None


def _has_code(body: bytes) -> bool:
    """Return whether an answer is JSON with a text called ``code`` anywhere in it, as the document shows its errors."""
    try:
        nodes = nodes_of(json.loads(body))
    except (ValueError, RecursionError):
        return False
    objects = (cast("dict[str, object]", node) for _, node in nodes if isinstance(node, dict))
    return any(isinstance(one.get("code"), str) for one in objects)

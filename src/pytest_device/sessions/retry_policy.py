"""Decides when to retry a call: how often, after which pause, and for which responses. Pure.

Used by both senders: the reaper, and the client that makes its own calls.
"""

import json
import re
from typing import Final, cast

from pytest_device.http_status import is_temporary_status
from pytest_device.sessions.partial import nodes_of, session_id_in, url_in

ATTEMPTS: Final = 3
"""Maximum attempts of a create call that was certainly never sent, and of the client's repeatable calls: the pauses
outlast a dropped connection, and more would delay the error that a test waits for."""
BACKOFF_SECONDS: Final = 0.5
"""Seconds before the second attempt; doubled for each further one."""
MAX_PAUSE_SECONDS: Final = 15.0
"""Maximum pause before a stop is retried, whatever the service asks for: a session is billed until it stops, usually by
the minute, while a premature retry costs one call."""
MAX_GET_PAUSE_SECONDS: Final = 5.0
"""Longest ``Retry-After`` that ``get`` itself waits for, equal to the poll interval: its caller has a time limit."""
MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
"""A longer ``Retry-After`` counts as a day; each call limits its own pause further."""
GONE_SECONDS: Final = 60.0
"""Seconds for which the service must return 404 before a session counts as gone: a deployment or a lagging replica
recovers sooner."""

_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_NOT_FOUND: Final = 404
_ACCESS_REFUSALS: Final = frozenset({401, 403, _NOT_FOUND})
"""Statuses with which a service refuses a token: also 404, which hides what the token may not see."""
_SUCCEEDED: Final = range(200, 300)
_SEE_OTHER: Final = 303
_TIMED_OUT: Final = 408
REFUSED: Final = frozenset({*range(300, 500)} - {_SEE_OTHER, _TIMED_OUT})
"""Statuses that only a refusal has. Proxies return 408 for a response that they no longer wait for, as others 504."""
_SECONDS: Final = re.compile(r"[0-9]{1,300}(\.[0-9]{1,300})?")


def pause_after(attempts: int, retry_after_seconds: float | None = None) -> float:
    """Return the seconds to wait after ``attempts`` attempts, at least as long as the last response asked for."""
    backoff = BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 10)
    return min(max(backoff, retry_after_seconds or 0.0), MAX_PAUSE_SECONDS)


def is_success(status: int) -> bool:
    """Return whether a call succeeded; the document shows 200 only."""
    return status in _SUCCEEDED


def is_page(body: bytes) -> bool:
    """Return whether a response is an HTML page: an intermediary sent it, whatever its status."""
    return body.lstrip()[:1] == b"<"


def is_missing(status: int, body: bytes) -> bool:
    """Return whether the service itself reports that it does not know the session."""
    return status == _NOT_FOUND and _has_code(body)


def is_access_refusal(status: int) -> bool:
    """Return whether a response may mean that another token could make the call."""
    return status in _ACCESS_REFUSALS


def is_refusal(status: int, body: bytes) -> bool:
    """Return whether the service itself refuses a call in a way that waiting briefly is unlikely to change."""
    return status in REFUSED and not is_temporary_status(status) and not is_page(body)


def created_nothing(
    status: int, body: bytes, retry_after_seconds: float | None
) -> bool:
    """Return whether a complete response to a create call refuses it, so that no session exists.

    A redirect executes nothing, except 303, which leads to the result of a call (RFC 9110, section 15.4.4), and 4xx
    statuses are the service's own. With 502 and 504 a gateway may have lost the service's successful response, and with
    503, too: AWS and Envoy send 503 if the service took too long, as JSON or plain text, and Varnish adds a
    ``Retry-After`` to its HTML page. So 503 is a refusal only if it has a ``Retry-After`` and is not an HTML page, or if
    it has an error code of the service, a string as in the document.
    Ambiguous responses count as unknown, and the call is never repeated.
    """
    if url_in(body):
        return False
    if status != _UNAVAILABLE:
        return status in REFUSED
    if session_id_in(body) is not None or is_page(body):
        return False

    return retry_after_seconds is not None or _has_code(body)


def has_no_capacity(
    status: int, body: bytes, retry_after_seconds: float | None
) -> bool:
    """Return whether a complete response to a create call refuses it for now, so that a retry may succeed later."""
    return status in {_TOO_MANY_REQUESTS, _UNAVAILABLE} and created_nothing(
        status, body, retry_after_seconds
    )


def retry_after(value: str | None, date: str | None, now: float) -> float | None:
    """Return after how many seconds a response asks for a retry, None if it does not.

    ``value`` and ``date`` are its headers ``Retry-After`` and ``Date``. A date is compared with the service's own
    clock, or with ``now`` (Unix seconds) if ``date`` is missing.
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return min(float(value), MAX_RETRY_AFTER_SECONDS)

    at = _unix_seconds(value)
    if at is None:
        return None

    there = _unix_seconds(date)
    return min(
        max(0.0, at - (now if there is None else there)), MAX_RETRY_AFTER_SECONDS
    )


def _unix_seconds(date: str | None) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime  # would occupy the reaper's memory

    try:
        at = parsedate_to_datetime(date or "")
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):  # not a date
        return None


def _has_code(body: bytes) -> bool:
    """Return whether a response is JSON with a string named ``code`` anywhere in it, as errors in the document have."""
    try:
        nodes = nodes_of(json.loads(body))
    except (ValueError, RecursionError):
        return False

    objects = (
        cast("dict[str, object]", node) for _, node in nodes if isinstance(node, dict)
    )
    return any(isinstance(node.get("code"), str) for node in objects)

"""Reads a session's ID and other fields from a response that may be malformed: without the ID it cannot be stopped."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from pytest_device.redact import Redactor
from pytest_device.spec import DURATION_MAX_MINUTES, SESSIONS_PATH, TERMINAL

SPELLING: Final = re.compile(
    r"([0-9a-fA-F]{8})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{12})"
)
"""A UUID in upper or lower case, with or without hyphens."""
MESSAGE: Final = re.compile(r"(?i)message|detail|description|reason|title|error")
"""Matches the names of texts for people."""
_NAMED_ID: Final = re.compile(rf'"id"\s*:\s*"({SPELLING.pattern})"')
_LOCATION: Final = re.compile(rf"{re.escape(SESSIONS_PATH)}/({SPELLING.pattern})/?$")
_URL: Final = re.compile(r"https?://[!-~]{1,2000}")


def session_id_in(body: bytes) -> str | None:
    """Return the session ID in a response, as written there, however malformed the rest is."""
    if session_id := session_id_of(_data_of(body)):
        return session_id

    match = _NAMED_ID.search(body.decode("latin-1"))
    return match[1] if match else None


def located_id(location: str) -> str:
    """Return the ID of the session whose path a ``Location`` header ends with, empty if it names none.

    A service may respond with nothing else to a create call (201 or 303).
    """
    match = _LOCATION.search(location.strip())
    return match[1] if match else ""


def session_id_of(data: object) -> str | None:
    """Return the session ID in the data of a response, as written there."""
    if not isinstance(data, dict):
        return None

    session_id = cast("dict[str, object]", data).get("id")
    # Anything else must not become part of a URL.
    if not isinstance(session_id, str) or not SPELLING.fullmatch(session_id):
        return None

    return session_id


def url_in(body: bytes) -> str:
    """Return the session page's URL without credentials, empty if the response has none."""
    url = _data_of(body).get("url")
    return Redactor().text(url) if isinstance(url, str) and _URL.fullmatch(url) else ""


def minutes_in(body: bytes) -> int | None:
    """Return the maximum duration in a response, None if it has no valid one."""
    minutes = _data_of(body).get("maxDurationMinutes")
    # ``True`` is an int, too.
    is_valid = type(minutes) is int and 0 < minutes <= DURATION_MAX_MINUTES
    return minutes if is_valid else None


def says_stopped(body: bytes, session_id: str) -> bool:
    """Return whether a response concerns this session and reports its end."""
    status = _data_of(body).get("status")
    return is_same(session_id_in(body) or "", session_id) and str(status) in TERMINAL


def is_same(session_id: str, other: str) -> bool:
    """Return whether two IDs name the same session, however each is written."""
    return session_id == other or _canonical(session_id) == _canonical(other)


def path_of(session_id: str) -> str:
    """Return the URL path of a session, with its ID as written."""
    return f"{SESSIONS_PATH}/{session_id}"


def nodes_of(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value in a JSON value, in order, with its key; list items have the list's key, the top ``name``."""
    # An explicit stack: recursion is too slow for deep nesting.
    left = [iter([(name, value)])]
    while left:
        for key, inner in left[-1]:
            yield key, inner
            if inner and isinstance(inner, (dict, list)):
                left.append(
                    _inside(key, cast("dict[str, object] | list[object]", inner))
                )
                break
        else:
            left.pop()


def _inside(
    key: str, value: dict[str, object] | list[object]
) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        return iter(value.items())
    return ((key, item) for item in value)


def _canonical(session_id: str) -> str:
    return "-".join(SPELLING.sub(r"\1 \2 \3 \4 \5", session_id).split()).lower()


def _data_of(body: bytes) -> dict[str, Any]:
    try:
        reply: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}

    if not isinstance(reply, dict):
        return {}

    data = cast("dict[str, object]", reply).get("data")
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}

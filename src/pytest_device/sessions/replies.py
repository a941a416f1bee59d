"""What the bytes of an answer mean: a session, or one error of the tree. Pure: no network."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Final, cast

from pytest_device.errors import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    StatusError,
    UnauthorizedError,
    UnexpectedReplyError,
)
from pytest_device.sessions.models import Session
from pytest_device.spec import UNAUTHORIZED_ERROR

DETAIL_MAX_LENGTH: Final = 500

_SESSION_ID: Final = re.compile(rb'"id"\s*:\s*"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"')
_MESSAGE: Final = re.compile(r"(?i)message|detail|description|reason|title|error")

_OK: Final = 200
_REDIRECT: Final = range(300, 400)
_REFUSED: Final = range(400, 600)
_REFUSALS: Final[dict[int, tuple[type[StatusError], str]]] = {
    400: (InvalidRequestError, "the request breaks a rule, or the account has no simulator access"),
    401: (UnauthorizedError, "the access token is not valid: check DEVICE_TOKEN"),
    403: (ForbiddenError, "the access token may not do this on the project: a robot needs the Developer role at least"),
    404: (NotFoundError, "the service knows no such project or session"),
}


def read_session(operation: str, status: int, body: bytes) -> Session:
    """Return the session of a successful answer.

    Raises StatusError or a subclass for a refusal, UnexpectedReplyError for anything the document does not show.
    """
    if status in _REFUSED:
        raise _refusal(operation, status, body)
    if status in _REDIRECT:
        raise UnexpectedReplyError(
            f"{operation}: the service redirects (status {status}). Redirects are not followed, since the access token "
            "would go with them: set the service's final address"
        )
    if status != _OK:
        raise UnexpectedReplyError(f"{operation}: status {status} is not in the document", session_id=_id_in(body))
    return Session.from_wire(_data_of(operation, body))


def _data_of(operation: str, body: bytes) -> object:
    try:
        reply: object = json.loads(body)
    except (ValueError, RecursionError):
        message = f"{operation}: the answer is not JSON, so this may not be the service's address: {_kind(body)}"
        raise UnexpectedReplyError(message, session_id=_id_in(body)) from None
    if not isinstance(reply, dict) or "data" not in reply:
        message = f"{operation}: the answer has no 'data', so this may not be the service's address: {_kind(body)}"
        raise UnexpectedReplyError(message, session_id=_id_in(body))
    return cast("dict[str, object]", reply)["data"]


def _kind(body: bytes) -> str:
    """Describe the body of a success that is none, without showing what may be connection details."""
    return shown(body) if body.lstrip()[:1] == b"<" else f"{len(body)} bytes"


def _id_in(body: bytes) -> str | None:
    """Return the id that a reply gives a session, however else the reply is broken: that session must be stopped."""
    found = _SESSION_ID.search(body)
    return found[1].decode() if found else None


def _refusal(operation: str, status: int, body: bytes) -> StatusError:
    detail = shown(body)
    kind, meaning = _REFUSALS.get(status, (StatusError, "the service failed" if status >= 500 else "refused"))  # noqa: PLR2004
    if status == 404 and operation == "create":  # noqa: PLR2004
        meaning = "there is no such project: check the app id (--device-app-id)"
    if status == 400 and UNAUTHORIZED_ERROR.encode() in body:  # noqa: PLR2004
        kind, meaning = UnauthorizedError, "the access token did not reach the service: check DEVICE_TOKEN"
    return kind(f"{operation}: {meaning} (status {status}): {detail}", status=status, detail=detail)


def shown(body: bytes) -> str:
    """Return whatever message an answer holds, in whatever shape, as one bounded line of printable text.

    The document does not show the shape of an error body. JSON is shown by its messages, where it has what looks like
    some, else as it stands; a page of HTML by its words.
    """
    text = body.decode("utf-8", errors="replace")
    if text.lstrip()[:1] == "<":
        words = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", text[: DETAIL_MAX_LENGTH * 20])
        text = f"a page of HTML: {unescape(words)}"
    else:
        text = _json_text(text)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not line:
        return "no message"
    return line if len(line) <= DETAIL_MAX_LENGTH else f"{line[:DETAIL_MAX_LENGTH]}…"


def _json_text(text: str) -> str:
    try:
        value: object = json.loads(text)
        messages = [leaf for key, leaf in _leaves(value) if _MESSAGE.search(key)]
        return "; ".join(dict.fromkeys(messages)) or json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _leaves(value: object, key: str = "message") -> Iterator[tuple[str, str]]:
    """Yield each text in a JSON value with the name it stands under; a text without a name is a message."""
    match value:
        case str():
            yield key, value
        case dict():
            for name, inner in cast("dict[str, object]", value).items():
                yield from _leaves(inner, name)
        case list():
            for inner in cast("list[object]", value):
                yield from _leaves(inner, key)
        case _:
            pass

"""What the bytes of an answer mean: a session, or one error of the tree. Pure: no network."""

import json
import re
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

_OK: Final = 200
_REDIRECT: Final = range(300, 400)
_REFUSED: Final = range(400, 600)
_REFUSALS: Final[dict[int, tuple[type[StatusError], str]]] = {
    400: (InvalidRequestError, "the request breaks a rule, or the account has no simulator access"),
    401: (UnauthorizedError, "the access token is not valid: check DEVICE_TOKEN"),
    403: (ForbiddenError, "the access token may not do this on the project: a robot needs the Developer role at least"),
    404: (NotFoundError, "there is no such project or session: check the app id (--device-app-id)"),
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
        raise UnexpectedReplyError(f"{operation}: status {status} is not in the document: {shown(body)}")
    return Session.from_wire(_data_of(operation, body))


def _data_of(operation: str, body: bytes) -> object:
    try:
        reply: object = json.loads(body)
    except (ValueError, RecursionError):
        message = f"{operation}: the answer is not JSON, so this may not be the service's address: {shown(body)}"
        raise UnexpectedReplyError(message) from None
    if not isinstance(reply, dict) or "data" not in reply:
        raise UnexpectedReplyError(
            f"{operation}: the answer has no 'data', so this may not be the service's address: {shown(body)}"
        )
    return cast("dict[str, object]", reply)["data"]


def _refusal(operation: str, status: int, body: bytes) -> StatusError:
    detail = shown(body)
    kind, meaning = _REFUSALS.get(status, (StatusError, "the service failed" if status >= 500 else "refused"))  # noqa: PLR2004
    if status == 400 and UNAUTHORIZED_ERROR.encode() in body:  # noqa: PLR2004
        kind, meaning = UnauthorizedError, "the access token did not reach the service: check DEVICE_TOKEN"
    return kind(f"{operation}: {meaning} (status {status}): {detail}", status=status, detail=detail)


def shown(body: bytes) -> str:
    """Return whatever message an answer holds, in whatever shape, as one bounded line of printable text.

    The document does not show the shape of an error body. Text of JSON is shown as it stands, a page of HTML by its
    words.
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
        leaves = _texts_in(value)
    except (ValueError, RecursionError):
        return text
    return leaves[0] if len(leaves) == 1 else json.dumps(value, ensure_ascii=False)


def _texts_in(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for inner in cast("dict[str, object]", value).values() for text in _texts_in(inner)]
        case list():
            return [text for inner in cast("list[object]", value) for text in _texts_in(inner)]
        case _:
            return [] if value is None else [str(value)]

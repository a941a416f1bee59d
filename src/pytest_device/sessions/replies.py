"""Interprets responses: reads the complete body, up to a maximum size, and returns a session or raises an error."""

import json
import re
from html import unescape
from typing import Final, NamedTuple, cast

import httpx

from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.errors import (
    ForbiddenError,
    InvalidRequestError,
    NoCapacityError,
    NotFoundError,
    ServiceError,
    StatusError,
    TransportError,
    UnauthorizedError,
    UnexpectedReplyError,
)
from pytest_device.figures import in_one_sentence
from pytest_device.http_status import is_temporary_status
from pytest_device.sessions.compression import CompressionError, unpacked
from pytest_device.sessions.models import Session
from pytest_device.sessions.partial import MESSAGE, nodes_of, session_id_in, url_in
from pytest_device.sessions.retry_policy import (
    has_no_capacity,
    is_page,
    is_success,
)
from pytest_device.spec import UNAUTHORIZED_ERROR

MAX_REPLY_BYTES: Final = 1024 * 1024
DETAIL_MAX_LENGTH: Final = 500
_DETAILS: Final = re.compile(rb"(?i)remoteConfig|AuthToken|SessionToken|capabilities")
_MEMBER: Final = re.compile(rb'"\s*:')
"""Matches a key in malformed or partial JSON."""

_REDIRECT: Final = range(300, 400)
_REFUSED: Final = range(300, 600)
_CLIENT_ERRORS: Final = range(400, 500)
_REFUSALS: Final[dict[int, tuple[type[StatusError], str]]] = {
    400: (
        InvalidRequestError,
        "the request is invalid, or the account has no simulator access",
    ),
    401: (UnauthorizedError, "the access token is not valid: check DEVICE_TOKEN"),
    402: (
        ForbiddenError,
        "the account can't pay for a session: check its plan and its billing",
    ),
    403: (
        ForbiddenError,
        "the access token lacks permission on the project: its user needs at least the Developer role",
    ),
    404: (NotFoundError, "the service doesn't know this project or session"),
    422: (InvalidRequestError, "the request is invalid"),
}


_REDIRECTS: Final = (
    "the service redirects. Redirects are not followed, because they would receive the access token: set the service's "
    "final URL"
)


class Body(NamedTuple):
    """The decoded body of a response, and the number of bytes that arrived."""

    content: bytes
    arrived: int


def body_of(operation: str, reply: httpx.Response) -> Body:
    """Return the body; raises UnexpectedReplyError if it is too large or, for a create call, was cut off."""
    # Otherwise httpx would decode it without a limit.
    encoding = reply.headers.pop("content-encoding", "")
    body = bytearray()
    try:
        read_body(reply.iter_bytes(), MAX_REPLY_BYTES, into=body)
    except BodyLimitError:
        message = f"{operation}: the response is larger than {MAX_REPLY_BYTES} bytes"
        raise UnexpectedReplyError(
            message, session_id=session_id_in(bytes(body))
        ) from None
    except httpx.HTTPError as error:
        session_id = session_id_in(bytes(body))
        if operation == "create" and session_id:  # other calls can be repeated
            raise UnexpectedReplyError(
                f"{operation}: the response was cut off ({error})",
                session_id=session_id,
            ) from None

        raise

    try:
        return Body(unpacked(bytes(body), encoding, MAX_REPLY_BYTES), len(body))
    except CompressionError as error:
        raise UnexpectedReplyError(
            f"{operation}: {error}", session_id=session_id_in(error.part)
        ) from None


def check_whole(operation: str, reply: httpx.Response, arrived: int) -> None:
    """Raise TransportError for a partial response that the transport took for complete."""
    length = reply.headers.get("content-length", "")
    if length not in {"", str(arrived)}:
        raise TransportError(
            f"{operation}: only {arrived} of {length} bytes of the error response arrived",
            sent=True,
        )


def read_session(
    operation: str, status: int, body: bytes, retry_after_seconds: float | None = None
) -> Session:
    """Return the session of a successful response; ``retry_after_seconds`` is the delay that a refusal asks for.

    Raises StatusError or a subclass for a refusal, UnexpectedReplyError for anything that the document does not show.
    """
    # Something on the way may have changed the status: the session exists, and must be stopped.
    if operation == "create" and status in _REFUSED and url_in(body):
        message = f"{operation}: status {status}, but the response is a session"
        raise UnexpectedReplyError(message, session_id=session_id_in(body))
    if status in _REFUSED:
        raise _refusal(operation, status, body, retry_after_seconds)

    if not is_success(status):
        raise UnexpectedReplyError(
            f"{operation}: unexpected status {status}", session_id=session_id_in(body)
        )

    try:
        return Session.from_wire(_data_of(operation, body))
    except UnexpectedReplyError as error:
        # It may be outside of 'data'.
        error.session_id = error.session_id or session_id_in(body)
        raise


def no_answer(
    operation: str, base_url: str, reason: str, *, sent: bool
) -> TransportError:
    """Return the error for a call without a complete response, or one that was never sent."""
    if sent:
        return TransportError(
            f"{operation}: no complete response from {base_url} ({reason})", sent=True
        )

    message = f"{operation}: no connection to {base_url} ({reason}): check the address and the network"
    return TransportError(message, sent=False)


def is_temporary(error: ServiceError) -> bool:
    """Return whether the same call may succeed later: it got no response, or a temporary error."""
    match error:
        case TransportError():
            return True
        case StatusError():
            return is_temporary_status(error.status)
        case _:
            return False


def is_suspicious(error: ServiceError) -> bool:
    """Return whether to doubt a response to a poll: HTML, a redirect, a 404, or a 401 to a token that has worked.

    It may not come from the service, or came too early.
    """
    if isinstance(error, StatusError):
        is_doubtful = isinstance(error, NotFoundError | UnauthorizedError)
        return is_doubtful or error.status in _REDIRECT or error.is_page
    return isinstance(error, UnexpectedReplyError)


def retry_after_of(error: Session | ServiceError) -> float:
    """Return the seconds after which an error asks for a retry, 0 if it does not say."""
    return (error.retry_after_seconds or 0.0) if isinstance(error, StatusError) else 0.0


def _data_of(operation: str, body: bytes) -> object:
    try:
        reply: object = json.loads(body)
    except (ValueError, RecursionError):
        message = f"{operation}: the response is not JSON, so this may not be the service's URL: {_kind(body)}"
        raise UnexpectedReplyError(message, session_id=session_id_in(body)) from None

    if not isinstance(reply, dict) or "data" not in reply:
        message = f"{operation}: the response has no 'data', so this may not be the service's URL: {_kind(body)}"
        raise UnexpectedReplyError(message, session_id=session_id_in(body))

    return cast("dict[str, object]", reply)["data"]


def _kind(body: bytes) -> str:
    """Describe the body of an unusable success without showing possible connection details."""
    return shown(body) if is_page(body) else f"{len(body)} bytes"


def _refusal(
    operation: str, status: int, body: bytes, retry_after_seconds: float | None
) -> StatusError:
    detail = shown(body)
    kind, meaning = _REFUSALS.get(
        status,
        (StatusError, "the service failed" if status >= 500 else "refused"),  # noqa: PLR2004
    )
    if status in _REDIRECT:
        meaning = _REDIRECTS

    if status == 404 and operation == "create":  # noqa: PLR2004
        meaning = "unknown project: check the app ID (--device-app-id)"

    if status == 400 and UNAUTHORIZED_ERROR.encode() in body:  # noqa: PLR2004
        kind = UnauthorizedError
        meaning = "the access token did not reach the service: check DEVICE_TOKEN"

    if operation == "create" and has_no_capacity(status, body, retry_after_seconds):
        kind = NoCapacityError
        meaning = "the service has no capacity"

    if status in _CLIENT_ERRORS and is_page(body):
        meaning = (
            "refused by a firewall, a proxy or a login page in front of the service"
        )

    # What the service says about a request is the fix; what it says about itself may be a stack trace.
    said = in_one_sentence(detail) if status >= 500 or is_page(body) else detail  # noqa: PLR2004
    message = f"{operation}: {meaning} (status {status}): {said}"
    return kind(
        message,
        status=status,
        detail=detail,
        retry_after_seconds=retry_after_seconds,
        is_page=is_page(body),
    )


def shown(body: bytes) -> str:
    """Return the message in a response of any shape, as one printable line of limited length.

    The document does not show the shape of error bodies. For JSON, shows the strings that look like messages, or the
    text itself if there are none; for HTML, the text; for possible connection details, only the size.
    """
    messages = _messages(body)
    if messages and _quotes_session(messages.encode(errors="replace")):
        return _hidden(body)

    text = messages or _raw(body, hides=_MEMBER if messages is None else _DETAILS)
    # Checked first: character by character, a large text takes long.
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)

    line = " ".join(text.split())
    if not line:
        return "no message"
    if len(line) <= DETAIL_MAX_LENGTH:
        return line

    return f"{line[:DETAIL_MAX_LENGTH]}…"


def _messages(body: bytes) -> str | None:
    """Return the messages in JSON, None if it is not JSON."""
    try:
        # A bare string counts as a message.
        nodes = nodes_of(json.loads(body), name="message")
    except (ValueError, RecursionError):
        return None

    return "; ".join(
        dict.fromkeys(
            node for key, node in nodes if isinstance(node, str) and MESSAGE.search(key)
        )
    )


def _quotes_session(message: bytes) -> bool:
    """Return whether a message holds connection details: an intermediary may quote the service's response."""
    return bool(_DETAILS.search(message) and _MEMBER.search(message))


def _hidden(body: bytes) -> str:
    return f"{len(body)} bytes that may be about a session"


def _raw(body: bytes, *, hides: re.Pattern[bytes]) -> str:
    narrow = body.replace(b"\0", b"")  # wide encodings, too
    if session_id_in(narrow) or hides.search(narrow):
        return _hidden(body)

    text = body.decode("utf-8", errors="replace")
    if text.lstrip()[:1] == "<":
        words = re.sub(
            r"(?is)<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]*>",
            " ",
            text[: DETAIL_MAX_LENGTH * 20],
        )

        return f"an HTML page: {unescape(words)}"

    return text

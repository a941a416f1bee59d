"""Reads the complete body of a response, up to a maximum size."""

from typing import Final, NamedTuple

import httpx

from pytest_device.errors import TransportError, UnexpectedReplyError
from pytest_device.sessions.compression import CompressionError, unpacked
from pytest_device.sessions.partial import session_id_in

MAX_REPLY_BYTES: Final = 1024 * 1024


class Body(NamedTuple):
    """The decoded body of a response, and the number of bytes that arrived."""

    content: bytes
    arrived: int


def body_of(operation: str, reply: httpx.Response) -> Body:
    """Return the body; raises UnexpectedReplyError if it is too large or, for a create call, was cut off."""
    encoding = reply.headers.pop("content-encoding", "")  # otherwise httpx would decode it without a limit
    body = bytearray()
    try:
        for chunk in reply.iter_bytes():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                message = f"{operation}: the response is larger than {MAX_REPLY_BYTES} bytes"
                raise UnexpectedReplyError(message, session_id=session_id_in(bytes(body)))
    except httpx.HTTPError as error:
        session_id = session_id_in(bytes(body))
        if operation == "create" and session_id:  # other calls can be repeated
            raise UnexpectedReplyError(
                f"{operation}: the response was cut off ({error})", session_id=session_id
            ) from None
        raise
    try:
        return Body(unpacked(bytes(body), encoding, MAX_REPLY_BYTES), len(body))
    except CompressionError as error:
        raise UnexpectedReplyError(f"{operation}: {error}", session_id=session_id_in(error.part)) from None


def check_whole(operation: str, reply: httpx.Response, arrived: int) -> None:
    """Raise TransportError for a partial response that the transport took for complete."""
    length = reply.headers.get("content-length", "")
    if length not in {"", str(arrived)}:
        raise TransportError(f"{operation}: only {arrived} of {length} bytes of the error response arrived", sent=True)

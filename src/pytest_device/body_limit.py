"""Reads the body of an HTTP message up to a maximum size, and until a deadline."""

import math
import time
from collections.abc import AsyncIterable, Iterable
from typing import Final


class BodyLimitError(Exception):
    """A body has more bytes than its reader accepts, or is not complete in time.

    ``is_late`` tells the two apart.
    """

    def __init__(self, problem: str, *, is_late: bool = False) -> None:
        super().__init__(problem)
        self.is_late: Final = is_late


class BodyLimit:
    """Counts the bytes of one body.

    It is for bodies that nobody collects: one that is written to a file, or passed on.
    """

    def __init__(self, max_bytes: int, *, deadline: float = math.inf) -> None:
        self._max_bytes = max_bytes
        self._deadline = deadline
        self.size = 0
        """Number of bytes so far."""

    def count(self, chunk: bytes) -> None:
        """Add the bytes of a chunk.

        Raises BodyLimitError if the body is too large, or if ``deadline``, a time of
        `time.monotonic`, has passed. Timeouts of HTTP clients limit each pause only.
        """
        self.size += len(chunk)

        if self.size > self._max_bytes:
            raise BodyLimitError(f"the body is larger than {self._max_bytes} bytes")

        if time.monotonic() > self._deadline:
            raise BodyLimitError("the body is not complete in time", is_late=True)


def read_body(
    chunks: Iterable[bytes],
    max_bytes: int,
    *,
    deadline: float = math.inf,
    into: bytearray | None = None,
) -> bytes:
    """Return the complete body. Raises BodyLimitError as `BodyLimit.count`.

    Each chunk is added to ``into`` as it arrives, even the one that is too much: if
    reading fails, it holds what arrived, in which a session's ID may be.
    """
    limit = BodyLimit(max_bytes, deadline=deadline)
    body = bytearray() if into is None else into

    for chunk in chunks:
        body += chunk
        limit.count(chunk)

    return bytes(body)


async def read_body_async(chunks: AsyncIterable[bytes], max_bytes: int) -> bytes:
    """Return the complete body. Raises BodyLimitError if it is too large."""
    limit = BodyLimit(max_bytes)
    body = bytearray()

    async for chunk in chunks:
        body += chunk
        limit.count(chunk)

    return bytes(body)

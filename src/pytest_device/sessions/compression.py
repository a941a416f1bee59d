"""Decodes responses that some proxies compress although the requests forbid it; limits their size."""

from typing import Final

_ZLIB, _GZIP, _RAW = 15, 31, -15
"""Values of zlib's ``wbits``; servers call both the first and the last format deflate."""
_GZIP_NAMES: Final = ("gzip", "x-gzip")
_PLAIN: Final = ("", "identity")


class CompressionError(ValueError):
    """A response that cannot be decoded; ``part`` is the readable part of it."""

    def __init__(self, problem: str, part: bytes) -> None:
        super().__init__(problem)
        self.part = part


def unpacked(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return the decoded body according to its ``Content-Encoding``; raises CompressionError."""
    name = encoding.strip().lower()
    if name in _PLAIN:
        return body

    if name not in {*_GZIP_NAMES, "deflate"}:
        raise CompressionError(
            f"the response is compressed ({encoding!r}), although the request forbids it",
            b"",
        )

    import zlib

    forms = (_GZIP,) if name in _GZIP_NAMES else (_ZLIB, _RAW)
    for form in forms:
        unpacker = zlib.decompressobj(form)
        try:
            # One byte more than allowed tells that there is more: a small body may decode to gigabytes.
            decoded = unpacker.decompress(body, max_bytes + 1)
        except zlib.error:
            continue

        if len(decoded) > max_bytes:
            raise CompressionError(
                f"the decompressed response is larger than {max_bytes} bytes", decoded
            )

        if not unpacker.eof:
            raise CompressionError("the compressed response is truncated", decoded)

        return decoded

    raise CompressionError(
        f"the response is compressed as {name}, but cannot be decompressed", body
    )

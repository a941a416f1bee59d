"""Encodings in which a value can occur in a build."""

import base64
import json
from collections.abc import Iterator

MIN_LENGTH = 8
"""Minimum length, in bytes; shorter values occur in any build by chance."""


def spellings(value: str) -> set[bytes]:
    """Encode a value as UTF-8, UTF-16, base64 and JavaScript escapes, leaving out results that are too short."""
    plain = _bytes(value)
    little, big = (value.encode(f"utf-16-{order}", errors="surrogatepass") for order in ("le", "be"))
    found = {plain, little, big}
    found |= {_bytes(escaped) for escaped in _escaped(value)}
    found |= {encoded for form in (plain, little) for encoded in _base64(form)}
    return {one for one in found if len(one) >= MIN_LENGTH}


def _bytes(text: str) -> bytes:
    """Encode a string; environment variables can contain bytes that aren't valid UTF-8."""
    return text.encode(errors="surrogateescape")


def _escaped(value: str) -> Iterator[str]:
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield value.replace("\\", "\\\\").replace("'", "\\'")
    yield value.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    yield "".join(f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}" for sign in value)  # noqa: PLR2004
    yield "".join(f"\\u{ord(sign):04x}" for sign in value)


def _base64(value: bytes) -> Iterator[bytes]:
    """Yield the part of the base64 encoding that doesn't depend on the surrounding bytes."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + value).rstrip(b"=")
        start = (0, 2, 3)[before]
        end = len(encoded) - (1 if (len(value) + before) % 3 else 0)
        yield encoded[start:end]
        yield encoded[start:end].replace(b"+", b"-").replace(b"/", b"_")

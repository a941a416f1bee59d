"""Secrets, and the encodings in which a value can occur in a build."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Final

from pytest_device.app.document import Json
from pytest_device.redact import is_secret_name

MIN_LENGTH = 8
"""Minimum length, in bytes; shorter values occur in any build by chance."""

_NEVER_SHIPS: Final = re.compile(
    r"secret|passw(?:or)?d|passphrase|private_?key|credential|token", re.IGNORECASE
)
"""Of the names of secrets, those that no app may contain; keys of map services and the like are in every app."""
SECRETS: Final = (
    re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    re.compile(
        r"(?:client_?secret|(?:access|auth|refresh|api)_?token)[\"']?\s*[:=]\s*[\"'`][^\"'`\s$]{8,}[\"'`]",
        re.IGNORECASE,
    ),
)


def named_texts(value: Json, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts in a value with the nearest key above each."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from named_texts(member, key)
    elif isinstance(value, list):
        for element in value:
            yield from named_texts(element, name)


def secret_trails(
    value: Json, above: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, one in pairs:
        if isinstance(one, str) and one and is_secret(str(name), one):
            yield (*above, name)
        yield from secret_trails(one, (*above, name))


def is_secret(name: str, value: str) -> bool:
    """Return whether a value must not ship with an app."""
    is_named = _NEVER_SHIPS.search(name) and is_secret_name(name)
    return bool(is_named or any(pattern.search(value) for pattern in SECRETS))


def spellings(value: str) -> set[bytes]:
    """Encode a value as UTF-8, UTF-16, base64 and JavaScript escapes, leaving out results that are too short."""
    plain = _bytes(value)
    little, big = (
        value.encode(f"utf-16-{order}", errors="surrogatepass")
        for order in ("le", "be")
    )
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
    yield "".join(
        f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}"  # noqa: PLR2004
        for sign in value
    )
    yield "".join(f"\\u{ord(sign):04x}" for sign in value)


def _base64(value: bytes) -> Iterator[bytes]:
    """Yield the part of the base64 encoding that doesn't depend on the surrounding bytes."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + value).rstrip(b"=")
        start = (0, 2, 3)[before]
        end = len(encoded) - (1 if (len(value) + before) % 3 else 0)
        yield encoded[start:end]
        yield encoded[start:end].replace(b"+", b"-").replace(b"/", b"_")

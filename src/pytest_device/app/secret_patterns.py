"""Secrets, and the encodings in which a value can occur in a build."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from pytest_device.app.document import Json
from pytest_device.redact import is_secret_name

MIN_LENGTH: Final = 8
"""Minimum length, in bytes; shorter values occur in any build by chance."""

_NEVER_SHIPS: Final = re.compile(
    r"secret|passw(?:or)?d|passphrase|private_?key|credential|token", re.IGNORECASE
)
"""Names of secrets that no app may contain; keys of map services and the like are in every app."""
SECRETS: Final = (
    re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    re.compile(
        r"(?:client_?secret|(?:access|auth|refresh|api)_?token)[\"']?\s*[:=]\s*[\"'`][^\"'`\s$]{8,}[\"'`]",
        re.IGNORECASE,
    ),
)
"""Texts that are secrets whatever their name: private keys, and assignments of tokens and client secrets."""


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
    """Yield the paths of the secrets in a value, which is at the path ``above``."""
    members: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)

    for name, member in members:
        if isinstance(member, str) and member and is_secret(str(name), member):
            yield (*above, name)
        yield from secret_trails(member, (*above, name))


def is_secret(name: str, value: str) -> bool:
    """Return whether a value must not ship with an app."""
    if _NEVER_SHIPS.search(name) and is_secret_name(name):
        return True

    return any(pattern.search(value) for pattern in SECRETS)


def encodings(value: str) -> set[bytes]:
    """Encode a value as UTF-8, base64 and JavaScript escapes, leaving out results that are too short."""
    utf_8 = _bytes(value)
    encoded = {utf_8, *_base64(utf_8), *map(_bytes, _escaped(value))}

    return {form for form in encoded if len(form) >= MIN_LENGTH}


def _bytes(text: str) -> bytes:
    """Encode a string; environment variables can contain bytes that aren't valid UTF-8."""
    return text.encode(errors="surrogateescape")


def _escaped(value: str) -> Iterator[str]:
    """Yield the ways to write a value in double quotes, single quotes and a template."""
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]

    escaped = value.replace("\\", "\\\\")
    yield escaped.replace("'", "\\'")
    yield escaped.replace("`", "\\`").replace("${", "\\${")


def _base64(value: bytes) -> Iterator[bytes]:
    """Yield the part of the base64 encoding that doesn't depend on the surrounding bytes."""
    # Three bytes become four characters: the first and the last ones may have bits of the neighbors.
    for bytes_before, start in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(b"\0" * bytes_before + value).rstrip(b"=")
        shares_last = (bytes_before + len(value)) % 3 != 0
        own = encoded[start:-1] if shares_last else encoded[start:]
        yield own
        yield own.replace(b"+", b"-").replace(b"/", b"_")

"""Secrets -> *** in text."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
"""Shorter values are not masked: they would blot out ordinary text and protect nothing."""

_PATTERNS: Final = (
    (re.compile(r"(?i)(authorization\W{1,6}bearer\s+)[^\s\"'\\]+"), rf"\g<1>{MASK}"),
    (re.compile(r"(?i)(https?://)[^\s/@\"']+@"), rf"\g<1>{MASK}@"),
)


class Redactor:
    """Mask the secrets it has been told, bearer tokens and credentials inside URLs."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Learn values that must not be shown from here on."""
        self._secrets.update(secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH)

    def text(self, text: str) -> str:
        """Return the text with every secret masked, the longest first so that no tail of one is left."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = _without_rests(text.replace(secret, MASK), secret)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def _without_rests(text: str, secret: str) -> str:
    """Mask the beginning and the end of a secret that pytest has shortened by three dots."""
    parts = text.split("...")
    lengths = range(len(secret) - 1, MIN_SECRET_LENGTH - 1, -1)
    for index in range(len(parts) - 1):
        if length := next((n for n in lengths if parts[index].endswith(secret[:n])), 0):
            parts[index] = parts[index][:-length] + MASK
        if length := next((n for n in lengths if parts[index + 1].startswith(secret[-n:])), 0):
            parts[index + 1] = MASK + parts[index + 1][length:]
    return "...".join(parts)


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address, without brackets, means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"

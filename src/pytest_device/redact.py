"""Secrets -> *** in text."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
"""Shorter values are not masked: they would blot out ordinary text and protect nothing."""

_PATTERNS: Final = (
    (re.compile(r"(?i)(bearer\s+)[^\s\"'\\]+"), rf"\g<1>{MASK}"),
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
            text = text.replace(secret, MASK)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address, without brackets, means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"

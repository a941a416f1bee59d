"""Replaces secrets in text by ***."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final
from urllib.parse import quote, urlsplit

from pytest_device.escape import escaped

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
"""Shorter values are not masked: that would garble ordinary text and protect nothing."""

_PATTERNS: Final = (
    (
        re.compile(
            r"(?i)(authorization\W{1,6}(?:b['\"])?(?:bearer|basic)\s+)[^\s\"'\\]+"
        ),
        rf"\g<1>{MASK}",
    ),
    (re.compile(r"(://)[^\s/\"']+@"), rf"\g<1>{MASK}@"),
    (
        re.compile(
            r"(?i)([?&#](?:code|[\w.%-]*(?:token|secret|passw|auth(?!or)|credential|signature|verifier|access.?key|api.?key)[\w.%-]*)=)"
            r"[^&#\s\"'<>\\]+"
        ),
        rf"\g<1>{MASK}",
    ),
)
_SAFE_IN_QUERIES: Final = "!$&'()*+,;=:@/?"
_ESCAPED: Final = {"\\": r"\\+", "'": r"\\*'", '"': r'\\*"'}
"""Patterns of characters after any number of nested reprs."""
_DOTS: Final = re.compile(r"(\.\.\.|…)")
"""Ellipses of pytest, reprlib and this package."""


class Redactor:
    """Masks known secrets, authorization headers and credentials in URLs."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self._nested: tuple[re.Pattern[str], ...] = ()
        self._by_start: dict[str, tuple[str, ...]] = {}
        self._by_end: dict[str, tuple[str, ...]] = {}
        """Reversed secrets by their first characters, which are the end of the secret."""
        self._lock = Lock()
        """Services add secrets from their threads."""
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Mask these values from now on, also as spelled in reprs, JSON and URLs."""
        encoded = {
            text
            for secret in secrets
            if len(secret) >= MIN_SECRET_LENGTH
            for text in _encodings(secret)
        }
        with self._lock:
            for secret in encoded.difference(self._secrets):
                for known, text in (
                    (self._by_start, secret),
                    (self._by_end, secret[::-1]),
                ):
                    known[text[:MIN_SECRET_LENGTH]] = (
                        *known.get(text[:MIN_SECRET_LENGTH], ()),
                        text,
                    )
                if not _ESCAPED.keys().isdisjoint(secret):
                    self._nested += (
                        re.compile(
                            "".join(
                                _ESCAPED.get(sign, re.escape(sign)) for sign in secret
                            )
                        ),
                    )
            self._secrets = tuple(
                sorted(encoded.union(self._secrets), key=len, reverse=True)
            )

    def text(self, text: str) -> str:
        """Return the text with every secret masked, longest first so that no part of one remains."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for nested in self._nested:
            text = nested.sub(MASK, text)
        if self._secrets and _DOTS.search(text):
            text = self._without_rests(text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text

    def _without_rests(self, text: str) -> str:
        """Mask the start and the end of a secret that was shortened by an ellipsis."""
        parts = _DOTS.split(text)
        for index in range(1, len(parts), 2):
            parts[index - 1] = self._without_start(parts[index - 1], self._by_start)
            parts[index + 1] = self._without_start(
                parts[index + 1][::-1], self._by_end
            )[::-1]
        return "".join(parts)

    def _without_start(self, part: str, known: Mapping[str, Sequence[str]]) -> str:
        """Mask the start of a secret at the end of a text."""
        for place in range(
            max(0, len(part) - len(self._secrets[0])), len(part) - MIN_SECRET_LENGTH + 1
        ):
            secrets = known.get(part[place : place + MIN_SECRET_LENGTH], ())
            if any(secret.startswith(part[place:]) for secret in secrets):
                return part[:place] + MASK
        return part


def _encodings(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield escaped(secret)
    for safe in ("", "/", _SAFE_IN_QUERIES):
        yield quote(secret, safe=safe, errors="replace")


def shown(text: str) -> str:
    """Return a value without credentials, and without its query, which is often the signature of an archive's URL."""
    start, query, _ = Redactor().text(text).partition("?")
    return f"{start}?…" if query else start


def uses_tls(url: str) -> bool:
    """Return whether calls of a URL need certificates, which take longer to load than many calls; True if in doubt."""
    return not url.lower().startswith("http:")


def is_loopback(host: str) -> bool:
    """Return whether a host name or address, without brackets, is a loopback address."""
    import ipaddress  # here, since a run that only hides a token never needs it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_loopback_authority(authority: str) -> bool:
    """Return whether a host with or without a port, as in a Host header, is a loopback address."""
    try:
        return is_loopback(urlsplit(f"//{authority}").hostname or "")
    except ValueError:  # an unmatched bracket
        return False

"""Replaces secrets in text by ***, and decides which names hold secrets."""

import json
import re
from bisect import insort
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from pytest_device.escape import escaped, without_colors
from pytest_device.secret_registry import MAX_SECRETS

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
"""Shorter values are not masked: that would garble ordinary text and protect nothing."""

_SECRET_NAME: Final = re.compile(
    r"secret|passw(?:or)?d|passphrase|passcode|credential|api_?key|access_?key|private_?key"
    r"|(?:^|_)(?:pwd|private|tokens?|jwt|bearer)(?:_|$)|token$|_keys?(?:_|$)|_auth$"
)
_OTHER_NAME: Final = re.compile(
    r"public|publishable"
    r"|_(?:ur[il]|endpoint|host|port|ids?|names?|path|file|dir|types?|method|mode|scheme|header|prefix|version"
    r"|alg|algorithm|hint|ttl|seconds|minutes|days|expir[a-z]*|length|size|count|limit|enabled|required)$"
)
"""Names of values that are public, or that only describe a secret."""
_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTERS: Final = re.compile(r"[^A-Za-z0-9]+")

_PATTERNS: Final = (
    (
        re.compile(
            r"(?i)(authorization\W{1,6}(?:b['\"])?(?:bearer|basic)\s++)[^\s\"'\\]+"
        ),
        rf"\g<1>{MASK}",
    ),
    (re.compile(r"(://)[^\s/\"']+@"), rf"\g<1>{MASK}@"),
    (
        re.compile(
            r"(?i)([?&#](?:code|(?>[\w.%-]*?"
            r"(?:token|secret|passw|auth(?!or)|credential|signature|verifier|access.?key|api.?key))[\w.%-]*+)=)"
            r"[^&#\s\"'<>\\]+"
        ),
        rf"\g<1>{MASK}",
    ),
)
"""Values that are secrets by what stands before them; groups that give nothing back keep the time linear."""
_SAFE_IN_QUERIES: Final = "!$&'()*+,;=:@/?"
_ESCAPED: Final = re.compile(r"""(\\*)(['"]?)""")
"""Characters before which nested reprs put backslashes, as often as they are nested."""
_DOTS: Final = re.compile(r"(\.\.\.|…)")
"""Ellipses of pytest, reprlib and this package."""

KEY_MARK: Final = "PRIVATE KEY-----"
_KEY_BEGINS: Final = re.compile(
    r"(-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY-----)"
)
_KEY_ENDS: Final = "-----END "
_KEY_BODY: Final = re.compile(
    r"""(?:(?:[\s'"+>|?-]|E(?=\s)|\\+[rn])*[A-Za-z0-9+/=]{16,})+"""
)
"""Lines of a key as pytest, a repr or a diff shows them."""
_NO_BASE64: Final = re.compile(r"\\+[rn]|[^A-Za-z0-9+/=]+")
_MIN_LINE_LENGTH: Final = 16
"""Length of a line of a secret from which the line alone is masked, too."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.+/=~%-]{23,}")
"""Tokens and lines of keys: text of these characters, long enough to be no ordinary word."""
_GRAM: Final = 8
_STRIDE: Final = 16
_MIN_WORD: Final = _GRAM + _STRIDE - 1
"""Length of a text of which any occurrence in a word contains a gram at one of the word's multiples of the stride."""
_MIN_FRAGMENT: Final = 37
"""Length from which a part of a secret is masked: tokens may contain IDs, which are no secrets; UUIDs have 36."""
_MAX_OWNERS: Final = 8
"""Words for each gram: those of one issuer may all begin alike, and one of them stands for the others."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable, key or header of this name holds a secret.

    >>> [is_secret_name(name) for name in ("API_TOKEN", "clientSecret", "x-api-key")]
    [True, True, True]
    >>> [is_secret_name(name) for name in ("PUBLIC_KEY", "TOKEN_URL", "passwordLength")]
    [False, False, False]
    """
    words = _NO_LETTERS.sub("_", _CAMEL_CASE.sub("_", name)).lower()
    return bool(_SECRET_NAME.search(words)) and not _OTHER_NAME.search(words)


def named_secrets(values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield the values that are secrets by their names, and passwords in URLs."""
    for name, value in values:
        if isinstance(value, str):
            yield value if is_secret_name(name) else _password_in(value)


def _password_in(url: str) -> str:
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:  # no URL
        return ""


class Redactor:
    """Masks known secrets, private keys, authorization headers and credentials in URLs."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = Lock()
        """Services add secrets from their threads."""
        self._lasting: dict[str, None] = {}
        self._recent: dict[str, None] = {}
        self._search = _Search()
        self.revision = 0
        """Increases with each new secret: what was masked before may have to be masked again."""
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Mask these values from now on, also as spelled in reprs, JSON and URLs."""
        with self._lock:
            for secret in secrets:
                if secret not in self._lasting:
                    self.revision += 1
                    self._lasting[secret] = None
                    self._search.add(secret)

    def add_recent(self, *secrets: str) -> None:
        """Do the same, until `MAX_SECRETS` more have been added: for those that a run has ever more of."""
        with self._lock:
            for secret in secrets:
                if secret not in self._recent and secret not in self._lasting:
                    self.revision += 1
                    self._search.add(secret)
                self._recent.pop(secret, None)  # so that it becomes the latest
                self._recent[secret] = None

            if len(self._recent) > 2 * MAX_SECRETS:
                self._recent = dict.fromkeys([*self._recent][-MAX_SECRETS:])
                self._search = _Search(*self._lasting, *self._recent)

    def text(self, text: str) -> str:
        """Return the text with every secret masked, longest first so that no part of one remains."""
        masked = self._masked(text)
        # A highlighter colors parts of a secret that is shown as code.
        if "\x1b[" in masked:
            plain = without_colors(masked)
            hidden = self._masked(plain)
            if hidden != plain:
                return hidden

        return masked

    def _masked(self, text: str) -> str:
        if KEY_MARK in text:
            text = _without_keys(text)

        text = self._search.masked(text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)

        return text


def _without_keys(text: str) -> str:
    """Mask each private key in PEM, known or not, whatever is around its lines."""
    # Each first line of a key, which the pattern has as a group, is an item of its own, before the text that follows.
    before, *rest = _KEY_BEGINS.split(text)
    first_lines, bodies = rest[::2], rest[1::2]

    parts = [before]
    for first_line, body in zip(first_lines, bodies, strict=True):
        end = body.find(_KEY_ENDS)
        if end < 0:  # cut off
            lines = _KEY_BODY.match(body)
            end = lines.end() if lines else 0
        parts.append(first_line)
        if end > 0:
            parts.append(MASK)
        parts.append(body[end:])

    return "".join(parts)


class _Search:
    """Finds secrets in a text, in all their spellings, whole or in parts.

    Most secrets are tokens and lines of keys. Their number hardly matters for the time: each is known by a few grams
    (strings of eight characters), and only long words of the text are compared with those. A word of the text that
    contains a part of such a secret is masked, too: a diff without ``-v`` omits what both sides begin with, and other
    tools wrap lines.
    """

    def __init__(self, *secrets: str) -> None:
        self._spellings: set[str] = set()
        """All that is searched for."""
        self._words: set[str] = set()
        self._grams: dict[str, list[tuple[str, int]]] = {}
        """Words by their grams, with the gram's place in the word."""
        self._phrases = _Phrases()
        """Long secrets with spaces or signs, such as URLs: they may contain words."""
        self._short: list[str] = []
        """Short secrets, longest first: words may contain them."""
        self._nested: tuple[re.Pattern[str], ...] = ()
        self._starts = _Starts()
        self._reversed_starts = _Starts()
        """Of reversed secrets, which start with the end of the secret."""
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        spellings: set[str] = set()
        for part in (secret, *_lines(secret)):
            if len(part) >= MIN_SECRET_LENGTH:
                spellings.update(_encodings(part))

        # Its parts are not secret on their own.
        is_address = "://" in secret or secret.startswith("/")
        for text in spellings - self._spellings:
            self._spellings.add(text)
            self._starts.add(text)
            self._reversed_starts.add(text[::-1])

            if len(text) < _MIN_WORD:
                insort(self._short, text, key=_shortness)
            elif is_address or not (_WORD.fullmatch(text) and self._add_word(text)):
                self._phrases.add(text)

            if any(sign in text for sign in "\\'\""):
                self._nested += (_nested(text),)

    def _add_word(self, word: str) -> bool:
        """Index a word; return False if more than enough others share all of its grams."""
        is_added = False
        for place in range(0, len(word) - _GRAM + 1, _STRIDE):
            gram = word[place : place + _GRAM]
            owners = self._grams.setdefault(gram, [])
            if len(owners) < _MAX_OWNERS:
                owners.append((word, place))
                is_added = True

        if is_added:
            self._words.add(word)
        return is_added

    def masked(self, text: str) -> str:
        text = self._phrases.masked(text)

        if self._words:
            text = _WORD.sub(self._masked_word, text)

        for secret in self._short:
            text = text.replace(secret, MASK)

        for nested in self._nested:
            text = nested.sub(MASK, text)

        if self._spellings and _DOTS.search(text):
            text = self._without_rests(text)

        return text

    def _masked_word(self, match: re.Match[str]) -> str:
        """Return a long word of a text without its secrets, or a mask if it contains a part of one."""
        word = match[0]
        if word in self._words:  # as nearly always
            return MASK

        # Where the word and a secret have a gram in common: its place in each.
        hits = [
            (at, secret, place)
            for at in range(len(word) - _GRAM + 1)
            for secret, place in self._grams.get(word[at : at + _GRAM], ())
        ]

        # Where the word contains a whole secret.
        spans: list[tuple[int, int]] = []
        for at, secret, place in hits:
            start = at - place
            if start >= 0 and word.startswith(secret, start):
                spans.append((start, start + len(secret)))

        for at, secret, place in hits:
            is_in_span = any(start <= at < end for start, end in spans)
            if is_in_span:
                continue
            if _shared_length(word, at, secret, place) >= _MIN_FRAGMENT:
                return MASK

        return _with_masks(word, spans)

    def _without_rests(self, text: str) -> str:
        """Mask the start and the end of a secret that was shortened by an ellipsis."""
        parts = _DOTS.split(text)
        # Every second part is an ellipsis.
        for index in range(1, len(parts), 2):
            before, after = parts[index - 1], parts[index + 1]
            parts[index - 1] = self._starts.masked(before)
            parts[index + 1] = self._reversed_starts.masked(after[::-1])[::-1]

        return "".join(parts)


class _Phrases:
    """Finds long secrets of any characters.

    A run learns some for each of its sessions, such as the spellings of a URL, and most of them begin alike: only
    where a text has such a beginning is it compared with them.
    """

    def __init__(self) -> None:
        self._by_start: dict[str, dict[int, set[str]]] = {}
        """Secrets by their first characters, then by their length."""

    def add(self, phrase: str) -> None:
        by_length = self._by_start.setdefault(phrase[:_GRAM], {})
        by_length.setdefault(len(phrase), set()).add(phrase)

    def masked(self, text: str) -> str:
        spans: list[tuple[int, int]] = []
        # Copies, since another thread may add a secret meanwhile.
        for start, by_length in list(self._by_start.items()):
            place = text.find(start)
            while place >= 0:
                for length, phrases in list(by_length.items()):
                    end = place + length
                    if text[place:end] in phrases:
                        spans.append((place, end))
                place = text.find(start, place + 1)

        return _with_masks(text, spans) if spans else text


class _Starts:
    """Finds the start of a secret at the end of a text."""

    def __init__(self) -> None:
        self._words: dict[str, list[str]] = {}
        """Secrets without spaces, by their first characters: they can only begin in the last word of a text."""
        self._phrases: dict[str, list[str]] = {}
        """The few others, such as keys with their first line."""
        self._longest = 0

    def add(self, secret: str) -> None:
        is_word = secret.split() == [secret]
        by_start = self._words if is_word else self._phrases
        by_start.setdefault(secret[:MIN_SECRET_LENGTH], []).append(secret)
        self._longest = max(self._longest, len(secret))

    def masked(self, text: str) -> str:
        """Mask the longest start of a secret, if the text ends with one."""
        end = text[-self._longest :]
        lengths = [*self._lengths_of_phrases(end), self._length_of_word(end)]
        longest = max(lengths)
        return text[:-longest] + MASK if longest else text

    def _lengths_of_phrases(self, text: str) -> Iterator[int]:
        for start, secrets in self._phrases.items():
            place = text.find(start)
            while place >= 0:
                rest = text[place:]
                if any(secret.startswith(rest) for secret in secrets):
                    yield len(rest)
                    break
                place = text.find(start, place + 1)

    def _length_of_word(self, text: str) -> int:
        if not text or text[-1].isspace():
            return 0

        word = text.rsplit(maxsplit=1)[-1]
        for place in range(len(word) - MIN_SECRET_LENGTH + 1):
            rest = word[place:]
            secrets = self._words.get(rest[:MIN_SECRET_LENGTH], ())
            if any(secret.startswith(rest) for secret in secrets):
                return len(rest)

        return 0


def _shortness(secret: str) -> int:
    """Return a sort key that places the longest first."""
    return -len(secret)


def _shared_length(word: str, at: int, secret: str, place: int) -> int:
    """Return how many characters a word and a secret share around one place in each."""
    start = at
    end = at + _GRAM

    offset = place - at
    while (
        start > 0
        and start + offset > 0
        and word[start - 1] == secret[start + offset - 1]
    ):
        start -= 1

    while (
        end < len(word)
        and end + offset < len(secret)
        and word[end] == secret[end + offset]
    ):
        end += 1

    return end - start


def _with_masks(word: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the spans, which may overlap, by masks."""
    parts: list[str] = []
    kept = 0

    for start, end in sorted(spans):
        if start > kept or not parts:
            parts += [word[kept:start], MASK]
        kept = max(kept, end)

    return "".join((*parts, word[kept:]))


def _lines(secret: str) -> Iterator[str]:
    """Yield the lines of a secret that has several, since a diff or a traceback shows each on its own.

    In a private key from an environment variable, backslashes and letters often stand for the line ends.
    """
    begins = _KEY_BEGINS.search(secret)
    if begins:
        body = secret[begins.end() :].partition(_KEY_ENDS)[0]
        yield from _NO_BASE64.split(body)
    elif "\n" in secret:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= _MIN_LINE_LENGTH)


def _nested(secret: str) -> re.Pattern[str]:
    """Return a pattern of a secret after any number of nested reprs, which matches in linear time.

    A run of backslashes is one part of the pattern that gives nothing back, and a match begins at the start of a run:
    otherwise the time would grow with the length of a run to the power of the number of backslashes in the secret.
    """
    parts: list[str] = []
    place = 0
    while place < len(secret):
        escape = _ESCAPED.match(secret, place)
        if escape and escape[0]:
            parts.append(rf"\\{{{len(escape[1])},}}+{escape[2]}")
            place = escape.end()
        else:
            parts.append(re.escape(secret[place]))
            place += 1

    start = r"(?<!\\)" if secret[0] in "\\'\"" else ""
    return re.compile(start + "".join(parts))


def _encodings(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield escaped(secret)

    if not secret.isascii():
        yield secret.encode("unicode_escape").decode("ascii")  # in names of tests
        yield repr(secret.encode(errors="replace"))[2:-1]

    for safe in ("", "/", _SAFE_IN_QUERIES):
        yield quote(secret, safe=safe, errors="replace")


def shown(text: str) -> str:
    """Return a value without credentials, and without its query, which is often the signature of an archive's URL."""
    start, query, _ = Redactor().text(text).partition("?")
    return f"{start}?…" if query else start


def uses_tls(url: str) -> bool:
    """Return whether calls of a URL need certificates, which take longer to load than many calls; True if in doubt."""
    return not url.lower().startswith("http:")


def is_http_url(url: str) -> bool:
    """Return whether a text is a URL with http or https and a host, without blanks."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False

    is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
    return is_http and has_port and url.split() == [url]


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

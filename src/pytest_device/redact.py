"""Replaces secrets in text by ***, and decides which names hold secrets."""

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
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

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.+/=~%-]+")
"""Tokens and lines of keys, a part of which is secret as well."""
_PART: Final = 37
"""Length of these parts: tokens may contain IDs, which are no secrets, and UUIDs have 36 characters."""
_STEP_OF_PARTS: Final = 8

_GRAM: Final = 4
_MIN_WRAPPED: Final = 8
"""Length from which a secret is found across lines: those of a table may be the digits of a shorter one."""
_BREAK: Final = re.compile(r"\\+[nrt]?|[\r\n][ \t\r\n]*+(?:[E>|│+-][ \t]++)?")
"""What nested reprs and shells put before a sign, and terminals, boxes and pytest between the parts of a long line."""
_NOISE: Final = re.compile(rf"{_BREAK.pattern}|['\"]")
_NOISE_AND_BLANKS: Final = re.compile(rf"{_NOISE.pattern}|\s")

_SAFE_IN_URLS: Final = ("", "/", "*", "!'()*", "!'()*;/?:@&=+$,#", "!$&'()*+,;=:@/?")
"""Signs that encoders of paths, forms, JavaScript and queries leave alone."""
_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_IN_SCRIPTS: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>'"}


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
        self._lasting = tuple(secrets)
        self._added: dict[str, None] = {}
        self._search = _Search(*self._lasting)
        self.revision = 0
        """Increases with each new secret: what was masked before may have to be masked again."""

    def add(self, *secrets: str) -> None:
        """Mask these values, too, however they are spelled, until `MAX_SECRETS` more have been added."""
        with self._lock:
            for secret in secrets:
                if secret not in self._added:
                    self.revision += 1
                    self._search.add(secret)
                self._added.pop(secret, None)  # so that it becomes the latest
                self._added[secret] = None

            if len(self._added) > 2 * MAX_SECRETS:
                self._added = dict.fromkeys([*self._added][-MAX_SECRETS:])
                self._search = _Search(*self._lasting, *self._added)

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
    """Finds secrets in a text, in all their spellings, whole, shortened, and wrapped at any width."""

    def __init__(self, *secrets: str) -> None:
        self._plain = _Needles(MIN_SECRET_LENGTH)
        """Those that are too short, or contain noise themselves."""
        self._wrapped = _Needles(_MIN_WRAPPED)
        """Those that are found in a text without noise, as nearly all are."""
        self._words = _Needles(_MIN_WRAPPED)
        """Those with blanks, at which a line may be wrapped, in a text without noise and blanks."""
        self._starts = _Starts()
        self._reversed_starts = _Starts()
        """Of reversed secrets, which start with the end of the secret."""
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        # The parts of an address are not secret on their own.
        is_address = "://" in secret or secret.startswith("/")
        for line in (secret, *_lines(secret)):
            if len(line) < MIN_SECRET_LENGTH:
                continue

            for spelling in _spellings(line):
                self._add_spelling(spelling)
                self._starts.add(spelling)
                self._reversed_starts.add(spelling[::-1])

            if not is_address and _TOKEN.fullmatch(line):
                for end in range(len(line), _PART - 1, -_STEP_OF_PARTS):
                    self._wrapped.add(line[end - _PART : end])

    def _add_spelling(self, spelling: str) -> None:
        text = _without_noise(spelling)
        has_blanks = text.split() != [text]
        if has_blanks or text != spelling or len(text) < _MIN_WRAPPED:
            self._plain.add(spelling)

        # A line may end between a backslash and one of the letters that stand for signs after it.
        for variant in {spelling, spelling.replace("\\", "")}:
            text = _without_noise(variant)
            self._wrapped.add(text)
            # So it does in a text with a backslash before the secret.
            if text.startswith(("n", "r", "t")):
                self._wrapped.add(text[1:])
            if has_blanks:
                self._words.add(_without_blanks(variant))

    def masked(self, text: str) -> str:
        if not self._starts:
            return text

        spans = self._plain.spans(text)
        if self._wrapped:
            found = self._wrapped.spans(_without_noise(text))
            spans += _in_original(found, text, _NOISE)
        if self._words:
            found = self._words.spans(_without_blanks(text))
            spans += _in_original(found, text, _NOISE_AND_BLANKS)

        text = _with_masks(text, spans)
        return self._without_rests(text) if _DOTS.search(text) else text

    def _without_rests(self, text: str) -> str:
        """Mask the start and the end of a secret that was shortened by an ellipsis."""
        parts = _DOTS.split(text)
        # Every second part is an ellipsis.
        for index in range(1, len(parts), 2):
            before, after = parts[index - 1], parts[index + 1]
            parts[index - 1] = self._starts.masked(before)
            parts[index + 1] = self._reversed_starts.masked(after[::-1])[::-1]

        return "".join(parts)


class _Needles:
    """Finds strings of a minimum length in a text; their number hardly matters for the time.

    Each is known by the grams (strings of four characters) at its end, where secrets differ from each other: by so many
    that the text is looked at in steps only.
    """

    def __init__(self, min_length: int) -> None:
        self._step = min_length - _GRAM + 1
        self._min_length = min_length
        self._needles: set[str] = set()
        self._places: dict[str, tuple[tuple[int, int], ...]] = {}
        """For each gram, its place in a needle, and the length of the needle."""

    def __bool__(self) -> bool:
        return bool(self._needles)

    def add(self, needle: str) -> None:
        if len(needle) < self._min_length or needle in self._needles:
            return

        self._needles.add(needle)
        last = len(needle) - _GRAM
        for place in range(last - self._step + 1, last + 1):
            gram = needle[place : place + _GRAM]
            known = self._places.get(gram, ())
            if (place, len(needle)) not in known:
                self._places[gram] = (*known, (place, len(needle)))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where needles begin and end, which may overlap."""
        places = self._places
        if not places:
            return []

        hits = [
            at
            for at in range(0, len(text) - _GRAM + 1, self._step)
            if text[at : at + _GRAM] in places
        ]
        return [
            (start, start + length)
            for at in hits
            for place, length in places[text[at : at + _GRAM]]
            if (start := at - place) >= 0
            and text[start : start + length] in self._needles
        ]


class _Starts:
    """Finds the start of a secret at the end of a text."""

    def __init__(self) -> None:
        self._secrets: dict[str, dict[str, None]] = {}
        """By their first characters."""
        self._longest = 0

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def add(self, secret: str) -> None:
        self._secrets.setdefault(secret[:MIN_SECRET_LENGTH], {})[secret] = None
        self._longest = max(self._longest, len(secret))

    def masked(self, text: str) -> str:
        """Mask the longest start of a secret, if the text ends with one."""
        secrets = self._secrets
        end = text[-self._longest :]
        hits = [
            place
            for place in range(len(end) - MIN_SECRET_LENGTH + 1)
            if end[place : place + MIN_SECRET_LENGTH] in secrets
        ]
        for place in hits:
            rest = end[place:]
            # A copy, since another thread may add a secret meanwhile.
            known = tuple(secrets[rest[:MIN_SECRET_LENGTH]])
            if any(secret.startswith(rest) for secret in known):
                return text[: -len(rest)] + MASK

        return text


def _without_noise(text: str) -> str:
    return _BREAK.sub("", text).replace("'", "").replace('"', "")


def _without_blanks(text: str) -> str:
    return "".join(_without_noise(text).split())


def _in_original(
    spans: list[tuple[int, int]], text: str, noise: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Yield where spans of a text without noise are in the text itself."""
    if not spans:
        return

    # Where noise was left out, and how much in all.
    places = [0]
    lengths = [0]
    for found in noise.finditer(text):
        places.append(found.start() - lengths[-1])
        lengths.append(lengths[-1] + len(found[0]))

    for span in spans:
        first, last = (
            place + lengths[bisect_right(places, place) - 1]
            for place in (span[0], span[1] - 1)
        )
        yield first, last + 1


def _with_masks(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the spans, which may overlap, by masks."""
    parts: list[str] = []
    kept = 0
    for start, end in sorted(spans):
        if start >= kept or not parts:
            parts += [text[kept:start], MASK]
        kept = max(kept, end)

    return "".join((*parts, text[kept:]))


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


def _spellings(secret: str) -> set[str]:
    """Return a secret in each encoding in which a text may have it: this is the one list of them."""
    encodings = (_in_code, _in_urls, _in_markup, _in_shells, _in_base64)
    return {secret, *chain.from_iterable(spell(secret) for spell in encodings)}


def _in_code(secret: str) -> Iterator[str]:
    """Yield a secret as in JSON, in reprs and in names of tests."""
    for plain in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        text = plain[1:-1]
        yield from (text, text.replace("/", r"\/"), text.translate(_IN_SCRIPTS))

    yield repr(secret)[1:-1]
    yield repr(secret.encode(errors="replace"))[2:-1]
    yield secret.encode("unicode_escape").decode("ascii")
    yield escaped(secret)


def _in_urls(secret: str) -> Iterator[str]:
    """Yield a secret with percent signs as in paths, and with plus signs as in forms."""
    for safe in _SAFE_IN_URLS:
        path = quote(secret, safe=safe, errors="replace")
        form = path.replace("%20", "+")
        for text in (path, form, form.replace("~", "%7E")):
            yield text
            yield _PERCENT.sub(lambda found: found[0].lower(), text)


def _in_markup(secret: str) -> Iterator[str]:
    """Yield a secret as in HTML and XML."""
    text = html.escape(secret, quote=False)
    for apostrophe in ("'", "&#x27;", "&#39;", "&#039;", "&apos;"):
        for mark in ('"', "&quot;", "&#34;"):
            yield text.replace("'", apostrophe).replace('"', mark)


def _in_shells(secret: str) -> Iterator[str]:
    """Yield a secret in single quotation marks, which end before an apostrophe."""
    yield secret.replace("'", "'\"'\"'")
    yield secret.replace("'", r"'\''")


def _in_base64(secret: str) -> Iterator[str]:
    """Yield a secret alone, and what any text that contains it has in common, such as a user name with a password."""
    content = secret.encode(errors="replace")
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(content).decode()
        for before in range(3):
            text = encode(bytes(before) + content).decode()
            # Characters that none of the bytes around the secret changes: each stands for six bits.
            first = -(-8 * before // 6)
            yield text[first : 8 * (before + len(content)) // 6]


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

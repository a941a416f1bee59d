"""Parses the texts of options: one function per kind.

Each raises ValueError with the rule that a text breaks, those of services' addresses ConfigError.
"""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from pytest_device.errors import ConfigError
from pytest_device.redact import MASK, is_http_url, is_loopback
from pytest_device.spec import (
    ARCHIVE_URL_MAX_LENGTH,
    DURATION_MAX_MINUTES,
    IDLE_MAX_MINUTES,
    IDLE_MIN_MINUTES,
    OMITTED_VALUES,
    REQUESTABLE_SESSION_TYPES,
    VENDOR_FIELDS,
    Platform,
    SessionType,
    Share,
)
from pytest_device.spelling import hint

T = TypeVar("T")

_SECONDS_MAX: Final = 1_000_000
"""Longer than any session, and short enough for every system's timers."""
_SHARDS_MAX: Final = 1_000
_BUDGET_MAX: Final = 1_000_000
_ON: Final = ("1", "true", "yes", "on")
_SWITCH: Final = {word: word in _ON for word in (*_ON, "0", "false", "no", "off")}


def _parsed(
    text: str,
    rule: str,
    convert: Callable[[str], T],
    is_valid: Callable[[T], object] = lambda _: True,
) -> T:
    """Return the converted text. Raises ValueError with the rule unless it can be converted and is valid."""
    try:
        value = convert(text)
        if is_valid(value):
            return value
    except (ValueError, KeyError):
        # The rule is more helpful than the conversion's error.
        pass

    raise ValueError(rule)


def text(text: str) -> str:
    """Return the text unchanged: any is valid."""
    return text


def switch(text: str) -> bool:
    return _parsed(text.strip().lower(), "true or false", _SWITCH.__getitem__)


def number(text: str, minimum: int, maximum: int, unit: str = "") -> int:
    of_unit = f" of {unit}" if unit else ""

    return _parsed(
        text,
        f"a whole number{of_unit} from {minimum} to {maximum}",
        int,
        lambda value: minimum <= value <= maximum,
    )


def minutes(text: str, minimum: int = 1) -> int:
    return number(text, minimum, DURATION_MAX_MINUTES, "minutes")


def duration(text: str) -> int | str:
    return _limit(text, 1, DURATION_MAX_MINUTES, OMITTED_VALUES["max_duration_minutes"])


def idle_time(text: str) -> int | str:
    return _limit(
        text,
        IDLE_MIN_MINUTES,
        IDLE_MAX_MINUTES,
        OMITTED_VALUES["max_idle_time_minutes"],
    )


def _limit(text: str, minimum: int, maximum: int, words: Collection[str]) -> int | str:
    if text in words:
        return text

    choices = " or ".join(repr(word) for word in words)
    rule = f"a whole number of minutes from {minimum} to {maximum}, or {choices}"

    return _parsed(text, rule, int, lambda value: minimum <= value <= maximum)


def seconds(text: str) -> float:
    rule = f"a number of seconds greater than 0, at most {_SECONDS_MAX}"
    return _parsed(text, rule, float, lambda value: 0 < value <= _SECONDS_MAX)


def budget(text: str) -> float:
    rule = f"a number of minutes greater than 0, at most {_BUDGET_MAX}"
    return _parsed(text, rule, float, lambda value: 0 < value <= _BUDGET_MAX)


def uuid(text: str, rule: str) -> str:
    return _parsed(text, rule, lambda text: str(UUID(text)))


def session_id(text: str) -> str:
    """Return the ID as it is spelled: services may be case-sensitive."""
    return _parsed(text, "the UUID of a session", str, UUID)


def choice(text: str, *words: str) -> str:
    rule = " or ".join(repr(word) for word in words)
    return _parsed(text, rule, str, words.__contains__)


def platforms(text: str) -> tuple[Platform, ...]:
    each = ", ".join(repr(str(platform)) for platform in Platform)
    all_of_them = ",".join(Platform)

    return _parsed(text, f"{each} or {all_of_them!r}", _platforms)


def _platforms(text: str) -> tuple[Platform, ...]:
    listed = [Platform(word.strip()) for word in text.split(",")]

    # Each once, in the order of the text.
    return tuple(dict.fromkeys(listed))


def session_type(text: str) -> SessionType:
    rule = f"one of {', '.join(REQUESTABLE_SESSION_TYPES)}"
    return _parsed(text, rule, SessionType, REQUESTABLE_SESSION_TYPES.__contains__)


def share(text: str) -> Share:
    return _parsed(text, f"one of {', '.join(Share)}", Share)


def shard(text: str) -> str:
    rule = f"INDEX/TOTAL, for example 2/4, with TOTAL up to {_SHARDS_MAX}"
    index, total = _parsed(
        text, rule, _fraction, lambda shard: 1 <= shard[0] <= shard[1] <= _SHARDS_MAX
    )

    return f"{index}/{total}"


def _fraction(text: str) -> tuple[int, int]:
    index, total = text.split("/")

    return int(index), int(total)


def public_url(text: str) -> str:
    return _parsed(
        text,
        "an http or https URL with {port}, for example 'https://{port}.tests.example', without query and fragment",
        str,
        lambda text: (
            "{port}" in text
            and not any(sign in text for sign in "?#")
            and is_http_url(text.replace("{port}", "80").replace("{worker}", "gw0"))
        ),
    )


def archive_url(text: str) -> str:
    rule = f"an HTTP or HTTPS URL of at most {ARCHIVE_URL_MAX_LENGTH} characters"
    return _parsed(
        text,
        rule,
        str,
        lambda text: len(text) <= ARCHIVE_URL_MAX_LENGTH and is_http_url(text),
    )


def path(text: str) -> str:
    value = _parsed(text, "a path", Path, lambda _: "\0" not in text)

    # The local service has a working directory of its own.
    return str(value.absolute())


def absolute_path(text: str) -> str:
    return _parsed(
        text,
        "an absolute path",
        str,
        lambda text: "\0" not in text and Path(text).is_absolute(),
    )


def words(text: str) -> tuple[str, ...]:
    stripped = [word.strip() for word in text.split(",")]

    return tuple(word for word in stripped if word)


def word(text: str) -> str:
    is_word = text.isascii() and text.isalpha() and text.islower()

    return _parsed(text, "lowercase letters only", str, lambda _: is_word)


def vendor_names(text: str) -> tuple[str, ...]:
    """Return the names of the vendor's profile, each as ``NAME=VALUE``."""
    parts = [part.partition("=") for part in words(text.replace("\n", ","))]
    values = {name.strip(): value.strip() for name, _, value in parts}

    for name, value in values.items():
        if name not in VENDOR_FIELDS:
            names = ", ".join(VENDOR_FIELDS)
            raise ValueError(f"NAME=VALUE, of {names}{hint(name, VENDOR_FIELDS)}")

        pattern, rule = VENDOR_FIELDS[name]
        if not re.fullmatch(pattern, value):
            raise ValueError(f"NAME=VALUE, and {name} must be {rule}")

    return tuple(f"{name}={value}" for name, value in values.items())


def address(url: str) -> str:
    """Return the service's base URL without a trailing slash.

    Raises ConfigError unless it is ``https://`` (``http://`` on loopback only, since the token travels with every
    request) and contains nothing but host, port and path.
    """
    shown = _without_credentials(url)

    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        # Which may quote a part of a password.
        rule = " must look like https://host" if "@" in url else f": {error}"
        raise ConfigError(f"service URL {shown!r}{rule}") from None

    is_http = parts.scheme in {"http", "https"}
    if not (is_http and host and has_port):
        raise ConfigError(
            f"service URL {shown!r} must look like https://host or https://host/path"
        )

    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            f"service URL {shown!r} would send the access token unencrypted: use https://"
        )

    if parts.username or parts.password:
        raise ConfigError(
            f"service URL {shown!r} must not contain credentials: remove them, the access token is passed separately"
        )

    if not url.strip().isprintable() or " " in url.strip() or not _encodes(host):
        raise ConfigError(f"service URL {shown!r} contains invalid characters")

    if "?" in url or "#" in url:
        raise ConfigError(
            f"service URL {shown!r} must end with its path: remove the ?query or #fragment"
        )

    if parts.path.rstrip("/").endswith("/v2"):
        raise ConfigError(
            f"service URL {shown!r} must end before /v2, which is added to each request"
        )

    return url.strip().rstrip("/")


def slots_address(url: str) -> str:
    """Return the URL of a Redis server: ``redis://host:port/number``, or ``rediss://`` for an encrypted connection.

    Raises ConfigError, without showing credentials, if it contains anything else, or credentials that would cross a
    network unencrypted.
    """
    shown = _without_credentials(url)
    form_error = ConfigError(
        f"Redis URL {shown!r} must look like rediss://host, rediss://host:port or rediss://host:port/number"
    )

    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        raise form_error from None

    number = parts.path.strip("/")
    is_number = number == "" or number.isdecimal()
    is_redis = parts.scheme in {"redis", "rediss"}
    if not (is_redis and host and has_port and is_number):
        raise form_error

    if not url.strip().isprintable() or any(sign in url.strip() for sign in " '\"?#"):
        raise ConfigError(
            f"Redis URL {shown!r} must end with its database number, and contain no blank, quote, ? or #"
        )

    if "@" in parts.netloc and parts.scheme == "redis" and not is_loopback(host):
        raise ConfigError(
            f"Redis URL {shown!r} would send its credentials unencrypted: use rediss://"
        )

    return url.strip()


def _encodes(host: str) -> bool:
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _without_credentials(url: str) -> str:
    """Return a URL for messages, without its query; credentials may contain slashes, blanks and quotes."""
    stripped = url.strip()
    scheme, separator, rest = stripped.partition("://")
    if not separator:
        # Without a scheme, all of it may be credentials and a host.
        scheme, rest = "", stripped

    credentials, at, location = rest.rpartition("@")
    mask = MASK if credentials else ""

    return f"{scheme}{separator}{mask}{at}{location.partition('?')[0]}"

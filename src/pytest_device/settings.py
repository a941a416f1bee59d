"""What a run is told about the service: one table of options, and frozen settings that remember their source."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from pytest_device.errors import ConfigError
from pytest_device.redact import Redactor, is_loopback
from pytest_device.spec import (
    DURATION_MAX_MINUTES,
    IDLE_MAX_MINUTES,
    IDLE_MIN_MINUTES,
    POLL_INTERVAL_SECONDS,
    VENDOR,
)

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DEVICE_TOKEN"  # noqa: S105  # the name of the variable, not a token
LOCAL_POLL_INTERVAL_SECONDS: Final = 0.2
"""For the local service: it is on this machine and serves nobody else."""
LOCAL_APP_ID: Final = "00000000-0000-4000-8000-000000000001"
"""The project of a local service that is told no other."""


def checked_url(url: str) -> str:
    """Return the service's base address without a slash at its end.

    Raises ConfigError unless it is ``https://`` (``http://`` on loopback only, since the token travels with every
    request) and holds nothing but host, port and path.
    """
    shown = Redactor().text(url)
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"service address {shown!r}: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"service address {shown!r} must look like https://host or https://host/path")
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(f"service address {shown!r} would send the access token unencrypted: use https://")
    if parts.username or parts.password:
        raise ConfigError(f"service address {shown!r} must not hold credentials: the token comes from {TOKEN_VARIABLE}")
    if parts.query or parts.fragment:
        raise ConfigError(f"service address {shown!r} must end with its path: leave out ?query and #fragment")
    base = url.strip().rstrip("/")
    if parts.path.rstrip("/").endswith("/v2"):
        raise ConfigError(f"service address {shown!r} must end before /v2, which belongs to each call")
    return base


def checked_token(token: str) -> str:
    """Return the access token; raises ConfigError, without showing it, when no header can carry it."""
    if not token.strip():
        raise ConfigError(f"no access token: set the environment variable {TOKEN_VARIABLE}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"the access token in {TOKEN_VARIABLE} holds blanks or unprintable characters: copy it again")
    return token


def _uuid(text: str) -> str:
    return str(UUID(text))


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def _minutes(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return parse


def _switch(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}[
        text.strip().lower()
    ]


def _word(text: str) -> str:
    if not (text.isascii() and text.isalpha() and text.islower()):
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One setting: ``--device-WORD``, ``DEVICE_WORD`` in the environment, ``device_word`` in the ini file."""

    word: str
    parse: Callable[[str], T]
    default: T
    rule: str
    help: str

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--device-{self.word.replace('_', '-')}"

    @property
    def ini(self) -> str:
        """Its name in the ini file."""
        return f"device_{self.word}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return self.ini.upper()


URL: Final[Option[str | None]] = Option(
    "url", checked_url, None, "must be an https:// address", "address of the service, up to and without /v2"
)
LOCAL: Final[Option[bool]] = Option(
    "local", _switch, False, "must be true or false", "start a local service for this run and end it with the run"
)
APP_ID: Final[Option[str | None]] = Option(
    "app_id", _uuid, None, "must be the project's UUID", "the project that sessions are created in (a UUID)"
)
WAIT_TIMEOUT_SECONDS: Final[Option[float]] = Option(
    "wait_timeout_seconds",
    _seconds,
    900.0,
    "must be a number of seconds above 0",
    "how long to wait for a session to be in progress, queueing included",
)
POLL_INTERVAL: Final[Option[float]] = Option(
    "poll_interval_seconds",
    _seconds,
    POLL_INTERVAL_SECONDS,
    "must be a number of seconds above 0",
    f"pause between two looks at a session that is not ready (local service: {LOCAL_POLL_INTERVAL_SECONDS})",
)
MAX_DURATION_MINUTES: Final[Option[int]] = Option(
    "max_duration_minutes",
    _minutes(1, DURATION_MAX_MINUTES),
    30,
    f"must be a whole number of minutes from 1 to {DURATION_MAX_MINUTES}",
    "the service ends a session after so many minutes, where the marker does not say otherwise",
)
MAX_IDLE_TIME_MINUTES: Final[Option[int]] = Option(
    "max_idle_time_minutes",
    _minutes(IDLE_MIN_MINUTES, IDLE_MAX_MINUTES),
    10,
    f"must be a whole number of minutes from {IDLE_MIN_MINUTES} to {IDLE_MAX_MINUTES}",
    "the service ends a session whose controller is unused for so many minutes, where its type allows it",
)
VENDOR_WORD: Final[Option[str]] = Option(
    "vendor",
    _word,
    VENDOR,
    "must be a word of lower-case letters",
    "the maker's word as the account's service spells it in requests (vendorGo)",
)
OPTIONS: Final[tuple[Option[Any], ...]] = (
    URL,
    LOCAL,
    APP_ID,
    WAIT_TIMEOUT_SECONDS,
    POLL_INTERVAL,
    MAX_DURATION_MINUTES,
    MAX_IDLE_TIME_MINUTES,
    VENDOR_WORD,
)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and the name of what gave it: an option, an environment variable, an ini key, or ``default``."""

    value: T
    source: str
    rank: int
    """0 for the command line, 1 for the environment, 2 for the ini file, 3 for the default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run."""

    url: Setting[str | None]
    local: Setting[bool]
    app_id: Setting[str | None]
    wait_timeout_seconds: Setting[float]
    poll_interval_seconds: Setting[float]
    max_duration_minutes: Setting[int]
    max_idle_time_minutes: Setting[int]
    vendor: Setting[str]
    token: str = field(repr=False)
    """The access token, empty when there is none. It comes from the environment only."""

    def service_problems(self) -> Iterator[str]:
        """Tell what is missing to reach a service; nothing when a session could be created."""
        if self.local.value:
            return
        if self.url.value is None:
            yield (
                "no device service is configured: give its address (--device-url, DEVICE_URL or device_url in the ini "
                f"file) with {TOKEN_VARIABLE} and an app id, or run on this machine with --device-local"
            )
            return
        if self.app_id.value is None:
            yield f"no app id for {self.url.value}: set --device-app-id, DEVICE_APP_ID or device_app_id in the ini file"
        try:
            checked_token(self.token)
        except ConfigError as error:
            yield from error.problems


Source = Callable[[str], str | None]


def resolve(options: Source, environ: Mapping[str, str], ini: Source) -> Settings:
    """Return the settings; for each the command line comes before the environment, that before the ini file.

    ``options`` and ``ini`` look up a raw text by ini key (``device_url``), None when it was not given.
    Raises ConfigError that tells every value at fault, with its source and its rule.
    """
    problems: list[str] = []

    def setting(option: Option[T]) -> Setting[T]:
        found = _first_given(option, options, environ, ini)
        if found is None:
            return Setting(option.default, "default", 3)
        text, source, rank = found
        try:
            return Setting(option.parse(text), source, rank)
        except ConfigError as error:
            problems.extend(f"{source}: {problem}" for problem in error.problems)
        except (ValueError, KeyError):
            problems.append(f"{source}={text!r} {option.rule}")
        return Setting(option.default, "default", 3)

    settings = Settings(
        url=setting(URL),
        local=setting(LOCAL),
        app_id=setting(APP_ID),
        wait_timeout_seconds=setting(WAIT_TIMEOUT_SECONDS),
        poll_interval_seconds=setting(POLL_INTERVAL),
        max_duration_minutes=setting(MAX_DURATION_MINUTES),
        max_idle_time_minutes=setting(MAX_IDLE_TIME_MINUTES),
        vendor=setting(VENDOR_WORD),
        token=environ.get(TOKEN_VARIABLE, ""),
    )
    if settings.local.value and settings.url.value is not None and settings.local.rank == settings.url.rank:
        problems.append(f"{settings.url.source} and {settings.local.source} exclude each other: name one service")
    if problems:
        raise ConfigError(*problems)
    return _one_service(settings)


def _first_given(
    option: Option[Any], options: Source, environ: Mapping[str, str], ini: Source
) -> tuple[str, str, int] | None:
    for rank, (text, source) in enumerate(
        (
            (options(option.ini), option.option),
            (environ.get(option.variable), option.variable),
            (ini(option.ini), f"{option.ini} in the ini file"),
        )
    ):
        if text:
            return text, source, rank
    return None


def _one_service(settings: Settings) -> Settings:
    """Let the service named by the stronger source win, and fill in what a local one needs."""
    if not settings.local.value:
        return settings
    if settings.url.rank < settings.local.rank:
        return replace(settings, local=Setting(value=False, source=settings.url.source, rank=settings.url.rank))
    interval, app_id = settings.poll_interval_seconds, settings.app_id
    source, rank = settings.local.source, settings.local.rank
    return replace(
        settings,
        url=Setting(None, source, rank),
        app_id=app_id if app_id.value else Setting(LOCAL_APP_ID, source, rank),
        poll_interval_seconds=interval if interval.rank < 3 else Setting(LOCAL_POLL_INTERVAL_SECONDS, source, rank),  # noqa: PLR2004
    )

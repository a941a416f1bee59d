"""What a run is told about the service: frozen settings that remember their source."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from pytest_device import option_table
from pytest_device.errors import ConfigError
from pytest_device.option_table import TOKEN_VARIABLE, Option
from pytest_device.redact import MASK, Redactor, is_loopback
from pytest_device.spec import (
    ARCHIVE_URL_MAX_LENGTH,
    DURATION_MAX_MINUTES,
    IDLE_MAX_MINUTES,
    IDLE_MIN_MINUTES,
    REQUESTABLE_SESSION_TYPES,
    Platform,
    SessionType,
    Share,
)

T = TypeVar("T")

LOCAL_POLL_INTERVAL_SECONDS: Final = 0.2
"""For the local service: it is on this machine and serves nobody else."""
LOCAL_APP_ID: Final = "00000000-0000-4000-8000-000000000001"
"""The project of a local service that is told no other."""


def shown(text: str) -> str:
    """Return a value without what it may hide: credentials, and the query, which signs many an archive's address."""
    start, query, _ = Redactor().text(text).partition("?")
    return f"{start}?…" if query else start


def as_given(source: str, value: object) -> str:
    """Return how a value was given, by the name of what gave it: ``device_vendor='acme' in the ini file``."""
    name, blank, where = source.partition(" ")
    return f"{name}={value!r}{blank}{where}"


def checked_url(url: str) -> str:
    """Return the service's base address without a slash at its end.

    Raises ConfigError unless it is ``https://`` (``http://`` on loopback only, since the token travels with every
    request) and holds nothing but host, port and path.
    """
    shown = Redactor().text(url).partition("?")[0]
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
    if not url.strip().isprintable() or " " in url.strip() or not _encodes(host):
        raise ConfigError(f"service address {shown!r} holds characters that no address has")
    if "?" in url or "#" in url:
        raise ConfigError(f"service address {shown!r} must end with its path: leave out ?query and #fragment")
    base = url.strip().rstrip("/")
    if parts.path.rstrip("/").endswith("/v2"):
        raise ConfigError(f"service address {shown!r} must end before /v2, which belongs to each call")
    return base


def _encodes(host: str) -> bool:
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def checked_slots_url(url: str) -> str:
    """Return the address of a Redis server: ``redis://host:port/number``, or ``rediss://`` for an encrypted one.

    Raises ConfigError, without showing credentials, unless it holds nothing else, and for credentials that would cross
    a network unencrypted.
    """
    scheme, sign, rest = url.strip().partition("://") if "://" in url else ("", "", url.strip())
    credentials, at, place = rest.rpartition("@")  # a slash or blank in a password does not end it here
    shown = f"{scheme}{sign}{MASK if credentials else ''}{at}{place.partition('?')[0]}"
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    number = parts.path.strip("/")
    if parts.scheme not in {"redis", "rediss"} or not host or "/" in number or (number and not number.isdecimal()):
        raise ConfigError(f"Redis address {shown!r} must look like rediss://host, rediss://host:port or …/number")
    if not url.strip().isprintable() or any(sign in url.strip() for sign in " '\"?#"):
        raise ConfigError(f"Redis address {shown!r} must end with its number, and hold no blank, quote, ? or #")
    if "@" in parts.netloc and parts.scheme == "redis" and not is_loopback(host):
        raise ConfigError(f"Redis address {shown!r} would send its credentials unencrypted: use rediss://")
    return url.strip()


def checked_token(token: str) -> str:
    """Return the access token; raises ConfigError, without showing it, when no header can carry it."""
    if not token.strip():
        raise ConfigError(f"no access token: set the environment variable {TOKEN_VARIABLE}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"the access token in {TOKEN_VARIABLE} holds blanks or unprintable characters: copy it again")
    return token


CI_VARIABLES: Final = ("CI", "BUILD_NUMBER")
"""By which pytest, too, knows a CI service."""
_SECONDS_MAX: Final = 1_000_000.0
"""More than any session lasts, and less than what a system can wait for."""
_SECONDS_RULE: Final = f"a number of seconds above 0 and up to {_SECONDS_MAX:.0f}"
_SWITCH_RULE: Final = "true or false"
_ARCHIVE_RULE: Final = f"an HTTP or HTTPS URL of at most {ARCHIVE_URL_MAX_LENGTH} characters"
_SESSIONS_MAX: Final = 1_000
_ATTEMPTS_MAX: Final = 10
_PREFETCH_MAX: Final = 20
_POLLINGS: Final = ("fixed", "learned")
_SHARDS_MAX: Final = 1_000
_SHARD_RULE: Final = f"a part of the whole, such as 2/4, of up to {_SHARDS_MAX}"


def _uuid(text: str) -> str:
    return str(UUID(text))


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= _SECONDS_MAX:
        raise ValueError(text)
    return value


def _number(least: int, most: int, what: str) -> tuple[Callable[[str], int], str]:
    def parse(text: str) -> int:
        if not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return parse, f"a whole number{what} from {least} to {most}"


def _platforms(text: str) -> tuple[Platform, ...]:
    words = [word.strip() for word in text.split(",")]
    return tuple(dict.fromkeys(map(Platform, words)))


def _type(text: str) -> SessionType:
    if text not in REQUESTABLE_SESSION_TYPES:
        raise ValueError(text)
    return SessionType(text)


def _archive_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or len(text) > ARCHIVE_URL_MAX_LENGTH:
        raise ValueError(text)
    return text


def _text(text: str) -> str:
    return text


def _switch(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}[
        text.strip().lower()
    ]


def _directory(text: str) -> str:
    if "\0" in text or not Path(text).is_absolute():
        raise ValueError(text)
    return text


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError(text)
    return str(Path(text).absolute())  # whoever reads it may work elsewhere


def _shard(text: str) -> str:
    number, count = (int(part) for part in text.split("/"))
    if not 1 <= number <= count <= _SHARDS_MAX:
        raise ValueError(text)
    return f"{number}/{count}"


def _polling(text: str) -> str:
    if text not in _POLLINGS:
        raise ValueError(text)
    return text


def _word(text: str) -> str:
    if not (text.isascii() and text.isalpha() and text.islower()):
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and the name of what gave it: an option, an environment variable, an ini key, or ``default``."""

    value: T
    source: str
    rank: int
    """0 for the command line, 1 for the environment, 2 for the ini file, 3 for the default."""

    @property
    def is_default(self) -> bool:
        """Tell whether nothing gave the value."""
        return self.rank == 3  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run."""

    url: Setting[str | None]
    local: Setting[bool]
    app_id: Setting[str | None]
    platform: Setting[tuple[str, ...]]
    type: Setting[str]
    build_id: Setting[str | None]
    application_archive_url: Setting[str | None]
    identifier: Setting[str | None]
    max_duration_minutes: Setting[int]
    max_idle_time_minutes: Setting[int]
    share: Setting[str]
    test_minutes: Setting[int]
    spread: Setting[bool]
    reorder: Setting[bool]
    shard: Setting[str | None]
    """Which part of how many, as in ``2/4``."""
    size_durations: Setting[bool]
    max_sessions: Setting[int | None]
    slots_url: Setting[str | None] = field(repr=False)
    """May hold credentials when it is from the environment."""
    prefetch: Setting[int]
    start_attempts: Setting[int]
    wait_timeout_seconds: Setting[float]
    poll_interval_seconds: Setting[float]
    polling: Setting[str]
    """``fixed`` or ``learned``."""
    stop_timeout_seconds: Setting[float]
    keep_on_failure: Setting[bool]
    keep_warm: Setting[int]
    """Minutes; 0 for not at all."""
    artifacts_dir: Setting[str | None]
    builds_dir: Setting[str | None]
    dry_run: Setting[bool]
    plan: Setting[bool]
    reaper: Setting[bool]
    state_dir: Setting[str | None]
    """None where this user has no home to keep it in."""
    vendor: Setting[str]
    not_warm: str
    """Why nothing is kept warm although that was asked for; empty where there is no reason."""
    token: str = field(repr=False)
    """The access token, empty when there is none. It comes from the environment only."""

    def service_problems(self, *, attended: bool = False) -> Iterator[str]:
        """Tell what is missing to reach a service; nothing when a session could be created.

        ``attended`` says that a person waits at the terminal, so that a session can be kept while the run lasts.
        """
        if self.local.value:
            if self.keep_on_failure.value and not attended:
                yield f"{self.keep_on_failure.source} needs a service that outlives the run: the local one ends with it"
            if self.keep_warm.value and self.keep_warm.rank == 0:
                yield f"{self.keep_warm.source} needs a service that outlives the run: the local one ends with it"
            return
        if self.builds_dir.rank == 0:
            yield f"{self.builds_dir.source} is for the local service: give --device-local, too, or leave it out"
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

    def of_local_service(self) -> dict[str, Any]:
        """Return what a local service of this run is told about it."""
        return {"app_id": str(self.app_id.value), "builds_dir": self.builds_dir.value}


Source = Callable[[str], str | None]


def resolve(options: Source, environ: Mapping[str, str], ini: Source) -> Settings:
    """Return the settings; for each the command line comes before the environment, that before the ini file.

    ``options`` and ``ini`` look up a raw text by ini key (``device_url``), None when it was not given.
    Raises ConfigError that tells every value at fault, with its source and its rule.
    """
    problems: list[str] = []

    def setting(option: Option[T], parse: Callable[[str], T], rule: str) -> Setting[T]:
        found = _first_given(option, options, environ, ini)
        if found is None:
            return Setting(option.default, "default", 3)
        text, source, rank = found
        try:
            return Setting(parse(text), source, rank)
        except ConfigError as error:
            problems.extend(f"{source}: {problem}" for problem in error.problems)
        except (ValueError, KeyError):
            problems.append(f"{as_given(source, shown(text))} must be {rule}")
        return Setting(option.default, "default", 3)

    durations = _number(1, DURATION_MAX_MINUTES, " of minutes")
    idle_times = _number(IDLE_MIN_MINUTES, IDLE_MAX_MINUTES, " of minutes")
    settings = Settings(
        url=setting(option_table.URL, checked_url, "an https:// address"),
        local=setting(option_table.LOCAL, _switch, _SWITCH_RULE),
        app_id=setting(option_table.APP_ID, _uuid, "the project's UUID"),
        platform=setting(option_table.PLATFORM, _platforms, " or ".join((*Platform, "both, with a comma"))),
        type=setting(option_table.TYPE, _type, f"one of {', '.join(REQUESTABLE_SESSION_TYPES)}"),
        build_id=setting(option_table.BUILD_ID, _uuid, "the UUID of a build"),
        application_archive_url=setting(option_table.APPLICATION_ARCHIVE_URL, _archive_url, _ARCHIVE_RULE),
        identifier=setting(option_table.IDENTIFIER, _text, "text"),
        max_duration_minutes=setting(option_table.MAX_DURATION_MINUTES, *durations),
        max_idle_time_minutes=setting(option_table.MAX_IDLE_TIME_MINUTES, *idle_times),
        share=setting(option_table.SHARE, Share, f"one of {', '.join(Share)}"),
        test_minutes=setting(option_table.TEST_MINUTES, *durations),
        spread=setting(option_table.SPREAD, _switch, _SWITCH_RULE),
        reorder=setting(option_table.REORDER, _switch, _SWITCH_RULE),
        shard=setting(option_table.SHARD, _shard, _SHARD_RULE),
        size_durations=setting(option_table.SIZE_DURATIONS, _switch, _SWITCH_RULE),
        max_sessions=setting(option_table.MAX_SESSIONS, *_number(1, _SESSIONS_MAX, "")),
        slots_url=setting(option_table.SLOTS_URL, checked_slots_url, "a rediss:// address"),
        prefetch=setting(option_table.PREFETCH, *_number(0, _PREFETCH_MAX, " of tests")),
        start_attempts=setting(option_table.START_ATTEMPTS, *_number(1, _ATTEMPTS_MAX, "")),
        wait_timeout_seconds=setting(option_table.WAIT_TIMEOUT_SECONDS, _seconds, _SECONDS_RULE),
        poll_interval_seconds=setting(option_table.POLL_INTERVAL_SECONDS, _seconds, _SECONDS_RULE),
        polling=setting(option_table.POLLING, _polling, " or ".join(_POLLINGS)),
        stop_timeout_seconds=setting(option_table.STOP_TIMEOUT_SECONDS, _seconds, _SECONDS_RULE),
        keep_warm=setting(option_table.KEEP_WARM, *_number(0, DURATION_MAX_MINUTES, " of minutes")),
        keep_on_failure=setting(option_table.KEEP_ON_FAILURE, _switch, _SWITCH_RULE),
        artifacts_dir=setting(option_table.ARTIFACTS_DIR, _text, "a path"),
        builds_dir=setting(option_table.BUILDS_DIR, _path, "a path"),
        dry_run=setting(option_table.DRY_RUN, _switch, _SWITCH_RULE),
        plan=setting(option_table.PLAN, _switch, _SWITCH_RULE),
        reaper=setting(option_table.REAPER, _switch, _SWITCH_RULE),
        state_dir=setting(option_table.STATE_DIR, _directory, "an absolute path"),
        vendor=setting(option_table.VENDOR_WORD, _word, "a word of lower-case letters"),
        not_warm="",
        token=environ.get(TOKEN_VARIABLE, ""),
    )
    problems += _exclusions(settings)
    if problems:
        raise ConfigError(*problems)
    if settings.state_dir.value is None:
        directory = default_state_dir(environ)
        settings = replace(settings, state_dir=replace(settings.state_dir, value=str(directory) if directory else None))
    return _warm(_one_service(settings), environ)


def _exclusions(settings: Settings) -> Iterator[str]:
    url, local = settings.url, settings.local
    if local.value and url.value is not None and local.rank == url.rank:
        yield f"{url.source} and {local.source} exclude each other: name one service"
    slots_url, most = settings.slots_url, settings.max_sessions
    if slots_url.rank != 1 and "@" in (slots_url.value or ""):
        yield (
            f"{slots_url.source} must not hold credentials, since others read it: give the address by "
            f"{option_table.SLOTS_URL.variable}"
        )
    if slots_url.value is not None and most.value is None:
        yield f"{slots_url.source} bounds nothing without a number: give {option_table.MAX_SESSIONS.option}, too"
    build, archive = settings.build_id, settings.application_archive_url
    if build.value and archive.value:
        yield f"{build.source} and {archive.source} exclude each other: give at most one application source"


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


def default_state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return where this user's programs keep what they have to remember, None for a user without a home."""
    base = environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA")  # the latter on Windows
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "pytest-device"
    except RuntimeError:
        return None


def _warm(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Keep nothing warm where no next run is to be expected; else let a session that lies idle live for as long."""
    asked, idle = settings.keep_warm, settings.max_idle_time_minutes
    if not asked.value:
        return settings
    if reason := _why_not_warm(settings, environ):
        note = f"{asked.source} is ignored: {reason}"
        return replace(settings, keep_warm=Setting(0, asked.source, asked.rank), not_warm=note)
    minutes = min(asked.value + 1, IDLE_MAX_MINUTES)  # a test's last command comes before its end
    if not idle.is_default or idle.value >= minutes:
        return settings
    return replace(settings, max_idle_time_minutes=Setting(minutes, asked.source, asked.rank))


def _why_not_warm(settings: Settings, environ: Mapping[str, str]) -> str:
    if settings.local.value and settings.keep_warm.rank > 0:  # on the command line it is a mistake
        return "the local service ends with the run"
    if settings.keep_warm.rank > 1 and any(map(environ.get, CI_VARIABLES)):
        return f"in CI only {option_table.KEEP_WARM.option} or {option_table.KEEP_WARM.variable} keeps a device warm"
    return ""


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
        poll_interval_seconds=Setting(LOCAL_POLL_INTERVAL_SECONDS, source, rank) if interval.is_default else interval,
    )

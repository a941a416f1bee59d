"""What a run is told about the service: frozen settings that remember their source."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pytest_device.errors import ConfigError
from pytest_device.options import OPTIONS, TOKEN_VARIABLE, Option, Options
from pytest_device.redact import shown
from pytest_device.spec import IDLE_MAX_MINUTES

LOCAL_POLL_INTERVAL_SECONDS: Final = 0.2
"""For the local service: it is on this machine and serves nobody else."""
LOCAL_APP_ID: Final = "00000000-0000-4000-8000-000000000001"
"""The project of a local service that is told no other."""
CI_VARIABLES: Final = ("CI", "BUILD_NUMBER")
"""By which pytest, too, knows a CI service."""


class Rank(IntEnum):
    """What comes before what."""

    COMMAND_LINE = 0
    ENVIRONMENT = 1
    INI_FILE = 2
    DEFAULT = 3


class Origin(NamedTuple):
    """What gave a value: an option, an environment variable, an ini key, or ``default``."""

    source: str
    rank: Rank


_DEFAULT: Final = Origin("default", Rank.DEFAULT)


@dataclass(frozen=True)
class Settings(Options):
    """Everything a run is told; without arguments the defaults."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """May hold credentials: those of ``slots_url`` when it is from the environment."""
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    token: str = field(default="", repr=False)
    """The access token, empty when there is none. It comes from the environment only."""
    not_warm: str = ""
    """Why nothing is kept warm although that was asked for; empty where there is no reason."""

    def source(self, word: str) -> str:
        """Return what gave a value: ``--device-url``, ``DEVICE_URL``, ``device_url in the ini file`` or ``default``."""
        return self._origin(word).source

    def rank(self, word: str) -> Rank:
        """Return how strong the source of a value is: the lower, the stronger."""
        return self._origin(word).rank

    def is_default(self, word: str) -> bool:
        """Return whether nothing gave the value."""
        return self.rank(word) == Rank.DEFAULT

    def is_of_this_run(self, word: str) -> bool:
        """Return whether the command line or the environment gave the value, not a file of the project."""
        return self.rank(word) <= Rank.ENVIRONMENT

    def given(self, word: str) -> str:
        """Return how a value was given, by the name of what gave it: ``device_vendor='acme' in the ini file``."""
        return as_given(self.source(word), getattr(self, word))

    def chosen(self) -> Iterator[tuple[Option[Any], str]]:
        """Yield each option that something gave a value, with that value as text without what it may hide."""
        for option in OPTIONS:
            value = getattr(self, option.word)
            if not self.is_default(option.word) and value is not None:
                yield option, _text(value)

    def but(self, origin_of: str, **values: object) -> "Settings":
        """Return these settings with other values, as if what gave the option ``origin_of`` had given these, too."""
        origins = dict.fromkeys(values, self._origin(origin_of))
        return replace(self, values={**self.values, **values}, origins={**self.origins, **origins})

    def service_problems(self, *, attended: bool = False) -> Iterator[str]:
        """Tell what is missing to reach a service; nothing when a session could be created.

        ``attended`` says that a person waits at the terminal, so that a session can be kept while the run lasts.
        """
        if self.local:
            if self.keep_on_failure and not attended:
                yield f"{self.source('keep_on_failure')} {_OUTLIVES}"
            if self.keep_warm and self.rank("keep_warm") == Rank.COMMAND_LINE:
                yield f"{self.source('keep_warm')} {_OUTLIVES}"
            return
        if self.rank("builds_dir") == Rank.COMMAND_LINE:
            source = self.source("builds_dir")
            yield f"{source} is for the local service: give {Options.local.flag}, too, or leave it out"
        if self.url is None:
            yield (
                f"no device service is configured: give its address ({Options.url.spellings}) with {TOKEN_VARIABLE} "
                f"and an app id, or run on this machine with {Options.local.flag}"
            )
            return
        if self.app_id is None:
            yield f"no app id for {self.url}: set {Options.app_id.spellings}"
        try:
            checked_token(self.token)
        except ConfigError as error:
            yield from error.problems

    def of_local_service(self) -> dict[str, Any]:
        """Return what a local service of this run is told about it."""
        return {"app_id": str(self.app_id), "builds_dir": self.builds_dir}

    def _origin(self, word: str) -> Origin:
        return self.origins.get(getattr(Options, word).word, _DEFAULT)


_OUTLIVES: Final = "needs a service that outlives the run: the local one ends with it"


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float() | int():
            return f"{value:g}"
        case tuple():
            return ", ".join(map(str, cast("tuple[object, ...]", value)))
        case _:
            text = shown(str(value))
            return text if text.isprintable() else repr(text)


Lookup = Callable[[str], str | None]


def resolve(options: Lookup, environ: Mapping[str, str], ini: Lookup) -> Settings:
    """Return the settings; for each the command line comes before the environment, that before the ini file.

    ``options`` and ``ini`` look up a raw text by ini key (``device_url``), None when it was not given.
    Raises ConfigError that tells every value at fault, with its source and its rule.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    problems: list[str] = []
    for option in OPTIONS:
        for text, origin in _given(option, options, environ, ini)[:1]:
            try:
                values[option.word] = option.parse(text)
                origins[option.word] = origin
            except ConfigError as error:
                problems.extend(f"{origin.source}: {problem}" for problem in error.problems)
            except ValueError as error:
                problems.append(f"{as_given(origin.source, shown(text))} must be {error}")
    settings = Settings(values, origins, environ.get(TOKEN_VARIABLE, ""))
    problems += _exclusions(settings)
    if problems:
        raise ConfigError(*problems)
    if settings.state_dir is None and (directory := default_state_dir(environ)):
        settings = settings.but("state_dir", state_dir=str(directory))
    return _warm(_one_service(settings), environ)


def _given(option: Option[Any], options: Lookup, environ: Mapping[str, str], ini: Lookup) -> list[tuple[str, Origin]]:
    """Return the texts that an option is given, and what gives them, the strongest first."""
    given = (
        (options(option.ini), Origin(option.flag, Rank.COMMAND_LINE)),
        (environ.get(option.variable), Origin(option.variable, Rank.ENVIRONMENT)),
        (ini(option.ini), Origin(f"{option.ini} in the ini file", Rank.INI_FILE)),
    )
    return [(text, origin) for text, origin in given if text]


def as_given(source: str, value: object) -> str:
    """Return how a value was given, by the name of what gave it: ``device_vendor='acme' in the ini file``."""
    name, blank, where = source.partition(" ")
    return f"{name}={value!r}{blank}{where}"


def checked_token(token: str) -> str:
    """Return the access token; raises ConfigError, without showing it, when no header can carry it."""
    if not token.strip():
        raise ConfigError(f"no access token: set the environment variable {TOKEN_VARIABLE}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"the access token in {TOKEN_VARIABLE} holds blanks or unprintable characters: copy it again")
    return token


def default_state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return where this user's programs keep what they have to remember, None for a user without a home."""
    base = environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA")  # the latter on Windows
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "pytest-device"
    except RuntimeError:
        return None


def _exclusions(settings: Settings) -> Iterator[str]:
    source, rank = settings.source, settings.rank
    if settings.local and settings.url is not None and rank("local") == rank("url"):
        yield f"{source('url')} and {source('local')} exclude each other: name one service"
    if "@" in (settings.slots_url or "") and rank("slots_url") != Rank.ENVIRONMENT:
        yield (
            f"{source('slots_url')} must not hold credentials, since others read it: give the address by "
            f"{Options.slots_url.variable}"
        )
    if settings.slots_url is not None and settings.max_sessions is None:
        yield f"{source('slots_url')} bounds nothing without a number: give {Options.max_sessions.flag}, too"
    if settings.build_id and settings.application_archive_url:
        yield (
            f"{source('build_id')} and {source('application_archive_url')} exclude each other: give at most one "
            "application source"
        )


def _warm(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Keep nothing warm where no next run is to be expected; else let a session that lies idle live for as long."""
    if not settings.keep_warm:
        return settings
    if reason := _why_not_warm(settings, environ):
        not_warm = f"{settings.source('keep_warm')} is ignored: {reason}"
        return replace(settings.but("keep_warm", keep_warm=0), not_warm=not_warm)
    minutes = min(settings.keep_warm + 1, IDLE_MAX_MINUTES)  # a test's last command comes before its end
    if not settings.is_default("max_idle_time_minutes") or settings.max_idle_time_minutes >= minutes:
        return settings
    return settings.but("keep_warm", max_idle_time_minutes=minutes)


def _why_not_warm(settings: Settings, environ: Mapping[str, str]) -> str:
    rank = settings.rank("keep_warm")
    if settings.local and rank > Rank.COMMAND_LINE:  # where it is a mistake
        return "the local service ends with the run"
    if rank > Rank.ENVIRONMENT and any(map(environ.get, CI_VARIABLES)):
        return f"in CI only {Options.keep_warm.flag} or {Options.keep_warm.variable} keeps a device warm"
    return ""


def _one_service(settings: Settings) -> Settings:
    """Let the service named by the stronger source win, and fill in what a local one needs."""
    if not settings.local:
        return settings
    if settings.rank("url") < settings.rank("local"):
        return settings.but("url", local=False)
    settings = settings.but("local", url=None)
    if settings.app_id is None:
        settings = settings.but("local", app_id=LOCAL_APP_ID)
    if settings.is_default("poll_interval_seconds"):
        settings = settings.but("local", poll_interval_seconds=LOCAL_POLL_INTERVAL_SECONDS)
    return settings

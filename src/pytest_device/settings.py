"""The settings of a run: frozen values that remember their source."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pytest_device.errors import ConfigError
from pytest_device.options import (
    OPTIONS,
    TOKEN_VARIABLE,
    Option,
    Options,
)
from pytest_device.platforms import SYSTEM
from pytest_device.redact import shown
from pytest_device.spec import DURATION_MAX_MINUTES, IDLE_MAX_MINUTES, IDLE_MIN_MINUTES

LOCAL_POLL_INTERVAL_SECONDS: Final = 0.2
"""Poll interval of the local service, which runs on this machine and serves this run only."""
LOCAL_APP_ID: Final = "00000000-0000-4000-8000-000000000001"
"""The default project of a local service."""
_CI_VARIABLES: Final = ("CI", "BUILD_NUMBER")
"""Variables by which pytest detects a CI service."""


class Rank(IntEnum):
    """Precedence of sources: the lowest value wins."""

    COMMAND_LINE = 0
    ENVIRONMENT = 1
    INI_FILE = 2
    DEFAULT = 3


class Origin(NamedTuple):
    """Where a value comes from: an option, an environment variable, an ini key or ``default``."""

    source: str
    rank: Rank


_DEFAULT: Final = Origin("default", Rank.DEFAULT)


@dataclass(frozen=True)
class Settings(Options):
    """All settings of one run; ``Settings()`` has the defaults."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """May contain credentials in ``slots_url``."""
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    """Where each value comes from, by option, also for those with their default."""
    token: str = field(default="", repr=False)
    """The access token, empty if there is none. It comes from the environment only."""
    keep_warm_ignored_because: str = ""
    """Why ``keep_warm`` is ignored; empty if it is not."""

    def __post_init__(self) -> None:
        # An attribute of the instance hides the declaration of the same name: reading a setting, which all parts of a
        # run do again and again, costs no call. Set by way of `object`, because the class is frozen.
        origins: dict[str, Origin] = {}
        for option in OPTIONS:
            word = option.word
            value = self.values.get(word, option.default)
            object.__setattr__(self, word, value)
            origins[word] = self.origins.get(word, _DEFAULT)
        object.__setattr__(self, "origins", origins)

    def source(self, word: str) -> str:
        """Return where a value comes from: ``--device-url``, ``DEVICE_URL``, ``device_url in the ini file``."""
        return self.origins[word].source

    def rank(self, word: str) -> Rank:
        return self.origins[word].rank

    def is_default(self, word: str) -> bool:
        return self.origins[word].rank == Rank.DEFAULT

    def is_of_this_run(self, word: str) -> bool:
        """Return whether a value was set for this run, by the command line or the environment, not in the ini file."""
        return self.origins[word].rank <= Rank.ENVIRONMENT

    def duration_with(self, idle: object = None) -> int | str:
        """Return the maximum duration of a session with this idle timeout, or the chosen one.

        The default leaves room for an idle timeout that was chosen alone.
        """
        duration = self.max_duration_minutes
        # An idle timeout that keep_warm raised was not chosen.
        idle_source = self.source("max_idle_time_minutes")
        if idle is None and idle_source != self.source("keep_warm"):
            idle = self.values.get("max_idle_time_minutes")

        is_default = self.is_default("max_duration_minutes")
        if is_default and isinstance(duration, int) and isinstance(idle, int):
            return max(duration, min(idle + 1, DURATION_MAX_MINUTES))
        return duration

    def idle_within(self, duration: object) -> int | str | None:
        """Return the idle limit of a session with this maximum duration: below it; None if it leaves no room."""
        idle = self.max_idle_time_minutes
        if not isinstance(idle, int):
            return idle

        if isinstance(duration, int):
            idle = min(idle, duration - 1)
        return None if idle < IDLE_MIN_MINUTES else idle

    @property
    def max_devices(self) -> float:
        """Return the maximum number of devices that the tests can have at once."""
        if self.attach:
            return 1
        return math.inf if self.max_sessions is None else self.max_sessions

    def chosen(self) -> Iterator[tuple[Option[Any], str]]:
        """Yield each option that was set, with its value as redacted text."""
        for option in OPTIONS:
            value = getattr(self, option.word)
            if not self.is_default(option.word) and value is not None:
                yield option, _text(value)

    def replace(self, origin_of: str, **values: object) -> "Settings":
        """Return a copy with other values, which get the source of the option ``origin_of``."""
        origins = dict.fromkeys(values, self.origins[origin_of])
        return replace(
            self, values={**self.values, **values}, origins={**self.origins, **origins}
        )

    def service_problems(self, *, attended: bool = False) -> Iterator[str]:
        """Yield the missing requirements for using a service; nothing if sessions can be created.

        ``attended``: whether a user is at the terminal, so that a session can be kept while the run lasts.
        """
        if self.local:
            yield from self._local_problems(attended=attended)
            return

        flags = [
            self.source(word)
            for word in _OF_LOCAL
            if self.rank(word) == Rank.COMMAND_LINE
        ]
        if flags:
            yield f"{' and '.join(flags)} only applies to the local service: add {Options.local.flag} or remove it"

        if self.url is None:
            yield (
                f"no device service is configured: set its URL ({Options.url.spellings}), {TOKEN_VARIABLE} and an "
                f"app ID, or run on this machine with {Options.local.flag}"
            )
            return

        if self.app_id is None and self.attach is None:
            yield f"no app ID for {self.url}: set {Options.app_id.spellings}"

        try:
            checked_token(self.token)
        except ConfigError as error:
            yield from error.problems

    def _local_problems(self, *, attended: bool) -> Iterator[str]:
        """Yield the settings that need sessions which outlive the run."""
        if self.keep_on_failure and not attended:
            yield f"{self.source('keep_on_failure')} {_OUTLIVES}"
        # Elsewhere than on the command line it is ignored, with a note.
        if self.keep_warm and self.rank("keep_warm") == Rank.COMMAND_LINE:
            yield f"{self.source('keep_warm')} {_OUTLIVES}"
        if self.attach:
            yield f"{self.source('attach')} {_OUTLIVES}"

    def local_service_config(self) -> dict[str, Any]:
        """Return the configuration of this run's local service."""
        return {
            "app_id": str(self.app_id),
            "builds_dir": self.builds_dir,
            "real_only": self.local_real,
            "require_isolation": self.local_require_isolation,
            "selenium_manager": self.local_selenium_manager,
            "avd": self.avd,
            "simulator": self.simulator,
            "allow_insecure": list(self.appium_allow_insecure),
        }


_OF_LOCAL: Final = (
    "builds_dir",
    "local_real",
    "local_require_isolation",
    "local_selenium_manager",
    "avd",
    "simulator",
    "appium_allow_insecure",
)
_OUTLIVES: Final = "needs a remote service: the local one starts and ends with the run"


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float() | int():
            return f"{value:g}"
        case tuple():
            return ", ".join(str(item) for item in cast("tuple[object, ...]", value))
        case _:
            text = shown(str(value))
            return text if text.isprintable() else repr(text)


def resolve(
    command_line: Mapping[str, str], environ: Mapping[str, str], ini: Mapping[str, str]
) -> Settings:
    """Return the settings: the command line overrides the environment, which overrides the ini file.

    Arguments:
        command_line: The texts that are set on the command line, by ini key (``device_url``).
        environ: The environment.
        ini: The texts that are set in the ini file, by key.

    Raises:
        ConfigError: Values are invalid; the message has each one, its source and its rule.

    >>> settings = resolve({"device_max_sessions": "3"}, {"DEVICE_MAX_SESSIONS": "5"}, {})
    >>> settings.max_sessions, settings.source("max_sessions")
    (3, '--device-max-sessions')
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    problems: list[str] = []

    for option, (text, origin) in _texts(command_line, environ, ini).items():
        try:
            values[option.word] = option.parse(text)
            origins[option.word] = origin
        except ConfigError as error:
            problems.extend(f"{origin.source}: {problem}" for problem in error.problems)
        except ValueError as error:
            problems.append(f"{as_given(origin.source, shown(text))} must be {error}")

    settings = Settings(
        values,
        origins,
        environ.get(TOKEN_VARIABLE, ""),
    )
    if settings.local_real and settings.is_default("local"):
        settings = settings.replace("local_real", local=True)

    problems += _exclusions(settings)
    if problems:
        raise ConfigError(*problems)

    state_dir = settings.state_dir or default_state_dir(environ)
    if state_dir is not None:
        settings = settings.replace("state_dir", state_dir=str(state_dir))

    return _warm(_one_service(settings), environ)


def _texts(
    command_line: Mapping[str, str], environ: Mapping[str, str], ini: Mapping[str, str]
) -> Mapping[Option[Any], tuple[str, Origin]]:
    """Return the text of each option that is set, from the source with precedence."""
    texts: dict[Option[Any], tuple[str, Origin]] = {}

    for option in OPTIONS:
        # An empty text counts as unset: CI services set variables to it.
        text = command_line.get(option.ini)
        origin = Origin(option.flag, Rank.COMMAND_LINE)
        if not text:
            text = environ.get(option.variable)
            origin = Origin(option.variable, Rank.ENVIRONMENT)
        if not text:
            text = ini.get(option.ini)
            origin = Origin(f"{option.ini} in the ini file", Rank.INI_FILE)
        if text:
            texts[option] = text, origin

    return texts


def as_given(source: str, value: object) -> str:
    """Return a value with its source as a user writes it.

    >>> as_given("device_vendor in the ini file", "acme")
    "device_vendor='acme' in the ini file"
    """
    name, blank, location = source.partition(" ")
    return f"{name}={value!r}{blank}{location}"


def checked_token(token: str) -> str:
    """Return the access token; raise ConfigError, without showing it, if it is not valid in a header."""
    if not token.strip():
        raise ConfigError(
            f"no access token: set the environment variable {TOKEN_VARIABLE}"
        )

    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            f"the access token in {TOKEN_VARIABLE} contains blanks or unprintable characters: copy it again"
        )

    return token


def default_state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return the directory for this user's state, None for a user without a home directory."""
    try:
        return SYSTEM.places.state(environ, Path("~")).expanduser()
    except RuntimeError:
        return None


def _exclusions(settings: Settings) -> Iterator[str]:
    source = settings.source
    rank = settings.rank
    if settings.local and settings.url is not None and rank("local") == rank("url"):
        yield f"{source('url')} and {source('local')} are mutually exclusive: choose one service"

    if "@" in (settings.slots_url or "") and rank("slots_url") != Rank.ENVIRONMENT:
        yield (
            f"{source('slots_url')} must not contain credentials, because others can read it: set "
            f"{Options.slots_url.variable} instead"
        )

    if settings.slots_url is not None and settings.max_sessions is None:
        yield f"{source('slots_url')} has no effect without a limit: set {Options.max_sessions.flag}"

    if settings.build_id and settings.application_archive_url:
        yield (
            f"{source('build_id')} and {source('application_archive_url')} are mutually exclusive: choose one "
            "application source"
        )


def _warm(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Ignore ``keep_warm`` if no next run is expected; otherwise raise the idle timeout to at least as long."""
    if not settings.keep_warm:
        return settings

    reason = _why_not_warm(settings, environ)
    if reason:
        return replace(
            settings.replace("keep_warm", keep_warm=0),
            keep_warm_ignored_because=f"{settings.source('keep_warm')} is ignored: {reason}",
        )

    if not settings.is_default("max_idle_time_minutes"):
        return settings

    # One more, because idle time starts at the last command of a test, before the test's end.
    minutes = min(settings.keep_warm + 1, IDLE_MAX_MINUTES)
    if minutes <= int(settings.max_idle_time_minutes):
        return settings

    return settings.replace("keep_warm", max_idle_time_minutes=minutes)


def is_in_ci(environ: Mapping[str, str]) -> bool:
    """Return whether a CI service runs this process."""
    return any(environ.get(variable) for variable in _CI_VARIABLES)


def _why_not_warm(settings: Settings, environ: Mapping[str, str]) -> str:
    rank = settings.rank("keep_warm")
    # On the command line it is an error.
    if settings.local and rank > Rank.COMMAND_LINE:
        return "the local service ends with the run"
    if is_in_ci(environ) and rank > Rank.ENVIRONMENT:
        return f"in CI, only {Options.keep_warm.flag} or {Options.keep_warm.variable} keeps sessions warm"

    return ""


def _one_service(settings: Settings) -> Settings:
    """Choose the service whose source has precedence, and complete the settings of a local one."""
    if not settings.local:
        return settings
    if settings.rank("url") < settings.rank("local"):
        return settings.replace("url", local=False)

    settings = settings.replace("local", url=None)
    if settings.app_id is None:
        settings = settings.replace("local", app_id=LOCAL_APP_ID)

    if settings.is_default("poll_interval_seconds"):
        settings = settings.replace(
            "local", poll_interval_seconds=LOCAL_POLL_INTERVAL_SECONDS
        )

    return settings

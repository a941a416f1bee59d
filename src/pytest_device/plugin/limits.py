"""The limits that end a session, a wait or a run's sessions: each as the user set it, and what to do about it."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from pytest_device.errors import (
    DeviceError,
    LeaseTimeoutError,
    SessionTimeoutError,
)
from pytest_device.options import Option, Options
from pytest_device.settings import Settings, as_given

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.request import SessionRequest

_DURATION: Final = "max_duration_minutes"
_IDLE: Final = "max_idle_time_minutes"
_WAIT: Final = "wait_timeout_seconds"
_CURES: Final[Mapping[str, str]] = {
    _DURATION: "increase it, or split the test",
    _IDLE: "send the device a command from time to time, also while another one works, or increase it",
    _WAIT: f"increase it, or lower {Options.max_sessions.flag} to what the account allows",
    "budget_minutes": "increase it, or run fewer tests",
}
"""What to do about each limit, by the word of its option."""


def end_of_session(
    session: "Session",
    request: "SessionRequest",
    silent_seconds: float | None,
    arguments: Collection[str],
    settings: Settings,
) -> str:
    """Return which limit may have ended a session, empty if none fits: the service does not say it.

    Arguments:
        session: the service's last response.
        request: what was requested.
        silent_seconds: the longest time without a command, None if unknown.
        arguments: the names of the marker's arguments.
        settings: the settings, which fill in what no argument sets.
    """
    ran = session.running_seconds or session.max_running_seconds or 0.0
    longest = session.max_duration_minutes
    idle = session.max_idle_time_minutes

    if longest is not None and ran >= longest * 60:
        limit = _of_session(_DURATION, longest, request, arguments, settings)
        return f"it ran as long as {limit}"

    if idle is None or (ran if silent_seconds is None else silent_seconds) < idle * 60:
        return ""

    limit = _of_session(_IDLE, idle, request, arguments, settings)
    if silent_seconds is None:
        return f"it ran longer than a session without commands does by {limit}"
    return f"no command was sent to it for {silent_seconds:.0f} s, but {limit}"


def note_limit(error: DeviceError, wait_seconds: float, settings: Settings) -> None:
    """Add a note about the limit that ended the wait for a session, if it was one."""
    note = ""
    match error:
        # That of the fixture device_wait_policy is its own.
        case LeaseTimeoutError() | SessionTimeoutError() if (
            wait_seconds == settings.wait_timeout_seconds
        ):
            note = limit_of(_WAIT, wait_seconds, settings)
        case LeaseTimeoutError() | SessionTimeoutError():
            note = f"timeout_seconds={wait_seconds:g} of device_wait_policy: {_CURES[_WAIT]}"
        case _:
            return

    # The breaker raises an error again.
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _of_session(
    word: str,
    value: int,
    request: "SessionRequest",
    arguments: Collection[str],
    settings: Settings,
) -> str:
    """Return a limit of a session as it was set, and what to do."""
    if word in arguments:
        return f"{word}={value} of the marker: {_CURES[word]}"
    if getattr(request, word) is None:
        return f"{word}={value} of the session: {_CURES[word]}"
    # From a fixture.
    if value != getattr(settings, word):
        return f"{word}={value}: {_CURES[word]}"

    return limit_of(word, value, settings)


def limit_of(word: str, value: object, settings: Settings) -> str:
    """Return the value of the option with this word as the user set it, and what to do."""
    option: Option[Any] = getattr(Options, word)
    if settings.is_default(word):
        return f"{option.flag}={value} (the default): {_CURES[word]}"

    source = settings.source(word)
    # Another option raised it.
    if not source.startswith((option.flag, option.variable, option.ini)):
        return f"{option.flag}={value} (by {source}): {_CURES[word]}"

    return f"{as_given(source, value)}: {_CURES[word]}"

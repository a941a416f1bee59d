"""Events as lines that a watching person reads."""

from collections.abc import Mapping
from typing import Final, assert_never

from pytest_device.errors import NOT_STARTED
from pytest_device.sessions.events import (
    Created,
    CreateUnknown,
    Event,
    Gone,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionEvent,
    SessionRef,
    StartFailed,
    StateChanged,
    StopDelayed,
    StopEvent,
    StopFailed,
    Stopped,
    TakenOver,
    Unused,
    detail_of,
)

PATIENCE_SECONDS: Final = 5.0
"""A shorter wait needs no explanation: it gets a line only with ``-v``."""

_COLOURS: Final[Mapping[type[Event], str]] = {
    StartFailed: "yellow",
    StopDelayed: "yellow",
    Kept: "yellow",
    StopFailed: "red",
    CreateUnknown: "red",
}


def line_of(event: Event, *, verbose: bool = False) -> str | None:
    """Return the line that a watching person reads, None for what needs none."""
    match event:
        case Queued():
            return f"queued for {event.waited_seconds:.1f} s" if verbose else None  # shown while it lasted
        case Note():
            return event.text
        case _:
            line = _start_line(event, verbose=verbose)
            return f"{event.session.label}: {line}" if line else None


def _start_line(event: SessionEvent, *, verbose: bool) -> str | None:
    """Return the line of a session on its way to a test, without its label, or what ``_end_line`` returns."""
    of, device = event.session, f" on {detail_of(event)}" if detail_of(event) else ""
    match event:
        case Created():
            return f"session page: {of.url}"
        case StateChanged():
            return f"after {of.waited_seconds:.0f} s: {event.state}"
        case Ready():
            slow = verbose or of.waited_seconds > PATIENCE_SECONDS
            return f"ready after {of.waited_seconds:.1f} s{device}" if slow else None
        case TakenOver():
            return f"taken over from an earlier run{device}: {_where(of)}"
        case StartFailed():
            return f"failed to start, retrying with a new session ({event.attempt}/{event.limit}): {cause_of(event)}"
        case _:
            return _end_line(event, verbose=verbose)


def _end_line(event: StopEvent | Kept | KeptWarm | Unused | CreateUnknown, *, verbose: bool) -> str | None:
    of = event.session
    match event:
        case Stopped() | Gone():
            return event.status if verbose or event.status != "stopped" else None
        case StopDelayed():
            return f"not stopped yet, still trying: {event.reason}"
        case StopFailed():
            return f"COULD NOT BE STOPPED: {event.reason} ({_where(of)})"
        case Kept() | KeptWarm():
            how = f"warm until {event.until}" if isinstance(event, KeptWarm) else f"for up to {of.minutes} minutes"
            return f"kept {how}: {_where(of)} (pytest-device stop {of.session_id})"
        case Unused():
            return "booted ahead, but no test used it"
        case CreateUnknown():
            what = f"a session named {event.name!r} may be running for up to {of.minutes} minutes"
            return f"the response to the create call was lost: {what}"
        case _:
            assert_never(event)


def _where(session: SessionRef) -> str:
    return session.url or session.session_id


def colour_of(event: Event) -> str:
    """Return the colour of an event's line, nothing for the terminal's own."""
    return _COLOURS.get(type(event), "")


def cause_of(event: StartFailed) -> str:
    """Return why a session failed to start, without the words that say no more than that it did."""
    return event.reason.removeprefix(NOT_STARTED).lstrip(",: ")

"""What came of a session that was asked to stop, or that has ended, in words."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pytest_device.errors import NotFoundError, ServiceError, StopDelayedError
from pytest_device.sessions.events import Event, Kind, running_seconds
from pytest_device.sessions.lifecycle import described
from pytest_device.sessions.models import Session
from pytest_device.spec import TERMINAL

GONE: Final = "the service no longer knows it"


def how_long(session: Session) -> str:
    """Return how long a session that has ended ran, in words, nothing where that is not known."""
    seconds = running_seconds(session)
    if seconds is None:
        return ""
    return f" after {seconds / 60:.1f} of at most {session.max_duration_minutes} minutes"


def outcome_of(known: Event, stop: Callable[[], Session]) -> Event:
    """Return what the answer to a stop call, or its error, makes of a session known by an earlier event."""
    try:
        session = stop()
    except NotFoundError:
        return replace(known, kind=Kind.STOPPED, text=GONE)
    except StopDelayedError as error:
        return replace(known, kind=Kind.STOP_DELAYED, text=str(error))
    except ServiceError as error:
        return replace(known, kind=Kind.STOP_FAILED, text=str(error))
    if str(session.id) != known.session_id:
        return replace(known, kind=Kind.STOP_FAILED, text=f"the service answered with session {session.id}")
    if session.status not in TERMINAL:
        return replace(known, kind=Kind.STOP_FAILED, text=f"its status is {described(session)}")
    return replace(known, kind=Kind.STOPPED, text=str(session.status), running_seconds=running_seconds(session))

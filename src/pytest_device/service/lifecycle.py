"""The life of a session as a table: which event leads from which status where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Final

from pytest_device.service.runners.base import Boot, Failed, Running
from pytest_device.spec import Platform, SessionType, Status

TERMINAL: Final = frozenset({Status.STOPPED, Status.ERRORED})


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it is kept: moments are Unix seconds, and no connection details are among its fields."""

    id: str
    app_id: str
    job_run_id: str
    name: str | None
    type: SessionType
    package_version: str | None
    build_id: str | None
    application_archive_url: str | None
    platform: Platform
    status: Status
    reason: str | None
    """Why it ended, in words for the session's page; None while it has not."""
    max_duration_minutes: int
    max_idle_time_minutes: int | None
    started_at: float | None
    finished_at: float | None
    created_at: float
    updated_at: float


class Event(StrEnum):
    """What can happen to a session."""

    READY = "ready"
    FAIL = "fail"
    STOP = "stop"
    EXPIRE = "expire"
    """The duration or the idle limit is reached."""


class Effect(Enum):
    """What happens beside the change of status."""

    START = auto()
    """``startedAt`` is set."""
    FINISH = auto()
    """``finishedAt`` is set."""
    RELEASE = auto()
    """The programs behind the session are ended; with them its connection details are gone."""


@dataclass(frozen=True, slots=True)
class Change:
    """Where an event leads."""

    to: Status
    effects: frozenset[Effect]


_RUN: Final = Change(Status.IN_PROGRESS, frozenset({Effect.START}))
_STOP: Final = Change(Status.STOPPED, frozenset({Effect.FINISH, Effect.RELEASE}))
# Ours: an errored session gets no finishedAt, which is "null until the session is stopped"; updatedAt tells when.
_FAIL: Final = Change(Status.ERRORED, frozenset({Effect.RELEASE}))

TRANSITIONS: Final[Mapping[tuple[Status, Event], Change | None]] = {
    (Status.NEW, Event.READY): _RUN,
    (Status.NEW, Event.FAIL): _FAIL,
    (Status.NEW, Event.STOP): _STOP,
    # Ours: both clocks start when the session is ready, so that it is never due by itself while new.
    (Status.NEW, Event.EXPIRE): _STOP,
    (Status.IN_PROGRESS, Event.READY): None,
    (Status.IN_PROGRESS, Event.FAIL): _FAIL,
    (Status.IN_PROGRESS, Event.STOP): _STOP,
    # Ours: an automatic stop ends in stopped.
    (Status.IN_PROGRESS, Event.EXPIRE): _STOP,
    (Status.STOPPED, Event.READY): None,
    (Status.STOPPED, Event.FAIL): None,
    (Status.STOPPED, Event.STOP): None,
    (Status.STOPPED, Event.EXPIRE): None,
    (Status.ERRORED, Event.READY): None,
    (Status.ERRORED, Event.FAIL): None,
    (Status.ERRORED, Event.STOP): None,
    (Status.ERRORED, Event.EXPIRE): None,
}
"""Every status x every event; None leaves the session unchanged, its ``updatedAt`` included."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event at a moment (Unix seconds), with its reason in words."""

    event: Event
    at: float
    reason: str | None = None


def change(session: Session, occurrence: Occurrence) -> tuple[Session, frozenset[Effect]]:
    """Return the session after an occurrence, and what else is to be done."""
    step = TRANSITIONS[session.status, occurrence.event]
    if step is None:
        return session, frozenset()
    changed = replace(
        session,
        status=step.to,
        reason=occurrence.reason,
        started_at=occurrence.at if Effect.START in step.effects else session.started_at,
        finished_at=occurrence.at if Effect.FINISH in step.effects else session.finished_at,
        updated_at=occurrence.at,
    )
    return changed, step.effects


def due(session: Session, boot: Boot, last_activity: float | None, now: float) -> Occurrence | None:
    """Return what has happened to an active session by now, None when nothing has.

    A limit counts from the moment it was reached, however late anybody looks.
    """
    limit = _limit(session, last_activity)
    if limit is not None and limit.at <= now:
        return limit
    match boot:
        case Failed(reason):
            return Occurrence(Event.FAIL, now, reason)
        case Running() if session.status is Status.NEW:
            return Occurrence(Event.READY, now)
        case _:
            return None


def limits(session: Session, last_activity: float | None) -> Sequence[Occurrence]:
    """Return the automatic stops ahead: at the end of the duration, then of the idle time where that is limited.

    Ours: both clocks start when the session is ready, and idle means that its controller is not used.
    """
    if session.started_at is None:
        return ()
    duration = session.max_duration_minutes
    end = Occurrence(
        Event.EXPIRE, session.started_at + 60 * duration, f"its maximum duration of {duration} min is over"
    )
    idle = session.max_idle_time_minutes
    if idle is None:
        return (end,)
    idle_since = max(session.started_at, last_activity or session.started_at)
    return end, Occurrence(Event.EXPIRE, idle_since + 60 * idle, f"its controller was not used for {idle} min")


def _limit(session: Session, last_activity: float | None) -> Occurrence | None:
    """Return the automatic stop that comes first, None while the session's clocks stand still."""
    return min(limits(session, last_activity), key=lambda occurrence: occurrence.at, default=None)

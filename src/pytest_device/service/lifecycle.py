"""The life cycle of a session as a table: which event leads from which status to which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pytest_device.service.runners.base import Boot, Failed, Running
from pytest_device.spec import TERMINAL, Platform, SessionType, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stored session: times are Unix seconds, and there are no connection details."""

    id: str
    app_id: str
    job_run_id: str
    name: str | None
    type: SessionType
    package_version: str | None
    build_id: str | None
    application_archive_url: str | None
    platform: Platform
    status: Status = Status.NEW
    reason: str | None = None
    """Why it ended, for the session page; None before."""
    max_duration_minutes: int
    max_idle_time_minutes: int | None
    started_at: float | None = None
    finished_at: float | None = None
    created_at: float
    updated_at: float


class Event(StrEnum):
    """An event in the life cycle of a session."""

    READY = "ready"
    FAIL = "fail"
    STOP = "stop"
    EXPIRE = "expire"
    """The maximum duration or the idle timeout is reached."""


TRANSITIONS: Final[Mapping[tuple[Status, Event], Status | None]] = {
    (Status.NEW, Event.READY): Status.IN_PROGRESS,
    (Status.NEW, Event.FAIL): Status.ERRORED,
    (Status.NEW, Event.STOP): Status.STOPPED,
    # Not in the document; chosen here: both clocks start when the session is ready, so a new session never expires by itself.
    (Status.NEW, Event.EXPIRE): Status.STOPPED,
    (Status.IN_PROGRESS, Event.READY): None,
    (Status.IN_PROGRESS, Event.FAIL): Status.ERRORED,
    (Status.IN_PROGRESS, Event.STOP): Status.STOPPED,
    # Not in the document; chosen here: an automatic stop ends in stopped.
    (Status.IN_PROGRESS, Event.EXPIRE): Status.STOPPED,
    **{(status, event): None for status in TERMINAL for event in Event},
}
"""Every status x every event; None leaves the session unchanged, including its ``updatedAt``."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event, its time (Unix seconds) and its reason."""

    event: Event
    at: float
    reason: str | None = None


def change(session: Session, occurrence: Occurrence) -> Session:
    """Return the session after an occurrence.

    Not in the document; chosen here: an errored session gets no finishedAt, which is "null until the session is
    stopped"; updatedAt has the time.
    """
    status = TRANSITIONS[session.status, occurrence.event]
    if status is None:
        return session

    changed = replace(
        session,
        status=status,
        reason=occurrence.reason,
        updated_at=occurrence.at,
    )
    if status is Status.IN_PROGRESS:
        return replace(changed, started_at=occurrence.at)
    if status is Status.STOPPED:
        return replace(changed, finished_at=occurrence.at)

    return changed


def due(
    session: Session, boot: Boot, last_activity: float | None, now: float
) -> Occurrence | None:
    """Return the event that has occurred to an active session by now, None if there is none.

    A limit takes effect at the time it was reached, however late the session is checked.
    """
    limit = min(
        limits(session, last_activity),
        key=lambda occurrence: occurrence.at,
        default=None,
    )
    if limit is not None and limit.at <= now:
        return limit

    match boot:
        case Failed(reason, at):
            return Occurrence(Event.FAIL, now if at is None else at, reason)
        case Running() if session.status is Status.NEW:
            return Occurrence(Event.READY, now)
        case _:
            return None


def limits(session: Session, last_activity: float | None) -> Sequence[Occurrence]:
    """Return the upcoming automatic stops: at the maximum duration, then at the idle timeout, if any.

    Not in the document; chosen here: both clocks start when the session is ready, and idle means that its controller is not used.
    """
    if session.started_at is None:
        return ()

    duration = session.max_duration_minutes
    end = Occurrence(
        Event.EXPIRE,
        session.started_at + 60 * duration,
        f"maximum duration of {duration} min reached",
    )
    idle = session.max_idle_time_minutes
    if idle is None:
        return (end,)

    # A request may have arrived before the session was ready.
    idle_since = max(session.started_at, last_activity or session.started_at)
    idle_end = Occurrence(
        Event.EXPIRE, idle_since + 60 * idle, f"controller not used for {idle} min"
    )
    return end, idle_end

"""What happened to a session, in the order in which it did."""

from collections.abc import Sequence

from pytest_device.redact import Redactor
from pytest_device.service.lifecycle import Session
from pytest_device.service.runners.base import LogEntry
from pytest_device.spec import Status


def timeline(session: Session, moments: Sequence[LogEntry]) -> Sequence[LogEntry]:
    """Return the changes of a session's status among what happened to its programs, without secrets.

    Of a reason there is the first line: the page tells it in full elsewhere.
    """
    redactor = Redactor()
    told = (LogEntry(moment.at, redactor.text(moment.text)) for moment in (*_changes(session), *moments))
    return sorted(told, key=lambda moment: moment.at)


def _changes(session: Session) -> Sequence[LogEntry]:
    changes = [LogEntry(session.created_at, "the session was created")]
    if session.started_at is not None:
        changes.append(LogEntry(session.started_at, "the session is ready"))
    why = f": {session.reason.strip().splitlines()[0]}" if session.reason and session.reason.strip() else ""
    if session.finished_at is not None:
        changes.append(LogEntry(session.finished_at, f"the session was stopped{why}"))
    elif session.status is Status.ERRORED:
        changes.append(LogEntry(session.updated_at, f"the session failed{why}"))
    return changes

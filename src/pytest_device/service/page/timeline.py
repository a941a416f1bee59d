"""The timeline of a session, in order."""

from collections.abc import Sequence

from pytest_device.redact import Redactor
from pytest_device.service.lifecycle import Session
from pytest_device.service.runners.base import LogEntry
from pytest_device.spec import Status


def timeline(session: Session, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
    """Return the changes of a session's status and the entries of its programs in order, without secrets.

    Only the first line of a reason is included: the page shows it in full elsewhere.
    """
    redactor = Redactor()
    shown = (LogEntry(entry.at, redactor.text(entry.text)) for entry in (*_changes(session), *entries))
    return sorted(shown, key=lambda entry: entry.at)


def _changes(session: Session) -> Sequence[LogEntry]:
    changes = [LogEntry(session.created_at, "session created")]
    if session.started_at is not None:
        changes.append(LogEntry(session.started_at, "session ready"))
    why = f": {session.reason.strip().splitlines()[0]}" if session.reason and session.reason.strip() else ""
    if session.finished_at is not None:
        changes.append(LogEntry(session.finished_at, f"session stopped{why}"))
    elif session.status is Status.ERRORED:
        changes.append(LogEntry(session.updated_at, f"session failed{why}"))
    return changes

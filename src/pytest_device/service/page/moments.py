"""What happened to a session, in the order in which it did."""

from collections.abc import Sequence

from pytest_device.redact import Redactor
from pytest_device.service.lifecycle import Session
from pytest_device.service.runners.base import Moment
from pytest_device.spec import Status


def timeline(session: Session, moments: Sequence[Moment]) -> Sequence[Moment]:
    """Return the changes of a session's status among what happened to its programs, without secrets.

    Of a reason there is the first line: the page tells it in full elsewhere.
    """
    redactor = Redactor()
    told = (Moment(moment.at, redactor.text(moment.text)) for moment in (*_changes(session), *moments))
    return sorted(told, key=lambda moment: moment.at)


def _changes(session: Session) -> Sequence[Moment]:
    changes = [Moment(session.created_at, "the session was created")]
    if session.started_at is not None:
        changes.append(Moment(session.started_at, "the session is ready"))
    why = f": {session.reason.strip().splitlines()[0]}" if session.reason and session.reason.strip() else ""
    if session.finished_at is not None:
        changes.append(Moment(session.finished_at, f"the session was stopped{why}"))
    elif session.status is Status.ERRORED:
        changes.append(Moment(session.updated_at, f"the session failed{why}"))
    return changes

"""The errors of a session that went wrong, in words."""

from pytest_device.errors import (
    NotFoundError,
    SessionError,
    SessionFailedError,
    SessionStoppedError,
    StopFailedError,
    UnexpectedReplyError,
)
from pytest_device.sessions.events import Gone, SessionRef, running_seconds
from pytest_device.sessions.lifecycle import described
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import CLEANUP_MINUTES, Status

NEVER_THERE = "the service does not know it: what it created may be running under another id"


def loss_of(of: SessionRef, answer: Session | NotFoundError) -> SessionError | None:
    """Return what became of a session that was in progress, None when it still is."""
    if isinstance(answer, NotFoundError):
        return _lost(SessionStoppedError, of, Gone.status)
    match answer.status:
        case Status.STOPPED:
            return _lost(SessionStoppedError, of, f"it was stopped{_how_long(answer)}")
        case Status.ERRORED:
            return _lost(SessionFailedError, of, f"it failed{_how_long(answer)}")
        case _ if answer.remote_config is None:
            return _lost(SessionFailedError, of, f"its status is {described(answer)}")
        case _:
            return None


def _lost(kind: type[SessionError], of: SessionRef, what: str) -> SessionError:
    return kind(f"the session is gone: {what} ({of.url})", session_id=of.session_id, url=of.url)


def _how_long(session: Session) -> str:
    """Return how long a session that has ended ran, in words, nothing where that is not known."""
    seconds = running_seconds(session)
    if seconds is None:
        return ""
    return f" after {seconds / 60:.1f} of at most {session.max_duration_minutes} minutes"


def unreachable(of: SessionRef, problem: str) -> SessionFailedError:
    """Return the error of a session whose controller did not answer in time."""
    what = f"the session is in progress, but {problem} ({of.url})"
    return SessionFailedError(what, session_id=of.session_id, url=of.url)


def not_stopped(of: SessionRef, reason: str, base_url: str) -> StopFailedError:
    """Return the error of a session that may still be running."""
    message = (
        f"the session could not be stopped: {reason}. It may keep running for up to {of.minutes} more "
        f"minutes (including {CLEANUP_MINUTES} min cleanup). Stop it with: "
        f"pytest-device stop --url {base_url} {of.session_id}"
    )
    full = f"{message} (session page: {of.url})" if of.url else message
    return StopFailedError(full, session_id=of.session_id, url=of.url or None)


def lost_answer(name: str | None, minutes: int) -> str:
    """Return the note on an error of a create call that may have made a session."""
    named = f"named {name!r}" if name else "without a name"
    return (
        f"The service may have created a session {named}, which may be running. It can't be found, because the "
        f"service has no list of sessions; it ends by itself after at most {minutes} minutes."
    )


def check_kind(request: SessionRequest, session: Session) -> None:
    """Raise UnexpectedReplyError where the service created something else than was requested."""
    asked, got = (request.platform, request.type), (session.platform, session.type)
    if got != asked:
        raise UnexpectedReplyError(f"create: requested {' '.join(asked)}, the service returned {' '.join(got)}")

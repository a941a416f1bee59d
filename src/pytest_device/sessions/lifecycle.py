"""Decides the next step for a session that a test waits for, and formats its errors. Pure: no clock, no network."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pytest_device.errors import (
    NOT_STARTED,
    ConfigError,
    LeaseTimeoutError,
    NoCapacityError,
    NotFoundError,
    ServiceError,
    SessionError,
    SessionFailedError,
    SessionStoppedError,
    SessionTimeoutError,
    StopFailedError,
    UnexpectedReplyError,
)
from pytest_device.options import Options
from pytest_device.sessions.breaker import OUTAGE_PAUSES
from pytest_device.sessions.events import Gone, SessionRef
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import (
    CLEANUP_MINUTES,
    POLL_INTERVAL_SECONDS,
    STATES,
    TERMINAL,
    Platform,
    SessionType,
    Status,
)

NEVER_THERE: Final = "the service returned 404 for a session that it has just created"
SLICE_SECONDS: Final = 0.5
"""Seconds of each part of a long wait in the main thread, which handles signals in between.

On Windows, a signal doesn't interrupt the wait for a lock. Elsewhere, it interrupts no wait if the kernel gives it to
another thread, as it does with half of the signals that follow another one within a millisecond.
"""
MAX_DELAY_SECONDS: Final = 300.0
"""Maximum delay, whatever the service asks for: capacity returns when a session ends, which it cannot foresee."""

_REQUESTED: Final = {
    "platform": Platform,
    "type": SessionType,
    "max_duration_minutes": int,
}
"""Fields that a session has as requested, with their types."""
_MIN_SECONDS: Final = 1.0
"""Minimum delay, unless polls are more frequent: ``Retry-After: 0`` is not an invitation to hammer the service."""
_MAX_DOUBLINGS: Final = 3
"""Beyond eight poll intervals (40 s by default), a freed device would idle for longer than many sessions last."""
_SPREAD: Final = 0.5
"""Clients that were refused together should not retry together, since most would be refused again."""
_SOON_SECONDS: Final = 0.001
"""Minimum delay: a clock's rounding may swallow a shorter one, and the session would ask in a loop."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long to wait for a session, and how often to poll it: the value of the fixture ``device_wait_policy``.

    Attributes:
        timeout_seconds: The maximum wait for a session. It is generous, because a service may hold a session in ``new``
            while others run, and no state separates queueing from booting.
        poll_interval_seconds: The pause between polls; the document recommends five seconds.
        controller_timeout_seconds: How long the controller of a session in progress may be unreachable. Half a minute
            leaves room for a slow tunnel.
        jitter: The share by which each pause varies, so that clients don't poll at the same moment: a tenth separates
            those that began together within a few polls, and adds at most half a second.
        random: Returns numbers from 0 to 1.

    Raises:
        ConfigError: The wait would not pause between polls, or never end.

    >>> WaitPolicy(timeout_seconds=300).poll_interval_seconds
    5.0
    """

    timeout_seconds: float = 900.0
    poll_interval_seconds: float = POLL_INTERVAL_SECONDS
    controller_timeout_seconds: float | None = 30.0
    jitter: float = 0.1
    random: Callable[[], float] = field(
        default=random.random, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # Not "<": each comparison with NaN is false.
        if not self.poll_interval_seconds > 0:
            raise ConfigError(
                f"poll_interval_seconds={self.poll_interval_seconds!r} of a WaitPolicy must be greater than 0"
            )

        if not self.timeout_seconds >= 0:
            raise ConfigError(
                f"timeout_seconds={self.timeout_seconds!r} of a WaitPolicy must be at least 0"
            )

    def delay(self) -> float:
        """Return the seconds until the next poll of a starting session.

        >>> WaitPolicy(jitter=0).delay()
        5.0
        """
        return self.poll_interval_seconds * self.spread(self.jitter)

    def spread(self, share: float) -> float:
        """Return a factor that averages 1 and varies by up to ``share``.

        >>> WaitPolicy(random=lambda: 1.0).spread(0.1)
        1.1
        """
        return 1 + share * (2 * self.random() - 1)


def skip_controller_check(_session: Session) -> None:
    """Skip the controller check."""


def next_poll(
    session: Session, waited_seconds: float, policy: WaitPolicy
) -> float | None:
    """Return the seconds until the next poll, None if the session is ready ("GET", recommended polling).

    ``waited_seconds`` counts from the request. Raises a SessionError for a session that will not become ready, or not in
    time.
    """
    match session.status:
        case Status.IN_PROGRESS if session.remote_config is not None:
            return None
        case Status.ERRORED:
            raise _gone(SessionFailedError, session, NOT_STARTED)
        case Status.STOPPED:
            raise _gone(
                SessionStoppedError,
                session,
                "the session was stopped before it was ready",
            )
        case _:  # new, in progress without connection details, or a status missing from the document
            seconds_left = policy.timeout_seconds - waited_seconds
            if seconds_left <= 0:
                hint = "It may be queued or still booting. Increase device_wait_timeout_seconds"
                state = (
                    STATES[Status.NEW]
                    if session.status == Status.NEW
                    else session.described_status
                )
                raise timed_out(
                    session, waited_seconds, f", it is {state} ({session.page}). {hint}"
                )

            return min(policy.delay(), seconds_left)


def timed_out(
    session: Session, waited_seconds: float, detail: str
) -> SessionTimeoutError:
    message = f"the session was not ready after {waited_seconds:.0f} s{detail}"
    return SessionTimeoutError(message, session_id=str(session.id), url=session.url)


def _gone(kind: type[SessionError], session: Session, problem: str) -> SessionError:
    # The document has no field for a reason, but a service may have one.
    why = ", see the session page for the reason"
    if session.reason:
        why = f": {session.reason}"

    message = f"{problem}{why} ({session.page})"

    return kind(
        message,
        session_id=str(session.id),
        url=session.url,
        reason=session.reason,
        explanation=session.explanation,
    )


def end_error(of: SessionRef, answer: Session | NotFoundError) -> SessionError | None:
    """Return the error for a session that is no longer in progress, None if it still is."""
    if isinstance(answer, NotFoundError):
        # A page comes from an ingress, which answers with 404 during a deployment.
        return None if answer.is_page else _lost(SessionStoppedError, of, Gone.status)

    ran = _ran(answer)
    why = f": {answer.reason}" if answer.reason else ""

    match answer.status:
        case Status.STOPPED:
            return _lost(SessionStoppedError, of, f"it was stopped{ran}{why}", answer)
        case Status.ERRORED:
            return _lost(SessionFailedError, of, f"it failed{ran}{why}", answer)
        # Whatever its status: without details there is no way to its device.
        case _ if answer.remote_config is None:
            return _lost(
                SessionFailedError, of, f"its status is {answer.described_status}"
            )
        case _:
            return None


def _ran(session: Session) -> str:
    """Return after what share of its maximum duration a session ended, empty if unknown."""
    limit = f"of at most {session.limit_minutes} minutes"
    if session.running_seconds is not None:
        return f" after {session.running_seconds / 60:.1f} {limit}"
    if session.max_running_seconds is not None:
        return f" within {session.max_running_seconds / 60:.1f} {limit}"

    return ""


def _lost(
    kind: type[SessionError],
    of: SessionRef,
    end: str,
    answer: Session | None = None,
) -> SessionError:
    return kind(
        f"the session is gone: {end} ({of.url})",
        session_id=of.session_id,
        url=of.url,
        reason=answer.reason if answer else "",
        explanation=answer.explanation if answer else "",
    )


def not_stopped(of: SessionRef, reason: str, base_url: str) -> StopFailedError:
    """Return the error for a session that may still be running."""
    message = (
        f"the session could not be stopped: {reason}. It may keep running for up to {of.minutes} more "
        f"minutes (including {CLEANUP_MINUTES} min cleanup). Stop it with: "
        f"pytest-device stop --url {base_url} {of.session_id}"
    )
    full = f"{message} (session page: {of.url})" if of.url else message

    return StopFailedError(full, session_id=of.session_id, url=of.url or None)


def lost_answer(name: str | None, minutes: int) -> str:
    """Return the note for a failed create call that may have created a session."""
    named = f"named {name!r}" if name else "without a name"
    return (
        f"The service may have created a session {named}, which may be running. It can't be found, because the "
        f"service has no list of sessions; it ends by itself after at most {minutes} minutes."
    )


def as_requested(request: SessionRequest, session: Session) -> Session:
    """Return a session with the requested values where the service has none, or a word that the document lacks."""
    requested = {
        name: getattr(request, name)
        for name, kind in _REQUESTED.items()
        if not isinstance(getattr(session, name), kind)
    }
    return session.model_copy(update=requested)


def other_kind(request: SessionRequest, session: Session) -> str:
    """Return a session's platform and type if they are others than requested, else an empty text."""
    requested = f"{request.platform} {request.type}"
    actual = f"{session.platform} {session.type}"
    return "" if actual == requested else actual


def check_kind(operation: str, request: SessionRequest, session: Session) -> None:
    """Raise UnexpectedReplyError if a reply is about a session of another type or platform than requested."""
    if other := other_kind(request, session):
        raise UnexpectedReplyError(
            f"{operation}: requested {request.platform} {request.type}, the service returned {other}"
        )


def check_attachable(request: SessionRequest, session: Session, attach: str) -> None:
    """Raise ConfigError if the session to attach to has ended, or is of another type or platform."""
    if session.status in TERMINAL:
        raise ConfigError(
            f"cannot attach to session {attach}: it has ended, {session.status} ({session.page})"
        )

    if other := other_kind(request, session):
        raise ConfigError(
            f"cannot attach to session {attach}: it is {other}, but the test needs {request.platform} {request.type} "
            f"({session.page})"
        )


class CreateBackoff:
    """Pauses between create calls that were refused, though the next one may succeed; all times as below.

    Used for refusals that a gateway sent, or that contradict earlier responses. The pauses are those of the breaker,
    so that all calls of a run, by whichever test, have the same rhythm.
    """

    def __init__(self, policy: WaitPolicy) -> None:
        self._policy = policy
        self.calls = 0
        """Number of refused calls."""
        self._due = 0.0

    def note(self, error: ServiceError, waited_seconds: float) -> str | None:
        """Count a refusal; return the text to report, None to give up: after the last pause or at the timeout."""
        self.calls += 1
        if self.calls > len(OUTAGE_PAUSES):
            return None

        pause = OUTAGE_PAUSES[self.calls - 1] * min(
            self._policy.poll_interval_seconds, POLL_INTERVAL_SECONDS
        )
        self._due = waited_seconds + pause
        if self._due >= self._policy.timeout_seconds:
            return None

        return f"{error}; asking again in {pause:.0f} s"

    def pass_over(self, seconds: float) -> None:
        """Move the start of the count without moving the next request."""
        self._due -= seconds

    def is_due(self, waited_seconds: float) -> bool:
        return self._due <= waited_seconds

    def delay(self, waited_seconds: float) -> float:
        """Return the seconds until the next call."""
        return max(self._due - waited_seconds, _SOON_SECONDS)


class CapacityBackoff:
    """Counts the refusals of a session for lack of capacity; all times are seconds since its first request.

    Retries when the service says so, but at least every five minutes; otherwise after the poll interval, doubled each
    time up to eight intervals, and spread by half, since others wait, too.
    """

    def __init__(self, policy: WaitPolicy) -> None:
        self._policy = policy
        self.refusals = 0
        """Number of refusals."""
        self._last = ""
        """The last refusal, for the error at the timeout."""
        self._due = 0.0

    def note(self, refusal: NoCapacityError, waited_seconds: float) -> str:
        """Count a refusal; return the text to report."""
        delay = self._delay_after(refusal)
        self._due = waited_seconds + delay
        self.refusals += 1
        self._last = str(refusal)

        return (
            f"the service has no capacity ({refusal.status}), retrying in {delay:.0f} s"
        )

    def pass_over(self, seconds: float) -> None:
        """Move the start of the count without moving the next request."""
        self._due -= seconds

    def is_due(self, waited_seconds: float) -> bool:
        """Return whether to retry now; never after the timeout, when a new session would be useless."""
        return self._due <= waited_seconds < self._policy.timeout_seconds

    def delay(self, waited_seconds: float) -> float:
        """Return the seconds until the retry; raises LeaseTimeoutError to give up."""
        left = self._policy.timeout_seconds - waited_seconds
        if left <= 0:
            raise LeaseTimeoutError(
                f"the service had no capacity for {waited_seconds:.0f} s. Last response: {self._last}. Increase "
                f"{Options.wait_timeout_seconds.flag}, or lower {Options.max_sessions.flag}"
            )

        return max(min(self._due - waited_seconds, left), _SOON_SECONDS)

    def _delay_after(self, refusal: NoCapacityError) -> float:
        interval = self._policy.poll_interval_seconds
        if refusal.retry_after_seconds is None:
            return float(
                interval * 2 ** min(self.refusals, _MAX_DOUBLINGS)
            ) * self._policy.spread(_SPREAD)

        shortest = min(interval, _MIN_SECONDS)
        # Never earlier than the service asked.
        later = self._policy.spread(self._policy.jitter) + self._policy.jitter
        return min(
            max(refusal.retry_after_seconds, shortest) * later, MAX_DELAY_SECONDS
        )

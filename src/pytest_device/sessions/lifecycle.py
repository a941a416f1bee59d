"""What to do next with a session that is being waited for. Pure: no clock, no network."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_device.errors import SessionError, SessionFailedError, SessionStoppedError, SessionTimeoutError
from pytest_device.sessions.models import Session
from pytest_device.sessions.polling import schedule_of
from pytest_device.spec import POLL_INTERVAL_SECONDS, Status


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long to wait for a session, and how often to ask.

    The time-out is generous because a service may hold a session in ``new`` while others run, and no state separates
    queueing from booting. The interval is the one the document recommends. A session in progress may have a controller
    that is not reachable yet: so long it is polled. Half a minute leaves room for a slow tunnel.

    Each delay is spread by ``jitter``, a share of it, so that many who wait do not ask at once: a tenth parts those who
    began together within a few polls, and delays nobody by more than half a second; ``random`` gives
    numbers from 0 to 1. Where ``learned`` is set, delays follow ``past_boots``: how long devices of the same kind took
    to be ready, in seconds, the newest last.
    """

    timeout_seconds: float = 900.0
    poll_interval_seconds: float = POLL_INTERVAL_SECONDS
    controller_timeout_seconds: float | None = 30.0
    learned: bool = False
    past_boots: Sequence[float] = ()
    jitter: float = 0.1
    random: Callable[[], float] = field(default=random.random, repr=False, compare=False)

    def delay(self, booting_seconds: float) -> float:
        """Return how long to wait before the next poll of a session that was created so long ago."""
        past = tuple(self.past_boots) if self.learned else ()
        return schedule_of(past, self.poll_interval_seconds)(booting_seconds) * self.spread(self.jitter)

    def spread(self, share: float) -> float:
        """Return a factor that is 1 on the average, and up to ``share`` more or less."""
        return 1 + share * (2 * self.random() - 1)


def next_poll(session: Session, waited_seconds: float, policy: WaitPolicy, booting_seconds: float) -> float | None:
    """Return after how many seconds to poll a session again, None when it is ready ("GET", recommended polling).

    ``waited_seconds`` count from its request, ``booting_seconds`` from when the service had capacity for it. Raises a
    SessionError for a session that will not become ready, or not in time.
    """
    match session.status:
        case Status.IN_PROGRESS if session.remote_config is not None:
            return None
        case Status.ERRORED:
            raise _gone(SessionFailedError, session, "failed to start")
        case Status.STOPPED:
            raise _gone(SessionStoppedError, session, "was stopped before it was ready")
        case _:  # new, in progress without connection details, or a status the document does not know
            left = policy.timeout_seconds - waited_seconds
            if left <= 0:
                hint = "It may be queued or still booting. Increase device_wait_timeout_seconds"
                raise timed_out(
                    session, waited_seconds, f", its status is {described(session)} ({session.url}). {hint}"
                )
            return min(policy.delay(booting_seconds), left)


def timed_out(session: Session, waited_seconds: float, detail: str) -> SessionTimeoutError:
    """Return the error of a wait that was too long."""
    message = f"the session was not ready after {waited_seconds:.0f} s{detail}"
    return SessionTimeoutError(message, session_id=str(session.id), url=session.url)


def described(session: Session) -> str:
    """Return the status in words, saying so when it is not complete or not in the document."""
    if session.status == Status.IN_PROGRESS and session.remote_config is None:
        return "in-progress without connection details"
    known = isinstance(session.status, Status)
    return str(session.status) if known else f"{session.status!r}, which the document does not know"


def _gone(kind: type[SessionError], session: Session, what: str) -> SessionError:
    message = f"the session {what}, see the session page for the reason: {session.url}"
    return kind(message, session_id=str(session.id), url=session.url)

"""A session for as long as a ``with`` block lasts: created, waited for, always stopped."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from pytest_device.errors import (
    NotFoundError,
    ServiceError,
    StopFailedError,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.sessions.client import DeviceClient, is_passing
from pytest_device.sessions.events import Emit, Event, Kind, nobody, running_seconds
from pytest_device.sessions.lifecycle import (
    TERMINAL,
    GiveUp,
    PollAgain,
    Ready,
    WaitPolicy,
    described,
    next_step,
    timed_out,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES, SESSIONS_PATH

_DEFAULT_POLICY: Final = WaitPolicy()


@contextmanager
def lease(
    client: DeviceClient,
    request: SessionRequest,
    *,
    policy: WaitPolicy = _DEFAULT_POLICY,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    emit: Emit = nobody,
) -> Generator[Session]:
    """Create a session, wait until its connection details are there, and stop it however the block ends.

    Raises a ServiceError when it cannot be created, a SessionError when it does not become ready, StopFailedError
    when it may still be running at the end. A stop that fails after another error becomes a note on that error.
    """
    life = _Life(client, request, policy=policy, clock=clock, sleep=sleep, emit=emit)
    try:
        life.create()
        yield life.wait()
    except BaseException as error:
        life.stop_after(error)
        raise
    else:
        life.stop()


class _Life:
    """One session from its create call to its stop."""

    def __init__(
        self,
        client: DeviceClient,
        request: SessionRequest,
        *,
        policy: WaitPolicy,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        emit: Emit,
    ) -> None:
        self._client, self._request, self._policy = client, request, policy
        self._clock, self._sleep, self._emit = clock, sleep, emit
        self._started = clock()
        self._session_id: str | None = None
        self._session: Session | None = None

    def create(self) -> None:
        try:
            self._session = self._client.create(self._request)
        except UnexpectedReplyError as error:
            self._session_id = error.session_id
            raise
        except TransportError as error:
            if error.sent:
                self._lost(error)
            raise
        self._session_id = str(self._session.id)
        self._tell(Kind.CREATED, self._request.name or "")

    def wait(self) -> Session:
        session = self._session
        if session is None:
            raise RuntimeError("wait() before create()")
        told = described(session)
        while True:
            match next_step(session, self._waited(), self._policy):
                case Ready():
                    self._tell(Kind.READY)
                    return session
                case PollAgain(after_seconds):
                    if described(session) != told:
                        told = described(session)
                        self._tell(Kind.STATUS, told)
                    self._sleep(after_seconds)
                    session = self._session = self._newest(session)
                case GiveUp(error):
                    raise error

    def _newest(self, known: Session) -> Session:
        """Ask until an answer arrives; what may pass is borne until the wait limit."""
        while True:
            try:
                session = self._client.get(known.id)
            except ServiceError as error:
                if not is_passing(error):
                    raise
                if self._waited() >= self._policy.timeout_seconds:
                    raise timed_out(known, self._waited()) from error
                self._tell(Kind.STATUS, str(error))
                self._sleep(self._policy.poll_interval_seconds)
                continue
            if session.id != known.id:
                raise UnexpectedReplyError(f"get: asked for session {known.id}, the service answered with {session.id}")
            return session

    def stop(self) -> None:
        if self._session_id is None:
            return
        try:
            session = self._client.stop(self._session_id)
        except NotFoundError:
            self._tell(Kind.STOPPED, "the service no longer knows it")
            return
        except ServiceError as error:
            raise self._not_stopped(str(error)) from error
        if session.status not in TERMINAL:
            raise self._not_stopped(f"its status is {described(session)}")
        self._session = session
        self._tell(Kind.STOPPED, str(session.status))

    def stop_after(self, error: BaseException) -> None:
        try:
            self.stop()
        except StopFailedError as failure:
            error.add_note(str(failure))

    def _not_stopped(self, reason: str) -> StopFailedError:
        self._tell(Kind.STOP_FAILED, reason)
        session_id, url = str(self._session_id), self._url()
        message = (
            f"session {session_id} could not be stopped and may run for up to {self._bound_minutes()} more minutes: "
            f"{reason}. Stop it with: POST {self._client.base_url}{SESSIONS_PATH}/{session_id}/stop"
        )
        return StopFailedError(f"{message}, or at {url}" if url else message, session_id=session_id, url=url)

    def _lost(self, error: TransportError) -> None:
        self._tell(Kind.CREATE_UNKNOWN, self._request.name or "")
        named = f"named {self._request.name!r}" if self._request.name else "without a name"
        error.add_note(
            f"The request may have been carried out: a session {named} may be running. Nothing can find it, since the "
            f"service has no list of sessions; it ends by itself after {self._bound_minutes()} minutes at the latest."
        )

    def _bound_minutes(self) -> int:
        asked = self._request.max_duration_minutes
        known = self._session.max_duration_minutes if self._session else None
        return next(value for value in (known, asked, DURATION_MAX_MINUTES) if value is not None) + CLEANUP_MINUTES

    def _url(self) -> str | None:
        return self._session.url if self._session else None

    def _waited(self) -> float:
        return self._clock() - self._started

    def _tell(self, kind: Kind, text: str = "") -> None:
        self._emit(
            Event(
                kind=kind,
                label=f"{self._request.platform} {self._request.type}",
                session_id=self._session_id or "",
                url=self._url() or "",
                text=text,
                waited_seconds=self._waited(),
                running_seconds=running_seconds(self._session) if self._session else None,
            )
        )

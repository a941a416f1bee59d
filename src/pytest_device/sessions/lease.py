"""A session for as long as a ``with`` block lasts: created, waited for, always stopped."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Protocol
from uuid import UUID

from pytest_device.errors import (
    ConfigError,
    NotFoundError,
    ServiceError,
    StatusError,
    StopDelayedError,
    StopFailedError,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.option_table import TOKEN_VARIABLE
from pytest_device.sessions.client import is_passing
from pytest_device.sessions.events import Emit, Event, Kind, nobody, running_seconds
from pytest_device.sessions.lifecycle import (
    GiveUp,
    PollAgain,
    Ready,
    WaitPolicy,
    described,
    next_step,
    timed_out,
)
from pytest_device.sessions.models import Session, named_device
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES, SESSIONS_PATH, TERMINAL

HEARTBEAT_SECONDS: Final = 30.0
"""How often a wait in which nothing changes says so."""

GONE: Final = "the service no longer knows it"
_NEVER_THERE: Final = "the service never knew it: what it created may be running under another id"
_DEFAULT_POLICY: Final = WaitPolicy()


class Sessions(Protocol):
    """The three calls of the document: a ``DeviceClient``, or what goes through a reaper."""

    @property
    def base_url(self) -> str: ...
    def create(self, request: SessionRequest) -> Session: ...
    def get(self, session_id: UUID | str) -> Session: ...
    def stop(self, session_id: UUID | str) -> Session: ...


def may_have_created(error: BaseException) -> bool:
    """Tell whether a create call that ended so may have left a session that nobody can name.

    Not so when it never left, or was refused.
    """
    match error:
        case ConfigError():
            return False
        case TransportError():
            return error.sent
        case StatusError():
            return error.status >= 500  # noqa: PLR2004  # a gateway may have lost a good answer
        case _:  # an interrupt loses the answer too
            return True


def kept_never(_session: Session) -> bool:
    """Keep no session."""
    return False


@contextmanager
def lease(
    client: Sessions,
    request: SessionRequest,
    *,
    policy: WaitPolicy = _DEFAULT_POLICY,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    emit: Emit = nobody,
    leaves_unknown: Callable[[BaseException], bool] = may_have_created,
    keeps: Callable[[Session], bool] = kept_never,
) -> Generator[Session]:
    """Create a session, wait until its connection details are there, and stop it however the block ends.

    Unless, that is, ``keeps`` says at the end of the block that it has taken the session over. ``leaves_unknown`` tells
    whether a create call that ended with this error may have left a session that nobody can name.
    Raises a ServiceError when it cannot be created, a SessionError when it does not become ready, StopFailedError
    when it may still be running at the end. A stop that fails after another error becomes a note on that error.
    """
    life = _Life(client, request, policy=policy, clock=clock, sleep=sleep, emit=emit)
    try:
        life.create(leaves_unknown)
        session = life.wait()
        yield session
    except BaseException as error:
        life.stop_after(error)
        raise
    else:
        if keeps(session):
            life.leave()
        else:
            life.stop()


class _Life:
    """One session from its create call to its stop."""

    def __init__(
        self,
        client: Sessions,
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
        self._is_known = False
        """Whether the service has answered by the session's id."""

    def create(self, leaves_unknown: Callable[[BaseException], bool]) -> None:
        try:
            self._session = self._client.create(self._request)
            self._session_id = str(self._session.id)
            self._check_kind(self._session)
        except BaseException as error:
            if self._session_id is None and isinstance(error, UnexpectedReplyError):
                self._session_id = error.session_id
            if self._session_id is not None:
                self._tell(Kind.CREATED)
            elif leaves_unknown(error):
                self._lost(error)
            raise
        self._tell(Kind.CREATED)

    def _check_kind(self, session: Session) -> None:
        asked, got = (self._request.platform, self._request.type), (session.platform, session.type)
        if got != asked:
            raise UnexpectedReplyError(
                f"create: asked for {' '.join(asked)}, the service answered with {' '.join(got)}"
            )

    def wait(self) -> Session:
        session = self._session
        if session is None:
            raise RuntimeError("wait() before create()")
        told, told_at = described(session), self._started
        while True:
            match next_step(session, self._waited(), self._policy):
                case Ready():
                    self._tell(Kind.READY, named_device(session))
                    return session
                case PollAgain(after_seconds):
                    if described(session) != told or self._clock() - told_at >= HEARTBEAT_SECONDS:
                        told, told_at = described(session), self._clock()
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
                    raise timed_out(known, self._waited(), last_answer=str(error)) from error
                self._tell(Kind.STATUS, str(error))
                self._sleep(self._policy.poll_interval_seconds)
                continue
            if session.id != known.id:
                raise UnexpectedReplyError(f"get: asked for session {known.id}, the service answered with {session.id}")
            self._is_known = True
            return session

    def stop(self) -> None:
        if self._session_id is None:
            return
        known = self._event(Kind.CREATED)
        try:
            event = stopped(self._client, known)
        except BaseException:  # an interrupt in the middle of the stop: the session comes first
            self._emit(stopped(self._client, known))
            raise
        if event.text == GONE and not self._is_known:
            event = replace(event, kind=Kind.STOP_FAILED, text=_NEVER_THERE)
        self._emit(event)
        if event.kind is Kind.STOP_FAILED:
            raise self._not_stopped(event.text)

    def leave(self) -> None:
        self._tell(Kind.KEPT)

    def stop_after(self, error: BaseException) -> None:
        try:
            self.stop()
        except StopFailedError as failure:
            error.add_note(str(failure))

    def _not_stopped(self, reason: str) -> StopFailedError:
        session_id, url, minutes = str(self._session_id), self._url(), self._event(Kind.CREATED).minutes
        message = (
            f"the session could not be stopped: {reason}. It may run for up to {minutes} more "
            f"minutes, {CLEANUP_MINUTES} of them for cleaning up. Stop it with: curl -X POST -H "
            f'"Authorization: Bearer ${TOKEN_VARIABLE}" {self._client.base_url}{SESSIONS_PATH}/{session_id}/stop'
        )
        return StopFailedError(f"{message} (its page: {url})" if url else message, session_id=session_id, url=url)

    def _lost(self, error: BaseException) -> None:
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
        self._emit(self._event(kind, text))

    def _event(self, kind: Kind, text: str = "") -> Event:
        return Event(
            kind=kind,
            label=f"{self._request.platform} {self._request.type}",
            session_id=self._session_id or "",
            url=self._url() or "",
            text=text,
            waited_seconds=self._waited(),
            minutes=max(0, round(self._bound_minutes() - self._waited() / 60)),
        )


def stopped(client: Sessions, known: Event) -> Event:
    """Stop the session of an earlier event; return the event of its success or failure."""
    return outcome_of(known, lambda: client.stop(known.session_id))


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

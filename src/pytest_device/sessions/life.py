"""One session from its create call to its stop, and the words for what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol
from uuid import UUID

from pytest_device.errors import (
    ConfigError,
    NotFoundError,
    ServiceError,
    SessionError,
    SessionFailedError,
    SessionStoppedError,
    StatusError,
    StopFailedError,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.sessions.client import is_passing
from pytest_device.sessions.ends import GONE, how_long, outcome_of
from pytest_device.sessions.events import Emit, Event, Kind
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
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES, Status

HEARTBEAT_SECONDS: Final = 30.0
"""How often a wait in which nothing changes says so."""

CONTROLLER_PAUSE_SECONDS: Final = 1.0
"""How long a controller that is not reachable is left alone, at most."""

_NEVER_THERE: Final = "the service never knew it: what it created may be running under another id"


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


ProblemOf = Callable[[Session], str | None]
"""What is wrong with the controller of a session in progress, None when nothing is."""


def unasked(_session: Session) -> None:
    """Take every controller for alive."""


class Life:
    """One session: created, looked at until it is ready, stopped or left. It is stopped once, however often asked.

    It is ready when ``problem_of`` finds nothing wrong with its controller.
    """

    def __init__(
        self,
        client: Sessions,
        request: SessionRequest,
        *,
        policy: WaitPolicy,
        clock: Callable[[], float],
        emit: Emit,
        problem_of: ProblemOf = unasked,
    ) -> None:
        self.request = request
        self._client, self._policy, self._clock, self._emit = client, policy, clock, emit
        self._problem_of = problem_of
        self._started = clock()
        self._told = ("", self._started)
        """The state that was told last, and when."""
        self._session_id: str | None = None
        self._session: Session | None = None
        self._is_known = False
        """Whether the service has answered by the session's id."""
        self._is_answered = True
        """Whether the last look at it was."""
        self.ready_at: float | None = None
        """Since when it may have been in progress, on this machine's clock: one look before it was seen to be."""
        self._asked_since = self._started
        """Since when its controller is asked whether it is alive."""
        self._is_ready = False
        self._is_over = False

    @property
    def session(self) -> Session:
        """Return the newest answer of the service."""
        if self._session is None:
            raise RuntimeError("the session was not created")
        return self._session

    def create(self, leaves_unknown: Callable[[BaseException], bool] = may_have_created) -> None:
        """Ask for the session; ``leaves_unknown`` tells whether an error may have left one that nobody can name."""
        try:
            self._session = self._client.create(self.request)
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
        self._told = (described(self._session), self._started)
        self._tell(Kind.CREATED)

    def _check_kind(self, session: Session) -> None:
        asked, got = (self.request.platform, self.request.type), (session.platform, session.type)
        if got != asked:
            raise UnexpectedReplyError(
                f"create: asked for {' '.join(asked)}, the service answered with {' '.join(got)}"
            )

    def pause(self) -> float:
        """Return after how many seconds to look again, 0 when it is ready; raises a SessionError to give up."""
        match next_step(self.session, self._waited(), self._policy):
            case Ready():
                return 0.0 if self._is_ready else self._until_healthy()
            case PollAgain(after_seconds):
                if self._is_answered:
                    self._tell_state(described(self.session))
                return after_seconds
            case GiveUp(error):
                raise error

    def _until_healthy(self) -> float:
        """Ask the controller: a tunnel may come up later than the session, or not at all."""
        if self.ready_at is None:
            self.ready_at = self._clock() - self._policy.poll_interval_seconds
            self._asked_since = self._clock()
        limit = self._policy.controller_timeout_seconds
        problem = None if limit is None else self._problem_of(self.session)
        if limit is None or problem is None:
            self._is_ready = True
            self._tell(Kind.READY, named_device(self.session))
            return 0.0
        if self._clock() - self._asked_since >= limit:
            what = f"the session is in progress, but {problem} ({self._url()})"
            raise SessionFailedError(what, session_id=str(self._session_id), url=self._url())
        self._tell_state(f"in-progress, but {problem}")
        return min(CONTROLLER_PAUSE_SECONDS, self._policy.poll_interval_seconds)

    def _tell_state(self, state: str) -> None:
        told, at = self._told
        if state != told or self._clock() - at >= HEARTBEAT_SECONDS:
            self._told = (state, self._clock())
            self._tell(Kind.STATUS, state)

    def look(self) -> Session:
        """Ask the service once; while it is waited for, what may pass is borne until the wait limit."""
        known = self.session
        try:
            session = self._client.get(known.id)
        except ServiceError as error:
            if not is_passing(error):
                raise
            if self._waited() >= self._policy.timeout_seconds:
                raise timed_out(known, self._waited(), last_answer=str(error)) from error
            self._is_answered, self._told = False, (str(error), self._clock())
            self._tell(Kind.STATUS, str(error))
            return known
        if session.id != known.id:
            raise UnexpectedReplyError(f"get: asked for session {known.id}, the service answered with {session.id}")
        self._is_known = self._is_answered = True
        self._session = session
        return session

    def stop(self) -> None:
        """Stop it; raises StopFailedError when it may still be running."""
        if self._session_id is None or self._is_over:
            return
        known = self._event(Kind.CREATED)
        try:
            event = self._stopped(known)
        except BaseException:  # an interrupt in the middle of the stop: the session comes first
            self._emit(self._stopped(known))
            raise
        self._is_over = True
        if event.text == GONE and not self._is_known:
            event = replace(event, kind=Kind.STOP_FAILED, text=_NEVER_THERE)
        self._emit(event)
        if event.kind is Kind.STOP_FAILED:
            raise self._not_stopped(event.text)

    def _stopped(self, known: Event) -> Event:
        return outcome_of(known, lambda: self._client.stop(known.session_id))

    def leave(self) -> None:
        """Tell that it was left running on purpose."""
        self._is_over = True
        self._tell(Kind.KEPT)

    def fail_to_start(self, reason: str) -> None:
        """Tell that another session is tried in its place, and stop it."""
        self._tell(Kind.START_FAILED, reason)
        self.stop()

    def loss(self) -> SessionError | None:
        """Ask the service once whether the session still is in progress; return what became of it when it is not.

        None when it is, and when the service does not answer: whoever uses the session finds out.
        """
        try:
            session = self._client.get(self.session.id)
        except NotFoundError:
            return self._gone(SessionStoppedError, GONE)
        except ServiceError:
            return None
        match session.status:
            case Status.STOPPED:
                return self._gone(SessionStoppedError, f"it was stopped{how_long(session)}")
            case Status.ERRORED:
                return self._gone(SessionFailedError, f"it became errored{how_long(session)}")
            case _ if session.remote_config is None:
                return self._gone(SessionFailedError, f"its status is {described(session)}")
            case _:
                return None

    def _gone(self, kind: type[SessionError], what: str) -> SessionError:
        return kind(f"the session is gone: {what} ({self._url()})", session_id=str(self._session_id), url=self._url())

    def stop_after(self, error: BaseException) -> None:
        """Stop it because of an error, which is told first: a stop that fails becomes a note on it."""
        try:
            self.stop()
        except StopFailedError as failure:
            error.add_note(str(failure))

    def _not_stopped(self, reason: str) -> StopFailedError:
        session_id, url, minutes = str(self._session_id), self._url(), self._event(Kind.CREATED).minutes
        message = (
            f"the session could not be stopped: {reason}. It may run for up to {minutes} more "
            f"minutes, {CLEANUP_MINUTES} of them for cleaning up. Stop it with: "
            f"pytest-device stop --url {self._client.base_url} {session_id}"
        )
        return StopFailedError(f"{message} (its page: {url})" if url else message, session_id=session_id, url=url)

    def _lost(self, error: BaseException) -> None:
        self._tell(Kind.CREATE_UNKNOWN, self.request.name or "")
        named = f"named {self.request.name!r}" if self.request.name else "without a name"
        error.add_note(
            f"The request may have been carried out: a session {named} may be running. Nothing can find it, since the "
            f"service has no list of sessions; it ends by itself after {self._bound_minutes()} minutes at the latest."
        )

    def _bound_minutes(self) -> int:
        asked = self.request.max_duration_minutes
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
            label=f"{self.request.platform} {self.request.type}",
            session_id=self._session_id or "",
            url=self._url() or "",
            text=text,
            waited_seconds=self._waited(),
            minutes=max(0, round(self._bound_minutes() - self._waited() / 60)),
        )


def wait_for(lives: Sequence[Life], sleep: Callable[[float], None]) -> None:
    """Look at sessions side by side until all of them are ready; raises what makes one of them give up."""
    waiting = list(lives)
    while True:
        pauses = {life: life.pause() for life in waiting}
        waiting = [life for life, pause in pauses.items() if pause]
        if not waiting:
            return
        sleep(min(pauses[life] for life in waiting))
        for life in waiting:
            life.look()

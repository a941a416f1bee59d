"""One session from its create call to its stop, and the words for what came of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol
from uuid import UUID

from pytest_device.errors import (
    ConfigError,
    NoCapacityError,
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
from pytest_device.sessions.boots import boot_key, boot_seconds
from pytest_device.sessions.capacity_backoff import RETRY_AFTER_MOST_SECONDS, Queueing
from pytest_device.sessions.client import is_passing, retry_after_of
from pytest_device.sessions.events import (
    Created,
    CreateUnknown,
    Gone,
    Kept,
    KeptWarm,
    Ready,
    Report,
    SessionRef,
    StartFailed,
    StateChanged,
    StopEvent,
    StopFailed,
    Stopped,
    TakenOver,
    running_seconds,
    stop_event,
)
from pytest_device.sessions.lifecycle import (
    GiveUp,
    PollAgain,
    WaitPolicy,
    described,
    next_step,
    timed_out,
)
from pytest_device.sessions.lifecycle import Ready as InProgress
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
        case NoCapacityError():
            return False
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

    It is ready when ``problem_of`` finds nothing wrong with its controller. Where the service has no capacity, it is
    not created yet, and ``look`` asks again when that is due.
    """

    def __init__(
        self,
        client: Sessions,
        request: SessionRequest,
        *,
        policy: WaitPolicy,
        clock: Callable[[], float],
        report: Report,
        problem_of: ProblemOf = unasked,
    ) -> None:
        self.request = request
        self._client, self._policy, self._clock, self._report = client, policy, clock, report
        self._problem_of = problem_of
        self._started = self._created = clock()
        self._queueing = Queueing(policy)
        self._leaves_unknown: Callable[[BaseException], bool] = may_have_created
        self._told = ("", self._started)
        """The state that was told last, and when."""
        self._session_id: str | None = None
        self._session: Session | None = None
        self._is_known = False
        """Whether the service has answered by the session's id."""
        self._is_answered = True
        """Whether the last look at it was."""
        self._looked = self._started
        """When it was last seen not to be ready."""
        self._held_off = self._started
        """Until when the service does not want to be asked."""
        self.ready_at: float | None = None
        """Since when it may have been in progress, on this machine's clock: one look before it was seen to be."""
        self._asked_since = self._started
        """Since when its controller is asked whether it is alive."""
        self._is_ready = False
        self._is_over = False
        self._since: float | None = None
        """Since when it is this run's, where another has created it."""

    @property
    def session(self) -> Session:
        """Return the newest answer of the service."""
        if self._session is None:
            raise RuntimeError("the session was not created")
        return self._session

    @property
    def is_created(self) -> bool:
        """Tell whether the service has created it; until then it is refused for lack of capacity."""
        return self._session is not None

    @property
    def refusals(self) -> int:
        """Return how often the service had no capacity for it."""
        return self._queueing.refusals

    def wait_since(self, began: float) -> None:
        """Count the wait from a moment of its clock: not before anybody waited, or from an earlier session's on."""
        self._queueing.pass_over(began - self._started)
        self._started = began

    def create(self, leaves_unknown: Callable[[BaseException], bool] = may_have_created) -> None:
        """Ask for the session; ``leaves_unknown`` tells whether an error may have left one that nobody can name.

        Raises a ServiceError, but not where the service has no capacity: then it is asked again by ``look``.
        """
        self._leaves_unknown = leaves_unknown
        self._ask()

    def _ask(self) -> None:
        try:
            self._session = self._client.create(self.request)
            self._session_id = str(self._session.id)
            self._check_kind(self._session)
        except NoCapacityError as refusal:
            text = self._queueing.note(refusal, self._waited())
            self._report_state(f"no capacity: {refusal.status}", text)
            return
        except BaseException as error:
            if self._session_id is None and isinstance(error, UnexpectedReplyError):
                self._session_id = error.session_id
            if self._session_id is not None:
                self._report(Created(self._ref()))
            elif self._leaves_unknown(error):
                self._lost(error)
            raise
        self._created = self._looked = self._clock()
        self._told = (described(self._session), self._created)
        self._report(Created(self._ref()))

    def take_over(self, session: Session, ready_at: float) -> None:
        """Go on with a session that an earlier run has left up, ready since then by this machine's clock."""
        self._session, self._session_id = session, str(session.id)
        self._is_known = self._is_ready = True
        self.ready_at, self._since = ready_at, self._clock()
        self._report(TakenOver(self._ref(), named_device(session)))

    def _check_kind(self, session: Session) -> None:
        asked, got = (self.request.platform, self.request.type), (session.platform, session.type)
        if got != asked:
            raise UnexpectedReplyError(
                f"create: asked for {' '.join(asked)}, the service answered with {' '.join(got)}"
            )

    def pause(self) -> float:
        """Return after how many seconds to look again, 0 when it is ready.

        Raises a SessionError to give up, a LeaseTimeoutError where it could not be created in time.
        """
        if self._session is None:
            return self._queueing.pause(self._waited())
        match next_step(self._session, self._waited(), self._policy, booting_seconds=self._clock() - self._created):
            case InProgress():
                return 0.0 if self._is_ready else self._until_healthy()
            case PollAgain(after_seconds):
                self._looked = self._clock()
                if self._is_answered:
                    self._report_state(described(self.session))
                return max(after_seconds, self._held_off - self._clock())
            case GiveUp(error):
                raise error

    def _until_healthy(self) -> float:
        """Ask the controller: a tunnel may come up later than the session, or not at all."""
        if self.ready_at is None:
            self.ready_at = self._looked
            self._asked_since = self._clock()
        limit = self._policy.controller_timeout_seconds
        problem = None if limit is None else self._problem_of(self.session)
        if limit is None or problem is None:
            self._is_ready = True
            device, seconds = named_device(self.session), boot_seconds(self.session)
            self._report(Ready(self._ref(), device, boot_key(self.request), seconds))
            return 0.0
        if self._clock() - self._asked_since >= limit:
            what = f"the session is in progress, but {problem} ({self._url()})"
            raise SessionFailedError(what, session_id=str(self._session_id), url=self._url())
        self._report_state(f"in-progress, but {problem}")
        return min(CONTROLLER_PAUSE_SECONDS, self._policy.poll_interval_seconds)

    def _report_state(self, state: str, text: str = "") -> None:
        """Report a state that is new, or was reported long ago, by a text of its own where there is one."""
        told, at = self._told
        if state != told or self._clock() - at >= HEARTBEAT_SECONDS:
            self._told = (state, self._clock())
            self._report(StateChanged(self._ref(), text or state))

    def look(self) -> None:
        """Ask the service once; while it is waited for, what may pass is borne until the wait limit.

        Where it is not created yet it is asked for, if that is due; that raises what ``create`` does.
        """
        if self._session is None:
            if self._queueing.is_due(self._waited()):
                self._ask()
            return
        known = self._session
        try:
            session = self._client.get(known.id)
        except ServiceError as error:
            if not is_passing(error):
                raise
            if self._waited() >= self._policy.timeout_seconds:
                raise timed_out(known, self._waited(), last_answer=str(error)) from error
            self._hold_off(retry_after_of(error))
            self._is_answered, self._told = False, (str(error), self._clock())
            self._report(StateChanged(self._ref(), str(error)))
            return
        if session.id != known.id:
            raise UnexpectedReplyError(f"get: asked for session {known.id}, the service answered with {session.id}")
        self._is_known = self._is_answered = True
        self._session = session

    def _hold_off(self, seconds: float) -> None:
        """Leave the service alone for as long as it asks for, not beyond the wait limit."""
        until = self._clock() + min(seconds, RETRY_AFTER_MOST_SECONDS)
        self._held_off = min(until, self._started + self._policy.timeout_seconds)

    def stop(self) -> None:
        """Stop it; raises StopFailedError when it may still be running."""
        if self._session_id is None or self._is_over:
            return
        of = self._ref()
        try:
            event = self._stopped(of)
        except BaseException:  # an interrupt in the middle of the stop: the session comes first
            self._report(self._stopped(of))
            raise
        self._is_over = True
        if isinstance(event, Gone) and not self._is_known:
            event = StopFailed(of, _NEVER_THERE)
        self._report(event)
        if isinstance(event, StopFailed):
            raise self._not_stopped(event.reason)

    def _stopped(self, of: SessionRef) -> StopEvent:
        event = stop_event(of, lambda: self._client.stop(of.session_id))
        if self._since is None or not isinstance(event, Stopped) or event.running_seconds is None:
            return event
        return replace(event, running_seconds=min(event.running_seconds, self._clock() - self._since))

    def leave(self) -> None:
        """Tell that it was left running on purpose."""
        self._is_over = True
        self._report(Kept(self._ref()))

    def leave_warm(self, until: str) -> None:
        """Tell that it was left up for the next run, until that time of day."""
        self._is_over = True
        since = self._since if self._since is not None else self.ready_at
        used = None if since is None else self._clock() - since
        self._report(KeptWarm(self._ref(), until, used))

    def fail_to_start(self, reason: str) -> None:
        """Tell that another session is tried in its place, and stop it."""
        self._report(StartFailed(self._ref(), reason))
        self.stop()

    def loss(self) -> SessionError | None:
        """Ask the service once whether the session still is in progress; return what became of it when it is not.

        None when it is, and when the service does not answer: whoever uses the session finds out.
        """
        try:
            session = self._client.get(self.session.id)
        except NotFoundError:
            return self._gone(SessionStoppedError, Gone.status)
        except ServiceError:
            return None
        match session.status:
            case Status.STOPPED:
                return self._gone(SessionStoppedError, f"it was stopped{_how_long(session)}")
            case Status.ERRORED:
                return self._gone(SessionFailedError, f"it became errored{_how_long(session)}")
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
        session_id, url, minutes = str(self._session_id), self._url(), self._ref().minutes
        message = (
            f"the session could not be stopped: {reason}. It may run for up to {minutes} more "
            f"minutes, {CLEANUP_MINUTES} of them for cleaning up. Stop it with: "
            f"pytest-device stop --url {self._client.base_url} {session_id}"
        )
        return StopFailedError(f"{message} (its page: {url})" if url else message, session_id=session_id, url=url)

    def _lost(self, error: BaseException) -> None:
        self._report(CreateUnknown(self._ref(), self.request.name or ""))
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

    def _ref(self) -> SessionRef:
        return SessionRef(
            label=f"{self.request.platform} {self.request.type}",
            session_id=self._session_id or "",
            url=self._url() or "",
            minutes=max(0, round(self._bound_minutes() - (self._clock() - self._created) / 60)),
            waited_seconds=self._waited(),
        )


def _how_long(session: Session) -> str:
    """Return how long a session that has ended ran, in words, nothing where that is not known."""
    seconds = running_seconds(session)
    if seconds is None:
        return ""
    return f" after {seconds / 60:.1f} of at most {session.max_duration_minutes} minutes"

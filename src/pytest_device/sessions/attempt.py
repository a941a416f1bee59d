"""One attempt to have a session: its create call, the wait until it can be used, what the service has said of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pytest_device.errors import (
    ConfigError,
    NoCapacityError,
    NotFoundError,
    ServiceError,
    SessionFailedError,
    UnexpectedReplyError,
)
from pytest_device.sessions.breaker import Gate
from pytest_device.sessions.client import SessionClient
from pytest_device.sessions.events import (
    Attached,
    Created,
    CreateUnknown,
    Note,
    Ready,
    SessionRef,
    StateChanged,
    TakenOver,
)
from pytest_device.sessions.lifecycle import (
    RETRY_AFTER_MOST_SECONDS,
    CapacityBackoff,
    WaitPolicy,
    check_kind,
    lost_answer,
    next_poll,
    timed_out,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.replies import is_odd, is_passing, retry_after_of
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.retry_policy import GONE_SECONDS
from pytest_device.sessions.states import State
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES, TERMINAL

HEARTBEAT_SECONDS: Final = 30.0
"""How often a wait in which nothing changes says so: a CI log that stands still for longer looks like a hang."""

CONTROLLER_DELAY_SECONDS: Final = 1.0
"""How long a controller that cannot be reached is left alone, at most: it costs the service nothing to be asked."""

_REQUESTED: Final = ("type", "platform", "max_duration_minutes")

ProblemOf = Callable[[Session], str | None]
"""What is wrong with the controller of a session in progress, None when nothing is."""


def unasked(_session: Session) -> None:
    """Take every controller for reachable."""


class WarmSession(NamedTuple):
    """A session that an earlier run left up and that is this process's now."""

    session: Session
    ready_at: float
    """Since when it has been ready, on this process's clock."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """How the sessions of a process are created."""

    client: SessionClient
    clock: Callable[[], float]
    relay: Relay = field(default_factory=Relay)
    problem_of: ProblemOf = unasked
    attempts: int = 1
    """How many sessions are created, one after the other, until one does not fail to start."""
    gate: Gate = field(default_factory=Gate)


class Attempt:
    """One create call and what follows, by the clock of this process. Each call returns the state that it led to."""

    def __init__(self, request: SessionRequest, policy: WaitPolicy, config: SessionConfig) -> None:
        self._request, self._policy, self._config = request, policy, config
        self.session: Session | None = None
        """The newest answer of the service."""
        self.session_id: str | None = None
        """Known even where the rest of the answer was broken."""
        self.is_known = False
        """Whether the service has answered by its id."""
        self.is_attached = False
        self.had_since: float | None = None
        """Since when it is this run's, where another has created it."""
        self.ready_at: float | None = None
        """Since when it may have been in progress: one poll before it was seen to be."""
        self.started = self._created = self._last_seen = config.clock()
        """Since when it is waited for; when it was created; when it was last seen not to be ready."""
        self._odd = set[str]()
        """The names of fields that were not as the document says."""
        self._is_answered = True
        """Whether the last poll was."""
        self._odd_since: float | None = None
        """Since when polls are answered so oddly that it may not exist."""
        self._not_before = self.started
        """Until then the service does not want to be asked."""
        self._checked_since: float | None = None
        """Since when its controller is asked whether it can be reached."""
        self._reported = ("", self.started)
        """The state that was reported last, and when."""
        self._backoff: CapacityBackoff | None = None

    @property
    def refusals(self) -> int:
        """Return how often the service had no capacity for it, 0 once it is created."""
        return 0 if self._backoff is None or self.session_id else self._backoff.refusals

    def count_from(self, began: float) -> None:
        """Count the wait from this time on: before it nobody waited, or an earlier session was waited for."""
        if self._backoff:
            self._backoff.pass_over(began - self.started)
        self.started = began

    def take_over(self, warm: WarmSession) -> State:
        """Use a session that an earlier run kept warm."""
        self.session, self.session_id = warm.session, str(warm.session.id)
        self.is_known = True
        self.ready_at, self.had_since = warm.ready_at, self._config.clock()
        self._config.relay.event(TakenOver(self.ref(), warm.session.device_name))
        return State.READY

    def attach(self, session_id: str) -> State:
        """Use a session that exists; raises a ServiceError, and ConfigError for one that cannot be used."""
        try:
            session = self._as_requested(self._config.client.get(session_id))
        except NotFoundError as error:
            raise ConfigError(f"cannot attach to session {session_id}: {error}") from error
        if session.status in TERMINAL:
            raise ConfigError(f"cannot attach to session {session_id}: it has ended, {session.status} ({session.page})")
        asked, found = f"{self._request.platform} {self._request.type}", f"{session.platform} {session.type}"
        if found != asked:
            raise ConfigError(
                f"cannot attach to session {session_id}: it is {found}, the test needs {asked} ({session.page})"
            )
        self.session, self.session_id = session, str(session.id)
        self.is_known = self.is_attached = True
        self._reported = (session.described_status, self._config.clock())
        self._config.relay.event(Attached(self.ref()))
        return State.STARTING

    def create(self) -> State | None:
        """Request it, unless the service had no capacity and is to be left alone for now.

        Raises a ServiceError, but not for lack of capacity.
        """
        if self._backoff and not self._backoff.is_due(self.waited):
            return None
        try:
            self.session = self._as_requested(self._config.client.create(self._request))
            self.session_id = str(self.session.id)
            check_kind(self._request, self.session)
        except NoCapacityError as refusal:
            self._backoff = self._backoff or CapacityBackoff(self._policy)
            text = self._backoff.note(refusal, self.waited)
            self._report_state(f"no capacity: {refusal.status}", text)
            return State.QUEUED
        except BaseException as error:
            self._note_broken(error)
            raise
        self._created = self._last_seen = self._config.clock()
        self._reported = (self.session.described_status, self._created)
        self._config.relay.event(Created(self.ref()))
        return State.STARTING

    def _note_broken(self, error: BaseException) -> None:
        """Report what a failed create call left: a session, or possibly one whose id is unknown."""
        if self.session_id is None and isinstance(error, UnexpectedReplyError):
            self.session_id = error.session_id
        if self.session_id is not None:
            self._config.relay.event(Created(self.ref()))
        elif self._config.client.leaves_unknown(error):
            self._config.relay.event(CreateUnknown(self.ref(), self._request.name or ""))
            error.add_note(lost_answer(self._request.name, self._bound_minutes()))

    def refresh(self) -> None:
        """Poll it once; passing errors are tolerated until the wait limit."""
        known = self.known
        try:
            session = self._config.client.get(known.id)
        except ServiceError as error:
            if not is_passing(error) and not self._is_tolerated(error):
                raise
            self._tolerate(error, known)
            return
        if session.id != known.id:
            raise UnexpectedReplyError(f"get: requested session {known.id}, the service returned {session.id}")
        self.is_known = self._is_answered = True
        self._odd_since = None
        self.session = self._as_requested(session.model_copy(update={"id": known.id}))  # one spelling

    def _as_requested(self, session: Session) -> Session:
        """Take from the request what the service does not say of a session, and note that."""
        self._odd.update(name for name in session.odd_fields if session.remote_config or "remoteConfig" not in name)
        asked = {name: getattr(self._request, name) for name in _REQUESTED if getattr(session, name) is None}
        return session.model_copy(update=asked)

    def _is_tolerated(self, error: ServiceError) -> bool:
        """Return whether an answer may be that of a replica which lags behind, or of something on the way."""
        now = self._config.clock()
        self._odd_since = now if self._odd_since is None else self._odd_since
        return is_odd(error) and now - self._odd_since < GONE_SECONDS

    def _tolerate(self, error: ServiceError, known: Session) -> None:
        """Pause as long as the service asks, but not beyond the wait limit."""
        if self.waited >= self._policy.timeout_seconds:
            raise timed_out(known, self.waited, f" ({known.page}). Last answer: {error}") from error
        until = self._config.clock() + min(retry_after_of(error), RETRY_AFTER_MOST_SECONDS)
        self._not_before = min(until, self.started + self._policy.timeout_seconds)
        self._is_answered = False
        self._reported = ("", 0.0)  # each failure is reported
        self._report_state(str(error))

    def next_delay(self) -> float:
        """Return after how many seconds to go on, 0 when it is ready.

        Raises a SessionError to give up, a LeaseTimeoutError where it could not be created in time.
        """
        if self.session is None:
            return self._backoff.delay(self.waited) if self._backoff else 0.0
        booting = self._config.clock() - self._created
        delay = next_poll(self.session, self.waited, self._policy, booting)
        if delay is None:
            return self._controller_delay(self.session)
        self._last_seen = self._config.clock()
        if self._is_answered:
            self._report_state(self.session.described_status)
        return max(delay, self._not_before - self._config.clock())

    def _controller_delay(self, session: Session) -> float:
        """Check the controller: a tunnel may come up later than the session, or not at all."""
        if self.ready_at is None or self._checked_since is None:
            self.ready_at, self._checked_since = self._last_seen, self._config.clock()
        limit = self._policy.controller_timeout_seconds
        problem = None if limit is None else self._config.problem_of(session)
        if limit is None or problem is None:
            boot_key = "" if self.is_attached else self._request.boot_key
            ready = Ready(self.ref(), session.device_name, boot_key, session.boot_seconds)
            self._config.relay.event(ready)
            if self._odd:  # the same ones for all sessions by now, so that a run reports them once
                text = f"the service's sessions have no usable {', '.join(sorted(self._odd))}: done without"
                self._config.relay.event(Note(text))
            return 0.0
        if self._config.clock() - self._checked_since >= limit:
            what = f"the session is in progress, but {problem} ({session.page})"
            raise SessionFailedError(what, session_id=str(session.id), url=session.url)
        self._report_state(f"in-progress, but {problem}")
        return min(CONTROLLER_DELAY_SECONDS, self._policy.poll_interval_seconds)

    def _report_state(self, state: str, text: str = "") -> None:
        """Report a state that is new, or was reported long ago, by a text of its own where there is one."""
        reported, at = self._reported
        if state != reported or self._config.clock() - at >= HEARTBEAT_SECONDS:
            self._reported = (state, self._config.clock())
            self._config.relay.event(StateChanged(self.ref(), text or state))

    def ref(self) -> SessionRef:
        return SessionRef(
            label=f"{self._request.platform} {self._request.type}",
            session_id=self.session_id or "",
            url=(self.session.url or "") if self.session else "",
            minutes=max(0, round(self._bound_minutes() - (self._config.clock() - self._created) / 60)),
            waited_seconds=self.waited,
        )

    @property
    def known(self) -> Session:
        """Return the session; raises RuntimeError when it was not created."""
        if self.session is None:
            raise RuntimeError("the session was not created")
        return self.session

    def _bound_minutes(self) -> int:
        requested = self._request.max_duration_minutes
        known = self.session.max_duration_minutes if self.session else None
        return next(value for value in (known, requested, DURATION_MAX_MINUTES) if value is not None) + CLEANUP_MINUTES

    @property
    def waited(self) -> float:
        """Return for how many seconds it has been waited for."""
        return self._config.clock() - self.started

"""One attempt to start a session: the create call, the polls until it is ready, and the service's latest response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pytest_device.errors import (
    ConfigError,
    LeaseTimeoutError,
    NoCapacityError,
    NotFoundError,
    ServiceError,
    SessionFailedError,
    UnexpectedReplyError,
)
from pytest_device.sessions.breaker import ASK_AGAIN_SECONDS, Gate
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
    check_attachable,
    check_kind,
    lost_answer,
    next_poll,
    skip_controller_check,
    timed_out,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.replies import is_suspicious, is_temporary, retry_after_of
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.sessions.retry_policy import GONE_SECONDS
from pytest_device.sessions.states import State
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

HEARTBEAT_SECONDS: Final = 30.0
"""Seconds after which an unchanged state is reported again: a CI log without output for longer looks like a hang."""

CONTROLLER_DELAY_SECONDS: Final = 1.0
"""Maximum seconds between two checks of an unreachable controller; they cost the service nothing."""

_REQUESTED: Final = ("type", "platform", "max_duration_minutes")

ProblemOf = Callable[[Session], str | None]
"""Returns the problem with the controller of an in-progress session, or None."""


class WarmSession(NamedTuple):
    """A session that an earlier run kept warm and that now belongs to this process."""

    session: Session
    ready_at: float
    """When it became ready, on this process's clock."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings for creating the sessions of a process."""

    client: SessionClient
    clock: Callable[[], float]
    relay: Relay = field(default_factory=Relay)
    problem_of: ProblemOf = skip_controller_check
    attempts: int = 1
    """Maximum number of sessions to create, one after the other, until one starts."""
    gate: Gate = field(default_factory=Gate)
    past_boots: Callable[[str], Sequence[float]] = lambda _boot_key: ()
    """Returns the boot times of earlier sessions with this key, in seconds, newest last."""


class Attempt:
    """One create call and the polls after it, timed by this process's clock. Each call returns the resulting state."""

    def __init__(
        self, requirement: DeviceRequirement, policy: WaitPolicy, config: SessionConfig
    ) -> None:
        self._request, self._attach = requirement.request, requirement.attach
        self._policy, self._config = policy, config
        self.session: Session | None = None
        """The service's latest response."""
        self.session_id: str | None = None
        """Known even if the rest of the response was malformed."""
        self.is_known = False
        """Whether the service has returned this session for its ID."""
        self.taken_over_at: float | None = None
        """When this run took over a session that another run created."""
        self.ready_at: float | None = None
        """Earliest time at which it may have been in progress: one poll before that was first seen."""
        self.started = self._created = self._last_seen = config.clock()
        """Start of the wait; time of creation; last time it was seen not ready."""
        self._invalid = set[str]()
        """Fields that were unusable in any response."""
        self._is_answered = True
        """Whether the last poll got a usable response."""
        self._suspicious_since: float | None = None
        """Since when the polls' responses have been so suspicious that the session may not exist."""
        self._not_before = self.started
        """Earliest time of the next poll, as requested by the service."""
        self._checked_since: float | None = None
        """When the controller checks began."""
        self._reported = ("", self.started)
        """State reported last, and when."""
        self._backoff: CapacityBackoff | None = None

    @property
    def refusals(self) -> int:
        """Return how often the service had no capacity for it; 0 once it is created."""
        return 0 if self._backoff is None or self.session_id else self._backoff.refusals

    def count_from(self, began: float) -> None:
        """Restart the wait at ``began``: before that nobody waited, or the wait was for an earlier session."""
        if self._backoff:
            self._backoff.pass_over(began - self.started)
        self.started = began

    def take_over(self, warm: WarmSession) -> State:
        """Use a session that an earlier run kept warm."""
        self.session, self.session_id = warm.session, str(warm.session.id)
        self.is_known = True
        self.ready_at, self.taken_over_at = warm.ready_at, self._config.clock()
        self._config.relay.event(TakenOver(self.ref(), warm.session.device_name))
        return State.READY

    def delay_behind_others(self) -> float:
        """Return the seconds until asking again for permission to begin; raises LeaseTimeoutError to give up."""
        if self.waited < self._policy.timeout_seconds:
            return ASK_AGAIN_SECONDS
        raise LeaseTimeoutError(
            f"identical attempts by other workers have neither succeeded nor failed for {self.waited:.0f} s"
        )

    def begin(self) -> State | None:
        """Create the session, unless the service had no capacity and the retry is not due yet; or attach to it.

        Raises a ServiceError, except for lack of capacity, and ConfigError for a session that it cannot attach to.
        """
        return self._use_existing() if self._attach else self._create()

    def _use_existing(self) -> State:
        try:
            session = self._as_requested(self._config.client.get(self._attach))
        except NotFoundError as error:
            raise ConfigError(
                f"cannot attach to session {self._attach}: {error}"
            ) from error
        check_attachable(self._request, session, self._attach)
        self.session, self.session_id = session, str(session.id)
        self.is_known = True
        self._reported = (session.described_status, self._config.clock())
        self._config.relay.event(Attached(self.ref()))
        return State.STARTING

    def _create(self) -> State | None:
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
        """Report the result of a failed create call: a session, or possibly one with an unknown ID."""
        if self.session_id is None and isinstance(error, UnexpectedReplyError):
            self.session_id = error.session_id
        if self.session_id is not None:
            self._config.relay.event(Created(self.ref()))
        elif self._config.client.leaves_unknown(error):
            self._config.relay.event(
                CreateUnknown(self.ref(), self._request.name or "")
            )
            error.add_note(lost_answer(self._request.name, self._bound_minutes()))

    def refresh(self) -> None:
        """Poll it once; temporary errors are tolerated until the wait times out."""
        try:
            session = self._config.client.get(self.known.id)
        except ServiceError as error:
            if not is_temporary(error) and not self._is_tolerated(error):
                raise
            self._tolerate(error, self.known)
            return
        self.record(session)
        self._is_answered, self._suspicious_since = True, None

    def record(self, session: Session) -> None:
        """Record the service's current response; raises UnexpectedReplyError if it is about another session."""
        if session.id != self.known.id:
            raise UnexpectedReplyError(
                f"get: requested session {self.known.id}, the service returned {session.id}"
            )
        self.is_known = True
        self.session = self._as_requested(
            session.model_copy(update={"id": self.known.id})
        )  # in one spelling

    def _as_requested(self, session: Session) -> Session:
        """Fill in fields missing from the service's response with the requested values, and note their names."""
        has_config = session.remote_config is not None
        self._invalid.update(
            name
            for name in session.invalid_fields
            if has_config or "remoteConfig" not in name
        )
        asked = {
            name: getattr(self._request, name)
            for name in _REQUESTED
            if getattr(session, name) is None
        }
        return session.model_copy(update=asked)

    def _is_tolerated(self, error: ServiceError) -> bool:
        """Return whether the response may come from a replica that lags behind or an intermediary such as a proxy."""
        now = self._config.clock()
        self._suspicious_since = (
            now if self._suspicious_since is None else self._suspicious_since
        )
        return is_suspicious(error) and now - self._suspicious_since < GONE_SECONDS

    def _tolerate(self, error: ServiceError, known: Session) -> None:
        """Delay the next poll as the service asks, but not beyond the wait's timeout."""
        if self.waited >= self._policy.timeout_seconds:
            raise timed_out(
                known, self.waited, f" ({known.page}). Last response: {error}"
            ) from error
        until = self._config.clock() + min(
            retry_after_of(error), RETRY_AFTER_MOST_SECONDS
        )
        self._not_before = min(until, self.started + self._policy.timeout_seconds)
        self._is_answered = False
        self._report_state(str(error))

    def next_delay(self) -> float:
        """Return the seconds until the next step; 0 when the session is ready.

        Raises a SessionError to give up, or a LeaseTimeoutError if it could not be created in time.
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
            boot_key = "" if self._attach else self._request.boot_key
            ready = Ready(
                self.ref(), session.device_name, boot_key, session.boot_seconds
            )
            self._config.relay.event(ready)
            if (
                self._invalid
            ):  # by now the same for all sessions, so that a run reports them once
                text = f"ignored unusable fields in the service's sessions: {', '.join(sorted(self._invalid))}"
                self._config.relay.event(Note(text))
            return 0.0
        if self._config.clock() - self._checked_since >= limit:
            what = f"the session is in progress, but {problem} ({session.page})"
            raise SessionFailedError(what, session_id=str(session.id), url=session.url)
        self._report_state(f"in-progress, but {problem}")
        return min(CONTROLLER_DELAY_SECONDS, self._policy.poll_interval_seconds)

    def _report_state(self, state: str, text: str = "") -> None:
        """Report a state that is new or was last reported long ago, as ``text`` if given."""
        reported, at = self._reported
        if state != reported or self._config.clock() - at >= HEARTBEAT_SECONDS:
            self._reported = (state, self._config.clock())
            self._config.relay.event(StateChanged(self.ref(), text or state))

    def ref(self) -> SessionRef:
        return SessionRef(
            label=f"{self._request.platform} {self._request.type}",
            session_id=self.session_id or "",
            url=(self.session.url or "") if self.session else "",
            minutes=max(
                0,
                round(
                    self._bound_minutes() - (self._config.clock() - self._created) / 60
                ),
            ),
            waited_seconds=self.waited,
        )

    @property
    def known(self) -> Session:
        """Return the session; raises RuntimeError if it was not created."""
        if self.session is None:
            raise RuntimeError("the session was not created")
        return self.session

    def _bound_minutes(self) -> int:
        requested = self._request.max_duration_minutes
        known = self.session.max_duration_minutes if self.session else None
        return (
            next(
                value
                for value in (known, requested, DURATION_MAX_MINUTES)
                if value is not None
            )
            + CLEANUP_MINUTES
        )

    @property
    def waited(self) -> float:
        """Return the seconds since the start of the wait."""
        return self._config.clock() - self.started

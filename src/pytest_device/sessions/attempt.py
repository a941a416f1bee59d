"""One attempt to start a session: its create call and the polls after it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pytest_device.errors import (
    ConfigError,
    DeviceError,
    NoCapacityError,
    NotAttemptedError,
    NotFoundError,
    ServiceError,
    SessionFailedError,
    TransportError,
    UnauthorizedError,
    UnexpectedReplyError,
)
from pytest_device.sessions import events
from pytest_device.sessions.breaker import Pause, Permits, is_outage
from pytest_device.sessions.client import SessionClient
from pytest_device.sessions.lifecycle import (
    MAX_DELAY_SECONDS,
    CapacityBackoff,
    CreateBackoff,
    WaitPolicy,
    as_requested,
    check_attachable,
    check_kind,
    lost_answer,
    next_poll,
    skip_controller_check,
    timed_out,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.replies import is_suspicious, is_temporary, retry_after_of
from pytest_device.sessions.reporter import PROGRESS_SECONDS, Relay
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.retry_policy import GONE_SECONDS
from pytest_device.sessions.states import State
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

_PAUSE_STEP_SECONDS: Final = 5.0
"""Maximum seconds until a paused attempt asks again: that of another worker may have succeeded meanwhile."""
_CONTROLLER_DELAY_SECONDS: Final = 1.0
"""Maximum seconds between two checks of an unreachable controller; they cost the service nothing."""
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
    permits: Permits = field(default_factory=Permits)
    distinct_name: Callable[[str], str] = str
    """Returns a session's name in a form that no other session of the run bears."""


class Attempt:
    """One create call and the polls after it, timed by this process's clock. Each call returns the resulting state."""

    def __init__(
        self, requirement: DeviceRequirement, policy: WaitPolicy, config: SessionConfig
    ) -> None:
        self._request = requirement.request
        self._attach = requirement.attach
        self._policy = policy
        self._config = config
        self.session: Session | None = None
        """The service's latest response."""
        self.session_id: str | None = None
        """Known even if the rest of the response was malformed."""
        self.is_seen = False
        """Whether the service has returned this session for its ID."""
        self.is_lost = False
        """Whether the response to its create call was lost."""
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
        self._capacity_backoff = CapacityBackoff(policy)
        self._create_backoff = CreateBackoff(policy)
        self._backoff: CapacityBackoff | CreateBackoff | None = None
        """Whichever of them decides when to create it."""
        self._is_named = False
        self._use = config.permits.new_use()

    @property
    def refusals(self) -> int:
        """Return how often the service had no capacity for it; 0 once it is created."""
        return 0 if self.session_id else self._capacity_backoff.refusals

    def outage_calls(self, error: DeviceError) -> int:
        """Return how many create calls have failed in front of the service, or with a token that has worked."""
        if self.session_id is not None:
            return 0

        if is_outage(error) or self._contradicts(error):
            return max(self._create_backoff.calls, 1)
        return 0

    def count_from(self, began: float) -> None:
        """Restart the wait at ``began``: before that nobody waited, or the wait was for an earlier session."""
        if self._backoff:
            self._backoff.pass_over(began - self.started)
        self.started = began

    def take_over(self, warm: WarmSession) -> State:
        """Use a session that an earlier run kept warm."""
        self.session = self._as_requested(warm.session)
        self.session_id = str(warm.session.id)
        self.is_seen = True
        self.ready_at = warm.ready_at
        self.taken_over_at = self._config.clock()
        self._use.begin()
        self._config.relay.event(events.TakenOver(self.ref(), warm.session.device_name))
        return State.READY

    def delay_by(self, pause: Pause) -> float:
        """Return the seconds until asking again for permission to begin.

        Raises NotAttemptedError if the ``pause`` lasts longer than the wait.
        """
        cause = pause.cause
        if pause.seconds >= self._policy.timeout_seconds - self.waited:
            raise NotAttemptedError(cause.text, verdict=cause.verdict)

        self._report_state(
            "paused",
            f"waiting {pause.seconds:.0f} s for the next create call: {cause.text}",
        )
        return min(pause.seconds, _PAUSE_STEP_SECONDS)

    def begin(self) -> State | None:
        """Create the session, unless the service had no capacity and the retry is not due yet; or attach to it.

        Raises a ServiceError, except for lack of capacity, and ConfigError for a session that it cannot attach to.
        """
        if self._attach:
            return self._use_existing()
        self._name_session()
        return self._create()

    def _name_session(self) -> None:
        """Give the request a name of its own, once: nothing but its name leads to a session whose response was lost."""
        if self._is_named or self._request.name is None:
            return

        self._is_named = True
        self._request = self._request.model_copy(
            update={"name": self._config.distinct_name(self._request.name)}
        )

    def _use_existing(self) -> State:
        try:
            session = self._as_requested(self._config.client.get(self._attach))
        except NotFoundError as error:
            raise ConfigError(
                f"cannot attach to session {self._attach}: {error}"
            ) from error

        check_attachable(self._request, session, self._attach)
        self.session = session
        self.session_id = str(session.id)
        self.is_seen = self._config.permits.has_worked = True
        self._reported = (session.described_status, self._config.clock())
        self._config.relay.event(events.Attached(self.ref()))

        return State.STARTING

    def _create(self) -> State | None:
        if self._backoff and not self._backoff.is_due(self.waited):
            return None

        try:
            # The test waits no longer for the response than for the session.
            seconds_left = self._policy.timeout_seconds - self.waited
            self.session = self._as_requested(
                self._config.client.create(self._request, timeout_seconds=seconds_left)
            )
            self.session_id = str(self.session.id)
            check_kind("create", self._request, self.session)
        except NoCapacityError as refusal:
            self._backoff = self._capacity_backoff
            text = self._capacity_backoff.note(refusal, self.waited)
            self._report_state(f"no capacity: {refusal.status}", text)
            return State.QUEUED
        # An interrupt, too: a session may exist whose ID nobody has received.
        except BaseException as error:
            if self._is_retried(error):
                return State.QUEUED

            self._note_broken(error)
            raise

        self._config.permits.has_worked = True
        self._use.begin()
        self._created = self._last_seen = self._config.clock()
        self._reported = (self.session.described_status, self._created)
        self._config.relay.event(events.Created(self.ref()))

        return State.STARTING

    def _is_retried(self, error: BaseException) -> bool:
        """Return whether to repeat a create call that certainly created nothing, since the next one may succeed."""
        if not isinstance(error, ServiceError) or self._config.client.leaves_unknown(
            error
        ):
            return False

        if not (is_outage(error) or self._contradicts(error)):
            return False

        text = self._create_backoff.note(error, self.waited)
        if text is None:
            return False

        self._backoff = self._create_backoff
        self._report_state(str(error), text)
        return True

    def _contradicts(self, error: BaseException) -> bool:
        """Return whether an error contradicts earlier responses: a token that has worked, a service that was there."""
        if not self._config.permits.has_worked:
            return False

        is_unreachable = (
            isinstance(error, TransportError)
            and not error.sent
            and not error.is_run_ending
        )

        return is_unreachable or isinstance(error, UnauthorizedError)

    def _note_broken(self, error: BaseException) -> None:
        """Report the result of a failed create call: a session, or possibly one with an unknown ID."""
        if self.session_id is None and isinstance(error, UnexpectedReplyError):
            self.session_id = error.session_id

        if self.session_id is not None:
            self._use.begin()
            self._created = self._config.clock()
            self._config.relay.event(events.Created(self.ref()))
        elif self._config.client.leaves_unknown(error):
            self.is_lost = True
            self._config.relay.event(
                events.CreateUnknown(self.ref(), self._request.name or "")
            )
            error.add_note(lost_answer(self._request.name, self._bound_minutes()))

    def refresh(self) -> None:
        """Poll it once; temporary errors are tolerated until the wait times out."""
        try:
            session = self._config.client.get(self.existing.id)
        except ServiceError as error:
            if not is_temporary(error) and not self._is_tolerated(error):
                raise

            self._tolerate(error, self.existing)
            return

        self.record(session)
        self._is_answered = True
        self._suspicious_since = None

    def record(self, session: Session) -> None:
        """Record the service's current response.

        Raises UnexpectedReplyError if it is about another session, or one of another type or platform.
        """
        if session.id != self.existing.id:
            raise UnexpectedReplyError(
                f"get: requested session {self.existing.id}, the service returned {session.id}"
            )
        # The ID in one spelling.
        session = self._as_requested(
            session.model_copy(update={"id": self.existing.id})
        )
        check_kind("get", self._request, session)

        self.is_seen = True
        self.session = session

    def _as_requested(self, session: Session) -> Session:
        """Complete the service's response by the requested values, and note which fields it lacks."""
        has_config = session.remote_config is not None
        self._invalid.update(
            name
            for name in session.invalid_fields
            if has_config or "remoteConfig" not in name
        )
        return as_requested(self._request, session)

    def _is_tolerated(self, error: ServiceError) -> bool:
        """Return whether the response may come from a replica that lags behind or an intermediary such as a proxy."""
        if not is_suspicious(error):
            return False

        now = self._config.clock()
        if self._suspicious_since is None:
            self._suspicious_since = now
        return now - self._suspicious_since < GONE_SECONDS

    def _tolerate(self, error: ServiceError, session: Session) -> None:
        """Delay the next poll as the service asks, but not beyond the wait's timeout."""
        if self.waited >= self._policy.timeout_seconds:
            raise timed_out(
                session, self.waited, f" ({session.page}). Last response: {error}"
            ) from error

        until = self._config.clock() + min(retry_after_of(error), MAX_DELAY_SECONDS)
        self._not_before = min(until, self.started + self._policy.timeout_seconds)
        self._is_answered = False
        self._report_state(str(error))

    def next_delay(self) -> float | None:
        """Return the seconds until the next step, None when the session is ready.

        Raises a SessionError to give up, or a LeaseTimeoutError if it could not be created in time.
        """
        if self.session is None:
            return self._backoff.delay(self.waited) if self._backoff else 0.0

        delay = next_poll(self.session, self.waited, self._policy)
        if delay is None:
            return self._controller_delay(self.session)

        self._last_seen = self._config.clock()
        if self._is_answered:
            self._report_state(self.session.described_status)

        return max(delay, self._not_before - self._config.clock())

    def _controller_delay(self, session: Session) -> float | None:
        """Check the controller: a tunnel may come up later than the session, or not at all.

        Return the seconds until the next check, None if it responds.
        """
        if self.ready_at is None or self._checked_since is None:
            # Rather too early: the service has counted its duration since then, and it must not end in a test.
            self.ready_at = self._last_seen
            self._checked_since = self._config.clock()

        limit = self._policy.controller_timeout_seconds
        problem = None if limit is None else self._config.problem_of(session)
        if limit is None or problem is None:
            boot_key = "" if self._attach else self._request.boot_key
            ready = events.Ready(
                self.ref(), session.device_name, boot_key, session.boot_seconds
            )
            self._config.relay.event(ready)

            # By now the same for all sessions, so that a run reports them once.
            if self._invalid:
                text = f"ignored unusable fields in the service's sessions: {', '.join(sorted(self._invalid))}"
                self._config.relay.event(events.Note(text))

            return None

        if self._config.clock() - self._checked_since >= limit:
            message = f"the session is in progress, but {problem} ({session.page})"
            raise SessionFailedError(
                message, session_id=str(session.id), url=session.url
            )

        self._report_state(f"in-progress, but {problem}")
        return min(_CONTROLLER_DELAY_SECONDS, self._policy.poll_interval_seconds)

    def end_use(self, running_seconds: float | None = None) -> None:
        """Record that this run does not pay for its session from now on.

        ``running_seconds`` is how long its device ran for this run, as far as known: it may have ended unnoticed.
        """
        if self.taken_over_at is None:
            since = self._created
            boot_seconds = (self.session and self.session.boot_seconds) or 0.0
        else:
            since = self.taken_over_at
            boot_seconds = 0.0

        seconds = self._config.clock() - since
        if running_seconds is not None:
            seconds = min(seconds, boot_seconds + running_seconds)

        self._use.end(seconds)

    def _report_state(self, state: str, text: str = "") -> None:
        """Report a state that is new or was last reported long ago, as ``text`` if given."""
        reported, at = self._reported
        if state != reported or self._config.clock() - at >= PROGRESS_SECONDS:
            self._reported = (state, self._config.clock())
            self._config.relay.event(events.StateChanged(self.ref(), text or state))

    def ref(self) -> events.SessionRef:
        """Return the reference to its session, or to the one that it requests, that events carry."""
        minutes_used = (self._config.clock() - self._created) / 60
        minutes_left = round(self._bound_minutes() - minutes_used)

        return events.SessionRef(
            label=f"{self._request.platform} {self._request.type}",
            session_id=self.session_id or "",
            url=(self.session.url or "") if self.session else "",
            minutes=max(0, minutes_left),
            waited_seconds=self.waited,
        )

    @property
    def existing(self) -> Session:
        """Return the session; raises RuntimeError if it was not created."""
        if self.session is None:
            raise RuntimeError("the session was not created")
        return self.session

    def _bound_minutes(self) -> int:
        requested = self._request.max_duration_minutes
        reported = self.session.max_duration_minutes if self.session else None
        if reported is not None:
            minutes = reported
        elif requested is not None:
            minutes = requested
        else:
            minutes = DURATION_MAX_MINUTES

        # The document reserves these beyond the duration.
        return minutes + CLEANUP_MINUTES

    @property
    def waited(self) -> float:
        """Return the seconds since the start of the wait."""
        return self._config.clock() - self.started

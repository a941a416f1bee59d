"""One session from its request to its end: its attempts to start, its use, its stop."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final, NamedTuple

from pytest_device.errors import (
    ConfigError,
    DeviceError,
    LeaseTimeoutError,
    NoCapacityError,
    NotAttemptedError,
    NotFoundError,
    ServiceError,
    SessionError,
    SessionFailedError,
    SessionTimeoutError,
    StopFailedError,
    TransportError,
    UnauthorizedError,
    UnexpectedReplyError,
)
from pytest_device.sessions import events
from pytest_device.sessions.breaker import (
    ASK_AGAIN_SECONDS,
    CREATE,
    Pause,
    Permits,
    is_outage,
    key_of,
)
from pytest_device.sessions.client import SessionClient
from pytest_device.sessions.lifecycle import (
    CAPABILITIES_POLLS,
    MAX_RETRY_AFTER_SECONDS,
    NEVER_THERE,
    NO_CAPABILITIES,
    CapacityBackoff,
    CreateBackoff,
    WaitPolicy,
    as_requested,
    check_attachable,
    check_kind,
    end_error,
    lost_answer,
    next_poll,
    not_stopped,
    skip_controller_check,
    timed_out,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import InterceptedError, check_not_blocked
from pytest_device.sessions.quota import Slot
from pytest_device.sessions.replies import is_suspicious, is_temporary, retry_after_of
from pytest_device.sessions.reporter import Deferred, Relay
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.retry_policy import GONE_SECONDS
from pytest_device.sessions.states import ENDS, TRANSITIONS, State, moved
from pytest_device.spec import (
    CLEANUP_MINUTES,
    DURATION_MAX_MINUTES,
    SessionType,
    Status,
)

HEARTBEAT_SECONDS: Final = 30.0
"""Seconds after which an unchanged state is reported again: a CI log without output for longer looks like a hang."""

PAUSE_STEP_SECONDS: Final = 5.0
"""Maximum seconds until a paused attempt asks again: that of another worker may have succeeded meanwhile."""
CONTROLLER_DELAY_SECONDS: Final = 1.0
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
    past_boots: Callable[[str], Sequence[float]] = lambda _boot_key: ()
    """Returns the boot times of earlier sessions with this key, in seconds, newest last."""


class Holder(Enum):
    """Who has a session: only its holder starts, uses or stops it."""

    NOBODY = auto()
    """It is idle, or being stopped."""
    TEST = auto()
    """A test that waits for it or uses it."""
    BACKGROUND = auto()
    """The background thread, which starts it for later tests; stays so once it is ready."""
    DROPPED = auto()
    """The background thread, which stops it: no test needs it anymore."""


class Assignment:
    """The use of one session. Only its pool calls these methods; everyone else reads.

    The background thread reads ``holder`` without a lock, so each method sets it once, last.
    """

    def __init__(self, slot: Slot | None = None) -> None:
        self.slot = slot
        """Occupied until the session has ended; None if the number of sessions is unlimited."""
        self.holder = Holder.NOBODY
        self.user: object = None
        """Its current or last user."""
        self.is_new = True
        """Whether no user has given it back or handed it over."""
        self.is_unused = False
        """Whether it was prefetched, and no test has waited for it or given it back."""
        self.is_unusable = False
        """Whether no other test may get it."""
        self.error: BaseException | None = None
        """Why it was given up in the background."""

    # For a test.

    def reserve(self) -> None:
        """Reserve it for a test that does not have all of its sessions yet."""
        self.holder = Holder.TEST

    def cancel(self) -> None:
        """Cancel a reservation: the test did not get its sessions."""
        self.holder = Holder.NOBODY

    def assign(self, user: object) -> None:
        """Assign a reserved session to its user."""
        self.user = user

    def hand_over(self, user: object) -> None:
        """Assign it to its next user, without giving it back in between."""
        self.user = user
        self.is_new = self.is_unused = False

    def give_back(self) -> None:
        """End its use: it is idle."""
        self.is_new = self.is_unused = False
        self.holder = Holder.NOBODY

    def mark_unusable(self) -> None:
        """Let no other test get it: it is stopped once it is given back."""
        self.is_unusable = True

    # For later tests.

    def prefetch(self) -> None:
        """Leave its start to the background thread."""
        self.is_unused = True
        self.holder = Holder.BACKGROUND

    def withdraw(self) -> None:
        """Take it from the background thread: a test waits for it."""
        self.is_unused = False
        self.holder = Holder.NOBODY

    def discard(self) -> None:
        """Take it from the background thread to stop it: others need its place."""
        self.is_unused = self.is_new
        self.holder = Holder.NOBODY

    def drop(self) -> None:
        """Leave its stop to the background thread."""
        self.is_unused = self.is_new
        self.holder = Holder.DROPPED

    def give_up(self, error: BaseException) -> None:
        """Record the error that ended its start in the background."""
        self.error = error


class DeviceSession:
    """One requested session: created, polled until it is ready, used, then stopped or left running.

    ``state`` follows the table in ``states``. If it fails to start, another attempt replaces it as long as attempts are
    left. It is stopped once, however often ``stop`` is called. Only one thread at a time uses it: the background
    thread, or that of the test that waits for it or uses it.
    """

    def __init__(
        self,
        requirement: DeviceRequirement,
        policy: WaitPolicy,
        config: SessionConfig,
        *,
        find_warm: Callable[[], WarmSession | None] | None = None,
        slot: Slot | None = None,
    ) -> None:
        self.requirement = requirement
        self.assignment = Assignment(slot)
        """Written by its pool alone."""
        self.state = State.REQUESTED
        self._ends_as = State.ATTACHED if requirement.attach else State.ENDED
        """Its state once no work is left; ``ENDED`` as long as no stop has had a result."""
        self.due = config.clock()
        """When to advance it again."""
        self.deferred: Deferred = []
        """Events of the background thread that are not reported yet."""
        self.lock = threading.Lock()
        """Held by the background thread while it works on the session."""
        self._has_timed_out: bool | None = None
        """Whether a full timeout passed before it was ready; None if no test's wait for it has failed."""
        self._start_error: SessionError | None = None
        """Why a test gave it up, or it failed, before it was ready; it may become ready later."""
        self._policy = policy
        self._config = config
        self._find_warm = find_warm
        self._attempts_left = 0 if requirement.attach else config.attempts - 1
        self._count_from: float | None = None
        self._attempt = _Attempt(requirement, policy, config)
        self._key = key_of(requirement.request, requirement.attach or None)
        self._start_permit = config.permits.new(self._key)
        """Refused once equal sessions have failed to start."""
        self._create_permit = config.permits.new(CREATE)
        """Refused while create calls fail in front of the service, whatever they request."""

    @property
    def session(self) -> Session:
        """Return the service's latest response."""
        return self._attempt.existing

    @property
    def is_created(self) -> bool:
        """Return whether the service has a session that must be stopped."""
        return self._attempt.session_id is not None

    @property
    def is_ready(self) -> bool:
        return self.state is State.READY

    @property
    def is_over(self) -> bool:
        return self.state in ENDS

    @property
    def refusals(self) -> int:
        return self._attempt.refusals

    @property
    def ready_at(self) -> float | None:
        return self._attempt.ready_at

    def has_left(self, minutes: int) -> bool:
        """Return whether it may run for that long; never for a limit of 0, whose meaning the document leaves open."""
        # It cannot be replaced.
        if self.requirement.attach:
            return True

        ready_at = self.ready_at
        used = 0.0 if ready_at is None else self._config.clock() - ready_at
        return self.session.limit_minutes * 60 - used >= minutes * 60

    # Start.

    def count_from(self, began: float | None = None) -> None:
        """Count the wait from ``began``, for later attempts, too.

        Without ``began``, count only this attempt, from now: until now no test has waited for it.
        """
        self._count_from = began
        self._attempt.count_from(self._config.clock() if began is None else began)

    def survives_timeout(self, error: BaseException) -> bool:
        """Return whether it may become ready after a test has given up on it.

        A session gets a second full timeout, but no third, and no second one if equal sessions fail, too.
        """
        self._note_start_error(error)
        is_timed_out = isinstance(error, SessionTimeoutError)
        had_timed_out = self._has_timed_out
        if self.state not in {State.STARTING, State.READY}:
            return False
        if is_timed_out and had_timed_out:
            return False

        self._has_timed_out = is_timed_out or bool(had_timed_out)
        if is_timed_out:
            self.count_from()
            self._start_permit = self._config.permits.new(self._key)  # the next wait

        return not (is_timed_out and self._start_permit.is_refused)

    def advance(self) -> None:
        """Take one step: create it or poll it once; ``due`` is the time of the next step.

        Raises:
            BlockedError: pytest-socket blocks the connection to the service.
            InterceptedError: A plugin blocks or answers the calls to it.
            ServiceError: The service refused, or didn't respond.
            SessionError: It will not become ready, or not in time.
            LeaseTimeoutError: It could not be created in time.
            NotAttemptedError: Equal sessions have failed, or the budget is used up.
        """
        if self.state is State.REQUESTED:
            # Before the breaker is asked: a connection that this test may not use says nothing about other tests.
            check_not_blocked(self._config.client.base_url)

            if not self._may_begin():
                self.due = self._config.clock() + self._attempt.delay_behind_others(
                    self._create_permit.pause
                )
                return

        if self.state is State.QUEUED:
            # Other sessions may have used it up during the wait.
            self._config.permits.check_budget()

        if self._has_timed_out and self.state is State.STARTING:
            # Raises where others have timed out as well since.
            self._start_permit.may_begin()
            self._start_permit.release()

        try:
            self._step()
            delay = None if self.is_ready else self._attempt.next_delay()
        except DeviceError as error:
            self._note_failure(error)
            # A refusal concerns the next request, too, and a timeout the wait of the test for all of its attempts.
            if not (isinstance(error, SessionFailedError) and self._attempts_left):
                raise

            self._retry(error)
            return

        self.due = self._config.clock() + (delay or 0.0)
        if delay is None and self.state is State.STARTING:
            self._start_permit.ready()
            # Last: another thread may read the state.
            self._move(State.READY)

    def postpone(self) -> None:
        """Take the next step later: the test that runs now, which does not use the session, blocks its calls."""
        self.due = self._config.clock() + self._policy.poll_interval_seconds

    def _may_begin(self) -> bool:
        """Take over a warm session, or return whether one may be created now."""
        # Only once: a retry creates a session.
        find = self._find_warm
        self._find_warm = None
        if find and (warm := find()):
            self._move(self._attempt.take_over(warm))
            return True

        if self.requirement.attach:
            return self._start_permit.may_begin()

        may_begin = False
        try:
            may_begin = (
                self._create_permit.may_begin() and self._start_permit.may_begin()
            )
        finally:
            # Both or none, so that two processes never wait for each other.
            if not may_begin:
                self._create_permit.release()

        return may_begin

    def _note_failure(self, error: DeviceError) -> None:
        """Report a failure to the breaker: in front of the service it affects all requests, else equal ones."""
        # The test that runs now has no network: equal sessions of others may start.
        if isinstance(error, InterceptedError):
            return

        if calls := self._attempt.outage_calls(error):
            self._start_permit.release()
            self._create_permit.failed(error, calls=calls)
        else:
            self._create_permit.release()
            self._start_permit.failed(
                error,
                may_be_final=not self.is_created or isinstance(error, ConfigError),
            )

    def _step(self) -> None:
        match self.state:
            case State.REQUESTED | State.QUEUED:
                if state := self._attempt.begin():
                    self._move(state)
                    # Nothing is created for a session to attach to.
                    if state is State.STARTING and not self.requirement.attach:
                        self._create_permit.ready()
            case State.STARTING:
                self._attempt.refresh()
            case _:
                pass

    def _retry(self, error: SessionFailedError) -> None:
        """Stop a session that failed to start, and request another one."""
        began = self._config.clock() if self._count_from is None else self._count_from
        limit = self._config.attempts
        self._config.relay.event(
            events.StartFailed(
                self.ref(), str(error), limit - self._attempts_left + 1, limit
            )
        )
        self._stop()
        self._move(State.REQUESTED)
        self._attempts_left -= 1
        self._attempt = _Attempt(self.requirement, self._policy, self._config)
        self._ends_as = State.ENDED
        self._attempt.count_from(began)
        self.due = self._config.clock()

    # End.

    def stop(self) -> None:
        """Stop the session, if it was created; raises StopFailedError if it may still be running.

        Events are deferred until ``deliver``. It ends in any case: only then is its slot free.
        """
        is_wasted = (
            self.assignment.is_unused
            and self.is_created
            and self._has_timed_out is None
            and not (self.is_over or self.assignment.error)
        )

        try:
            with self._config.relay.deferring(self.deferred):
                if is_wasted:
                    self._config.relay.event(events.Unused(self.ref()))

                if self._start_error and self.state is State.STARTING:
                    self._config.relay.event(
                        events.StartFailed(self.ref(), str(self._start_error))
                    )

                self._stop()
        finally:
            self._end()
            if is_wasted and self._attempt.taken_over_at is None:
                self._config.permits.note_unused()

    def _stop(self) -> None:
        if not self.is_created or self._ends_as is not State.ENDED:
            return

        ref = self.ref()
        client = self._config.client
        try:
            answer: Session | ServiceError = client.stop(ref.session_id)
        except ServiceError as error:
            answer = error
        # An interrupt during the stop: stopping the session comes first.
        except BaseException:
            self._config.relay.event(
                events.stop_event(ref, lambda: client.stop(ref.session_id))
            )
            raise

        self._conclude(ref, answer)

    def _conclude(self, ref: events.SessionRef, answer: Session | ServiceError) -> None:
        # A lagging replica or a router says so, too: only for a session that was seen, a 404 means that it ended.
        if isinstance(answer, NotFoundError) and not self._attempt.is_seen:
            answer = ServiceError(NEVER_THERE)

        event = events.stop_event_of(ref, answer)
        if isinstance(event, events.Stopped):
            event = self._with_own_share(event)

        self._ends_as = events.end_of(event) or State.ENDED
        self._config.relay.event(event)
        if isinstance(event, events.StopFailed):
            raise not_stopped(ref, event.reason, self._config.client.base_url)

    def _with_own_share(self, event: events.Stopped) -> events.Stopped:
        """Limit the running time of a stopped session to the time that this run had it, by this process's clock."""
        # Before that, the time is another run's.
        since = self._attempt.taken_over_at
        if event.running_seconds is not None:
            if since is None:
                return event

            own_seconds = self._config.clock() - since
            return replace(
                event, running_seconds=min(event.running_seconds, own_seconds)
            )

        if since is None:
            since = self.ready_at

        # Its device was never ready.
        if since is None:
            return event

        own_seconds = self._config.clock() - since
        by_service = event.max_running_seconds
        if by_service is not None:
            own_seconds = min(by_service, own_seconds)

        return replace(event, max_running_seconds=own_seconds)

    def _end(self) -> None:
        try:
            if slot := self.assignment.slot:
                slot.release()
            self._start_permit.release()
            self._create_permit.release()
        finally:
            # Last: another thread may read the state.
            self._move(State.UNKNOWN if self._attempt.is_lost else self._ends_as)

    def stop_after(self, error: BaseException) -> None:
        """Stop it after an error; if the stop fails, add a note to that error."""
        self._note_start_error(error)
        try:
            self.stop()
        except StopFailedError as failure:
            error.add_note(str(failure))

    def _note_start_error(self, error: BaseException) -> None:
        """Record the error of its start; that of another session, or of a stop, is none."""
        if not isinstance(error, SessionError) or isinstance(error, StopFailedError):
            return
        if error.session_id == self._attempt.session_id:
            self._start_error = error

    def keep(self) -> None:
        """Leave it running on purpose."""
        self._ends_as = State.KEPT
        self._config.relay.event(events.Kept(self.ref()))
        self._end()

    def keep_warm(self, until: str) -> None:
        """Keep it warm for the next run, until the given time of day."""
        self._ends_as = State.WARM
        # Before a take-over, its running time is another run's.
        since = self._attempt.taken_over_at
        if since is None:
            since = self.ready_at

        seconds = None if since is None else self._config.clock() - since
        self._config.relay.event(events.KeptWarm(self.ref(), until, seconds))
        self._end()

    def check_alive(self) -> SessionError | None:
        """Look it up; return the error that describes its end, None if it is in progress, or without a response."""
        try:
            session = self._config.client.get(self.session.id)
            end = end_error(self.ref(), session)
            # Its connection details may have changed.
            if end is None:
                self._attempt.record(session)
        except NotFoundError as error:
            # A replica that lags behind or a router says so, too: its controller knows better.
            return None if self._has_live_controller() else end_error(self.ref(), error)
        except ServiceError:
            return None

        return end

    def _has_live_controller(self) -> bool:
        """Return whether the controller responds, also where a plugin of the suite keeps that from being checked."""
        if self.requirement.request.type == SessionType.WEB_PREVIEW_ONLY:
            return False

        try:
            return self._config.problem_of(self.session) is None
        except ServiceError:
            return True

    # Reporting.

    def deliver(self) -> None:
        self._config.relay.deliver(self.deferred)

    def ref(self) -> events.SessionRef:
        """Return the reference to it that events carry."""
        return self._attempt.ref()

    def _move(self, to: State) -> None:
        self.state = moved(self.state, to, TRANSITIONS)


def advance_due(
    sessions: Sequence[DeviceSession],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> list[DeviceSession]:
    """Wait until any session is due, advance those that are, and return them; raises the error of one that gives up."""
    first = min(session.due for session in sessions)
    if (delay := first - clock()) > 0:
        sleep(delay)

    now = max(clock(), first)  # a suite may have frozen the clock
    due = [session for session in sessions if session.due <= now]
    for session in due:
        session.advance()

    return due


class _Attempt:
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
        self._incomplete_since: float | None = None
        """Since when it has been in progress without capabilities."""
        self._may_be_incomplete = False
        """Whether it is used without them."""
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
        self._config.relay.event(events.TakenOver(self.ref(), warm.session.device_name))
        return State.READY

    def delay_behind_others(self, pause: Pause | None) -> float:
        """Return the seconds until asking again for permission to begin.

        Raises LeaseTimeoutError to give up, or NotAttemptedError if the ``pause`` lasts longer than the wait.
        """
        if pause:
            cause = pause.cause
            seconds_left = self._policy.timeout_seconds - self.waited
            if pause.seconds >= seconds_left:
                raise NotAttemptedError(
                    cause.text, verdict=cause.verdict, test=cause.test
                )

            self._report_state(
                "paused",
                f"waiting {pause.seconds:.0f} s for the next create call: {cause.text}",
            )
            return min(max(pause.seconds, ASK_AGAIN_SECONDS), PAUSE_STEP_SECONDS)

        if self.waited < self._policy.timeout_seconds:
            return ASK_AGAIN_SECONDS

        raise LeaseTimeoutError(
            f"timed out after {self.waited:.0f} s: another worker is still starting the same device"
        )

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
        if self._may_be_incomplete:
            self.session = self.session.completed()

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

        until = self._config.clock() + min(
            retry_after_of(error), MAX_RETRY_AFTER_SECONDS
        )
        self._not_before = min(until, self.started + self._policy.timeout_seconds)
        self._is_answered = False
        self._report_state(str(error))

    def next_delay(self) -> float | None:
        """Return the seconds until the next step, None when the session is ready.

        Raises a SessionError to give up, or a LeaseTimeoutError if it could not be created in time.
        """
        if self.session is None:
            return self._backoff.delay(self.waited) if self._backoff else 0.0

        booting = self._config.clock() - self._created
        session = self.session = self._completed(self.session)

        delay = next_poll(session, self.waited, self._policy, booting)
        if delay is None:
            return self._controller_delay(session)

        self._last_seen = self._config.clock()
        if self._is_answered:
            self._report_state(session.described_status)

        return max(delay, self._not_before - self._config.clock())

    def _completed(self, session: Session) -> Session:
        """Return the session, without capabilities if it has been in progress without them for long enough."""
        if (
            session.status != Status.IN_PROGRESS
            or session.remote_config
            or not session.incomplete_config
        ):
            self._incomplete_since = None
            return session

        now = self._config.clock()
        if self._incomplete_since is None:
            self._incomplete_since = now

        patience = CAPABILITIES_POLLS * self._policy.poll_interval_seconds
        if now - self._incomplete_since < patience:
            return session

        self._may_be_incomplete = True
        self._config.relay.event(events.Note(NO_CAPABILITIES))
        return session.completed()

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
        return min(CONTROLLER_DELAY_SECONDS, self._policy.poll_interval_seconds)

    def _report_state(self, state: str, text: str = "") -> None:
        """Report a state that is new or was last reported long ago, as ``text`` if given."""
        reported, at = self._reported
        if state != reported or self._config.clock() - at >= HEARTBEAT_SECONDS:
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

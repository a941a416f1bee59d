"""One session from its request to its end: its attempts to start, its use, its stop."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_device.errors import (
    ConfigError,
    DeviceError,
    NotFoundError,
    ServiceError,
    SessionError,
    SessionFailedError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.sessions import events
from pytest_device.sessions.assignment import Assignment
from pytest_device.sessions.attempt import Attempt, SessionConfig, WarmSession
from pytest_device.sessions.breaker import CREATE, key_of
from pytest_device.sessions.lifecycle import (
    NEVER_THERE,
    WaitPolicy,
    end_error,
    not_stopped,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import InterceptedError, check_not_blocked
from pytest_device.sessions.quota import Slot
from pytest_device.sessions.reporter import Deferred
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.states import ENDS, TRANSITIONS, State, moved
from pytest_device.spec import SessionType


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
        self._was_given_up = False
        """Whether a test stopped waiting for it, though it may become ready later."""
        self._has_timed_out = False
        """Whether a full timeout passed before it was ready."""
        self._start_error: SessionError | None = None
        """Why a test gave it up, or it failed, before it was ready; it may become ready later."""
        self._policy = policy
        self._config = config
        self._find_warm = find_warm
        self._attempts_left = 0 if requirement.attach else config.attempts - 1
        self._count_from: float | None = None
        self._attempt = Attempt(requirement, policy, config)
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
        if self.state not in {State.STARTING, State.READY}:
            return False

        is_timed_out = isinstance(error, SessionTimeoutError)
        if is_timed_out and self._has_timed_out:
            return False

        self._was_given_up = True
        if not is_timed_out:
            return True

        self._has_timed_out = True
        self.count_from()
        # For the next wait.
        self._start_permit = self._config.permits.new(self._key)
        return not self._start_permit.is_refused

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

            self._ask_to_begin()
            if pause := self._create_permit.pause:
                self.due = self._config.clock() + self._attempt.delay_by(pause)
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

    def _ask_to_begin(self) -> None:
        """Take over a warm session, or ask whether one may be created now."""
        # Only once: a retry creates a session.
        find = self._find_warm
        self._find_warm = None
        if find and (warm := find()):
            self._move(self._attempt.take_over(warm))
            return

        if self.requirement.attach or self._create_permit.may_begin():
            self._start_permit.may_begin()

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
        self._attempt = Attempt(self.requirement, self._policy, self._config)
        self._ends_as = State.ENDED
        self._attempt.count_from(began)
        self.due = self._config.clock()

    # End.

    def stop(self) -> None:
        """Stop the session, if it was created; raises StopFailedError if it may still be running.

        Events are deferred until ``deliver``. It ends in any case: only then is its slot free.
        """
        try:
            with self._config.relay.deferring(self.deferred):
                is_wasted = (
                    self.assignment.is_unused
                    and self.is_created
                    and not (
                        self._was_given_up or self.is_over or self.assignment.error
                    )
                )
                if is_wasted:
                    self._config.relay.event(events.Unused(self.ref()))

                if self._start_error and self.state is State.STARTING:
                    self._config.relay.event(
                        events.StartFailed(self.ref(), str(self._start_error))
                    )

                self._stop()
        finally:
            self._end()

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
            running_seconds = event.running_seconds
            if running_seconds is None:
                running_seconds = event.max_running_seconds

            self._attempt.end_use(running_seconds)
        elif isinstance(event, events.Gone):
            self._attempt.end_use()

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
        self._attempt.end_use()
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
        self._attempt.end_use(seconds)
        self._config.relay.event(events.KeptWarm(self.ref(), until, seconds))
        self._end()

    def check_alive(
        self, explain: Callable[[Session], str] = lambda _session: ""
    ) -> SessionError | None:
        """Look it up; return the error that describes its end, None if it is in progress, or without a response.

        ``explain`` returns a note for that error, empty for none.
        """
        session = self.session
        try:
            session = self._config.client.get(self.session.id)
            end = end_error(self.ref(), session)
            # Its connection details may have changed.
            if end is None:
                self._attempt.record(session)
        except NotFoundError as error:
            # A replica that lags behind or a router says so, too: its controller knows better.
            end = None if self._has_live_controller() else end_error(self.ref(), error)
        except ServiceError:
            return None

        if end and (note := explain(session)):
            end.add_note(note)
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

"""One session from its request to its end."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
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
from pytest_device.sessions.attempt import Attempt, SessionConfig, WarmSession
from pytest_device.sessions.breaker import key_of
from pytest_device.sessions.lifecycle import (
    NEVER_THERE,
    WaitPolicy,
    end_error,
    not_stopped,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.quota import Slot
from pytest_device.sessions.reporter import Deferred
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.sessions.states import TRANSITIONS, AdvancedBy, Outcome, State, moved


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
    ) -> None:
        self.requirement = requirement
        self.state = State.REQUESTED
        self.outcome: Outcome | None = Outcome.ATTACHED if requirement.attach else None
        """Result of its stop."""
        self.due = config.clock()
        """When to advance it again."""
        self.error: BaseException | None = None
        """Why it was given up in the background."""
        self.deferred: Deferred = []
        """Events of the background thread that are not reported yet."""
        self.lock = threading.Lock()
        """Held by the background thread while it works on the session."""
        self.slot: Slot | None = None
        self.advanced_by = AdvancedBy.TEST
        self.user: object = None
        """The session's current or last user."""
        self.in_use = self.unusable = False
        self.is_new = True
        """Whether no test has used it yet."""
        self._has_timed_out: bool | None = None
        """Whether a full timeout passed before it was ready; None if no test's wait for it has failed."""
        self._policy, self._config, self._find_warm = policy, config, find_warm
        self._attempts_left = 0 if requirement.attach else config.attempts - 1
        self._count_from: float | None = None
        self._attempt = Attempt(requirement, policy, config)
        self._key = key_of(requirement.request, requirement.attach or None)
        self._start = config.gate.attempt(self._key)

    @property
    def session(self) -> Session:
        """Return the service's latest response."""
        return self._attempt.known

    @property
    def is_created(self) -> bool:
        """Return whether the service has a session that must be stopped."""
        return self._attempt.session_id is not None

    @property
    def is_ready(self) -> bool:
        return self.state is State.READY

    @property
    def is_over(self) -> bool:
        return self.state is State.ENDED

    @property
    def is_unused(self) -> bool:
        """Return whether it was prefetched and no test has used it yet."""
        return self.advanced_by is not AdvancedBy.TEST and self.is_new

    @property
    def refusals(self) -> int:
        return self._attempt.refusals

    @property
    def ready_at(self) -> float | None:
        return self._attempt.ready_at

    def has_left(self, minutes: int) -> bool:
        """Return whether it may run for that long; never for a limit of 0, whose meaning the document leaves open."""
        if self.requirement.attach:  # it cannot be replaced
            return True
        used = 0.0 if self.ready_at is None else self._config.clock() - self.ready_at
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
        is_timed_out, had_timed_out = (
            isinstance(error, SessionTimeoutError),
            self._has_timed_out,
        )
        if self.state not in {State.STARTING, State.READY} or (
            is_timed_out and had_timed_out
        ):
            return False
        self._has_timed_out = is_timed_out or bool(had_timed_out)
        if is_timed_out:
            self.count_from()
            self._start = self._config.gate.attempt(self._key)  # the next wait
        return not (is_timed_out and self._start.is_refused)

    def advance(self) -> None:
        """Take one step: create it or poll it once; ``due`` is the time of the next step.

        Raises the error that makes it give up: a ServiceError, SessionError, LeaseTimeoutError or NotAttemptedError.
        """
        if self.state is State.REQUESTED and not self._may_begin():
            self.due = self._config.clock() + self._attempt.delay_behind_others()
            return
        if self._has_timed_out and self.state is State.STARTING:
            self._start.may_begin()  # raises where others have timed out as well since
            self._start.release()
        try:
            self._step()
            delay = 0.0 if self.is_ready else self._attempt.next_delay()
        except DeviceError as error:
            self._start.failed(
                error,
                may_be_final=not self.is_created or isinstance(error, ConfigError),
            )
            if not (isinstance(error, SessionFailedError) and self._attempts_left):
                raise
            self._retry(error)
            return
        self.due = self._config.clock() + delay
        if not delay and self.state is State.STARTING:
            self._start.ready()
            self._move(State.READY)  # last: another thread may read the state

    def _may_begin(self) -> bool:
        """Take over a warm session, or return whether one may be created now."""
        find, self._find_warm = self._find_warm, None  # only once
        if find and (warm := find()):
            self._move(self._attempt.take_over(warm))
            return True
        return self._start.may_begin()

    def _step(self) -> None:
        match self.state:
            case State.REQUESTED | State.QUEUED:
                if state := self._attempt.begin():
                    self._move(state)
            case State.STARTING:
                self._attempt.refresh()
            case State.READY | State.ENDED:
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
        self.stop(then=State.REQUESTED)
        self._attempts_left -= 1
        self._attempt, self.outcome = (
            Attempt(self.requirement, self._policy, self._config),
            None,
        )
        self._attempt.count_from(began)
        self.due = self._config.clock()

    # End.

    def stop(self, *, then: State = State.ENDED) -> None:
        """Stop the session, if it was created; raises StopFailedError if it may still be running.

        Events are deferred until ``deliver``, unless another attempt follows.
        """
        with self._ending() if then is State.ENDED else nullcontext():
            if self.is_created and self.outcome is None:
                of, client = self.ref(), self._config.client
                try:
                    answer: Session | ServiceError = client.stop(of.session_id)
                except ServiceError as error:
                    answer = error
                except (
                    BaseException
                ):  # an interrupt during the stop: stopping the session comes first
                    self._config.relay.event(
                        events.stop_event(of, lambda: client.stop(of.session_id))
                    )
                    raise
                self._conclude(of, answer)
        if then is State.REQUESTED:
            self._move(then)

    def _conclude(self, of: events.SessionRef, answer: Session | ServiceError) -> None:
        if isinstance(answer, NotFoundError) and not self._attempt.is_known:
            answer = ServiceError(NEVER_THERE)
        event, since = events.stop_event_of(of, answer), self._attempt.taken_over_at
        if (
            isinstance(event, events.Stopped)
            and event.running_seconds is not None
            and since is not None
        ):
            # This run's share of the running time of a session that another run created.
            event = replace(
                event,
                running_seconds=min(
                    event.running_seconds, self._config.clock() - since
                ),
            )
        self.outcome = events.outcome_of(event)
        self._config.relay.event(event)
        if isinstance(event, events.StopFailed):
            raise not_stopped(of, event.reason, self._config.client.base_url)

    @contextmanager
    def _ending(self) -> Generator[None]:
        """Defer events, and end the session in any case: only then is its slot free."""
        try:
            with self._config.relay.aside(self.deferred):
                is_wasted = (
                    self.is_unused and self.is_created and self._has_timed_out is None
                )
                if is_wasted and not (self.is_over or self.error):
                    self._config.relay.event(events.Unused(self.ref()))
                yield
        finally:
            self._end()

    def _end(self) -> None:
        try:
            if self.slot:
                self.slot.release()
            self._start.release()
        finally:
            self._move(State.ENDED)  # last: another thread may read the state

    def stop_after(self, error: BaseException) -> None:
        """Stop it after an error; if the stop fails, add a note to that error."""
        try:
            self.stop()
        except StopFailedError as failure:
            error.add_note(str(failure))

    def keep(self) -> None:
        """Leave it running on purpose."""
        self.outcome = Outcome.KEPT
        self._config.relay.event(events.Kept(self.ref()))
        self._end()

    def keep_warm(self, until: str) -> None:
        """Keep it warm for the next run, until the given time of day."""
        self.outcome = Outcome.WARM
        since = (
            self._attempt.taken_over_at
            if self._attempt.taken_over_at is not None
            else self.ready_at
        )
        self._config.relay.event(
            events.KeptWarm(
                self.ref(),
                until,
                None if since is None else self._config.clock() - since,
            )
        )
        self._end()

    def check_alive(self) -> SessionError | None:
        """Look it up; return the error that describes its end, None if it is in progress, or without a response."""
        try:
            session = self._config.client.get(self.session.id)
            if (end := end_error(self.ref(), session)) is None:
                self._attempt.record(session)  # its connection details may have changed
        except ServiceError as error:
            return end_error(self.ref(), error)
        return end

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

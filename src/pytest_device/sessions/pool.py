"""Assigns live sessions to tests: shared by equal requirements, prefetched, replaced when spent or unusable."""

import os
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from pytest_device.errors import (
    ConfigError,
    LeaseTimeoutError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.options import Options
from pytest_device.sessions.device_session import (
    DeviceSession,
    Holder,
    SessionConfig,
    WarmSession,
    advance_due,
)
from pytest_device.sessions.events import Queued
from pytest_device.sessions.lifecycle import SLICE_SECONDS, WaitPolicy
from pytest_device.sessions.network import BlockedError, InterceptedError
from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.spec import DURATION_MAX_MINUTES

CLOSE_SECONDS: Final = 5.0
"""Maximum seconds to wait at the end for background calls: as long as a test's teardown waits for its stop."""

Acquisition = list[DeviceSession | None]
"""The sessions of one ``acquire``, in the order of its requirements; None for those that do not exist yet."""
_TIMEOUTS: Final = (LeaseTimeoutError, SessionTimeoutError)
"""Timeouts that do not fail a prefetched session: no test has waited for it."""
_MAX_THREADS: Final = 32
"""Maximum number of threads; each takes 8 MiB of address space, which containers may limit."""


class WarmDevices(Protocol):
    """The sessions that runs keep warm for the next one: what a pool needs of a ``WarmStore``."""

    def claim(
        self,
        requirement: DeviceRequirement,
        upcoming: Callable[[], Sequence[DeviceRequirement]],
    ) -> WarmSession | None: ...
    def keep_warm(self, held: DeviceSession) -> str | None: ...


class Pool:
    """The live sessions of one process: acquired for a test, released after it, or prefetched.

    No two processes wait for each other's slots. A process only waits for slots in ``acquire``, for all that it needs
    at once, and first stops all its sessions that are not in use: idle ones, prefetched ones, those it was about to
    reuse. The same applies if the service refuses a session twice for lack of capacity. It prefetches only sessions
    that get a slot without waiting. So a process that holds a slot while others wait either runs a test or waits for
    the service, and both end. The one exception is a test that acquires a session while it uses another one
    (``device_lease``): two such tests may wait for each other until the timeout.
    """

    def __init__(
        self,
        config: SessionConfig,
        *,
        sleep: Callable[[float], None],
        warm: WarmDevices | None = None,
        before_stop: Callable[[DeviceSession], None] = lambda _session: None,
        slots: Slots | None = None,
        exclusive: Callable[[str], Slots | None] = lambda _session_id: None,
        patience: tuple[type[BaseException], ...] = (SessionTimeoutError,),
    ) -> None:
        """Create a pool; background events are reported when a test gets the session, or at the end.

        Before a session is created, an equal one of ``warm`` is taken over if there is one. ``before_stop`` is called
        with a session in progress that is about to be stopped.

        ``exclusive`` returns the only slot of an existing session, by its ID: only one process may use it at a time.

        ``patience`` lists the errors by which a test stops waiting for a session that may still become ready.
        """
        self._config = config
        self._sleep = sleep
        self._warm = warm
        self._slots = slots
        self._exclusive = exclusive
        self._patience = patience
        self._pid = os.getpid()
        self._roster = Roster(config, warm, before_stop)

    @property
    def has_any(self) -> bool:
        return bool(self._roster)

    def prefetch(
        self, requirements: Sequence[DeviceRequirement], policy: WaitPolicy
    ) -> None:
        """Start sessions for these requirements concurrently, in this order, without waiting.

        Existing and starting sessions count. A session that gets no slot immediately is not started: call this again.
        ``acquire`` raises the error of a session that failed to start.
        """
        # A forked child has no background thread: its parent prefetches the same.
        if os.getpid() != self._pid:
            return

        self._roster.reconcile()
        unmatched = [
            session.requirement
            for session in self._roster.sessions
            if not session.is_ready or is_good(session)
        ]

        started: list[DeviceSession] = []
        try:
            for requirement in requirements:
                if requirement in unmatched:
                    unmatched.remove(requirement)
                # Its whole duration is needed: it must not idle before it is used.
                elif requirement.attach or requirement.minutes >= (
                    requirement.request.max_duration_minutes or DURATION_MAX_MINUTES
                ):
                    continue
                else:
                    slots = self._slots.try_acquire(1) if self._slots else [None]
                    if slots is None:
                        return
                    started.append(self._new(requirement, policy, slots[0]))
        finally:
            # Only now: the first of them needs to know what the others will look for.
            for session in started:
                self._roster.start_in_background(session)

    def acquire(
        self,
        requirements: Sequence[DeviceRequirement],
        policy: WaitPolicy,
        user: object = None,
    ) -> list[DeviceSession]:
        """Assign ``user`` a session for each requirement; those that must be created start concurrently.

        Raises the errors of ``DeviceSession``, and LeaseTimeoutError; then it stops the sessions that it created or
        that were prefetched for these requirements, except those that a later test may find ready: sessions that
        have not survived a timeout before.
        """
        acquiring: Acquisition = []
        try:
            # Appended one by one: after an error, the sessions so far are released.
            for requirement in requirements:
                session = self._roster.find(requirement)
                acquiring.append(session or self._attached(requirement, policy))
            self._fill(acquiring, requirements, policy)
            self._wait(acquiring, requirements, policy)
        except BaseException as error:
            for session in acquiring:
                self._release_after_error(session, error)
            raise

        acquired = [session for session in acquiring if session]
        for session in acquired:
            session.assignment.assign(user)
            session.deliver()

        return acquired

    def hand_over(self, sessions: Iterable[DeviceSession], user: object) -> None:
        """Assign sessions in use to their next user."""
        for session in sessions:
            session.assignment.hand_over(user)

    def give_back(self, sessions: Iterable[DeviceSession]) -> None:
        """End the use of sessions, which are idle until ``release`` or ``acquire``."""
        for session in sessions:
            session.assignment.give_back()

    def mark_unusable(self, sessions: Iterable[DeviceSession]) -> None:
        """Give these sessions to no other user: ``release`` stops them."""
        for session in sessions:
            session.assignment.mark_unusable()

    def release(
        self,
        sessions: Iterable[DeviceSession],
        needed: Callable[[DeviceRequirement], float],
    ) -> None:
        """Take sessions back; stop those, and all other idle ones, that are unusable or no longer needed.

        Also stops prefetched sessions that are not needed, without waiting. Raises StopFailedError if one may still be
        running, after all stops were requested.

        ``needed`` returns how many sessions for a requirement to keep: as many as a later test uses at once.
        """
        self.give_back(sessions)
        self._roster.reconcile()

        counts: Counter[DeviceRequirement] = Counter()
        ending: list[DeviceSession] = []
        for session in self._roster.idle():
            if session.assignment.is_unusable:
                ending.append(session)
                continue

            counts[session.requirement] += 1
            if counts[session.requirement] > needed(session.requirement):
                ending.append(session)

        # After the idle ones: a session that is ready saves more than one that still boots.
        for session in self._roster.prefetching():
            counts[session.requirement] += 1
            if counts[session.requirement] > needed(session.requirement):
                self._roster.drop(session)

        self._roster.end(ending, may_stay=True)

    def keep(self, session: DeviceSession) -> None:
        """Deliberately leave a session running."""
        self._roster.sessions.remove(session)
        session.keep()

    def close(self) -> None:
        """Stop all sessions; an event reports each one that could not be stopped."""
        starting = [
            session for session in self._roster.sessions if not session.is_ready
        ]
        for session in starting:
            self._roster.drop(session)

        try:
            # An event has reported it.
            with suppress(StopFailedError):
                self._roster.end(self._roster.sessions)
        finally:
            self._roster.close(CLOSE_SECONDS)

    # Existing sessions.

    def _attached(
        self, requirement: DeviceRequirement, policy: WaitPolicy
    ) -> DeviceSession | None:
        """Return the session that a requirement names, once no other process uses it."""
        if not requirement.attach:
            return None

        slots = self._exclusive(requirement.attach)
        slot = slots.acquire(1, self._roster.release_idle_session)[0] if slots else None
        session = self._new(requirement, policy, slot)
        session.assignment.reserve()

        return session

    def _release_after_error(
        self, session: DeviceSession | None, error: BaseException
    ) -> None:
        if session is None:
            return

        assignment = session.assignment
        if assignment.is_unused or not assignment.is_new:
            assignment.cancel()  # it was ready before: another session caused the error
            return

        if isinstance(error, self._patience) and session.survives_timeout(error):
            self._return_to_background(session)
            return

        self._roster.sessions.remove(session)
        session.stop_after(error)
        session.deliver()

    def _return_to_background(self, session: DeviceSession) -> None:
        """Let a session continue to start without the test that waited for it."""
        session.assignment.cancel()
        session.deliver()
        if not session.is_ready:
            self._roster.start_in_background(session)

    # Starting sessions.

    def _fill(
        self,
        acquiring: Acquisition,
        requirements: Sequence[DeviceRequirement],
        policy: WaitPolicy,
        since: float | None = None,
    ) -> None:
        slots = self._acquired_slots(acquiring)

        for index, requirement in enumerate(requirements):
            if acquiring[index] is not None:
                continue

            session = self._new(requirement, policy, slots.pop(0))
            acquiring[index] = session
            session.assignment.reserve()
            if since is not None:
                session.count_from(since)

    def _wait(
        self,
        acquiring: Acquisition,
        requirements: Sequence[DeviceRequirement],
        policy: WaitPolicy,
    ) -> None:
        """Wait until all are ready; stop other sessions while the service has no capacity for one of them."""
        # A single refusal may be temporary: it is worth waiting for the next response.
        patience = 1
        since = self._config.clock()

        while waiting := [
            session for session in acquiring if session and not session.is_ready
        ]:
            advanced = advance_due(waiting, self._config.clock, self._sleep)
            refused = [session for session in waiting if not session.is_created]
            if not refused:
                self._fill(acquiring, requirements, policy, since)
                continue

            lacks_capacity = any(session.refusals > patience for session in advanced)
            if not lacks_capacity or self._roster.release_idle_session():
                continue

            # Stopping sessions had no effect and cost a boot: tolerate more refusals.
            if any(session not in refused for session in acquiring if session):
                patience *= 2
            self._give_up(acquiring, exclude=refused)

    def _new(
        self, requirement: DeviceRequirement, policy: WaitPolicy, slot: Slot | None
    ) -> DeviceSession:
        find_warm: Callable[[], WarmSession | None] | None = None

        if self._warm and not requirement.attach:
            find_warm = partial(
                self._warm.claim,
                requirement,
                partial(self._roster.upcoming, requirement),
            )

        if policy.learned and not policy.past_boots:
            policy = replace(
                policy, past_boots=self._config.past_boots(requirement.request.boot_key)
            )

        session = DeviceSession(
            requirement, policy, self._config, find_warm=find_warm, slot=slot
        )
        self._roster.sessions.append(session)
        return session

    def _acquired_slots(self, acquiring: Acquisition) -> list[Slot | None]:
        """Return a slot for each missing session; if there are too few, stop all: they count as missing."""
        missing = acquiring.count(None)
        slots = self._slots
        if slots is None or not missing:
            return [None] * missing

        self._check(missing, slots.limit)

        while (free := slots.try_acquire(missing)) is None:
            if not self._roster.release_idle_session():
                self._give_up(acquiring)
                since = self._config.clock()

                try:
                    return list(
                        slots.acquire(len(acquiring), self._roster.release_idle_session)
                    )
                finally:
                    self._config.relay.event(Queued(self._config.clock() - since))

        return list(free)

    def _check(self, missing: int, limit: int) -> None:
        in_use = sum(
            session.assignment.holder is Holder.TEST and not session.requirement.attach
            for session in self._roster.sessions
        )
        if in_use + missing > limit:
            raise ConfigError(
                f"{in_use + missing} sessions are needed at once, "
                f"but {Options.max_sessions.flag} allows {limit}: increase it"
            )

    def _give_up(
        self, acquiring: Acquisition, exclude: Sequence[DeviceSession] = ()
    ) -> None:
        """Stop sessions that were to be reused, too: a process holds none while it waits for slots or capacity."""
        ending = [
            session for session in acquiring if session and session not in exclude
        ]
        # In place: ``acquire`` releases the sessions in this list after an error.
        acquiring[:] = [
            session if session in exclude else None for session in acquiring
        ]

        self._roster.end(ending)


class Roster:
    """The sessions of a pool, including prefetched ones, which the background thread advances.

    ``before_stop`` is called with a session in progress that is about to be stopped.
    """

    def __init__(
        self,
        config: SessionConfig,
        warm: WarmDevices | None,
        before_stop: Callable[[DeviceSession], None],
    ) -> None:
        self.sessions: list[DeviceSession] = []
        self._relay = config.relay
        self._warm = warm
        self._before_stop = before_stop
        self._background = Background(config.clock, config.relay)
        self._dropped: list[DeviceSession] = []
        """Sessions that the background thread stops."""
        self._unused: list[DeviceSession] = []
        """Sessions that ended without a test: their events are reported at the end."""

    def __bool__(self) -> bool:
        return bool(self.sessions or self._dropped)

    def idle(self) -> list[DeviceSession]:
        return [
            session
            for session in self.sessions
            if session.is_ready and session.assignment.holder is not Holder.TEST
        ]

    def find(self, requirement: DeviceRequirement) -> DeviceSession | None:
        """Return a session for a requirement, idle or prefetched, that a test uses from now on; None if there is none.

        Raises the error that ended the start of a prefetched session.
        """
        self.reconcile()
        session = self._reusable(requirement) or self._prefetched(requirement)
        if session is None:
            # The background thread may have made one ready meanwhile: another's stop takes seconds.
            session = self._reusable(requirement)

        if session:
            session.assignment.reserve()
        return session

    def _reusable(self, requirement: DeviceRequirement) -> DeviceSession | None:
        equal = [
            session for session in self.idle() if session.requirement == requirement
        ]
        for session in equal:
            # It may have reached its idle limit since its last test: the interface reports no events.
            if is_good(session, requirement.minutes) and not session.check_alive():
                return session

            self.end([session])

        return None

    def _prefetched(self, requirement: DeviceRequirement) -> DeviceSession | None:
        """Return a prefetched session for a requirement; raises the error that ended its start."""
        equal = [
            session
            for session in self.prefetching()
            if session.requirement == requirement
        ]
        if not equal:
            return None

        # The first has been starting for the longest.
        session = equal[0]
        self._background.withdraw(session)
        session.deliver()

        if error := session.assignment.error:
            self.sessions.remove(session)
            if isinstance(error, _TIMEOUTS):
                return None
            raise error

        # So far no test has waited for it: the timeout is this test's.
        if not session.is_created:
            session.count_from()

        return session

    def prefetching(self) -> list[DeviceSession]:
        prefetched = [
            session
            for session in self.sessions
            if session.assignment.holder is Holder.BACKGROUND
        ]

        return [session for session in prefetched if not session.is_ready]

    def reconcile(self) -> None:
        """Update the list after stops in the background."""
        if self._dropped or self.prefetching():
            self._background.wake()

        stopped = [session for session in self._dropped if session.is_over]
        for session in stopped:
            self._dropped.remove(session)
            self._unused.append(session)

    def upcoming(self, exclude: DeviceRequirement) -> list[DeviceRequirement]:
        """Return the requirements of other sessions that will look for a warm one."""
        # A copy: another thread may change the list meanwhile.
        sessions = list(self.sessions)
        upcoming = [
            session.requirement
            for session in sessions
            if not (session.is_over or session.is_created or session.refusals)
        ]
        if exclude in upcoming:
            upcoming.remove(exclude)

        return upcoming

    def start_in_background(self, session: DeviceSession) -> None:
        """Let the background thread advance a session, for later tests."""
        session.assignment.prefetch()
        self._background.add(session)

    def release_idle_session(self) -> bool:
        """Stop a session that no test uses, so that others can start; False if there is none."""
        for session in self.prefetching():
            if not session.is_over:
                self._stop_prefetched(session)
                return True

        idle = self.idle()
        if not idle:
            return False

        # Prefetched ones first: no test has waited for them.
        self.end([min(idle, key=lambda session: not session.assignment.is_unused)])
        return True

    def _stop_prefetched(self, session: DeviceSession) -> None:
        self._background.withdraw(session)
        self.sessions.remove(session)
        self._unused.append(session)
        if not session.is_over:
            session.assignment.discard()
            session.stop()

    def drop(self, session: DeviceSession) -> None:
        self.sessions.remove(session)
        self._dropped.append(session)
        self._background.drop(session)

    def end(self, ending: Iterable[DeviceSession], *, may_stay: bool = False) -> None:
        """Remove sessions from the pool and stop them concurrently, except those that ``may_stay`` and are kept warm.

        Raises StopFailedError if one may still be running, after all stops were requested.
        """
        doomed: list[DeviceSession] = []
        try:
            # A hook that raises does not prevent the hooks of other sessions.
            with ExitStack() as each:
                for session in list(ending):
                    self.sessions.remove(session)
                    doomed.append(session)
                    each.callback(self._retire, session, doomed, may_stay=may_stay)
        finally:
            try:
                run_concurrently([session.stop for session in doomed])
            finally:
                for session in doomed:
                    if session not in self._unused:
                        session.deliver()

    def _retire(
        self, session: DeviceSession, doomed: list[DeviceSession], *, may_stay: bool
    ) -> None:
        is_unused = session.assignment.is_unused
        if is_unused:
            self._unused.append(session)

        with self._relay.deferring(session.deferred) if is_unused else nullcontext():
            if may_stay and (until := self._kept_warm(session)):
                doomed.remove(session)
                session.keep_warm(until)
            elif session.is_ready:
                self._before_stop(session)

    def _kept_warm(self, session: DeviceSession) -> str | None:
        """Keep a session warm if possible; return until when."""
        if self._warm is None or session.requirement.attach or not is_good(session):
            return None
        return self._warm.keep_warm(session)

    def close(self, timeout_seconds: float) -> None:
        """Report the events of sessions without a test, once the background has stopped them or time is up."""
        self._background.close(timeout_seconds)
        for session in [*self._unused, *self._dropped]:
            session.deliver()


def is_good(session: DeviceSession, minutes: int | None = None) -> bool:
    """Return whether a test can use a session for ``minutes``."""
    return not session.assignment.is_unusable and session.has_left(
        session.requirement.minutes if minutes is None else minutes
    )


def run_concurrently(calls: Sequence[Callable[[], object]]) -> None:
    """Make all calls concurrently, in this thread and others; return when all have ended, or raise one of their errors.

    Each call ends by itself. An interrupt is raised after all calls; a second one does not wait.
    """
    # As after nearly all tests: without a thread, the traceback of an error is short.
    if len(calls) == 1:
        calls[0]()
        return

    remaining = deque(calls)
    errors = list[BaseException]()

    def work() -> None:
        while call := _taken(remaining):
            try:
                call()
            except BaseException as error:  # noqa: BLE001  # raised once all calls have ended
                errors.append(error)

    threads = [
        threading.Thread(target=work, name="pytest-device-stop", daemon=True)
        for _ in calls[1:_MAX_THREADS]
    ]
    try:
        # Without room for more threads, as in a small container, those that there are make all calls.
        with suppress(RuntimeError):
            for thread in threads:
                thread.start()

        _finish(work, threads)
    except BaseException:
        _finish(work, threads)
        raise

    if errors:
        # Interrupts take precedence.
        raise max(errors, key=lambda error: not isinstance(error, Exception))


def _taken(calls: deque[Callable[[], object]]) -> Callable[[], object] | None:
    # Not by the length: another thread may take the last one meanwhile.
    try:
        return calls.popleft()
    except IndexError:
        return None


def _finish(work: Callable[[], None], threads: Sequence[threading.Thread]) -> None:
    work()
    for thread in threads:
        if thread.is_alive():
            thread.join()


class Background:
    """Advances sessions in one thread, which runs only while there is work.

    A session's events are deferred until ``deliver``. Only ``withdraw`` and ``close`` wait for the thread.
    """

    def __init__(self, clock: Callable[[], float], relay: Relay) -> None:
        self._clock = clock
        self._relay = relay
        self._news: queue.SimpleQueue[DeviceSession | None] = queue.SimpleQueue()
        # Both are implemented in C: a signal cannot interrupt them half-way and leave the lock held.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, session: DeviceSession) -> None:
        """Start advancing a session in the background."""
        with self._lock:
            self._news.put(session)
            self._start_thread()

    def wake(self) -> None:
        with self._lock:
            if self._thread:
                self._news.put(None)
            elif not self._news.empty():
                self._start_thread()

    def _start_thread(self) -> None:
        """Start the thread, unless it runs, or the system has no room for one: then the next call tries again."""
        if self._thread:
            return

        thread = threading.Thread(
            target=self._serve, name="pytest-device-background", daemon=True
        )
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def drop(self, session: DeviceSession) -> None:
        """Stop a session in the background; its events report the result."""
        session.assignment.drop()
        self.add(session)

    def withdraw(self, session: DeviceSession) -> None:
        """Take a session back from the thread; waits while the thread calls the service for it, which is bounded.

        If the wait is interrupted, the thread stops the session.
        """
        session.assignment.withdraw()

        try:
            while not session.lock.acquire(timeout=SLICE_SECONDS):
                pass
        except BaseException:
            self.drop(session)
            raise

        session.lock.release()

    def close(self, timeout_seconds: float) -> None:
        """Wait until all work is done, for at most ``timeout_seconds``."""
        if thread := self._thread:
            thread.join(timeout_seconds)

    # In the thread.

    def _serve(self) -> None:
        sessions: dict[DeviceSession, None] = {}
        while self._await_work(sessions):
            for session in sessions:
                if (
                    session.due <= self._clock()
                    or session.assignment.holder is Holder.DROPPED
                ):
                    self._step(session)

    def _await_work(self, sessions: dict[DeviceSession, None]) -> bool:
        """Wait for new sessions until one is due; False when no work is left."""
        finished = [session for session in sessions if _is_finished(session)]
        for session in finished:
            del sessions[session]

        with self._lock:
            if not sessions and self._news.empty():
                self._thread = None
                return False

        delay = 0.0
        if sessions:
            due = min(session.due for session in sessions)
            delay = max(0.0, due - self._clock())

        with suppress(queue.Empty):
            while True:
                if news := self._news.get(timeout=delay):
                    sessions[news] = None
                delay = 0.0  # take whatever else has arrived, without waiting

        return True

    def _step(self, session: DeviceSession) -> None:
        with session.lock, self._relay.deferring(session.deferred):
            if _is_finished(session):  # withdrawn meanwhile
                return

            try:
                if session.assignment.holder is Holder.DROPPED:
                    session.stop()
                else:
                    session.advance()
            except (BlockedError, InterceptedError):
                session.postpone()
            except BaseException as error:  # noqa: BLE001  # raised in the test that waits for the session
                session.assignment.give_up(error)
                session.stop_after(error)


def _is_finished(session: DeviceSession) -> bool:
    """Return whether the thread has no work left for a session."""
    if session.assignment.holder is Holder.BACKGROUND:
        return session.is_ready or session.is_over
    return session.is_over or session.assignment.holder is not Holder.DROPPED

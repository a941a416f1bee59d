"""Assigns live sessions to tests: shared by equal requirements, prefetched, replaced when spent or unusable."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from pytest_device.errors import ConfigError, SessionTimeoutError, StopFailedError
from pytest_device.options import Options
from pytest_device.sessions.assignment import Holder
from pytest_device.sessions.attempt import SessionConfig, WarmSession
from pytest_device.sessions.device_session import DeviceSession, advance_due
from pytest_device.sessions.events import Queued
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.roster import Roster, WarmDevices, is_good
from pytest_device.spec import DURATION_MAX_MINUTES

CLOSE_SECONDS: Final = 5.0
"""Maximum seconds to wait at the end for background calls: as long as a test's teardown waits for its stop."""

Acquisition = list[DeviceSession | None]
"""The sessions of one ``acquire``, in the order of its requirements; None for those that do not exist yet."""


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

            is_refused = any(session.refusals for session in advanced)
            if is_refused and self._warm and self._warm.make_room():
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
            find_warm = partial(self._warm.claim, requirement)

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

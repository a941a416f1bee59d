"""The sessions of a pool: those that live, those that the background stops, those that ended."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from typing import Final, Protocol

from pytest_device.errors import LeaseTimeoutError, SessionTimeoutError
from pytest_device.sessions.assignment import Holder
from pytest_device.sessions.attempt import SessionConfig, WarmSession
from pytest_device.sessions.background import Background
from pytest_device.sessions.concurrently import run_concurrently
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.request import DeviceRequirement

_TIMEOUTS: Final = (LeaseTimeoutError, SessionTimeoutError)
"""Timeouts that do not fail a prefetched session: no test has waited for it."""


class WarmDevices(Protocol):
    """The sessions that runs keep warm for the next one: what a pool needs of a ``WarmStore``."""

    def claim(self, requirement: DeviceRequirement) -> WarmSession | None: ...
    def make_room(self) -> bool: ...
    def keep_warm(self, held: DeviceSession) -> str | None: ...


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

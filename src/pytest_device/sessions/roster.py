"""The sessions of one pool: tracks idle and starting ones, and stops several at once."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from typing import Final, Protocol

from pytest_device.errors import LeaseTimeoutError, SessionTimeoutError
from pytest_device.sessions.attempt import SessionConfig, WarmSession
from pytest_device.sessions.background import Background
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.sessions.states import AdvancedBy

_TIMEOUTS: Final = (LeaseTimeoutError, SessionTimeoutError)
"""Timeouts that do not fail a prefetched session: no test has waited for it."""
_MOST: Final = 32
"""Maximum number of threads; each takes 8 MiB of address space, which containers may limit."""


class WarmDevices(Protocol):
    """The sessions that runs keep warm for the next one: what a pool needs of a ``WarmStore``."""

    def claim(
        self,
        need: DeviceRequirement,
        upcoming: Callable[[], Sequence[DeviceRequirement]],
    ) -> WarmSession | None: ...
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
        self._relay, self._warm, self._before_stop = config.relay, warm, before_stop
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
            if session.is_ready and not session.in_use
        ]

    def find(self, requirement: DeviceRequirement) -> DeviceSession | None:
        """Return a session for a requirement, idle or prefetched, that a test uses from now on; None if there is none.

        Raises the error that ended the start of a prefetched session.
        """
        self.reconcile()
        session = self._reusable(requirement) or self._prefetched(requirement)
        if session:
            session.in_use = True
        return session

    def _reusable(self, requirement: DeviceRequirement) -> DeviceSession | None:
        for session in [
            session for session in self.idle() if session.requirement == requirement
        ]:
            if is_good(session, requirement.minutes) and not session.check_alive():
                return session
            self.end([session])
        return None

    def _prefetched(self, requirement: DeviceRequirement) -> DeviceSession | None:
        """Return a prefetched session for a requirement; raises the error that ended its start."""
        session = next(
            (one for one in self.prefetching() if one.requirement == requirement), None
        )
        if session is None:
            return None
        self._background.withdraw(session)
        session.deliver()
        if session.error:
            self.sessions.remove(session)
            if isinstance(session.error, _TIMEOUTS):
                return None
            raise session.error
        if not session.is_created:
            session.count_from()
        return session

    def prefetching(self) -> list[DeviceSession]:
        ahead = [
            session
            for session in self.sessions
            if session.advanced_by is AdvancedBy.BACKGROUND
        ]
        return [session for session in ahead if not session.is_ready]

    def reconcile(self) -> None:
        """Update the list after stops in the background."""
        if self._dropped or self.prefetching():
            self._background.wake()
        for session in [session for session in self._dropped if session.is_over]:
            self._dropped.remove(session)
            self._unused.append(session)

    def upcoming(self, but: DeviceRequirement) -> list[DeviceRequirement]:
        """Return the requirements of other sessions that will look for a warm one."""
        sessions = list(self.sessions)  # another thread may change the list meanwhile
        upcoming = [
            one.requirement
            for one in sessions
            if not (one.is_over or one.is_created or one.refusals)
        ]
        if but in upcoming:
            upcoming.remove(but)
        return upcoming

    def start_in_background(self, session: DeviceSession) -> None:
        """Let the background thread advance a session, for later tests."""
        session.advanced_by = AdvancedBy.BACKGROUND
        self._background.add(session)

    def release_idle_session(self) -> bool:
        """Stop a session that no test uses, so that others can start; False if there is none."""
        for session in self.prefetching():
            if not session.is_over:
                self._stop_prefetched(session)
                return True
        idle = sorted(self.idle(), key=lambda session: not session.is_unused)[:1]
        self.end(idle)
        return bool(idle)

    def _stop_prefetched(self, session: DeviceSession) -> None:
        self._background.withdraw(session)
        self.sessions.remove(session)
        self._unused.append(session)
        if not session.is_over:
            session.advanced_by = AdvancedBy.NOBODY
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
            with (
                ExitStack() as each
            ):  # a hook that raises does not prevent the hooks of other sessions
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
        if session.is_unused:
            self._unused.append(session)
        with (
            self._relay.aside(session.deferred) if session.is_unused else nullcontext()
        ):
            if may_stay and is_good(session) and (until := self._kept_warm(session)):
                doomed.remove(session)
                session.keep_warm(until)
            elif session.is_ready:
                self._before_stop(session)

    def _kept_warm(self, session: DeviceSession) -> str | None:
        return (
            self._warm.keep_warm(session)
            if self._warm and not session.requirement.attach
            else None
        )

    def close(self, timeout_seconds: float) -> None:
        """Report the events of sessions without a test, once the background has stopped them or time is up."""
        self._background.close(timeout_seconds)
        for session in [*self._unused, *self._dropped]:
            session.deliver()


def is_good(session: DeviceSession, minutes: int | None = None) -> bool:
    """Return whether a test can use a session for ``minutes``."""
    return not session.unusable and session.has_left(
        session.requirement.minutes if minutes is None else minutes
    )


def run_concurrently(calls: Sequence[Callable[[], object]]) -> None:
    """Make all calls concurrently, the first in this thread; return when all have ended, or raise one of their errors.

    Each call ends by itself. An interrupt is raised after all calls; a second one does not wait.
    """
    if len(calls) == 1:  # as after nearly all tests: keeps an error's traceback short
        calls[0]()
        return
    left, errors = deque(calls), list[BaseException]()

    def work() -> None:
        with suppress(IndexError):
            while True:
                errors.extend(_raised(left.popleft()))

    threads = [
        threading.Thread(target=work, name="pytest-device-stop", daemon=True)
        for _ in calls[1:_MOST]
    ]
    try:
        for thread in threads:
            thread.start()
        _finish(work, threads)
    except BaseException:
        _finish(work, threads)
        raise
    if errors:
        raise max(
            errors, key=lambda error: not isinstance(error, Exception)
        )  # interrupts take precedence


def _finish(work: Callable[[], None], threads: Sequence[threading.Thread]) -> None:
    work()
    for thread in threads:
        if thread.is_alive():
            thread.join()


def _raised(call: Callable[[], object]) -> list[BaseException]:
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # raised once all calls have ended
        return [error]
    return []

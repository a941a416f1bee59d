"""Starts and stops sessions in a thread while tests run."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from pytest_device.sessions.assignment import Holder
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.lifecycle import SLICE_SECONDS
from pytest_device.sessions.network import BlockedError, InterceptedError
from pytest_device.sessions.reporter import Relay


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

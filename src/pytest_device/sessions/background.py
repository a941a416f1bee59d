"""The thread that advances starting sessions which nobody waits for yet, and stops those that nobody wants any more."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.server import Server

_SLICE_SECONDS: Final = 1.0
"""Of a wait for a lock: on Windows no signal breaks one."""


class Background:
    """Advances sessions in one thread, which is there only as long as there is something to do.

    What happens to a session is deferred with it. Nothing here waits for the thread but ``withdraw`` and ``close``.
    """

    def __init__(self, clock: Callable[[], float], relay: Relay) -> None:
        self._clock, self._relay = clock, relay
        self._news: queue.SimpleQueue[DeviceSession | None] = queue.SimpleQueue()
        # Both of these are made in C: no signal can strike within, so none leaves the lock taken.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, session: DeviceSession) -> None:
        """Start advancing a session in the background."""
        with self._lock:
            self._news.put(session)
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="pytest-device-background", daemon=True)
                thread.start()
                self._thread = thread

    def wake(self) -> None:
        with self._lock:
            if self._thread:
                self._news.put(None)

    def drop(self, session: DeviceSession) -> None:
        """Stop a session in the background; its events report the result."""
        session.served_by = Server.DROPPED
        self.add(session)

    def withdraw(self, session: DeviceSession) -> None:
        """Take a session out of the thread's hands; waits while it calls the service for it, which has an end.

        Whatever breaks the wait leaves the session to the thread, to be stopped.
        """
        session.served_by = Server.TEST
        try:
            while not session.lock.acquire(timeout=_SLICE_SECONDS):
                pass
        except BaseException:
            self.drop(session)
            raise
        session.lock.release()

    def close(self, timeout_seconds: float) -> None:
        """Wait until all is done, for at most so many seconds."""
        if thread := self._thread:
            thread.join(timeout_seconds)

    # In the thread.

    def _serve(self) -> None:
        sessions: dict[DeviceSession, None] = {}
        while self._take_news(sessions):
            for session in sessions:
                if session.due <= self._clock() or session.served_by is Server.DROPPED:
                    self._step(session)

    def _take_news(self, sessions: dict[DeviceSession, None]) -> bool:
        """Wait for news until a session is due; False when nothing is left to be done."""
        for session in [session for session in sessions if _is_settled(session)]:
            del sessions[session]
        with self._lock:
            if not sessions and self._news.empty():
                self._thread = None
                return False
        delay = max(0.0, min(session.due for session in sessions) - self._clock()) if sessions else 0.0
        with suppress(queue.Empty):
            while True:
                if news := self._news.get(timeout=delay):
                    sessions[news] = None
                delay = 0.0
        return True

    def _step(self, session: DeviceSession) -> None:
        with session.lock, self._relay.aside(session.deferred):
            if _is_settled(session):  # taken over since
                return
            try:
                if session.served_by is Server.DROPPED:
                    session.stop()
                else:
                    session.advance()
            except BaseException as error:  # noqa: BLE001  # raised where somebody asks for the session
                session.error = error
                session.stop_after(error)


def _is_settled(session: DeviceSession) -> bool:
    """Return whether there is nothing to do with a session for the thread."""
    if session.served_by is Server.BACKGROUND:
        return session.is_ready or session.is_over
    return session.is_over or session.served_by is not Server.DROPPED

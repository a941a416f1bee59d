"""Events of sessions that start behind the tests: reported in their turn, by the thread that runs tests."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pytest_device.sessions.events import Event, late
from pytest_device.sessions.reporter import Reporter, SilentReporter

Deferred = list[tuple[float, Event]]
"""Events that are not reported yet, and when they happened."""


class _Aside(threading.local):
    """Where this thread puts what it reports."""

    deferred: Deferred | None = None


class Relay:
    """Reports events at once, but for those that a thread puts aside: they follow later, with how late they are.

    So the reporter is called in one thread only, and about a session when it concerns a test.
    """

    def __init__(self, reporter: Reporter | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._reporter, self._clock = reporter or SilentReporter(), clock
        self._aside = _Aside()

    def event(self, event: Event) -> None:
        """Report an event, or defer it."""
        if self._aside.deferred is None:
            self._reporter.event(event)
        else:
            self._aside.deferred.append((self._clock(), event))

    @contextmanager
    def aside(self, deferred: Deferred) -> Generator[None]:
        """Defer this thread's events in the block."""
        before, self._aside.deferred = self._aside.deferred, deferred
        try:
            yield
        finally:
            self._aside.deferred = before

    def deliver(self, deferred: Deferred) -> None:
        """Report deferred events, once."""
        while deferred:
            at, event = deferred.pop(0)
            self.event(late(event, self._clock() - at))

"""Events of sessions that boot behind the tests: kept until their turn comes, told by the thread that runs tests."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pytest_device.sessions.events import Event, Report, ignore, late

Deferred = list[tuple[float, Event]]
"""Events that are not told yet, and when they happened."""


class _Aside(threading.local):
    """Where this thread puts what it hears."""

    kept: Deferred | None = None


class Relay:
    """Tells events at once, but for those that a thread puts aside: they are told later, with how late they are.

    So whoever hears of events is called in one thread only, and hears of a session when it concerns a test.
    """

    def __init__(self, report: Report = ignore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._aside = _Aside()

    def __call__(self, event: Event) -> None:
        """Tell an event, or put it aside."""
        if self._aside.kept is None:
            self._report(event)
        else:
            self._aside.kept.append((self._clock(), event))

    @contextmanager
    def aside(self, kept: Deferred) -> Generator[None]:
        """Let this thread put aside what it hears in the block."""
        before, self._aside.kept = self._aside.kept, kept
        try:
            yield
        finally:
            self._aside.kept = before

    def tell(self, kept: Deferred) -> None:
        """Tell what was put aside, once."""
        while kept:
            at, event = kept.pop(0)
            self(late(event, self._clock() - at))

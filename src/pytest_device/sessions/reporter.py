"""Who is informed of what happens to sessions, and when: at once, or in its turn by the thread that runs tests."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from pytest_device.sessions.events import Event, late

Deferred = list[tuple[float, Event]]
"""Events that are not reported yet, and when they happened."""


class ProgressReporter(Protocol):
    """Shows lines to a person who waits."""

    def progress(self, text: str) -> None:
        """Show a line at once."""


class PreviewReporter(ProgressReporter, Protocol):
    """Shows people where to watch devices, too."""

    def preview(self, label: str, url: str) -> None:
        """Show, or open, the live preview of a device; the address is a secret."""


class Reporter(ProgressReporter, Protocol):
    """Gets what happens while sessions are provided; each call may come from another thread."""

    def event(self, event: Event) -> None:
        """Take an event of a session."""

    def note(self, text: str) -> None:
        """Take a line for the summary at the end of the run."""


class SilentReporter:
    """Reports nothing."""

    def event(self, event: Event) -> None: ...
    def note(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...


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

"""Events of sessions that boot behind the tests: kept until their turn comes, told by the thread that runs tests."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from pytest_device.sessions.events import Emit, Event, nobody

Kept = list[tuple[float, Event]]
"""Events that are not told yet, and when they happened."""


class _Aside(threading.local):
    """Where this thread puts what it hears."""

    kept: Kept | None = None


class Relay:
    """Tells events at once, but for those that a thread puts aside: they are told later, with how late they are.

    So whoever hears of events is called in one thread only, and hears of a session when it concerns a test.
    """

    def __init__(self, emit: Emit = nobody, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit, self._clock = emit, clock
        self._aside = _Aside()

    def __call__(self, event: Event) -> None:
        """Tell an event, or put it aside."""
        if self._aside.kept is None:
            self._emit(event)
        else:
            self._aside.kept.append((self._clock(), event))

    @contextmanager
    def aside(self, kept: Kept) -> Generator[None]:
        """Let this thread put aside what it hears in the block."""
        before, self._aside.kept = self._aside.kept, kept
        try:
            yield
        finally:
            self._aside.kept = before

    def tell(self, kept: Kept) -> None:
        """Tell what was put aside, once."""
        while kept:
            at, event = kept.pop(0)
            self(replace(event, late_seconds=self._clock() - at))

"""Reports session events: at once, or deferred to the thread that runs the tests."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

from pytest_device.sessions.events import Event, late

PROGRESS_SECONDS: Final = 30.0
"""Seconds after which a wait is reported again: a CI log without output for longer looks like a hang."""

Deferred = list[tuple[float, Event]]
"""Unreported events, and when they happened."""


class SafetyNet(StrEnum):
    """What stops sessions that a killed run leaves: a run may be without it, and says so before its first device."""

    LEDGER = "ledger"
    REAPER = "reaper"
    DETACHED_REAPER = "detached reaper"


class ProgressReporter(Protocol):
    """Shows progress to users who wait."""

    def progress(self, text: str) -> None:
        """Show a line at once."""


class RunReporter(ProgressReporter, Protocol):
    """Shows lines to the users of a run, in whichever process has the terminal."""

    def preview(self, label: str, url: str) -> None:
        """Show, or open, the live preview of a device; its URL is a secret."""

    def warn(self, net: SafetyNet, text: str) -> None:
        """Show, once per run, that a safety net is missing."""


class Reporter(ProgressReporter, Protocol):
    """Receives events while sessions are provided; calls may come from any thread."""

    def event(self, event: Event) -> None:
        """Receive an event of a session."""

    def note(self, text: str) -> None:
        """Receive a line for the summary at the end of the run."""

    def warn(self, net: SafetyNet, text: str) -> None:
        """Show at once, and once per run, that a safety net is missing."""


class SilentReporter:
    """Reports nothing."""

    def event(self, event: Event) -> None: ...
    def note(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...
    def warn(self, net: SafetyNet, text: str) -> None: ...


class _OfThread(threading.local):
    deferred: Deferred | None = None
    """Where this thread defers its events; None if it reports them at once."""


class Relay:
    """Reports events at once, except those that a thread defers: they follow later, marked with their delay.

    So ``on_event`` is called in one thread only, and for a session when that concerns a test.
    """

    def __init__(
        self,
        on_event: Callable[[Event], object] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_event = on_event
        self._clock = clock
        self._of_thread = _OfThread()

    def event(self, event: Event) -> None:
        """Report an event, or defer it."""
        if self._of_thread.deferred is not None:
            self._of_thread.deferred.append((self._clock(), event))
        elif self._on_event:
            self._on_event(event)

    @contextmanager
    def deferring(self, deferred: Deferred) -> Generator[None]:
        """Defer this thread's events in the block."""
        before = self._of_thread.deferred
        self._of_thread.deferred = deferred
        try:
            yield
        finally:
            self._of_thread.deferred = before

    def deliver(self, deferred: Deferred) -> None:
        """Report deferred events, once."""
        while deferred:
            at, event = deferred.pop(0)
            self.event(late(event, self._clock() - at))

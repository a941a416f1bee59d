"""Lets Ctrl-C, SIGTERM and SIGHUP end a run gracefully: CI services and closed terminals send the latter two."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from pytest_device.platforms import SYSTEM

TERMINATED: Final = "terminated by a signal"
"""Why a run stops whose test has caught the KeyboardInterrupt of a signal: ``session.shouldstop``."""
FORCE_AFTER_SIGNALS: Final = 3
"""The third signal during shutdown interrupts it after all; earlier ones only end its waits."""

SIGNAL_DEBOUNCE_SECONDS: Final = 0.5
"""Signals within this time count as one: a second KeyboardInterrupt would interrupt the handling of the first."""


class GracefulShutdown:
    """Raises KeyboardInterrupt for each of these signals, until the shutdown that it caused must not be interrupted.

    The handler does nothing else: no call, no lock, no file. The exception is ``on_termination``, which is called first
    for all signals but Ctrl-C, because SIGKILL may follow soon. Handlers are set in the main thread only, and only
    replace the default, so that signals stay ignored (as under nohup) or handled by other code.
    """

    def __init__(self, on_termination: Callable[[], None] = lambda: None) -> None:
        self._on_termination = on_termination
        self._numbers: list[int] = []
        self._during_shutdown = 0
        self._closing = False
        self._skips_waits = False
        self._raised_at = -SIGNAL_DEBOUNCE_SECONDS
        self._replaced: dict[
            int, Callable[[int, FrameType | None], Any] | int | None
        ] = {}

    @property
    def exit_status(self) -> int | None:
        """Exit status by the shells' convention; None without a signal, and for Ctrl-C, which pytest handles."""
        others = [number for number in self._numbers if number != signal.SIGINT]
        return 128 + others[0] if others else None

    def skips_waits(self) -> bool:
        """Return whether a signal has arrived during the shutdown: it is not to wait for what others finish."""
        return self._skips_waits

    def install(self) -> None:
        """Handle the signals from here on; nothing in another thread than the main one."""
        if threading.current_thread() is not threading.main_thread():
            return

        for number in (getattr(signal, name) for name in SYSTEM.signals):
            if number in self._replaced:
                continue

            present = signal.getsignal(number)
            if present in {signal.SIG_DFL, signal.default_int_handler}:
                signal.signal(number, self._handle)
                self._replaced[number] = present

    def interrupt(self) -> None:
        """End the run as SIGTERM does, from another thread; nothing without our handlers, or on Windows."""
        if signal.SIGTERM in self._replaced:
            SYSTEM.interrupt_main_thread()

    def close(self) -> None:
        """Do not interrupt from here on: the run is shutting down."""
        self._closing = True

    def restore(self) -> None:
        """Restore the handlers of before."""
        # Emptied first: `interrupt` must not send what is no longer handled.
        while self._replaced:
            number, former = self._replaced.popitem()
            signal.signal(number, former)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True  # show where the run was interrupted
        self._numbers.append(number)

        if number != signal.SIGINT:
            self._on_termination()

        is_repeated = time.monotonic() - self._raised_at < SIGNAL_DEBOUNCE_SECONDS
        raises = not is_repeated
        if self._closing:
            self._during_shutdown += 1
            raises = self._during_shutdown == FORCE_AFTER_SIGNALS
            if not is_repeated:
                self._skips_waits = True

        # Not pytest.exit(): a test's "except Exception" would swallow its exception.
        if raises:
            self._raised_at = time.monotonic()
            raise KeyboardInterrupt

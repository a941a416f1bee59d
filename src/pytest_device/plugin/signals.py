"""SIGTERM and SIGHUP end a run in order, as Ctrl-C does: CI services and closed terminals send them."""

import signal
import threading
from types import FrameType
from typing import Final

NAMES: Final = ("SIGTERM", "SIGHUP")  # Windows knows no SIGHUP


class EndInOrder:
    """Raises KeyboardInterrupt at the first of these signals and lets the end it began take its time.

    Handlers are set in the main thread only, and only in place of the default, so that a signal that is ignored (as
    under nohup) or handled by somebody else stays so.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._replaced: list[int] = []

    @property
    def exit_status(self) -> int | None:
        """What the run ends with, as shells count it; None when no signal came."""
        return None if self._number is None else 128 + self._number

    def install(self) -> None:
        """Set the handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name, None) for name in NAMES):
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._handle)
                self._replaced.append(number)

    def restore(self) -> None:
        """Set the default again."""
        for number in self._replaced:
            signal.signal(number, signal.SIG_DFL)
        self._replaced.clear()

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # Not pytest.exit(): its exception is one that a test's "except Exception" would swallow.
        first, self._number = self._number is None, number
        if first:
            raise KeyboardInterrupt

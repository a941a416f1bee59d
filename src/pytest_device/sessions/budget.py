"""The device minutes that a run may use, and has used so far."""

import threading
from collections.abc import Callable
from typing import Final

from pytest_device.options import Options

_MINUTE: Final = 60.0


class Budget:
    """Counts a run's device minutes, boots included; ``clock`` is monotonic, in seconds, ``setting`` says who set them.

    Each process reports the beginning and the end of the use of its sessions when they happen. Their events would come
    too late: with the report of a test or, for sessions that no test gets, at the end of the run.
    """

    def __init__(
        self,
        minutes: float,
        clock: Callable[[], float],
        setting: str = Options.budget_minutes.flag,
    ) -> None:
        self.minutes = minutes
        self._setting = setting
        self._clock = clock
        self._began: dict[tuple[str, int], float] = {}
        """When the uses that last began, by process and number."""
        self._ended_seconds = 0.0
        """The use of sessions that have ended."""
        self._lock = threading.Lock()  # workers report from several threads

    def begin(self, process: str, number: int) -> None:
        """Count a session of a process from now on."""
        with self._lock:
            self._began[process, number] = self._clock()

    def end(self, process: str, number: int, seconds: float) -> None:
        """Count a session no longer, which was used for ``seconds``."""
        with self._lock:
            if self._began.pop((process, number), None) is not None:
                self._ended_seconds += seconds

    def lost(self, process: str) -> None:
        """Count the sessions of a process that is gone only until now: its reaper stops them."""
        with self._lock:
            now = self._clock()
            for use in [use for use in self._began if use[0] == process]:
                self._ended_seconds += now - self._began.pop(use)

    @property
    def used_minutes(self) -> float:
        """Return the device minutes so far, those of running sessions included."""
        with self._lock:
            now = self._clock()
            running_seconds = sum(now - began for began in self._began.values())

        return (running_seconds + self._ended_seconds) / _MINUTE

    def refusal(self) -> str:
        """Return why no more sessions are created, empty while minutes are left."""
        if self.used_minutes < self.minutes:
            return ""
        return f"the budget of {self.minutes:g} device minutes is used up ({self._setting})"

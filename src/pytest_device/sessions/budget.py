"""The device minutes that a run may use, and has used so far."""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from pytest_device.options import Options
from pytest_device.sessions.events import (
    Created,
    Gone,
    Kept,
    KeptWarm,
    Ready,
    Stopped,
    TakenOver,
    Unused,
)

_MINUTE: Final = 60.0
_Counted = Created | TakenOver | Ready | Stopped | KeptWarm | Gone | Kept


@dataclass(slots=True)
class _Use:
    """The use of a session by the process that has it now, or had it last."""

    began: float
    worker: str
    is_taken_over: bool = False
    """Whether another process, or an earlier run, created it."""
    earlier_seconds: float = 0.0
    """How long other processes of the run used it before, which kept it warm."""
    boot_seconds: float = 0.0
    seconds: float | None = None
    """How long the session was used, None while it runs."""

    def total(self, now: float) -> float:
        """Return the seconds that the run has used the session so far."""
        seconds = now - self.began if self.seconds is None else self.seconds
        return self.earlier_seconds + seconds


class Budget:
    """Counts a run's device minutes, from each create call until the session ended; ``clock`` is monotonic, in seconds.

    Events arrive with the reports of tests, those of prefetched sessions even later. ``begin`` is called when a create
    call succeeds, so that its session counts from then on. ``worker`` is empty for the only process of a run.
    """

    def __init__(self, minutes: float, clock: Callable[[], float]) -> None:
        self.minutes = minutes
        self._clock = clock
        self._unnamed: dict[str, list[float]] = defaultdict(list)
        """When sessions began whose events have not arrived, by worker."""
        self._lost_seconds = 0.0
        """The use of such sessions that have ended: their events arrive at the end of the run, or never."""
        self._uses: dict[str, _Use] = {}
        """By session ID."""
        self._lock = threading.Lock()  # workers ask from several threads

    def begin(self, worker: str) -> None:
        """Count a session of a process from now on."""
        with self._lock:
            self._unnamed[worker].append(self._clock())

    def unused(self, worker: str) -> None:
        """Count a session of a process only until now: it has ended without a test."""
        with self._lock:
            if unnamed := self._unnamed[worker]:
                self._lost_seconds += self._clock() - unnamed.pop(0)

    def lost(self, worker: str) -> None:
        """Count the sessions of a worker that is gone only until now: its reaper stops them."""
        with self._lock:
            now = self._clock()
            self._lost_seconds += sum(
                now - began for began in self._unnamed.pop(worker, ())
            )
            for use in self._uses.values():
                if use.worker == worker and use.seconds is None:
                    use.seconds = now - use.began

    def add(self, entry: object, worker: str = "") -> None:
        """Count an event of a session; those that the run does not pay for, and other entries, change nothing."""
        with self._lock:
            if isinstance(entry, _Counted):
                self._count(entry, entry.session.session_id, worker)
            elif isinstance(entry, Unused):
                self._forget(entry.session.session_id)

    def _count(self, entry: _Counted, session_id: str, worker: str) -> None:
        match entry:
            case Created():
                # Which of them it is makes no difference to the sum.
                unnamed = self._unnamed[worker]
                began = unnamed.pop(0) if unnamed else self._clock()
                self._uses[session_id] = _Use(began, worker)
            case TakenOver():
                now = self._clock()
                earlier = self._uses.get(session_id)
                earlier_seconds = earlier.total(now) if earlier else 0.0
                self._uses[session_id] = _Use(
                    now, worker, is_taken_over=True, earlier_seconds=earlier_seconds
                )
            case Ready(boot_seconds=boot):
                if session_id in self._uses:
                    self._uses[session_id].boot_seconds = boot or 0.0
            case Stopped(running_seconds=seconds, max_running_seconds=maximum):
                self._end(session_id, maximum if seconds is None else seconds)
            case KeptWarm(used_seconds=seconds):
                self._end(session_id, seconds)
            case Gone() | Kept():
                self._end(session_id, None)
            case _:
                assert_never(entry)

    def _forget(self, session_id: str) -> None:
        """Forget a session that was counted when it ended, by ``unused``."""
        use = self._uses.get(session_id)
        if use and not use.is_taken_over:
            del self._uses[session_id]

    def _end(self, session_id: str, seconds: float | None) -> None:
        use = self._uses.get(session_id)
        if use is None:
            return

        if seconds is None:
            use.seconds = self._clock() - use.began
        else:
            # The service's running time begins when the device has booted.
            use.seconds = use.boot_seconds + seconds

    @property
    def used_minutes(self) -> float:
        """Return the device minutes so far, those of running sessions included."""
        with self._lock:
            now = self._clock()
            running = sum(
                now - began for unnamed in self._unnamed.values() for began in unnamed
            )
            named = sum(use.total(now) for use in self._uses.values())

        return (running + named + self._lost_seconds) / _MINUTE

    @property
    def is_used_up(self) -> bool:
        return self.used_minutes >= self.minutes

    def refusal(self) -> str:
        """Return why no more sessions are created, empty while minutes are left."""
        if not self.is_used_up:
            return ""
        return f"the budget of {self.minutes:g} device minutes is used up ({Options.budget_minutes.flag})"

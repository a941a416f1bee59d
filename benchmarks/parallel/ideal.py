"""How long an ideal scheduler takes that knows no test's duration. Pure.

The model is that of the bounds: nothing but tests and boots takes time, and any worker can use any session. The
scheduler knows how many tests of each kind there are, the mean duration of all, and the boot times, but not how long a
single test takes. To it, all tests of a kind are alike, so it runs them in a random order:

- It boots as many sessions as the limit allows and tests can use, each for the kind that would end last.
- A free worker begins a test at once: one with a device if a session is free, otherwise one without.
- It stops a session without further tests of its kind, and boots one of the kind that would end last instead.

No test belongs to a worker before it begins. Without a limit, the sessions are as many as the tests: any worker finds
one for any test, at a price that nobody pays. With one session per worker, the price is that of a usual run.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from statistics import fmean
from typing import Final

from benchmarks.parallel.bounds import Work

_ORDERS: Final = 20
"""Number of random orders to average."""


@dataclass(slots=True)
class _Kind:
    """The tests of one kind of device, and its sessions."""

    boot: float
    mean: float
    tests: list[float]
    """Those that have not begun, in random order."""
    booting: int = 0
    ready: int = 0
    """Sessions that wait for a worker."""
    busy: int = 0

    def may_use_another(self) -> bool:
        """Return whether a test remains for one more session."""
        return len(self.tests) > self.booting + self.ready

    def expected_end(self) -> tuple[bool, float]:
        """Return a key that orders kinds by their expected end; those without a session end last."""
        sessions = self.booting + self.ready + self.busy
        work = self.mean * len(self.tests)
        return not sessions, self.boot + work / max(1, sessions)


class _Run:
    """One run in virtual time."""

    def __init__(
        self, kinds: list[_Kind], free: list[float], workers: int, sessions: float
    ) -> None:
        self._kinds = kinds
        self._free = free
        self._workers = workers
        """Number of workers without a test."""
        self._sessions = sessions
        """Number of sessions that may still boot."""
        self._now = 0.0
        self._ended = 0.0
        """When the last test ended; a boot may end later."""
        self.billed = 0.0
        """Seconds from the boot to the stop of all sessions."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def seconds(self) -> float:
        """Run all tests; return the seconds until the last one ends."""
        self._continue()
        while self._events:
            self._now, _, happen = heappop(self._events)
            happen()
            self._continue()
        return self._ended

    def _continue(self) -> None:
        """Begin tests, stop sessions that have none, and boot others."""
        while self._workers and self._begin():
            self._workers -= 1

        for kind in self._kinds:
            if not kind.tests:
                self._sessions += kind.ready
                self.billed += kind.ready * self._now
                kind.ready = 0

        while self._sessions and self._boot():
            self._sessions -= 1

    def _begin(self) -> bool:
        """Begin a test; return whether there is one."""
        usable = [kind for kind in self._kinds if kind.ready and kind.tests]
        if usable:
            kind = max(usable, key=_Kind.expected_end)
            kind.ready -= 1
            kind.busy += 1
            self._after(kind.tests.pop(), lambda: self._end(kind))
            return True

        if self._free:
            self._after(self._free.pop(), self._free_worker)
            return True

        return False

    def _end(self, kind: _Kind) -> None:
        kind.busy -= 1
        kind.ready += 1
        self._free_worker()

    def _free_worker(self) -> None:
        self._workers += 1
        self._ended = self._now

    def _boot(self) -> bool:
        """Boot a session for the kind that would end last; return whether any kind has a test for it."""
        kinds = [kind for kind in self._kinds if kind.may_use_another()]
        if not kinds:
            return False

        last = max(kinds, key=_Kind.expected_end)
        last.booting += 1
        self.billed -= self._now
        self._after(last.boot, lambda: self._booted(last))
        return True

    def _booted(self, kind: _Kind) -> None:
        kind.booting -= 1
        kind.ready += 1

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heappush(self._events, (self._now + seconds, next(self._numbers), happen))


def ideal(work: Work, workers: int, sessions: int | None) -> tuple[float, float]:
    """Return the seconds and the billed seconds with a limit of sessions (None: no limit), as means of several orders."""
    chance = random.Random(0)
    mean = fmean(seconds for tests in work.tests.values() for seconds in tests)
    ends: list[float] = []
    bills: list[float] = []
    for _ in range(_ORDERS):
        kinds = [
            _Kind(work.boots[name], mean, chance.sample(tests, len(tests)))
            for name, tests in work.tests.items()
        ]
        free = chance.sample(work.free, len(work.free))
        run = _Run(kinds, free, workers, inf if sessions is None else sessions)
        ends.append(run.seconds())
        bills.append(run.billed)
    return fmean(ends), fmean(bills)

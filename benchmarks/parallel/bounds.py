"""Lower bounds for every scheduler: the least time, and the fewest boots and billed seconds for a given time. Pure.

The model: a worker runs one test at a time. A test runs without interruption, on a booted session of its own kind. A
session runs one test at a time. Boots need no worker, so any process may boot ahead. At most ``sessions`` exist at
once, each from the start of its boot to its stop. Nothing else takes time.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from math import ceil
from statistics import fmean
from typing import Final

PRECISION: Final = 1e-9
"""Of a time that is found by halving: the bound is too low by no more than this part of it."""

_ORDERS: Final = 200
"""Number of runs to average."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work in seconds: the tests of each kind of device, their boots, and tests without a device."""

    tests: Mapping[str, Sequence[float]]
    boots: Mapping[str, float]
    free: Sequence[float] = ()

    def of_devices(self) -> float:
        """Return the sum of all device tests."""
        return sum(map(sum, self.tests.values()))

    def sessions(self, within: float) -> Mapping[str, int] | None:
        """Return the minimum number of sessions of each kind to finish in a time, None if none suffice.

        Each runs its tests after its own boot, so that the time less the boot is all that one can hold.
        """
        if within <= max(self.boots.values()):
            return None
        room = {kind: within - boot for kind, boot in self.boots.items()}
        return {
            kind: max(1, ceil(round(sum(tests) / room[kind], 9)))
            for kind, tests in self.tests.items()
        }

    def occupied(self, sessions: Mapping[str, int]) -> float:
        """Return the seconds from create to stop of these sessions: their boots, and all device tests."""
        return self.of_devices() + sum(
            count * self.boots[kind] for kind, count in sessions.items()
        )


def least_seconds(work: Work, workers: int, sessions: int | None) -> float:
    """Return a time before which no scheduler can finish, with a limit of concurrent sessions (None: no limit).

    Every bound holds for itself, so that the largest does.
    """
    return max(
        *_by_workers(work, workers, sessions),
        _by_slots(work, sessions),
        *_by_longest(work, workers, sessions),
    )


def _by_workers(work: Work, workers: int, sessions: int | None) -> Iterator[float]:
    """Return the bound from the number of workers.

    All tests share the workers from the start on. Those of the kinds that boot no faster than some kind run after its
    boot, and no more of them at once than there are workers, or sessions.
    """
    yield (work.of_devices() + sum(work.free)) / workers
    lanes = min(workers, sessions or workers)
    for boot in work.boots.values():
        yield (
            boot
            + sum(
                sum(work.tests[kind]) for kind in work.boots if work.boots[kind] >= boot
            )
            / lanes
        )


def _by_slots(work: Work, sessions: int | None) -> float:
    """Return the bound from the session limit.

    As many sessions as a time needs at least, with their boots and all tests, lie within that time on so many slots as
    the limit allows. The longer the time, the fewer sessions and the more room: the shortest that can be is found by
    halving, from below.
    """
    if sessions is None:
        return 0.0
    impossible, possible = 0.0, work.occupied(dict.fromkeys(work.boots, 1))
    while possible - impossible > PRECISION * possible:
        middle = (impossible + possible) / 2
        needed = work.sessions(middle)
        if needed is not None and work.occupied(needed) <= sessions * middle:
            possible = middle
        else:
            impossible = middle
    return impossible


def _by_longest(work: Work, workers: int, sessions: int | None) -> Iterator[float]:
    """Return the bound from single tests, which can't be split.

    The longest of a kind follows a boot of it. Of the n * lanes + 1 longest device tests some n + 1 run on one lane,
    one after the other, and these are no shorter than the n + 1 shortest of them.
    """
    yield max(work.free, default=0.0)
    yield max(work.boots[kind] + max(tests) for kind, tests in work.tests.items())
    lanes = min(workers, sessions or workers)
    longest = sorted(
        (seconds for tests in work.tests.values() for seconds in tests), reverse=True
    )
    for n in range(1, (len(longest) - 1) // lanes + 1):
        yield min(work.boots.values()) + sum(longest[n * lanes - n : n * lanes + 1])


def unknowing_seconds(work: Work, workers: int, sessions: int | None) -> float:
    """Return a time that no scheduler without known durations beats on average.

    To such a scheduler all tests are alike, so its order is independent of their durations: random,
    each test to the first free worker. The model is easier than reality: any device runs tests of any kind, all
    are there as soon as the fastest boots, and tests without a device take no time.
    """
    chance, lanes = random.Random(0), min(workers, sessions or workers)
    tests = [seconds for of_kind in work.tests.values() for seconds in of_kind]
    ends: list[float] = []
    for _ in range(_ORDERS):
        free_at = [min(work.boots.values())] * lanes
        for seconds in chance.sample(tests, len(tests)):
            heapreplace(free_at, free_at[0] + seconds)
        ends.append(max(free_at))
    return max(fmean(ends), least_seconds(work, workers, sessions))


def least_boots(work: Work, within: float) -> int:
    """Return the minimum number of sessions to finish in a time. Raises ValueError if none suffice."""
    return sum(_needed(work, within).values())


def least_billed(work: Work, within: float) -> float:
    """Return the seconds from create to stop of all sessions at least to be done in a time; raises as before."""
    return work.occupied(_needed(work, within))


def _needed(work: Work, within: float) -> Mapping[str, int]:
    needed = work.sessions(within)
    if needed is None:
        raise ValueError(f"no device boots and is tested within {within} s")
    return needed

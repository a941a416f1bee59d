"""The benchmark suites: how many tests of which kinds, their durations, workers and session limits."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from benchmarks.parallel.bounds import Work, least_seconds

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "android_phone": {
        "platform": "android",
        "type": "agent-device",
        "device_identifier": "pixel_8",
    },
    "iphone": {
        "platform": "ios",
        "type": "agent-device",
        "device_identifier": "iPhone 16",
    },
    "android_appium": {
        "platform": "android",
        "type": "appium",
        "device_identifier": "pixel_8",
    },
    "ipad": {
        "platform": "ios",
        "type": "agent-device",
        "device_identifier": "iPad Air",
    },
    "android_tablet": {
        "platform": "android",
        "type": "agent-device",
        "device_identifier": "pixel_tablet",
    },
    "iphone_appium": {
        "platform": "ios",
        "type": "appium",
        "device_identifier": "iPhone SE",
    },
}
"""What a test requests. The n-th kind has 1/n as many tests as the first."""
BOOT_SECONDS: Final = (60.0, 0.25)
"""Median and sigma of the lognormal law by which each kind has its boot time, before it is scaled down.

All boots of a kind take the same time: else a policy that boots more often would have drawn other times.
"""
TEST_SECONDS: Final = (25.0, 0.7)
MODULE_TESTS: Final = 5
OF_ITS_KIND: Final = 0.75
"""Of a module's tests have the kind that the module is about; the others have any."""
SHORTEST_MEAN_SECONDS: Final = 0.5
"""Of the tests of a suite, as they are run: pytest and pytest-xdist take 5 to 8 ms of a CPU for each of them."""

POLL_SECONDS: Final = 0.05
"""The pace of polling, as it is run; slower where everything is."""

SECONDS_PER_WORKER: Final = 1.0
"""The least that a run takes for each of its workers, whose processes all start on the same few CPUs."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One suite and its width; ``sessions`` is the limit (None: no limit), ``free`` the part that needs no device."""

    tests: int
    kinds: int
    workers: int
    sessions: int | None = None
    free: float = 0.0

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        limit = f"-c{self.sessions}" if self.sessions else ""
        return f"t{self.tests}-k{self.kinds}-w{self.workers}{limit}{'-free' if self.free else ''}"

    def __str__(self) -> str:
        """Describe it."""
        free = f", {self.free:.0%} without a device" if self.free else ""
        limit = f"at most {self.sessions} sessions" if self.sessions else "no limit"
        kinds = "1 kind" if self.kinds == 1 else f"{self.kinds} kinds"
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"{self.tests} tests{free}, {kinds}, {workers}, {limit}"


CELLS: Final = (
    Cell(20, 1, 1),
    Cell(20, 2, 1, sessions=1),
    Cell(20, 2, 4),
    Cell(20, 3, 8, sessions=4),
    Cell(20, 6, 16),
    Cell(60, 1, 4),
    Cell(60, 3, 4, sessions=2),
    Cell(60, 6, 4, sessions=4),
    Cell(60, 4, 8, free=0.3),
    Cell(60, 3, 16, sessions=16),
    Cell(200, 1, 8),
    Cell(200, 3, 4),
    Cell(200, 3, 8, sessions=4, free=0.3),
    Cell(200, 3, 16, sessions=8),
    Cell(200, 6, 16),
    Cell(600, 6, 16, sessions=16),
    Cell(2000, 6, 16),
)
QUICK: Final = (Cell(20, 2, 4), Cell(60, 4, 8, free=0.3), Cell(60, 3, 16, sessions=16))


@dataclass(frozen=True, slots=True)
class Test:
    """One test: the kind of device it needs (None: none), the file it is in, how long it takes."""

    number: int
    module: int
    kind: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a cell, the boot times of the kinds that they need, and the pace of polling, in scaled seconds."""

    tests: Sequence[Test]
    boots: Mapping[str, float]
    poll_seconds: float = POLL_SECONDS

    def work(self, took: Mapping[int, float]) -> Work:
        """Return the work, with the seconds that each test actually took."""
        by_kind = {
            kind: [took[one.number] for one in self.tests if one.kind == kind]
            for kind in self.boots
        }
        return Work(
            by_kind,
            self.boots,
            [took[one.number] for one in self.tests if one.kind is None],
        )


def suite_of(cell: Cell, least: float, times: float = 1.0, variant: str = "") -> Suite:
    """Generate the suite of a cell, always the same one, scaled so that no run can take less than ``least`` seconds.

    It takes longer where workers are so many, or tests would be so short, that the work of pytest itself counts, and
    all of that ``times`` as long. Each ``variant`` has other random durations.
    """
    chance = random.Random(cell.name + variant)
    tests = _tests(cell, chance)
    needed = {one.kind for one in tests}
    boots = {
        kind: chance.lognormvariate(0, BOOT_SECONDS[1]) * BOOT_SECONDS[0]
        for kind in KINDS
    }
    suite = Suite(
        tests, {kind: seconds for kind, seconds in boots.items() if kind in needed}
    )
    took = {one.number: one.seconds for one in tests}
    bound = least_seconds(suite.work(took), cell.workers, cell.sessions)
    least = max(least, SECONDS_PER_WORKER * cell.workers)
    factor = max(least / bound, SHORTEST_MEAN_SECONDS * len(took) / sum(took.values()))
    return _scaled(suite, factor * times, POLL_SECONDS * times)


def _tests(cell: Cell, chance: random.Random) -> list[Test]:
    kinds = list(KINDS)[: cell.kinds]
    weights = list(accumulate(1 / (place + 1) for place in range(cell.kinds)))
    size = min(MODULE_TESTS, cell.tests // cell.kinds)
    # No kind is left out.
    about = kinds + chance.choices(kinds, cum_weights=weights, k=cell.tests // size)
    tests: list[Test] = []
    for number in range(cell.tests):
        module, place = divmod(number, size)
        (other,) = chance.choices(kinds, cum_weights=weights)
        has_its_kind, is_free = (
            chance.random() < OF_ITS_KIND,
            chance.random() < cell.free,
        )
        kind = about[module] if place == 0 or has_its_kind else other
        seconds = chance.lognormvariate(0, TEST_SECONDS[1]) * TEST_SECONDS[0]
        tests.append(Test(number, module, None if place and is_free else kind, seconds))
    return tests


def _scaled(suite: Suite, factor: float, poll_seconds: float) -> Suite:
    tests = [
        Test(one.number, one.module, one.kind, one.seconds * factor)
        for one in suite.tests
    ]
    return Suite(
        tests,
        {kind: seconds * factor for kind, seconds in suite.boots.items()},
        poll_seconds,
    )

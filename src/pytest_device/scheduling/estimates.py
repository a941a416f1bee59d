"""Estimates the durations of tests and boots from the known ones. Pure."""

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    MutableSequence,
    Sequence,
)
from heapq import heapify, heapreplace
from itertools import islice
from math import inf
from typing import Final

BOOT_SECONDS: Final = 60.0
"""Default boot time: emulators and simulators in CI take about a minute, and overestimating costs less than
underestimating, which would boot a device for each worker at once."""
TEST_SECONDS: Final = 15.0
"""Default duration of a test with a device: a few taps, each with a wait. With a boot of a minute, a worker then gets
at least four tests per device."""
PLAIN_SECONDS: Final = 0.1
"""Default duration of a test without a device: negligible, but not zero, so that many of them add up."""
MAX_WEIGHED_UNITS: Final = 200
"""Maximum number of units that are weighed individually: limits the cost of decisions in a long run, where single units
make no difference. A longer queue counts as arbitrarily divisible work."""

Family = Hashable
"""A set of tests that probably take about as long, such as the cases of one function."""
Families = Callable[[int], Sequence[Family]]
"""Returns the families of a test, the largest first."""


def no_families(_test: int) -> Sequence[Family]:
    """Return no families: each unknown test is estimated from all others."""
    return ()


class Estimates:
    """The known durations of tests and boots, and guesses for the unknown ones.

    Tests are ``plain`` if they need no device: their durations say nothing about those with one.

    Arguments:
        seconds: the duration of each test, None if unknown.
        boots: the boot time of each model, None if unknown. Its owner may fill it in at any time.
        families: the families from whose known tests an unknown one is estimated.
    """

    def __init__(
        self,
        seconds: Sequence[float | None],
        boots: MutableSequence[float | None],
        families: Families = no_families,
    ) -> None:
        self._seconds = list(seconds)
        self._boots = boots
        self._families = families
        self._sums = {False: (0.0, 0), True: (0.0, 0)}
        """Total seconds and number of the tests with known durations: with devices, and without."""
        self._sums_of_families: Mapping[bool, dict[Family, tuple[float, int]]] = {
            False: {},
            True: {},
        }
        """The same of each family that has any."""
        self._uncounted: list[tuple[int, bool]] = []
        """Known tests that the sums of families don't include yet: if all tests are known, nothing needs these."""
        self.learned = 0
        """Number of tests whose duration became known during the run."""

    def add(self, tests: Iterable[int], *, plain: bool) -> None:
        """Include the known durations of these tests in the estimate for others."""
        known = [test for test in tests if self.is_known(test)]
        if not known:
            return

        total, number = self._sums[plain]
        self._sums[plain] = total + sum(self.known(known)), number + len(known)
        self._uncounted += [(test, plain) for test in known]

    def learn(self, test: int, seconds: float, *, plain: bool) -> None:
        """Record a test's duration, unless it was known."""
        if self._seconds[test] is None:
            self._seconds[test] = seconds
            self.learned += 1
            self.add((test,), plain=plain)

    def is_known(self, test: int) -> bool:
        return self._seconds[test] is not None

    def known(self, tests: Iterable[int]) -> Sequence[float]:
        """Return the durations of those tests whose duration is known."""
        return [
            seconds for test in tests if (seconds := self._seconds[test]) is not None
        ]

    def of(self, test: int, *, plain: bool) -> float:
        """Return the known or estimated duration of a test."""
        seconds = self._seconds[test]
        if seconds is None:
            return self._by_family(test, plain=plain)
        return seconds

    def _by_family(self, test: int, *, plain: bool) -> float:
        """Return the estimated duration of an unknown test: the mean of its smallest family that has known tests.

        Each mean includes that of the next larger family as one more test, so that a single known test counts half,
        and ten known tests nearly alone.
        """
        if self._uncounted:
            self._count_families()

        seconds = self.mean(plain=plain)
        sums = self._sums_of_families[plain]
        # Without splitting the node IDs of a large suite's first run.
        if not sums:
            return seconds

        for family in self._families(test):
            if family in sums:
                total, number = sums[family]
                seconds = (total + seconds) / (number + 1)

        return seconds

    def _count_families(self) -> None:
        """Include the tests that became known since the last call."""
        for test, plain in self._uncounted:
            sums = self._sums_of_families[plain]
            seconds = self.of(test, plain=plain)
            for family in self._families(test):
                total, number = sums.get(family, (0.0, 0))
                sums[family] = total + seconds, number + 1

        self._uncounted.clear()

    def total(self, tests: Sequence[int], *, plain: bool) -> float:
        """Return the known or estimated duration of several tests."""
        if not self._uncounted and not any(self._sums_of_families.values()):
            return len(tests) * self.mean(plain=plain)  # no test is known

        return sum([self.of(test, plain=plain) for test in tests])

    def mean(self, *, plain: bool) -> float:
        """Return the mean of the known tests, or a default without any."""
        total, number = self._sums[plain]
        if number:
            return total / number

        return PLAIN_SECONDS if plain else TEST_SECONDS

    def is_boot_known(self, model: int) -> bool:
        return self._boots[model] is not None

    def boot(self, model: int) -> float:
        """Return a model's boot time; if unknown, the median of the other models."""
        seconds = self._boots[model]
        if seconds is not None:
            return seconds

        known = sorted(seconds for seconds in self._boots if seconds is not None)
        return known[len(known) // 2] if known else BOOT_SECONDS

    def confirm(self, models: Iterable[int]) -> None:
        """Count the estimated boot times of models as known."""
        for model in models:
            self._boots[model] = self.boot(model)

    def boots(self) -> Sequence[float]:
        """Return the known or estimated boot time of each model."""
        return [self.boot(model) for model in range(len(self._boots))]


def next_piece_for(
    free_in: float, others: Iterable[float], lengths: Iterator[float]
) -> int | None:
    """Return the index of the first piece of work that goes to a worker, None if other workers get all pieces.

    Each piece goes to the worker that is free first.

    >>> next_piece_for(25, [0, 10], iter([40, 20, 5]))
    2

    Arguments:
        free_in: the seconds after which the worker is free.
        others: the same of each other worker.
        lengths: the seconds of each piece, in the order in which they are assigned.
    """
    others = list(others)
    heapify(others)

    weighed = 0
    for length in islice(lengths, MAX_WEIGHED_UNITS):
        if not others or free_in <= others[0]:
            return weighed

        heapreplace(others, others[0] + length)
        weighed += 1

    # The rest is not weighed: so much work is enough for every worker.
    return weighed - 1 if weighed == MAX_WEIGHED_UNITS else None


def finish_time_divisible(free_in: Sequence[float], work: float) -> float:
    """Return when arbitrarily divisible work is done by workers that are free in ``free_in`` seconds.

    Infinity without workers.

    >>> finish_time_divisible([0, 10, 100], 50)
    30.0
    """
    end = inf
    busy = 0.0
    for number, seconds in enumerate(sorted(free_in), 1):
        if seconds >= end:
            break  # the work is done before this worker is free

        busy += seconds
        end = (work + busy) / number

    return end


def end_of(free_in: Sequence[float], lengths: Iterator[float]) -> float:
    """Return when the last of these pieces of work is done, if each goes to the worker that is free first.

    >>> end_of([0, 10], iter([40, 20, 15]))
    45
    """
    ends = list(free_in)
    heapify(ends)
    for length in lengths:
        heapreplace(ends, ends[0] + length)

    return max(ends)

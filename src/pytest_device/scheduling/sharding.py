"""Splits tests into equal parts, based on their durations and the boots of each part. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

BOOT: Final = 60_000
"""Assumed milliseconds of a boot: measured boot times would differ between machines."""
_PERCENT: Final = (100, 102, 105, 110)
"""Percentages of the smallest possible limit of a shard: a little more may save a boot, a tenth is the most to wait
for."""


@dataclass(frozen=True, slots=True)
class ItemCost:
    """The work that a test adds to its shard: its milliseconds, and one boot per group; None needs no device."""

    nodeid: str
    group: Hashable | None
    milliseconds: int


def split(tests: Sequence[ItemCost], count: int) -> list[int]:
    """Return the index of the shard, from 0 to ``count - 1``, for each test.

    The tests of a group are spread over as few shards as shorten the longest one. The result depends neither on the
    order of the tests nor on rounding: each machine splits the suite by itself. No shard is empty if there are enough
    tests.

    >>> split([ItemCost("test_a", "ios", 30_000), ItemCost("test_b", None, 1_000)], 2)
    [0, 1]
    """
    order = sorted(range(len(tests)), key=lambda index: tests[index].nodeid)
    groups: dict[Hashable | None, list[int]] = {}
    for index in order:
        groups.setdefault(tests[index].group, []).append(index)

    plain = groups.pop(None, [])
    by_length = sorted(
        groups.values(),
        key=lambda group: -sum(tests[index].milliseconds for index in group),
    )

    limits = {
        limit * percent // 100
        for limit in _limits(tests, by_length, count)
        for percent in _PERCENT
    }
    plans = [
        _whole(tests, by_length, count),
        *(_cut(tests, by_length, count, limit) for limit in sorted(limits)),
    ]
    for plan in plans:
        plan.fill(plain)
        plan.leave_none_empty(order)

    # Of equal plans the first, which is the same on each machine.
    best = min(plans, key=lambda plan: plan.cost())
    return [best.shards[index] for index in range(len(tests))]


class _Plan:
    """An assignment of tests to shards."""

    def __init__(self, tests: Sequence[ItemCost], count: int) -> None:
        self._tests = tests
        self._groups: list[set[Hashable]] = [set() for _ in range(count)]
        self.loads = [0] * count
        self.shards: dict[int, int] = {}

    def added_cost(self, shard: int, index: int) -> int:
        """Return the milliseconds that a test adds to a shard, with a boot if it is the first of its group there."""
        test = self._tests[index]
        if test.group is None or test.group in self._groups[shard]:
            return test.milliseconds

        return test.milliseconds + BOOT

    def put(self, shard: int, index: int) -> None:
        """Assign a test to a shard."""
        self.loads[shard] += self.added_cost(shard, index)
        self.shards[index] = shard
        group = self._tests[index].group
        if group is not None:
            self._groups[shard].add(group)

    def cost(self) -> int:
        """Return the plan's cost: the total time of all machines until the last one ends, and the boot time."""
        return max(self.loads) * len(self.loads) + BOOT * sum(map(len, self._groups))

    def fill(self, plain: Sequence[int]) -> None:
        """Put tests without a device into the least loaded shards, longest first."""
        heap = [(load, shard) for shard, load in enumerate(self.loads)]
        heapify(heap)

        for index in sorted(plain, key=lambda index: -self._tests[index].milliseconds):
            _, shard = heap[0]
            self.put(shard, index)
            heapreplace(heap, (self.loads[shard], shard))

    def leave_none_empty(self, order: Sequence[int]) -> None:
        """Move a test from the largest shard to each empty one: pytest treats a run without tests as an error."""
        tests_of: list[list[int]] = [[] for _ in self.loads]
        for index in order:
            tests_of[self.shards[index]].append(index)

        for shard, tests in enumerate(tests_of):
            if tests:
                continue

            giving = max(range(len(tests_of)), key=lambda other: len(tests_of[other]))
            if len(tests_of[giving]) <= 1:
                return  # fewer tests than shards

            # The last is moved: one without a device, if there is one.
            tests_of[giving].sort(key=lambda index: self._tests[index].group is None)
            tests.append(tests_of[giving].pop())
            self._fill_again(shard, tests)
            self._fill_again(giving, tests_of[giving])

    def _fill_again(self, shard: int, tests: Sequence[int]) -> None:
        """Replace the tests of a shard."""
        self.loads[shard] = 0
        self._groups[shard] = set()
        for index in tests:
            self.put(shard, index)


def _limits(
    tests: Sequence[ItemCost], by_length: Sequence[Sequence[int]], count: int
) -> tuple[int, int]:
    """Return the smallest possible limits of a shard: with device tests only, and with all tests."""
    work = sum(test.milliseconds for test in tests)

    # A binary search, from nothing to a boot for each test.
    low, high = 0, work + BOOT * len(tests)
    while low < high:
        limit = (low + high) // 2
        if max(_cut(tests, by_length, count, limit).loads) > limit:
            low = limit + 1
        else:
            high = limit

    average = (work + BOOT * len(by_length)) // count
    return low, max(low, average)


def _whole(
    tests: Sequence[ItemCost], by_length: Sequence[Sequence[int]], count: int
) -> _Plan:
    """Put each group into one shard, the longest first, where the load is smallest."""
    plan = _Plan(tests, count)
    for group in by_length:
        shard = plan.loads.index(min(plan.loads))
        for index in group:
            plan.put(shard, index)

    return plan


def _cut(
    tests: Sequence[ItemCost],
    by_length: Sequence[Sequence[int]],
    count: int,
    limit: int,
) -> _Plan:
    """Fill one shard after the other up to a limit, and the last one with the rest."""
    plan = _Plan(tests, count)
    shard = 0
    for group in by_length:
        for index in group:
            load = plan.loads[shard]
            is_full = load > 0 and load + plan.added_cost(shard, index) > limit
            if is_full and shard < count - 1:
                shard += 1
            plan.put(shard, index)

    return plan

"""What there is to run: tests by the devices they need and the fixtures they share, and in which order. Pure."""

from collections import defaultdict
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from pytest_device.scheduling.dispatcher import Dealer, Kind, Unit

if TYPE_CHECKING:
    from pytest_device.scheduling.history import History


@dataclass(frozen=True, slots=True)
class Lineup:
    """The tests of a run in the suite's order, in values that any process can be told."""

    kinds: Sequence[tuple[tuple[int, ...], tuple[int, ...], bool, bool]]
    """What each ``Kind`` is made of."""
    models: Sequence[str]
    """The keys by which boots are remembered."""
    tests: Sequence[tuple[int, int]]
    """Of each test its kind, and the number of those with whom it shares fixtures, -1 when it does with nobody."""
    may_order: bool
    """Whether nobody else has ordered the tests."""

    def plain(self) -> tuple[Any, ...]:
        """Return what another process makes it of."""
        return self.kinds, self.models, self.tests, self.may_order

    def has_devices(self) -> bool:
        """Tell whether any test needs one."""
        return any(needs for needs, *_ in self.kinds)

    def most_at_once(self) -> int:
        """Return how many devices the test with most of them has."""
        return max((len(needs) for needs, *_ in self.kinds), default=0)

    def dealer(
        self,
        nodeids: Sequence[str],
        history: "History",
        boots: MutableSequence[float | None],
        *,
        width: int,
        most: float = inf,
        fresh_ahead: int = 0,
    ) -> Dealer[Any]:
        """Return what deals the tests to so many workers; ``boots`` is to hold ``self.boots(history)``."""
        kinds = [Kind(*values) for values in self.kinds]
        return Dealer(
            kinds,
            self._alone() if width == 1 else self._beside_each_other(width),
            [history.test_seconds(nodeid) for nodeid in nodeids],
            boots,
            width=width,
            most=most,
            longest_first=width > 1 and self.may_order,
            fresh_ahead=fresh_ahead,
        )

    def boots(self, history: "History") -> list[float | None]:
        """Return how long each model boots, None where that is not known."""
        return list(map(history.usual_boot, self.models))

    def _alone(self) -> list[Unit]:
        """Keep kinds together in the suite's order, and those that share fixtures with the first that has a device."""
        kinds: dict[int, int] = {}
        for kind, bond in self.tests:
            if bond >= 0 and not (kinds.get(bond) and self._has_device(kinds[bond])):
                kinds[bond] = kind
        units: dict[tuple[int, int], list[int]] = defaultdict(list)
        for test, (kind, bond) in enumerate(self.tests):
            of_unit = kinds.get(bond, kind)
            # Those without devices one by one: so many are taken as fill a boot.
            units[of_unit, -1 if self._has_device(of_unit) else bond if bond >= 0 else -2 - test].append(test)
        return [Unit(kind, tuple(tests)) for (kind, _), tests in units.items()]

    def _beside_each_other(self, width: int) -> list[Unit]:
        """Keep those together that share fixtures and devices, as far as that leaves something for everybody."""
        units: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for test, (kind, bond) in enumerate(self.tests):
            units[(test,) if bond < 0 else (-1, bond, kind)].append(test)
        sizes = defaultdict[int, int](int)
        for kind, _ in self.tests:
            sizes[kind] += 1
        return [
            unit
            for tests in units.values()
            for unit in self._cut(tests, max(1, sizes[self._kind(tests[0])] // (2 * width)))
        ]

    def _cut(self, tests: Sequence[int], most: int) -> Iterator[Unit]:
        kind = self._kind(tests[0])
        if not self.kinds[kind][2]:  # which one worker has to itself
            most = len(tests)
        for first in range(0, len(tests), most):
            yield Unit(kind, tuple(tests[first : first + most]))

    def _kind(self, test: int) -> int:
        return self.tests[test][0]

    def _has_device(self, kind: int) -> bool:
        return bool(self.kinds[kind][0])


class Numbers(dict[Any, int]):
    """Numbers in the order of asking."""

    def __missing__(self, key: Any) -> int:
        return self.setdefault(key, len(self))


@dataclass(frozen=True, slots=True)
class Step:
    """One test of a run as it is expected to go; times are seconds from its begin."""

    worker: int
    test: int
    kind: int
    begins: float
    """After the wait for its devices."""
    ends: float


def played(dealer: Dealer[int], width: int) -> list[Step]:
    """Return how a run of so many workers would go if everything took as long as is expected."""
    for worker in range(width):
        dealer.join(worker)
    steps: list[Step] = []
    ends: list[tuple[float, int]] = []
    running: set[int] = set()
    now, is_over = 0.0, set[int]()
    while True:
        is_over |= {worker for worker, _, ends_here in dealer.deal(now) if ends_here}
        for worker in set(range(width)) - running:
            hand = dealer.hand(worker)
            if hand and (len(hand) > 1 or worker in is_over):
                begins = now + dealer.wait(hand[0])
                steps.append(Step(worker, hand[0].test, hand[0].kind, begins, begins + dealer.expected(hand[0])))
                heappush(ends, (steps[-1].ends, worker))
                running.add(worker)
        if not ends:
            return steps
        now, worker = heappop(ends)
        running.remove(worker)
        first = dealer.hand(worker)[0]
        dealer.estimates.confirm(first.boots)
        dealer.done(worker, first.test, None, now)


def in_order(lineup: Lineup, nodeids: Sequence[str], history: "History") -> list[int]:
    """Return the tests in the order in which one process runs them: first all those without a device.

    They cost nothing, and the first device boots beside the last of them.
    """
    dealer: Dealer[None] = lineup.dealer(nodeids, history, lineup.boots(history), width=1)
    dealer.join(None)
    order: list[int] = []
    while dealt := [test for _, tests, _ in dealer.deal(0.0) for test in tests]:
        order += dealt
        for test in dealt:
            dealer.done(None, test, None, 0.0)
    return sorted(order, key=dealer.has_devices)

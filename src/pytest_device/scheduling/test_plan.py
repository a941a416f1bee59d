"""The tests to run, grouped by needed devices and shared fixtures, in order. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pytest_device.scheduling.dispatcher import Dispatcher
from pytest_device.scheduling.estimates import Families, no_families
from pytest_device.scheduling.work import DeviceGroup, Limits, Unit

if TYPE_CHECKING:
    from pytest_device.scheduling.history import History


NO_BOND: Final = -1
"""Bond of a test that shares no fixtures."""
_ALL: Final = -2
"""Bond of tests that stay together because they need the same devices."""
_UNITS_FOR_EACH: Final = 2
"""Minimum number of units per worker into which the largest group of tests with shared fixtures is split: with one
each, the first idle worker could not take over tests from others."""


@dataclass(frozen=True, slots=True)
class TestPlan:
    """The tests of a run in the suite's order, as values that can be sent to any process."""

    __test__: ClassVar[bool] = False  # pytest would collect a class with such a name

    groups: Sequence[DeviceGroup]
    models: Sequence[str]
    """Keys under which boot times are stored."""
    tests: Sequence[tuple[int, int]]
    """Group and bond of each test: tests with the same bond share fixtures."""
    may_order: bool
    """Whether no other plugin has ordered the tests."""
    whole_bonds: Sequence[int] = ()
    """Bonds whose tests run on one worker in any case."""
    sizes: Sequence[int] = ()
    """Size of each test's code, 0 if unknown; empty if no size is known."""

    def to_wire(self) -> str:
        """Serialize for ``from_wire`` in another process: execnet takes eight times as long for the values."""
        groups = [
            (
                group.requirements,
                group.models,
                group.is_shareable,
                group.is_unshared,
            )
            for group in self.groups
        ]
        return json.dumps(
            (
                groups,
                self.models,
                self.tests,
                self.may_order,
                self.whole_bonds,
                self.sizes,
            )
        )

    @classmethod
    def from_wire(cls, text: str) -> Self:
        """Parse a plan that another process sent."""
        values, models, tests, may_order, whole_bonds, sizes = json.loads(text)
        groups = [
            DeviceGroup(tuple(requirements), tuple(model_of), *flags)
            for requirements, model_of, *flags in values
        ]
        return cls(groups, models, tests, may_order, whole_bonds, sizes)

    def has_devices(self) -> bool:
        """Return whether any test needs a device."""
        return any(group.requirements for group in self._used())

    def max_devices(self) -> int:
        """Return the maximum number of devices that a test needs."""
        return max((len(group.requirements) for group in self._used()), default=0)

    def _used(self) -> Iterator[DeviceGroup]:
        """Yield the groups that have tests: other plugins may deselect tests after grouping."""
        numbers = {group for group, _ in self.tests}
        return (self.groups[number] for number in numbers)

    def dispatcher(
        self,
        nodeids: Sequence[str],
        history: "History",
        boots: MutableSequence[float | None],
        limits: Limits,
        *,
        guess: bool = True,
    ) -> Dispatcher[Any]:
        """Return a dispatcher of these tests.

        Arguments:
            nodeids: the node ID of each test, by which ``history`` knows durations.
            history: the durations of earlier runs.
            boots: the boot times, ``self.boots(history)`` at first. The caller may fill them in at any time.
            limits: what the assignment must observe, with the number of workers.
            guess: whether to estimate unknown durations from tests that are alike.
        """
        width = limits.width
        units = (
            self._units_for_one_worker()
            if width == 1
            else self._units_for_workers(width)
        )

        seconds = [history.test_seconds(nodeid) for nodeid in nodeids]
        limits = replace(limits, longest_first=width > 1 and self.may_order)
        if limits.longest_first and None in seconds:
            # Later sorts are stable: they keep this order among tests of equal estimates.
            keys = self._keys_of_unknown(nodeids)
            for of_group in units:
                of_group.sort(key=lambda unit: keys[unit[0]])

        families = self._families(nodeids) if guess else no_families
        return Dispatcher(self.groups, units, seconds, boots, limits, families)

    def _keys_of_unknown(self, nodeids: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return a sort key for each test: the order of tests whose durations are estimated to be equal.

        One case of each function comes first, since it shows how long the others take while there is time to start
        the long ones early; of these, the one with the largest code, which probably does most.
        """
        cases: Counter[str] = Counter()
        keys: list[tuple[int, int]] = []
        for test, nodeid in enumerate(nodeids):
            function = _function(nodeid)
            keys.append((cases[function], -self._size(test)))
            cases[function] += 1

        return keys

    def _families(self, nodeids: Sequence[str]) -> Families:
        """Return the families of each test: code of similar size (up to twice), the file, the class, the function."""

        @cache
        def families(test: int) -> Sequence[int | str]:
            size = self._size(test).bit_length()
            function, bracket, _ = nodeids[test].partition("[")
            names = function.split("::")
            if not bracket:
                names.pop()  # no other test has this function
            return size, *accumulate(names, "{}::{}".format)

        return families

    def _size(self, test: int) -> int:
        return self.sizes[test] if self.sizes else 0

    def boots(self, history: "History") -> list[float | None]:
        """Return each model's boot time, None if unknown."""
        return [history.usual_boot(model) for model in self.models]

    def _units_for_one_worker(self) -> list[list[Unit]]:
        """Keep groups together in the suite's order, and those that share fixtures with the first that has a device."""
        group_of_bond: dict[int, int] = {}
        for group, bond in self.tests:
            if bond == NO_BOND:
                continue
            first = group_of_bond.setdefault(bond, group)
            if not self.groups[first].requirements:
                group_of_bond[bond] = group

        places: list[tuple[int, int]] = []
        for own_group, bond in self.tests:
            group = group_of_bond.get(bond, own_group)
            # Tests without devices stay separate, so that any number of them can fill a boot.
            places.append((group, _ALL if self.groups[group].requirements else bond))

        return self._units(places)

    def _units_for_workers(self, width: int) -> list[list[Unit]]:
        """Keep tests with shared fixtures and devices together, as long as that leaves a share for every worker.

        Tests with a whole bond, and those whose devices only one worker has, stay together in any case.
        """
        units = self._units(self.tests)
        whole = set(self.whole_bonds)
        for number, group in enumerate(self.groups):
            if not group.is_shareable:
                continue

            tests = sum(map(len, units[number]))
            max_size = max(1, tests // (_UNITS_FOR_EACH * width))
            pieces: list[Unit] = []
            for unit in units[number]:
                _, bond = self.tests[unit[0]]
                if bond in whole:
                    pieces.append(unit)
                else:
                    pieces += _split(unit, max_size)
            units[number] = pieces

        return units

    def _units(self, places: Iterable[tuple[int, int]]) -> list[list[Unit]]:
        """Return the units of each group: the tests with an equal group and bond, in the order of their first."""
        units: list[list[Unit]] = [[] for _ in self.groups]
        unit_of: dict[tuple[int, int], list[int]] = {}
        for test, (group, bond) in enumerate(places):
            if bond == NO_BOND:
                units[group].append([test])
            elif (group, bond) in unit_of:
                unit_of[group, bond].append(test)
            else:
                unit_of[group, bond] = [test]
                units[group].append(unit_of[group, bond])

        return units


def _split(unit: Unit, max_size: int) -> Iterator[Unit]:
    for first in range(0, len(unit), max_size):
        yield unit[first : first + max_size]


def _function(nodeid: str) -> str:
    """Return the node ID of a test's function, which is that of all its cases up to the parameters."""
    function, _, _ = nodeid.partition("[")
    return function


class Numbers(dict[Any, int]):
    """Numbers keys in the order of their first lookup."""

    def __missing__(self, key: Any) -> int:
        return self.setdefault(key, len(self))


def in_order(plan: TestPlan, nodeids: Sequence[str], history: "History") -> list[int]:
    """Return the tests in the order in which one process runs them: tests without a device first.

    These cost nothing, and the first device boots during the last of them.
    """
    if len({group for group, _ in plan.tests}) == 1:
        return list(range(len(plan.tests)))  # all on the same devices

    # Guesses would cost time in every process, and the order of whole groups does not depend on them.
    dispatcher: Dispatcher[None] = plan.dispatcher(
        nodeids, history, plan.boots(history), Limits(1), guess=False
    )
    dispatcher.add_worker(None)
    order: list[int] = []
    while True:
        assigned = [test for _, tests, _ in dispatcher.assign(0.0) for test in tests]
        if not assigned:
            return sorted(order, key=dispatcher.has_devices)

        order += assigned
        for test in assigned:
            dispatcher.done(None, test, None, 0.0)

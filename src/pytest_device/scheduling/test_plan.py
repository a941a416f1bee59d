"""The tests to run, grouped by needed devices and shared fixtures, in order. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pytest_device.scheduling.dispatcher import Dispatcher
from pytest_device.scheduling.estimates import Families
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
    """Size of each test's code; empty if unknown."""

    def to_wire(self) -> str:
        """Serialize for ``from_wire`` in another process: execnet takes eight times as long for the values."""
        groups = [
            (group.needs, group.models, group.is_shareable, group.is_unshared)
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
        groups, models, tests, may_order, whole_bonds, sizes = json.loads(text)
        known = [
            DeviceGroup(tuple(needs), tuple(of), *flags) for needs, of, *flags in groups
        ]
        return cls(known, models, tests, may_order, whole_bonds, sizes)

    def has_devices(self) -> bool:
        """Return whether any test needs a device."""
        return any(group.needs for group in self._used())

    def most_at_once(self) -> int:
        """Return the maximum number of devices that a test needs."""
        return max((len(group.needs) for group in self._used()), default=0)

    def _used(self) -> Iterator[DeviceGroup]:
        """Yield the groups that have tests: other plugins may deselect tests after grouping."""
        return (self.groups[number] for number in {group for group, _ in self.tests})

    def dispatcher(
        self,
        nodeids: Sequence[str],
        history: "History",
        boots: MutableSequence[float | None],
        limits: Limits,
    ) -> Dispatcher[Any]:
        """Return a dispatcher for ``limits.width`` workers; ``boots`` must hold ``self.boots(history)``."""
        width = limits.width
        units = (
            self._units_for_one_worker()
            if width == 1
            else self._units_for_workers(width)
        )
        seconds = [history.test_seconds(nodeid) for nodeid in nodeids]
        limits = replace(limits, longest_first=width > 1 and self.may_order)
        if limits.longest_first and None in seconds:
            first = self._first_of_functions(nodeids)
            for of_group in units:
                of_group.sort(key=lambda unit: first[unit[0]])

        families = self._families(nodeids)
        return Dispatcher(self.groups, units, seconds, boots, limits, families)

    def _first_of_functions(self, nodeids: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return a sort key for each test: the order of tests whose durations are estimated to be equal.

        One case of each function comes first, since it shows how long the others take while there is time to start
        the long ones early; of these, the one with the largest code, which probably does most.
        """
        numbers = defaultdict[str, int](int)
        keys: list[tuple[int, int]] = []
        for nodeid, size in zip(nodeids, self.sizes or repeat(0)):  # noqa: B905
            function = nodeid.partition("[")[0]
            keys.append((numbers[function], -size))
            numbers[function] += 1
        return keys

    def _families(self, nodeids: Sequence[str]) -> Families:
        """Return the families of each test: code of similar size (up to twice), the file, the class, the function."""

        @cache
        def families(test: int) -> Sequence[int | str]:
            names = nodeids[test].partition("[")[0].split("::")
            nodes = accumulate(names, "{}::{}".format)
            size = self.sizes[test] if self.sizes else 0
            return [size.bit_length(), *nodes]

        return families

    def boots(self, history: "History") -> list[float | None]:
        """Return each model's boot time, None if unknown."""
        return list(map(history.usual_boot, self.models))

    def _units_for_one_worker(self) -> list[list[Unit]]:
        """Keep groups together in the suite's order, and those that share fixtures with the first that has a device."""
        groups: dict[int, int] = {}
        for group, bond in self.tests:
            if bond == NO_BOND:
                continue
            first = groups.setdefault(bond, group)
            if not self.groups[first].needs:
                groups[bond] = group
        places = [(groups.get(bond, group), bond) for group, bond in self.tests]
        # Tests without devices stay separate, so that any number of them can fill a boot.
        return self._units(
            (group, _ALL if self.groups[group].needs else bond)
            for group, bond in places
        )

    def _units_for_workers(self, width: int) -> list[list[Unit]]:
        """Keep tests with shared fixtures and devices together, as long as that leaves a share for every worker.

        Tests with a whole bond, and those whose devices only one worker has, stay together in any case.
        """
        units = self._units(self.tests)
        whole = set(self.whole_bonds)
        for number, (group, of_group) in enumerate(
            zip(self.groups, units, strict=True)
        ):
            if group.is_shareable:
                size = max(1, sum(map(len, of_group)) // (_UNITS_FOR_EACH * width))
                units[number] = [
                    piece
                    for unit in of_group
                    for piece in (
                        [unit] if self._bond(unit) in whole else _split(unit, size)
                    )
                ]
        return units

    def _bond(self, unit: Unit) -> int:
        _, bond = self.tests[unit[0]]
        return bond

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


def _split(unit: Unit, size: int) -> Iterator[Unit]:
    for first in range(0, len(unit), size):
        yield unit[first : first + size]


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

    dispatcher: Dispatcher[None] = plan.dispatcher(
        nodeids, history, plan.boots(history), Limits(1)
    )
    dispatcher.add_worker(None)
    order: list[int] = []
    while assigned := [
        test for _, tests, _ in dispatcher.assign(0.0) for test in tests
    ]:
        order += assigned
        for test in assigned:
            dispatcher.done(None, test, None, 0.0)
    return sorted(order, key=dispatcher.has_devices)

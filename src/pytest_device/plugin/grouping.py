"""Groups tests by the devices and shared fixtures that they need."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_device.options import Options
from pytest_device.plugin.markers import NODES, variant_of
from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.plugin.state import definitions_of, requirements_of
from pytest_device.scheduling.test_plan import NO_BOND, Numbers, TestPlan
from pytest_device.scheduling.work import DeviceGroup
from pytest_device.spec import Share

if TYPE_CHECKING:
    from pytest_device.sessions.request import DeviceRequirement


class Grouping:
    """Assigns tests to groups, each test only once: a suite may have tens of thousands.

    All numbers are given in the order of the tests, so that processes with the same collection agree on them.
    """

    def __init__(self) -> None:
        self.requirements = Numbers()
        """Numbers of requirements, by which processes refer to them."""
        self._models = Numbers()
        self._bonds = Numbers()
        self._whole_bonds: set[int] = set()
        self._groups = Numbers()
        self._group_of: dict[tuple[DeviceRequirement, ...], int] = {}
        self._known: dict[pytest.Item, tuple[int, int, int]] = {}

    def plan(self, items: Sequence[pytest.Item], *, may_order: bool) -> TestPlan:
        """Return the plan of these tests; ``may_order``: whether no other plugin has ordered them."""
        places = [self._known.get(item) or self._place(item) for item in items]
        tests = [(group, bond) for group, bond, _ in places]
        sizes = [size for _, _, size in places]

        return TestPlan(
            tuple(self._groups),
            tuple(self._models),
            tests,
            may_order,
            sorted(self._whole_bonds),
            sizes,
        )

    def _place(self, item: pytest.Item) -> tuple[int, int, int]:
        """Return the group, the bond and the size of a test."""
        requirements = tuple(requirements_of(item).values())
        group = self._group_of.get(requirements)
        if group is None:
            group = self._group_of[requirements] = self._groups[
                self._group(requirements)
            ]

        bond, is_whole = _bond(item)
        bond_number = NO_BOND if bond is None else self._bonds[bond]
        if is_whole:
            self._whole_bonds.add(bond_number)

        place = self._known[item] = (group, bond_number, _size(item))
        return place

    def _group(self, requirements: "Iterable[DeviceRequirement]") -> DeviceGroup:
        """Return the group of tests with these requirements."""
        # Sorted: tests that name the same devices in another order are in the same group.
        ordered = sorted(requirements, key=self.requirements.__getitem__)
        shares = {requirement.share for requirement in ordered}

        return DeviceGroup(
            tuple(self.requirements[requirement] for requirement in ordered),
            tuple(
                self._models[requirement.request.boot_key] for requirement in ordered
            ),
            is_shareable=shares <= {Share.RUN},
            is_unshared=Share.TEST in shares,
        )


def needless_starts(items: Iterable[pytest.Item]) -> Iterator[str]:
    """Yield a line for each driver that tests share and that starts anew only because of their order, with the cure."""
    for fixture, scope in SCOPED_DRIVERS.items():
        starts = 0
        current: tuple[object, object] | None = None
        devices_of: dict[object, set[object]] = defaultdict(set)

        for item in items:
            node = _node_of(item, scope)
            if current and current[0] is not node:
                current = None  # its scope has ended
            if not _starts(item, fixture):
                continue

            devices = tuple(requirements_of(item).items())
            devices_of[node].add(devices)
            if current != (node, devices):
                current = (node, devices)
                starts += 1

        needed = sum(map(len, devices_of.values()))
        if starts > needed:
            alternates = any(len(devices) > 1 for devices in devices_of.values())
            cure = _cure(scope, alternates=alternates)
            yield f"the order of the tests starts {fixture} {starts} times where {needed} would do: {cure}"


def _node_of(item: pytest.Item, scope: str) -> object:
    """Return the node whose tests share a fixture of this scope."""
    return (item.getparent(NODES[scope]) or item) if scope in NODES else None


def _starts(item: pytest.Item, fixture: str) -> bool:
    """Return whether a test needs a driver of this fixture."""
    return (
        fixture in getattr(item, "fixturenames", ())
        and bool(requirements_of(item))
        and item.get_closest_marker("skip") is None
    )


def _cure(scope: str, *, alternates: bool) -> str:
    together = f"the tests of a {scope}" if scope in NODES else "all tests"
    if not alternates:
        return f"keep {together} together"

    return (
        f"keep {together} that run on the same platform together, or run one platform at a time with "
        f"{Options.platform.flag}"
    )


def _size(item: pytest.Item) -> int:
    """Return the size of a test function's code, 0 for other tests: the more it does, the longer it probably takes."""
    function = getattr(item, "function", None)
    # Behind a decorator such as mock's.
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return len(code.co_code) if code else 0


def _bond(item: pytest.Item) -> tuple[str | None, bool]:
    """Return the node whose fixtures a test shares with others, None if it shares none, and if it must not be split."""
    definitions = definitions_of(item)
    if not definitions:
        return None, False
    if parameter := _parameter_of_run(item, definitions):
        return parameter, False

    # A shared driver is restarted for another device: the tests for each device stay together.
    is_shared = not SCOPED_DRIVERS.keys().isdisjoint(definitions)
    variant = variant_of(item) if is_shared else ""
    scopes = {of_name[-1].scope for of_name in definitions.values() if of_name}
    # Fixtures of these scopes are torn down before a test of another node. The widest decides: it has the others' tests.
    for scope, node_type in NODES.items():
        node = item.getparent(node_type) if scope in scopes else None
        if node:
            # A test often continues where the previous one left the app of its class.
            is_whole = scope == "class" and "class_device_driver" in definitions
            return f"{node.nodeid} {variant}", is_whole

    return None, False


def _parameter_of_run(
    item: pytest.Item, definitions: Mapping[str, Sequence[Any]]
) -> str | None:
    """Return the parameters of session-scoped fixtures, which are set up again whenever a parameter changes."""
    indices: Mapping[str, int] = getattr(getattr(item, "callspec", None), "indices", {})
    parameters = [
        f"{name}={index}"
        for name, index in indices.items()
        if definitions.get(name) and definitions[name][-1].scope == "session"
    ]

    return " ".join(parameters) or None

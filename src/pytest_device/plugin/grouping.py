"""Tests by the devices that they need and the fixtures that they share, as the plan of a run has them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.plugin.state import needs_of
from pytest_device.scheduling.test_plan import NO_BOND, Numbers, TestPlan
from pytest_device.scheduling.work import DeviceGroup
from pytest_device.spec import Share

if TYPE_CHECKING:
    from pytest_device.sessions.requirement import DeviceRequirement

_SCOPES: Final = (("package", pytest.Package), ("module", pytest.Module), ("class", pytest.Class))
"""Fixtures of these scopes are torn down when the next test is elsewhere."""


def plan_of(items: Iterable[pytest.Item], needs: Numbers, *, may_order: bool) -> TestPlan:
    """Return what tests add up to; ``needs`` are numbered by the way."""
    from pytest_device.sessions.boots import boot_key

    models, bonds, groups = Numbers(), Numbers(), Numbers()

    def group_of(of_test: "Iterable[DeviceRequirement]") -> int:
        of_item = sorted(of_test, key=needs.__getitem__)
        shares = {need.sharing_key.partition(" ")[0] for need in of_item}
        group = DeviceGroup(
            tuple(needs[need] for need in of_item),
            tuple(models[boot_key(need.request)] for need in of_item),
            is_spread=shares <= {Share.RUN},
            is_fresh=Share.TEST in shares,
        )
        return groups[group]

    known: dict[tuple[DeviceRequirement, ...], int] = {}
    tests: list[tuple[int, int]] = []
    for item in items:
        of_test = tuple(needs_of(item).values())
        if of_test not in known:
            known[of_test] = group_of(of_test)
        bond = _bond(item)
        tests.append((known[of_test], NO_BOND if bond is None else bonds[bond]))
    return TestPlan(tuple(groups), tuple(models), tests, may_order)


def _bond(item: pytest.Item) -> str | None:
    """Return the node in which the fixtures live that a test shares with others, None when it has none such."""
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return None
    if parameter := _parameter_of_run(item, info.name2fixturedefs):
        return parameter
    scopes = {definitions[-1].scope for definitions in info.name2fixturedefs.values() if definitions}
    for scope, node_type in _SCOPES:
        if scope in scopes and (node := item.getparent(node_type)):
            return node.nodeid
    return None


def _parameter_of_run(item: pytest.Item, definitions: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the parameters of fixtures of the whole run, which are set up again for each change of a parameter."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    indices: Mapping[str, int] = callspec.indices
    wide = [name for name in indices if definitions.get(name) and definitions[name][-1].scope == "session"]
    return " ".join(f"{name}={indices[name]}" for name in wide) or None

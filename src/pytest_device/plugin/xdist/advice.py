"""Advice on the user's ``--dist``: its cost, and the devices that are no longer needed."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from pytest_device.scheduling.test_plan import TestPlan

_COSTS: Final = {
    "each": "runs every test on every worker, each with its own devices",
    "load": "assigns tests in order, so workers change devices: about 1.5 times the duration and cost",
    "loadscope": "keeps modules and classes on one worker, whatever their devices: about 1.5 times the duration",
    "loadfile": "keeps files on one worker, whatever their devices: about 1.5 times the duration",
    "loadgroup": "with one group per device runs all tests of a device on one worker: about twice the duration",
}
"""By the value of ``--dist``; measured by benchmarks/makespan.py."""


def dist_cost(dist: str, plan: TestPlan, nodeids: Sequence[str]) -> str:
    """Return the cost of a ``--dist`` value for these tests, empty if there is none."""
    if dist == "loadgroup" and not _has_groups(plan, nodeids):
        dist = "load"
    return _COSTS.get(dist, "") if _is_true(dist, plan) else ""


def _is_true(dist: str, plan: TestPlan) -> bool:
    """Return whether it has a cost: if all tests are in one group, or each in its own, no worker changes devices."""
    match dist:
        case "each" | "loadgroup":
            return plan.has_devices()
        case "load":
            return (
                sum(
                    bool(group.requirements) and not group.is_unshared
                    for group in plan.groups
                )
                > 1
            )
        case _:  # an unshared module or class stays on one worker anyway
            return (
                sum(
                    bool(group.requirements) and group.is_shareable
                    for group in plan.groups
                )
                > 1
            )


def _has_groups(plan: TestPlan, nodeids: Sequence[str]) -> bool:
    """Return whether device tests are in groups, which pytest-xdist appends to their node IDs."""
    return any(
        plan.groups[group].requirements and nodeid.rfind("@") > nodeid.rfind("]")
        for nodeid, (group, _) in zip(nodeids, plan.tests, strict=True)
    )


class RemainingNeeds:
    """The requirements of the tests that have not started."""

    def __init__(self, plan: TestPlan, nodeids: Sequence[str]) -> None:
        self._tests: dict[int, set[str]] = defaultdict(set)
        self._requirements: dict[str, tuple[int, ...]] = {}
        for nodeid, (group, _) in zip(nodeids, plan.tests, strict=True):
            self._requirements[nodeid] = plan.groups[group].requirements
            for requirement in self._requirements[nodeid]:
                self._tests[requirement].add(nodeid)

    def count_started(self, nodeid: str) -> list[int]:
        """Count a test as started; return the requirements that no other test has."""
        over: list[int] = []
        for requirement in set(self._requirements.pop(nodeid, ())):
            self._tests[requirement].discard(nodeid)
            if not self._tests[requirement]:
                over.append(requirement)

        return over

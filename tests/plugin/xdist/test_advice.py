"""What is said of ``--dist``, by what the tests need."""

import pytest

from pytest_device.plugin.xdist.advice import trap
from pytest_device.scheduling.test_plan import Lineup

PLAIN = ((), (), True, False)
ANDROID, IOS = ((0,), (0,), True, False), ((1,), (1,), True, False)
OF_MODULES = ((0,), (0,), False, False), ((1,), (0,), False, False)
OF_TESTS = ((0,), (0,), False, True), ((1,), (0,), False, True)
ALL = ["each", "load", "loadscope", "loadfile", "loadgroup"]

Kinds = tuple[tuple[tuple[int, ...], tuple[int, ...], bool, bool], ...]


def said(dist: str, kinds: Kinds, group: str = "") -> str:
    """Return what is said where each kind has one test."""
    tests = [(kind, -1) for kind in range(len(kinds))]
    return trap(
        dist, Lineup(kinds, ("android", "ios"), tests, may_order=True), [f"test_it.py::test_{group}"] * len(tests)
    )


@pytest.mark.parametrize(
    ("kinds", "costs"),
    [
        ((PLAIN,), []),
        ((PLAIN, ANDROID), ["each"]),
        ((ANDROID, IOS), ALL),
        (OF_MODULES, ["each", "load", "loadgroup"]),
        (OF_TESTS, ["each"]),
    ],
    ids=["no device", "one kind", "two kinds", "a device for each module", "a device for each test"],
)
def test_a_cost_is_told_only_of_what_makes_workers_change_devices(kinds: Kinds, costs: list[str]) -> None:
    assert [dist for dist in [*ALL, "worksteal"] if said(dist, kinds)] == costs


def test_groups_leave_one_kind_to_one_worker_and_without_them_tests_come_as_under_load() -> None:
    assert said("loadgroup", (ANDROID,), "[n]@phone").startswith("with a group for each device")
    assert said("loadgroup", (ANDROID, IOS)) == said("load", (ANDROID, IOS))
    assert not said("loadgroup", (ANDROID, OF_TESTS[1]), "[me@example]")

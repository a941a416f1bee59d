"""The advice on ``--dist``, depending on the tests' needs."""

import pytest

from pytest_device.plugin.xdist.advice import dist_cost
from pytest_device.scheduling.test_plan import NO_BOND, TestPlan
from pytest_device.scheduling.work import DeviceGroup

PLAIN = DeviceGroup()
ANDROID, IOS = DeviceGroup((0,), (0,)), DeviceGroup((1,), (1,))
OF_MODULES = tuple(
    DeviceGroup((number,), (0,), is_shareable=False) for number in (0, 1)
)
OF_TESTS = tuple(
    DeviceGroup((number,), (0,), is_shareable=False, is_unshared=True)
    for number in (0, 1)
)
ALL = ["each", "load", "loadscope", "loadfile", "loadgroup"]

Groups = tuple[DeviceGroup, ...]


def said(dist: str, groups: Groups, suffix: str = "") -> str:
    """Return the advice for groups of one test each."""
    tests = [(number, NO_BOND) for number in range(len(groups))]
    return dist_cost(
        dist,
        TestPlan(groups, ("android", "ios"), tests, may_order=True),
        [f"test_it.py::test_{suffix}"] * len(tests),
    )


@pytest.mark.parametrize(
    ("groups", "costs"),
    [
        ((PLAIN,), []),
        ((PLAIN, ANDROID), ["each"]),
        ((ANDROID, IOS), ALL),
        (OF_MODULES, ["each", "load", "loadgroup"]),
        (OF_TESTS, ["each"]),
    ],
    ids=[
        "no device",
        "one kind",
        "two kinds",
        "a device for each module",
        "a device for each test",
    ],
)
def test_a_cost_is_reported_only_if_workers_change_devices(
    groups: Groups, costs: list[str]
) -> None:
    assert [dist for dist in [*ALL, "worksteal"] if said(dist, groups)] == costs


def test_groups_keep_one_kind_on_one_worker_and_without_them_loadgroup_works_like_load() -> (
    None
):
    assert said("loadgroup", (ANDROID,), "[n]@phone").startswith(
        "with one group per device"
    )
    assert said("loadgroup", (ANDROID, IOS)) == said("load", (ANDROID, IOS))
    assert not said("loadgroup", (ANDROID, OF_TESTS[1]), "[me@example]")

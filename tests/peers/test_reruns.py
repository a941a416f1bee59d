"""Tests that pytest-rerunfailures runs again."""

import pytest

from pytest_device.testing import FaultyService

FLAKY = """
import pytest
pytestmark = pytest.mark.device(platform="android")
seen = []

def test_flaky(device_session):
    seen.append(device_session.id)
    assert len(seen) == 2

def test_steady(device_session): pass
"""


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_a_rerun_keeps_the_shared_device(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(FLAKY)

    result = pytester.runpytest("--reruns=1", *options)

    assert result.parseoutcomes() == {"passed": 2, "rerun": 1}
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize("options", [[], ["-n1"], ["-n2", "--dist=load"]])
def test_the_rerun_of_the_last_test_keeps_the_device(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(FLAKY.partition("def test_steady")[0])

    result = pytester.runpytest("--reruns=1", *options)

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    assert service.statuses() == ["stopped"]


def test_a_device_is_stopped_after_the_last_attempt_not_at_the_end_of_the_run(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        test_a=FLAKY.partition("def test_steady")[0].replace(
            "len(seen) == 2", "len(set(seen)) > 1"
        ),
        test_b="def test_plain(): pass",
    )

    result = pytester.runpytest("-v", "--reruns=1", "--device-no-reorder")

    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "rerun": 1}
    result.stdout.fnmatch_lines(
        ["*test_flaky RERUN*", "*android*: stopped*", "*test_plain*"]
    )
    assert service.statuses() == ["stopped"]


def test_a_device_that_fails_to_start_is_provided_to_the_rerun(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(
        FLAKY.partition("def test_flaky")[0] + "def test_steady(device_session): pass\n"
    )

    result = pytester.runpytest("--reruns=1")

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    assert sorted(service.statuses()) == ["errored", "stopped"]


def test_attempts_with_unshared_devices_leave_nothing(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FLAKY)

    result = pytester.runpytest(
        "--reruns=2", "--device-share=test", "--only-rerun=AssertionError"
    )

    assert result.parseoutcomes() == {"passed": 2, "rerun": 1}
    assert service.statuses() == ["stopped"] * 3


def test_a_bdd_scenario_and_an_async_test_are_rerun(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makefile(
        ".feature", flaky="Feature: F\n  Scenario: S\n    Given a flaky step\n"
    )
    pytester.makepyfile(
        FLAKY.partition("def test_flaky")[0]
        + """
from pytest_bdd import given, scenarios
scenarios("flaky.feature")

@given("a flaky step")
def flaky(device_session):
    seen.append(device_session.id)
    assert len(seen) > 1

@pytest.mark.asyncio
async def test_flaky(device_session):
    seen.append(device_session.id)
    assert len(seen) > 3
"""
    )

    result = pytester.runpytest("--reruns=1")

    assert result.parseoutcomes() == {"passed": 2, "rerun": 2}
    assert set(service.statuses()) == {"stopped"}


@pytest.mark.usefixtures("service")
def test_each_attempt_has_its_own_artifacts_directory(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        FLAKY.partition("def test_steady")[0].replace("len(seen) == 2", "False")
    )

    result = pytester.runpytest("--reruns=2", "--device-artifacts-dir=left")

    assert result.parseoutcomes() == {"failed": 1, "rerun": 2}
    places = sorted(
        path.parent.name for path in pytester.path.glob("left/*/session.json")
    )
    assert places == [places[0], f"{places[0]}-rerun-1", f"{places[0]}-rerun-2"]
    result.stdout.fnmatch_lines([f"artifacts: left/{places[2]}"])

"""What whole runs remember of how long their tests take."""

import json
from pathlib import Path

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER

TIMES = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call):
    report = yield
    report.duration = {"setup": 50, "call": 8, "teardown": 1}[call.when]
    return report

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if report.when == "setup":
        report.device_waited = 46
"""
SUITE = """
import pytest

pytestmark = pytest.mark.device(platform="android", share="run")

def test_passes(device_session): pass
def test_fails(device_session): assert 0
def test_is_skipped(device_session): pytest.skip()
@pytest.mark.skip
def test_is_not_even_set_up(device_session): pass
@pytest.mark.xfail
def test_is_expected_to_fail(device_session): assert 0
def test_loses_its_device(device_session, device_client):
    device_client.stop(device_session.id)
    assert 0
"""


TWO = """
import pytest

pytestmark = pytest.mark.device(platform="android")

def test_first(): pass
def test_second(): pass
"""


def remembered() -> dict[str, float]:
    times: dict[str, float] = json.loads(
        Path(".pytest_cache/v/device/test_seconds").read_text()
    )
    return times


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_durations_are_remembered_without_the_wait_for_a_device(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    pytester.makeconftest(TIMES)
    pytester.makepyfile(test_it=SUITE)

    pytester.runpytest(*distributed).assert_outcomes(
        passed=1, failed=1, skipped=2, xfailed=1, errors=1
    )

    names = ["test_passes", "test_fails", "test_is_expected_to_fail"]
    assert remembered() == {f"test_it.py::{name}": 13.0 for name in names}


def test_a_test_without_a_device_is_not_remembered(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", reason="no booted device", times=1)
    pytester.makepyfile(test_it=TWO)

    pytester.runpytest().assert_outcomes(passed=1, errors=1)

    assert list(remembered()) == ["test_it.py::test_second"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_a_suite_without_devices_is_not_remembered(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    pytester.makepyfile("def test_plain(): pass")

    pytester.runpytest(*distributed).assert_outcomes(passed=1)

    assert not Path(".pytest_cache/v/device").exists()


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_a_run_without_pytests_cache_remembers_nothing(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("-p", "no:cacheprovider", "-k", "passes", *distributed)

    result.assert_outcomes(passed=1, deselected=0 if distributed else 5)
    assert not Path(".pytest_cache").exists()

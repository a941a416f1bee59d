"""Tests that pytest-rerunfailures runs again."""

import json
from typing import Final

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.test_device_report import attempts_of, blobs, of_method
from tests.plugin.test_device_run import report_in

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


@pytest.mark.parametrize(
    ("mode", "attempts"),
    [
        ("retain-on-failure", [""]),
        ("on", ["", "-rerun-1"]),
    ],
)
def test_each_attempt_has_a_trace_of_its_own(
    pytester: pytest.Pytester, service: FaultyService, mode: str, attempts: list[str]
) -> None:
    pytester.makepyfile(test_it=FLAKY.partition("def test_steady")[0])

    pytester.runpytest("--reruns=1", f"--device-trace={mode}")

    kept = pytester.path.glob("device-artifacts/*/trace.zip")
    name = "test_it.py-test_flaky-"
    attempts_kept = [path.parent.name.removeprefix(name)[8:] for path in kept]
    assert sorted(attempts_kept) == attempts
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


@pytest.mark.usefixtures("service")
def test_the_first_attempt_keeps_its_failure_when_the_second_one_passes(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(FLAKY.partition("def test_steady")[0])

    result = pytester.runpytest("--reruns=1", "--device-artifacts-dir=left")

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    (path,) = pytester.path.glob("left/*/failure.json")
    failure = json.loads(path.read_text())
    assert (failure["attempt"], failure["error"]["type"]) == (1, "AssertionError")


@pytest.mark.usefixtures("service")
def test_attempts_are_retries_in_the_report_and_the_test_is_flaky(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(FLAKY.partition("def test_steady")[0])

    result = pytester.runpytest("--reruns=1")

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    (blob,) = blobs(pytester.path / "device-report")
    attempts = [
        (begun["result"]["retry"], ended["result"]["status"])
        for begun, ended in zip(
            of_method(blob, "onTestBegin"), of_method(blob, "onTestEnd"), strict=True
        )
    ]
    assert attempts == [(0, "failed"), (1, "passed")]


CRASHING: Final = """
import os, pathlib, pytest

@pytest.mark.device(platform="android")
def test_crashes(device_session):
    once = pathlib.Path("crashed")
    if not once.exists():
        once.touch()
        os._exit(1)
"""


@pytest.mark.usefixtures("service")
def test_a_crash_of_a_worker_is_named_although_the_rerun_passed(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=CRASHING)

    result = pytester.runpytest("--reruns=1", "-n1")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= devices =*",
            "worker gw0 crashed while running test_it.py::test_crashes, which ran again",
        ]
    )
    (test,) = report_in(pytester.path / "device-report")["tests"]
    assert [each["outcome"] for each in test["attempts"]] == ["rerun", "passed"]


@pytest.mark.usefixtures("service")
def test_a_crash_that_is_a_failure_is_named_there_only(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=CRASHING)

    result = pytester.runpytest("-n1")

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*which ran again*")
    (test,) = report_in(pytester.path / "device-report")["tests"]
    (attempt,) = test["attempts"]
    assert test["outcome"] == attempt["outcome"] == "failed"
    assert "crashed while running" in attempt["error"]


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_pytest_rerunfailures_repeats_failures_and_this_plugin_lost_devices(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(
        """
        import pytest
        seen = []

        @pytest.mark.device(platform="android")
        def test_flaky(device_session):
            seen.append(device_session.id)
            assert len(seen) == 2
        """
    )

    result = pytester.runpytest(
        "--device-retry-infrastructure=1",
        "--reruns=1",
        "--only-rerun=AssertionError",
        *options,
    )

    assert result.parseoutcomes() == {"passed": 1, "rerun": 2}
    assert len(service.sessions()) == 2  # a repeated failure keeps its device
    report = json.loads((pytester.path / "device-report/device-run.json").read_text())
    (test,) = report["tests"]
    outcomes = [attempt["outcome"] for attempt in test["attempts"]]
    assert outcomes == ["retried", "rerun", "passed"]


REPEATED_BY_FLAKY: Final = """
import pytest
from flaky import flaky
pytestmark = pytest.mark.device(platform="android")
seen = []

@flaky(max_runs=3)
def test_flaky(device_session):
    seen.append(device_session.id)
    assert len(seen) == 3, f"attempt {len(seen)}"
"""


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_each_attempt_of_flaky_has_its_own_outcome_trace_and_directory(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")  # which leaves it out
    pytester.makepyfile(test_it=REPEATED_BY_FLAKY)

    result = pytester.runpytest("--device-trace=on", *options)

    result.assert_outcomes(passed=1)
    assert attempts_of(pytester.path) == [
        ("rerun", "failed", "AssertionError: attempt 1"),
        ("rerun", "failed", "AssertionError: attempt 2"),
        ("passed", "passed", None),
    ]
    traces = sorted(pytester.path.glob("device-artifacts/*/trace.zip"))
    names = [path.parent.name for path in traces]
    assert names == [names[0], f"{names[0]}-rerun-1", f"{names[0]}-rerun-2"]
    for number, trace in enumerate(traces[:2], 1):
        failure = json.loads((trace.parent / "failure.json").read_text())
        assert failure["attempt"] == number

    assert set(service.statuses()) == {"stopped"}


def test_a_lost_device_is_retried_after_an_attempt_that_failed_itself(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", skip=1)
    pytester.makepyfile(test_it=FLAKY.partition("def test_steady")[0])

    result = pytester.runpytest(
        "--reruns=1",
        "--device-retry-infrastructure=1",
        "--device-share=test",
    )

    assert result.parseoutcomes() == {"passed": 1, "rerun": 2}
    assert [each[0] for each in attempts_of(pytester.path)] == [
        "rerun",
        "retried",
        "passed",
    ]


def test_an_attempt_that_flaky_repeats_is_not_retried_once_more(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")  # which leaves it out
    service.add_fault("boot", "fail")
    pytester.makepyfile(test_it=REPEATED_BY_FLAKY.replace("== 3", "== 1"))

    result = pytester.runpytest("--device-retry-infrastructure=1")

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    assert [each[0] for each in attempts_of(pytester.path)] == [
        "retried",
        "passed",
    ]
    assert sorted(service.statuses()) == ["errored", "stopped"]

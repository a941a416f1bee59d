"""The report of a run as data, and each event as a line."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_WORKERS

PAGE: Final = Path(__file__).parents[2] / "docs" / "device-run.md"
SUITE: Final = """
import pytest

@pytest.mark.owner("checkout")
@pytest.mark.device(platform="android", name="first")
def test_retried(device_session): pass

@pytest.mark.device_quarantine(until="2999-01-31", reason="R")
@pytest.mark.device(platform="ios", name="second")
def test_quarantined(device_session):
    assert False, "still flaky"

def test_plain():
    assert False, "its own error"
"""
WITHOUT_MESSAGE: Final = """
@pytest.mark.xfail(strict=True, reason="known")
def test_unexpected(): pass

def test_without_fixture(missing): pass
"""
"""Tests whose error is a text only, before which pytest-xdist writes the worker."""


def report_in(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "device-run.json").read_text())
    return report


@pytest.fixture(scope="module")
def reports() -> dict[tuple[str, ...], dict[str, Any]]:
    """The reports of the runs that were made, by their options."""
    return {}


@pytest.fixture(params=ON_WORKERS)
def report(
    request: pytest.FixtureRequest,
    pytester: pytest.Pytester,
    service: FaultyService,
    reports: dict[tuple[str, ...], dict[str, Any]],
) -> dict[str, Any]:
    """The report of a run with a repeated attempt, a quarantined failure and a failure."""
    options = tuple(request.param)
    if options in reports:
        return reports[options]

    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(test_it=SUITE + WITHOUT_MESSAGE)

    result = pytester.runpytest(
        "--device-retry-infrastructure=1", "--device-minute-price=1", *options
    )

    assert result.ret == 1
    reports[options] = report_in(pytester.path / "device-report")
    return reports[options]


def test_each_test_has_its_attempts(report: dict[str, Any]) -> None:
    tests = {one["test"].partition("::")[2]: one for one in report["tests"]}
    retried = [one for one in tests.values() if len(one["attempts"]) > 1]

    # Of workers, either device is the first.
    assert len(retried) == 1
    first, last = retried[0]["attempts"]
    assert (first["attempt"], first["outcome"], first["verdict"]) == (
        1,
        "retried",
        "infrastructure",
    )
    assert first["error"].startswith("infrastructure: ")
    assert last["attempt"] == 2
    assert not set(first["sessions"]) & set(last["sessions"])
    assert tests["test_retried"]["outcome"] == "passed"
    assert tests["test_retried"]["owner"] == "checkout"
    assert tests["test_quarantined"]["outcome"] == "quarantined"
    assert "still flaky" in tests["test_quarantined"]["attempts"][-1]["error"]
    assert tests["test_plain"]["outcome"] == "failed"
    assert tests["test_plain"]["verdict"] is None
    assert "its own error" in tests["test_plain"]["attempts"][0]["error"]
    errors = {name: test["attempts"][0]["error"] for name, test in tests.items()}
    assert errors["test_unexpected"] == "[XPASS(strict)] known"
    assert errors["test_without_fixture"] == "fixture 'missing' not found"


def test_each_session_is_listed_with_its_end(report: dict[str, Any]) -> None:
    assert len(report["sessions"]) == 3 == report["receipt"]["created"]
    assert {one["end"] for one in report["sessions"]} == {"stopped"}
    assert {one["platform"] for one in report["sessions"]} == {"android", "ios"}
    with_tests = [test for one in report["sessions"] for test in one["tests"]]
    assert set(with_tests) == {
        "test_it.py::test_retried",
        "test_it.py::test_quarantined",
    }


def test_each_key_is_documented(report: dict[str, Any]) -> None:
    page = PAGE.read_text().partition("## The file")[2]
    rows = dict(re.findall(r"^\| `([\w\[\].]+)` \| (.+) \|$", page, re.MULTILINE))

    assert list(report) == [key for key in rows if "." not in key]
    for key, row in (("tests", 0), ("sessions", 0)):
        documented = set(re.findall(r"`(\w+)`", rows[key]))
        assert set(report[key][row]) == documented
    documented = set(re.findall(r"`(\w+)`", rows["tests[].attempts"]))
    assert set(report["tests"][0]["attempts"][0]) == documented
    assert set(report["minutes"]) == set(re.findall(r"`(\w+)`", rows["minutes"]))
    assert set(report["cost"]) == set(re.findall(r"`(\w+)`", rows["cost"]))


def test_the_directory_stays_out_of_git(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE)

    pytester.runpytest()
    pytester.runpytest("--device-report=mine")
    pytester.mkdir("suite").joinpath("pages.py").touch()
    pytester.runpytest("--device-report=suite")

    for name in ("device-report", "mine"):
        assert (pytester.path / name / ".gitignore").read_text() == "*\n"
        assert report_in(pytester.path / name)["version"] == 1
    assert not (pytester.path / "suite" / ".gitignore").exists()
    assert report_in(pytester.path / "suite")["version"] == 1
    assert service.sessions()


@pytest.mark.usefixtures("service")
def test_nothing_is_written_if_it_is_off_or_no_device_ran(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(SUITE)

    pytester.runpytest("--device-report=off")
    pytester.runpytest("-k", "plain")

    assert not [*pytester.path.rglob("device-run.json")]


@pytest.mark.parametrize("options", [[], ["-n2"]], ids=["alone", "distributed"])
def test_a_directory_that_cannot_be_written_is_one_line(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE)
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-report=left", *options)

    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "quarantined": 1}
    lines = [line for line in result.outlines if "cannot write the report" in line]
    assert len(lines) == 1
    assert "--device-report" in lines[0]
    assert set(service.statuses()) == {"stopped"}


def test_no_secret_is_in_the_report(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import os, pytest
        pytestmark = pytest.mark.device(platform="android")

        @pytest.mark.device_quarantine(until="2999-01-31", reason="R")
        def test_quarantined(device_session):
            raise AssertionError(os.environ["DEVICE_TOKEN"])

        def test_fails(device_session):
            raise ConnectionError(os.environ["DEVICE_TOKEN"])
        """
    )

    result = pytester.runpytest()

    text = (pytester.path / "device-report" / "device-run.json").read_text()
    assert "***" in text
    assert service.token not in text + result.stdout.str()

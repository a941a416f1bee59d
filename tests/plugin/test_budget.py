"""The budget of a run in device minutes, and what the run says about its minutes and their price."""

import json
from typing import Any

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER, ON_WORKERS

SUITE = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.mark.parametrize("number", range(COUNT))
def test_uses_its_device(device_session, number): pass
"""
NO_TEST_FAILED = 11


def creates(service: FaultyService) -> int:
    return sum(operation == "create" for operation, _ in service.requests())


def report_of(pytester: pytest.Pytester) -> dict[str, Any]:
    path = pytester.path / "device-report" / "device-run.json"
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def test_the_summary_says_once_that_the_plan_exceeds_the_budget(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "5"))

    result = pytester.runpytest("--device-budget-minutes=2", "-n2")

    assert result.ret == 0
    assert creates(service) == 5
    notes = [line for line in result.outlines if line.startswith("the plan needs")]
    assert len(notes) == 1
    result.stdout.fnmatch_lines(["budget: 0.* of 2 minutes used"])


@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_run_that_has_used_its_budget_creates_no_more_sessions(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "20"))

    result = pytester.runpytest("--device-budget-minutes=0.02", *options)

    assert result.ret == NO_TEST_FAILED
    assert 1 <= creates(service) < 20
    assert result.parseoutcomes()["passed"] == creates(service)
    result.stdout.fnmatch_lines(
        [
            "budget: *the budget of 0.02 device minutes is used up *affected*",
        ]
    )
    result.stdout.fnmatch_lines(
        ["*(--device-budget-minutes=0.02: increase it, or run fewer tests): *"]
    )
    result.stdout.re_match_lines([r"budget: 0\.0[1-9]\d* of 0\.02 minutes used"])
    report = report_of(pytester)
    (cause,) = report["causes"]
    assert cause["verdict"] == "budget"
    assert report["budget_minutes"] == 0.02


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "price",
    [
        "nan",
        "-1",
        *(pytest.param(price, marks=pytest.mark.nightly) for price in ("cheap", "1,5")),
    ],
)
def test_a_price_that_is_no_number_is_one_line_and_changes_no_result(
    pytester: pytest.Pytester, price: str
) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "1"))

    result = pytester.runpytest(f"--device-minute-price={price}")

    assert result.ret == 0
    lines = [line for line in result.outlines if "minute-price" in line]
    assert lines == [
        f"--device-minute-price={price!r} must be a number that is not negative, for example 0.05: no cost is shown"
    ]
    assert report_of(pytester)["cost"] is None


@pytest.mark.usefixtures("service")
def test_the_cost_names_its_price(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "3"))

    result = pytester.runpytest("--device-minute-price=0.5")

    (line,) = [line for line in result.outlines if line.startswith("cost: ")]
    assert line.endswith(" minutes at 0.5, boots included)")
    cost = report_of(pytester)["cost"]
    assert float(cost["amount"]) == pytest.approx(float(cost["minutes"]) / 2, abs=1e-3)


@pytest.mark.usefixtures("service")
def test_without_a_price_there_is_no_cost(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "1"))

    result = pytester.runpytest()

    result.stdout.no_fnmatch_line("cost: *")
    assert report_of(pytester)["cost"] is None


OWNED = """
import pytest

@pytest.mark.owner("checkout")
@pytest.mark.device(platform="android", share="run")
@pytest.mark.parametrize("number", range(3))
def test_shares(device_session, number): pass

@pytest.mark.device(platform="ios")
def test_alone(device_session): pass
"""


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_the_minutes_add_up_by_platform_and_owner(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(OWNED)

    result = pytester.runpytest(*options)

    result.stdout.re_match_lines(
        [r"device minutes: \S+ paid, of these \S+ wasted; \S+ waited$"]
    )
    result.stdout.fnmatch_lines(["by platform: android *, ios *"])
    result.stdout.fnmatch_lines(["by owner: checkout *, no owner *"])
    minutes = report_of(pytester)["minutes"]
    wasted = sum(minutes["wasted"].values())
    assert minutes["used"] + wasted == pytest.approx(minutes["paid"], abs=0.01)
    assert sum(minutes["by_platform"].values()) == pytest.approx(
        minutes["paid"], abs=0.01
    )
    assert sum(minutes["by_owner"].values()) == pytest.approx(minutes["paid"], abs=0.01)
    (shared,) = [
        one for one in report_of(pytester)["sessions"] if one["platform"] == "android"
    ]
    assert len(shared["tests"]) == 3

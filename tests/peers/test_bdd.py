"""Scenarios of pytest-bdd: the marker on the scenario or as its tag, the fixtures in its steps."""

import pytest

from pytest_device.testing import FaultyService

STEPS = """
import pytest
from pytest_bdd import given, parsers, scenario, scenarios, then, when

@given("a device", target_fixture="session")
def session(device_session): return device_session

@given("a device when it is asked for", target_fixture="session")
def session_by_name(request): return request.getfixturevalue("device_session")

@then(parsers.parse("it runs {platform}"))
def runs(session, platform): assert session.platform == platform

@then("it fails")
def fails(session): assert session is None
"""
FEATURE = """
Feature: Devices

  Scenario: By argument
    Given a device
    Then it runs android

  Scenario: By name
    Given a device when it is asked for
    Then it runs android
"""


@pytest.fixture(autouse=True)
def feature(pytester: pytest.Pytester) -> None:
    pytester.makefile(".feature", devices=FEATURE)


def test_the_steps_of_a_marked_scenario_get_a_device(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        STEPS
        + """
@pytest.mark.device(platform="android")
@scenario("devices.feature", "By argument")
def test_in_steps(): pass

@pytest.mark.device(platform="android")
@scenario("devices.feature", "By name")
def test_in_its_body(device_session): assert device_session.platform == "android"
"""
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=2)
    assert service.statuses() == ["stopped"]


def test_all_scenarios_of_a_module_share_its_marker(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        STEPS
        + "pytestmark = pytest.mark.device(platform=['android'])\nscenarios('devices.feature')\n"
    )

    pytester.runpytest().assert_outcomes(passed=2)

    assert service.statuses() == ["stopped"]


def test_a_tag_can_select_the_device(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        """
        import pytest

        def pytest_bdd_apply_tag(tag, function):
            if tag in ("android", "ios"):
                pytest.mark.device(platform=tag)(function)
                return True
        """
    )
    pytester.makefile(
        ".feature",
        tagged="""
        Feature: Tags
          @ios
          Scenario Outline: Of an outline
            Given a device
            Then it runs <platform>

            Examples:
              | platform |
              | ios      |

          @android
          Scenario: Of a scenario
            Given a device when it is asked for
            Then it runs android
        """,
    )
    pytester.makepyfile(STEPS + "scenarios('tagged.feature')\n")

    pytester.runpytest().assert_outcomes(passed=2)

    assert service.statuses() == ["stopped", "stopped"]


def test_a_scenario_runs_on_each_platform_and_example(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makefile(
        ".feature",
        both="""
        Feature: Both
          Scenario Outline: Each
            Given a device
            Then it is number <n>

            Examples:
              | n |
              | 1 |
              | 2 |
        """,
    )
    pytester.makepyfile(
        STEPS
        + """
pytestmark = pytest.mark.device(platform=["android", "ios"])
scenarios("both.feature")

@then(parsers.parse("it is number {n:d}"))
def number(session, device_platform, n): assert session.platform is device_platform
"""
    )

    pytester.runpytest().assert_outcomes(passed=4)

    assert service.statuses() == ["stopped", "stopped"]


def test_a_step_that_fails_is_a_failure_and_its_device_is_stopped(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makefile(
        ".feature",
        failing="Feature: F\n  Scenario: S\n    Given a device\n    Then it fails\n",
    )
    pytester.makepyfile(
        STEPS
        + "pytestmark = pytest.mark.device(platform='ios')\nscenarios('failing.feature')\n"
    )

    pytester.runpytest().assert_outcomes(failed=1)

    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize(
    "others", ["", "@pytest.mark.device(platform='ios')\ndef test_other(): pass\n"]
)
def test_a_scenario_without_a_marker_is_reported_with_the_fix(
    pytester: pytest.Pytester, service: FaultyService, others: str
) -> None:
    pytester.makepyfile(STEPS + "scenarios('devices.feature')\n" + others)

    result = pytester.runpytest()

    if others:  # a run that has devices for others says what is missing, and that it is not the test's fault
        # The second scenario has the same cause, which is reported once.
        result.assert_outcomes(errors=1, passed=1)
        result.stdout.fnmatch_lines(["*1 not attempted*"])
        result.stdout.fnmatch_lines(
            [
                "config: requests a device but no platform is set: add @pytest.mark.device(*"
            ]
        )
    else:
        result.assert_outcomes(failed=2)
        result.stdout.fnmatch_lines(
            ["*ConfigError: *::test_by_argument *@pytest.mark.device(platform=...)*"]
        )
    assert service.statuses() == (["stopped"] if others else [])

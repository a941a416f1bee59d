"""One cause costs one attempt: after it failed for a test, it is not repeated for the others."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from pytest_device.testing import FaultyService

TESTS: Final = (
    50  # more than lines: a report that grew with the tests would be too long
)
MOST_SESSIONS: Final = 2
MOST_LINES: Final = 40
Fault = tuple[str, str, Mapping[str, Any]]
"""An operation, its fault, and the fault's options."""
SUITE: Final = """
import pytest

@pytest.mark.device(platform="android", type="TYPE")
@pytest.mark.parametrize("n", range(50))
def test_driven(device_session, n): pass
"""


@pytest.fixture
def sharing(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> FaultyService:
    """The service with the default settings: equal tests share a session, a start is tried twice."""
    for name in ("DEVICE_SHARE", "DEVICE_START_ATTEMPTS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    return service


def creates(service: FaultyService) -> int:
    return sum(operation == "create" for operation, _ in service.requests())


def assert_paid_once(
    result: pytest.RunResult, service: FaultyService, cause: str
) -> None:
    """Check that all tests have the cause's errors, reported once, for hardly any sessions."""
    outcomes = result.outlines[-1]
    assert (
        sum(map(int, re.findall(r"(\d+) (?:errors?|not attempted)", outcomes))) == TESTS
    ), outcomes
    assert creates(service) <= MOST_SESSIONS
    assert len(result.outlines) <= MOST_LINES, "\n".join(result.outlines)
    reported = [
        line
        for line in result.outlines
        if re.search(cause, line) and "affected" in line
    ]
    assert len(reported) == 1
    assert re.search(
        rf"^(config|infrastructure): .*{cause}.*: {TESTS} tests affected, first test_it",
        reported[0],
    )
    summary = [line for line in result.outlines if line.startswith("ERROR test_it")]
    assert 1 <= len(summary) <= MOST_SESSIONS
    assert re.search(r" - (config|infrastructure): ", summary[0])


def refusal(status: int, message: str = "") -> Fault:
    return "create", "reply", {"status": status, "body": f'{{"message": "{message}"}}'}


NO_DEVICE: Final[Fault] = "boot", "fail", {"reason": "no booted device"}


@pytest.mark.parametrize(
    ("fault", "cause", "distributed"),
    [
        (refusal(400, "no simulator access"), "no simulator access", []),
        (refusal(400, "no simulator access"), "no simulator access", ["-n2"]),
        (refusal(401), "the access token is not valid", []),
        (refusal(403), "the access token lacks permission", []),
        (refusal(404), "unknown project", []),
        (refusal(422, "no such build"), "no such build", []),
        (refusal(500, "a bug"), "a bug", []),
        (NO_DEVICE, "the session failed to start", []),
        (NO_DEVICE, "the session failed to start", ["-n2"]),
    ],
)
def test_a_cause_that_affects_every_test_is_paid_for_and_reported_once(
    pytester: pytest.Pytester,
    sharing: FaultyService,
    fault: Fault,
    cause: str,
    distributed: list[str],
) -> None:
    operation, effect, options = fault
    sharing.add_fault(operation, effect, times=None, **options)
    pytester.makepyfile(test_it=SUITE.replace("TYPE", "agent-device"))

    result = pytester.runpytest(*distributed)

    assert_paid_once(result, sharing, cause)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_firewalls_page_is_not_final_and_the_next_test_gets_its_device(
    pytester: pytest.Pytester, sharing: FaultyService, status: int
) -> None:
    sharing.add_fault("create", "reply", status=status, body="<html>blocked</html>")
    pytester.makepyfile(
        test_it=SUITE.replace("TYPE", "agent-device").replace("range(50)", "range(2)")
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(
        ["infrastructure: create: refused by a firewall, a proxy or a login page *"]
    )


def test_controllers_that_never_respond_are_paid_for_and_reported_once(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("controller", "dead", times=None)
    pytester.makeconftest(
        """
        import dataclasses
        import pytest

        @pytest.fixture
        def device_wait_policy(device_wait_policy):
            return dataclasses.replace(device_wait_policy, controller_timeout_seconds=0.3)
        """
    )
    pytester.makepyfile(test_it=SUITE.replace("TYPE", "agent-device"))

    result = pytester.runpytest()

    assert_paid_once(result, sharing, "returned status 502")


def test_an_endless_boot_is_started_once_and_waited_for_at_most_twice(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3600, times=None)
    pytester.makepyfile(test_it=SUITE.replace("TYPE", "agent-device"))

    result = pytester.runpytest("--device-wait-timeout-seconds=0.5")

    assert_paid_once(result, sharing, "the session was not ready after")
    assert sharing.statuses() == ["stopped"]


def test_a_boot_that_outlasts_the_timeout_of_one_test_is_kept_for_the_next(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3)
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android")

        def test_a(device_session): pass
        def test_b(device_session): pass
        """
    )

    result = pytester.runpytest("--device-wait-timeout-seconds=2")

    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert sharing.statuses() == ["stopped"]


def test_a_boot_that_no_later_test_shares_is_not_kept(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3600)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_a(device_session): pass

        @pytest.mark.device(platform="ios")
        def test_b(device_session, device_client):
            assert device_session.platform == "ios"
        """
    )

    result = pytester.runpytest("--device-wait-timeout-seconds=2")

    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])

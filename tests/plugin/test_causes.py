"""One cause costs one attempt: after it failed for a test, it is not repeated for the others."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from pytest_device.testing import FaultyService
from pytest_device.verdict import Verdict
from tests.plugin.runs import ON_WORKERS, SERVICE_OF_RUN

TESTS: Final = (
    50  # more than lines: a report that grew with the tests would be too long
)
FEW: Final = 10
"""Enough tests to see that a cause is paid for once; a run of them takes a third of the CPU time."""
MOST_SESSIONS: Final = 3
"""Two, and one that another worker started before it knew of their failures."""
MOST_LINES: Final = 48
VERDICT: Final = "|".join(Verdict)
Fault = tuple[str, str, Mapping[str, Any]]
"""An operation, its fault, and the fault's options."""
SUITE: Final = """
import pytest

@pytest.mark.device(platform="android", type="TYPE")
@pytest.mark.parametrize("n", range(TESTS))
def test_driven(device_session, n): pass
"""


SHORT_WAIT_OF_TEST_A: Final = """
import dataclasses, pytest

@pytest.fixture
def device_wait_policy(request, device_wait_policy):
    seconds = 0.5 if request.node.name == "test_a" else 60
    return dataclasses.replace(device_wait_policy, timeout_seconds=seconds)
"""


def suite_of(tests: int, controller: str = "agent-device") -> str:
    return SUITE.replace("TYPE", controller).replace("TESTS", str(tests))


@pytest.fixture
def sharing(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> FaultyService:
    """The service with the default settings: equal tests share a session, a start is tried twice."""
    for name in ("DEVICE_SHARE", "DEVICE_START_ATTEMPTS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    return service


def creates(service: FaultyService) -> int:
    return sum(operation == "create" for operation, _ in service.requests())


def assert_paid_once(
    result: pytest.RunResult, service: FaultyService, cause: str, tests: int = TESTS
) -> None:
    """Check that all tests have the cause's errors, explained once, for hardly any sessions."""
    outcomes = result.outlines[-1]
    assert (
        sum(map(int, re.findall(r"(\d+) (?:errors?|not attempted)", outcomes))) == tests
    ), outcomes
    assert creates(service) <= MOST_SESSIONS
    assert len(result.outlines) <= MOST_LINES, "\n".join(result.outlines)
    assert any(re.search(rf"^({VERDICT}): .*{cause}", line) for line in result.outlines)
    reported = [line for line in result.outlines if "affected" in line]
    assert len(reported) == 1
    # The errors have the cause.
    assert re.search(
        rf"^({VERDICT}): {tests} tests affected, first test_it", reported[0]
    )
    summary = [line for line in result.outlines if line.startswith("ERROR test_it")]
    assert 1 <= len(summary) <= MOST_SESSIONS
    assert re.search(rf" - ({VERDICT}): ", summary[0])


def refusal(status: int, message: str = "") -> Fault:
    return "create", "reply", {"status": status, "body": f'{{"message": "{message}"}}'}


NO_DEVICE: Final[Fault] = "boot", "fail", {"reason": "no booted device"}


@pytest.mark.parametrize(
    ("fault", "cause", "tests", "distributed"),
    [
        (refusal(400, "no simulator access"), "no simulator access", TESTS, []),
        (refusal(401), "the access token is not valid", FEW, []),
        (refusal(403), "the access token lacks permission", FEW, []),
        (refusal(404), "unknown project", FEW, []),
        (refusal(402), "the account can't pay", FEW, []),
        (refusal(500, "a bug"), "a bug", FEW, []),
        (NO_DEVICE, "the session failed to start", TESTS, ["-n2"]),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                (refusal(400, "no access"), "no access", FEW, ["-n2"]),
                (NO_DEVICE, "the session failed to start", FEW, []),
            )
        ),
    ],
)
def test_a_cause_that_affects_every_test_is_paid_for_and_reported_once(
    pytester: pytest.Pytester,
    sharing: FaultyService,
    fault: Fault,
    cause: str,
    tests: int,
    distributed: list[str],
) -> None:
    operation, effect, options = fault
    sharing.add_fault(operation, effect, times=None, **options)
    pytester.makepyfile(test_it=suite_of(tests))

    result = pytester.runpytest(*distributed)

    assert_paid_once(result, sharing, cause, tests)


@pytest.mark.parametrize("distributed", ON_WORKERS)
def test_a_mistake_that_is_found_before_a_session_is_created_is_reported_once(
    pytester: pytest.Pytester, sharing: FaultyService, distributed: list[str]
) -> None:
    suite = suite_of(FEW, "appium").replace("device_session", "device_driver")
    pytester.makepyfile(test_it=suite)

    result = pytester.runpytest(*distributed)

    assert_paid_once(result, sharing, "no app for Appium", FEW)
    assert creates(sharing) == 0
    result.stdout.no_fnmatch_line("-* device -*")


@pytest.mark.usefixtures("sharing")
def test_two_mistakes_that_are_found_before_a_session_is_created_are_both_reported(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def device_request_defaults(request):
            return {"share": "run"} if request.node.callspec.params["n"] % 2 else {"type": "argent"}
        """
    )
    pytester.makepyfile(test_it=suite_of(FEW))

    result = pytester.runpytest()

    result.assert_outcomes(errors=2)
    for name, first in (("share", 1), ("type", 0)):
        result.stdout.fnmatch_lines(
            [
                f"*ERROR at setup of test_driven[[]{first}[]]*",
                f"config: device_request_defaults can't set {name}, *",
            ]
        )
        result.stdout.fnmatch_lines(
            [
                f"config: {FEW // 2} tests affected, first test_it.py::test_driven[[]{first}[]]"
            ]
        )


PAGE: Final = "<html>blocked</html>"


def unshared(tests: int) -> str:
    """Return a suite of equal tests, each with a session of its own."""
    return suite_of(tests).replace('type="agent-device"', 'share="test"')


@pytest.mark.parametrize(
    "status",
    [403, *(pytest.param(status, marks=pytest.mark.nightly) for status in (401, 404))],
)
def test_a_create_call_that_a_firewall_refuses_with_its_page_is_sent_again(
    pytester: pytest.Pytester, sharing: FaultyService, status: int
) -> None:
    sharing.add_fault("create", "reply", status=status, body=PAGE, times=2)
    pytester.makepyfile(test_it=unshared(2))

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*refused by a firewall, a proxy or a login page *; asking again in 0 s*"]
    )


def test_a_firewalls_page_that_stays_is_asked_for_three_times_and_reported_once(
    pytester: pytest.Pytester, sharing: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the run ends before the first probe, also on a busy machine.
    number = TESTS // 4
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.5")
    sharing.add_fault("create", "reply", status=403, body=PAGE, times=None)
    pytester.makepyfile(test_it=unshared(number))

    result = pytester.runpytest()

    assert creates(sharing) == 3
    result.stdout.fnmatch_lines(
        [
            "infrastructure: create: refused by a firewall*",
            f"infrastructure: {number} tests affected, first test_it*",
        ]
    )


@pytest.mark.parametrize("distributed", ON_WORKERS)
def test_a_gateways_page_during_a_deployment_costs_few_tests(
    pytester: pytest.Pytester, sharing: FaultyService, distributed: list[str]
) -> None:
    sharing.add_fault("create", "reply", status=503, body=PAGE, times=2)
    pytester.makepyfile(test_it=unshared(12))

    result = pytester.runpytest(*distributed)

    result.assert_outcomes(errors=2, passed=10)
    assert "not attempted" not in result.stdout.str()
    assert creates(sharing) == 12  # no call that may have created a session is repeated


@pytest.mark.parametrize("distributed", ON_WORKERS)
def test_a_single_401_to_a_token_that_has_worked_ends_no_test(
    pytester: pytest.Pytester, sharing: FaultyService, distributed: list[str]
) -> None:
    sharing.add_fault("create", "reply", status=401, body="{}", skip=6)
    sharing.add_fault("get", "reply", status=401, body="{}", skip=3)
    pytester.makepyfile(test_it=unshared(12))

    result = pytester.runpytest(*distributed)

    result.assert_outcomes(passed=12)
    assert creates(sharing) == 13


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
    pytester.makepyfile(test_it=suite_of(FEW))

    result = pytester.runpytest()

    assert_paid_once(result, sharing, "returned status 502", FEW)


def test_an_endless_boot_is_started_once_and_waited_for_at_most_twice(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3600, times=None)
    pytester.makepyfile(test_it=suite_of(FEW))

    result = pytester.runpytest("--device-wait-timeout-seconds=0.5")

    assert_paid_once(result, sharing, "the session was not ready after", FEW)
    assert sharing.statuses() == ["stopped"]


def test_a_boot_that_outlasts_the_timeout_of_one_test_is_kept_for_the_next(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3600)
    pytester.makeconftest(
        f"""
{SERVICE_OF_RUN}
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.name == "test_b":  # now it boots
        service = service_of_run()
        service.remove_faults()
        service.close()

{SHORT_WAIT_OF_TEST_A}
"""
    )
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android")

        def test_a(device_session): pass
        def test_b(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert sharing.statuses() == ["stopped"]


def test_a_boot_that_no_later_test_shares_is_not_kept(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("boot", "delay", seconds=3600)
    pytester.makeconftest(SHORT_WAIT_OF_TEST_A)
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

    result = pytester.runpytest()

    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(
        ["devices: 2 created, 2 stopped (confirmed), 1 failed to start; *"]
    )

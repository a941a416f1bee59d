"""Controllers that are dead before a test or die during it; the clients of agent-device and argent."""

from datetime import UTC, datetime, timedelta

import pytest

from pytest_device.testing import FaultyService

POLICY = """
import dataclasses, pytest

@pytest.fixture
def device_wait_policy(device_wait_policy):
    return dataclasses.replace(device_wait_policy, controller_timeout_seconds=0)
"""


@pytest.fixture(autouse=True)
def simulated(service: FaultyService, pytester: pytest.Pytester) -> FaultyService:
    """The service with simulated sessions, and a short timeout for controllers."""
    pytester.makeconftest(POLICY)
    return service


def test_a_session_with_a_dead_controller_is_given_to_no_test(
    pytester: pytest.Pytester, simulated: FaultyService
) -> None:
    simulated.add_fault("controller", "dead", times=None)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: the session is in progress, but its agent-device daemon returned status 502"
        ]
    )
    assert simulated.statuses() == ["stopped"]


def test_a_session_with_a_dead_controller_is_replaced(
    pytester: pytest.Pytester, simulated: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_START_ATTEMPTS", "2")
    simulated.add_fault("controller", "dead", times=1)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", type="argent")
        def test_one(device_session): assert device_session.status == "in-progress"
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*its argent tool server returned status 502*"])
    assert simulated.statuses() == ["stopped", "stopped"]


def test_a_controller_lost_during_a_test_is_not_a_test_failure(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_lost(device_agent_device):
            device_agent_device.snapshot()  # a simulated controller has no such thing

        @pytest.mark.device(platform="android")
        def test_stopped(device_agent_device, device_session, device_client):
            device_client.stop(device_session.id)
            device_agent_device.snapshot()
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["infrastructure: the agent-device daemon returned *", "    http*/sessions/*"]
    )
    result.stdout.fnmatch_lines(
        [
            "infrastructure: the session is gone: it was stopped *",
            "    http*/sessions/*",
        ]
    )


def ran(seconds: int) -> dict[str, str]:
    """Return the fields of a session that has run for so long."""
    start = datetime(2026, 5, 1, tzinfo=UTC)
    end = start + timedelta(seconds=seconds)
    return {"startedAt": start.isoformat(), "finishedAt": end.isoformat()}


def assert_gone(result: pytest.RunResult, note: str) -> None:
    """Assert that a session has ended, with this note on the limit; an empty one for none."""
    gone = "infrastructure: the session is gone: it was stopped after *"
    lines = [gone, *filter(None, [note]), "*- Error in the test -*"]
    result.stdout.fnmatch_lines(lines, consecutive=True)


LONGER = "it ran longer than a session without commands does by"
COMMAND = "send the device a command from time to time, also while another one works, or increase it"


@pytest.mark.parametrize(
    ("seconds", "marker", "option", "variables", "note"),
    [
        (
            121,
            ", max_idle_time_minutes=2",
            "",
            {},
            f"{LONGER} max_idle_time_minutes=2 of the marker: {COMMAND}",
        ),
        (
            121,
            "",
            "--device-max-idle-time-minutes=2",
            {},
            f"{LONGER} --device-max-idle-time-minutes=2: {COMMAND}",
        ),
        (
            601,
            "",
            "",
            {},
            f"{LONGER} --device-max-idle-time-minutes=10 (the default): {COMMAND}",
        ),
        (
            120,
            ", max_idle_time_minutes='none'",
            "",
            {"DEVICE_MAX_DURATION_MINUTES": "2"},
            "it ran as long as DEVICE_MAX_DURATION_MINUTES=2: increase it, or split the test",
        ),
        (119, ", max_idle_time_minutes=2", "", {}, ""),
    ],
    ids=["marker", "option", "default", "environment", "no limit"],
)
def test_a_session_that_a_limit_may_have_ended_names_it_as_it_was_set(
    pytester: pytest.Pytester,
    simulated: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
    marker: str,
    option: str,
    variables: dict[str, str],
    note: str,
) -> None:
    simulated.add_fault("get", "change", fields=ran(seconds), times=None)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.device(platform="android"{marker})
        def test_stopped(device_session, device_client):
            device_client.stop(device_session.id)
            assert 1 == 2
        """
    )

    result = pytester.runpytest(*filter(None, [option]))

    result.assert_outcomes(errors=1)
    assert_gone(result, note)


@pytest.mark.parametrize(
    ("used", "changed", "note"),
    [
        ("alice", {}, f"{LONGER} max_idle_time_minutes=2 of the marker: *"),
        ("bob", {}, ""),
        (
            "bob",
            {"maxIdleTimeMinutes": 0},
            "no command was sent to it for 0 s, but max_idle_time_minutes=0 of the marker: *",
        ),
    ],
    ids=["none", "just now", "too late"],
)
def test_of_two_devices_the_one_that_got_no_command_names_its_idle_limit(
    pytester: pytest.Pytester,
    simulated: FaultyService,
    used: str,
    changed: dict[str, int],
    note: str,
) -> None:
    simulated.add_fault("get", "change", fields=ran(121) | changed, times=None)
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.device("alice", platform="android")
        @pytest.mark.device("bob", platform="android", max_idle_time_minutes=2)
        def test_a_pair(device_agent_devices, device_sessions, device_client):
            with pytest.raises(Exception):  # a simulated controller has no such thing
                device_agent_devices[{used!r}].snapshot()

            device_client.stop(device_sessions["bob"].id)
            assert 1 == 2
        """
    )

    result = pytester.runpytest()

    assert_gone(result, note)


def test_404_for_a_device_is_its_end_only_if_its_controller_does_not_respond(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import os
        import httpx, pytest

        def add_fault(**fault):
            token = {"Authorization": f"Bearer {os.environ['DEVICE_TOKEN']}"}
            url = f"{os.environ['DEVICE_URL']}/testing/faults"
            httpx.post(url, json=fault, headers=token).raise_for_status()

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("controller", ["alive", "dead"])
        def test_fails(device_session, controller):
            code = '{"errors": [{"code": "NOT_FOUND"}]}'
            add_fault(operation="get", effect="reply", status=404, body=code)
            if controller == "dead":
                add_fault(operation="controller", effect="dead", times=None)
            assert 1 == 2
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["infrastructure: the session is gone: the service no longer knows it"]
    )


def test_a_controllers_refusal_fails_the_test_or_is_the_fixtures_error(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from pytest_device import AgentDeviceError, ArgentError
        pytestmark = pytest.mark.device(platform="android")

        @pytest.fixture
        def logged_in(): raise ArgentError("x is missing", issues=["x is missing"])

        def test_refused(device_agent_device): raise AgentDeviceError("Selector did not match", code="COMMAND_FAILED")
        def test_fixture(logged_in): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["E*AgentDeviceError: Selector did not match"])
    result.stdout.no_fnmatch_line("*infrastructure:*")


def test_a_fixture_for_another_session_type_is_reported_at_collection(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", type="argent")
        def test_one(device_agent_device): pass

        @pytest.mark.device(platform="android")
        def test_two(device_argent): pass

        @pytest.mark.device("a", platform="android", type="appium")
        def test_three(device_argents): pass
        """
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*device_agent_device needs type='agent-device', not 'argent': add type='agent-device' to the marker",
            "*device_argent needs type='argent', not 'agent-device': add type='argent' to the marker",
            "*device_argents needs type='argent', not 'appium': add type='argent' to the marker",
        ]
    )


def test_each_test_and_worker_has_its_own_session_name_shared_by_client_and_variables(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android")
        seen = set()

        @pytest.mark.parametrize("n", ["a/b", "ä"])
        def test_named(device_agent_device, device_environment, n):
            assert device_agent_device.name == device_environment["AGENT_DEVICE_SESSION"]
            assert device_agent_device.environment is device_environment
            seen.add(device_agent_device.name)

        def test_both(): assert len(seen) == 2
        """
    )

    pytester.runpytest().assert_outcomes(passed=3)


def test_each_of_several_devices_has_a_client(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device("alice", platform="android")
        @pytest.mark.device("bob", platform="ios")
        def test_two(device_agent_devices):
            platforms = {name: one.platform for name, one in device_agent_devices.items()}
            assert platforms == {"alice": "android", "bob": "ios"}
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)

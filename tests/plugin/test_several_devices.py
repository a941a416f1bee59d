"""Several devices in one test."""

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import SERVICE_OF_RUN

CHAT = """
import pytest

@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios", max_duration_minutes=9)
@pytest.mark.device(type="argent")
def test_chats(device_sessions):
    assert list(device_sessions) == ["alice", "bob"]
    alice, bob = device_sessions["alice"], device_sessions["bob"]
    assert (alice.platform, bob.platform) == ("android", "ios")
    assert alice.type == bob.type == "argent"
    assert (alice.max_duration_minutes, bob.max_duration_minutes) == (30, 9)
"""


def test_each_named_marker_is_a_device_and_unnamed_ones_apply_to_all(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(CHAT)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])
    assert service.statuses() == ["stopped", "stopped"]


def test_they_boot_concurrently(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=3600, times=None)
    # None is ready before both are created.
    pytester.makeconftest(
        f"""
{SERVICE_OF_RUN}
import threading, time

def boot():
    service = service_of_run()
    while len(service.sessions()) < 2:
        time.sleep(0.02)
    service.remove_faults()
    service.close()

threading.Thread(target=boot, daemon=True).start()
"""
    )
    pytester.makepyfile(CHAT)

    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=1)
    pages = [
        index
        for index, line in enumerate(result.outlines)
        if line.startswith("    http")
    ]
    ready = [
        index for index, line in enumerate(result.outlines) if ": ready after " in line
    ]
    assert len(pages) == len(ready) == 2
    assert max(pages) < min(ready)


def test_a_test_with_only_markers_gets_them_too(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        CHAT.partition("    assert list")[0].replace("(device_sessions)", "()")
        + "    pass\n"
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert len(service.statuses()) == 2


def test_if_one_fails_to_start_the_other_is_stopped_and_the_error_is_an_infrastructure_error(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1, reason="no booted device")
    pytester.makepyfile(CHAT)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["infrastructure: the session failed to start, *"])
    assert sorted(service.statuses()) == ["errored", "stopped"]


MISTAKES = [
    (
        ['"alice", platform="ios"', '"bob", platform="ios"'],
        "device_session",
        'device_session can\'t be used with several devices (alice, bob); use device_sessions["alice"]',
    ),
    (
        [
            '"alice", platform="ios", type="appium"',
            '"bob", platform="ios", type="appium"',
        ],
        "device_driver, device_session",
        'device_driver can\'t be used with several devices (alice, bob); use device_drivers["alice"]',
    ),
    (
        ['"alice", platform="ios"', '"bob", platform="x"'],
        "",
        "bob: platform='x' must be android or ios",
    ),
    (
        ['"alice", platform=["ios", "android"]'],
        "",
        "platform=['ios', 'android']: a device of several ('alice') can't be parametrized by platform*",
    ),
    (
        ['"alice", "bob", platform="ios"'],
        "",
        "device() takes keyword arguments, for example*",
    ),
    (['"", platform="ios"'], "", "device() takes keyword arguments, for example*"),
    (
        ['"alice", platform="ios", type="appium"', '"bob", platform="ios"'],
        "device_drivers",
        "device_drivers needs type='appium', not 'agent-device': add type='appium' to the marker",
    ),
]


@pytest.mark.usefixtures("service")
def test_mistakes_are_reported_at_collection(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        **{
            f"test_{number}": "import pytest\n"
            + "".join(f"@pytest.mark.device({mark})\n" for mark in marks)
            + f"def test_driven({arguments}): pass\n"
            for number, (marks, arguments, _) in enumerate(MISTAKES)
        }
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    reported = [line for line in result.errlines if ": test_driven: " in line]
    assert len(reported) == len(MISTAKES)
    for number, (_, _, problem) in enumerate(MISTAKES):
        expected = f"*test_{number}.py:2: test_driven: {problem}".replace("[", "[[]")
        pytest.LineMatcher(reported).fnmatch_lines([expected])


def test_a_test_with_more_devices_than_allowed_is_refused_at_collection(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(CHAT)

    result = pytester.runpytest("--device-max-sessions=1")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*test_chats: needs 2 devices at once, but --device-max-sessions allows only 1"
        ]
    )
    assert service.statuses() == []


def test_workers_never_exceed_the_session_limit(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.device(platform="android")
        def test_driven(device_client, device_sessions, n):
            (mine,) = device_sessions.values()
            assert mine.status == "in-progress"
        """
    )

    pytester.runpytest("-n2", "--device-max-sessions=1").assert_outcomes(passed=4)

    assert service.statuses() == ["stopped"] * 4

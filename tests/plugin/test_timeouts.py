"""pytest-timeout limits the time of a test, without the wait for its device."""

import pytest

from pytest_device.testing import FaultyService
from tests.controllers.appium_servers import appium, received
from tests.fakes.http_server import Answer, scripted_server

BOOT_SECONDS = 10


@pytest.fixture
def slow(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> FaultyService:
    """Provide a service whose devices boot longer than a test may take; tests share them."""
    monkeypatch.setenv("DEVICE_SHARE", "run")
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.5")
    service.add_fault("boot", "delay", seconds=BOOT_SECONDS, times=None)
    return service


@pytest.mark.parametrize(
    ("func_only", "options"),
    [
        ("true", ["-n2"]),
        *(
            pytest.param("false", options, marks=pytest.mark.nightly)
            for options in ([], ["--timeout-method=thread"])
        ),
    ],
)
def test_the_wait_for_a_device_does_not_count_towards_the_timeout(
    pytester: pytest.Pytester, slow: FaultyService, func_only: str, options: list[str]
) -> None:
    pytester.makeini(f"[pytest]\ntimeout = 7\ntimeout_func_only = {func_only}\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_waits_in_its_set_up(device_session): pass

        @pytest.mark.device(platform="ios")
        def test_waits_in_its_body(request): request.getfixturevalue("device_session")
        """
    )

    pytester.runpytest_subprocess(*options).assert_outcomes(passed=2)

    assert slow.statuses() == ["stopped", "stopped"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "func_only", [pytest.param("false", marks=pytest.mark.nightly), "true"]
)
def test_the_rest_of_a_test_has_the_timeout(
    pytester: pytest.Pytester, func_only: str
) -> None:
    pytester.makeini(f"[pytest]\ntimeout = 4\ntimeout_func_only = {func_only}\n")
    pytester.makepyfile(
        """
        import threading
        import pytest

        @pytest.mark.device(platform="android")
        def test_hangs(device_session): threading.Event().wait(60)
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>[1-4].?s) from pytest-timeout*"])


DRIVEN = """
import threading
import time
import pytest

pytestmark = pytest.mark.device(platform="android", type="appium", share="run")

@pytest.fixture
def device_appium_options(): return {"appium:appPackage": "com.example.notes"}
"""


@pytest.mark.parametrize(
    "fixture",
    [
        "device_driver",
        pytest.param("module_device_driver", marks=pytest.mark.nightly),
    ],
)
def test_a_device_whose_driver_was_starting_when_the_time_was_over_is_not_reused(
    pytester: pytest.Pytester, service: FaultyService, fixture: str
) -> None:
    pytester.makepyfile(
        f"""{DRIVEN}
@pytest.mark.timeout(4)
def test_slow({fixture}): pass
def test_next(device_session): pass
"""
    )

    with scripted_server() as controller:
        controller.answer = appium(session=Answer(rest=b" ", pause=60))
        config = {"appiumUrl": controller.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        result = pytester.runpytest()

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*Timeout (>*s) from pytest-timeout*",
            "devices: 2 created, 2 stopped (confirmed); *",
        ]
    )


def test_timeouts_of_two_tests_do_not_refuse_the_driver_of_a_third(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        f"""{DRIVEN}
@pytest.mark.timeout(3)
@pytest.mark.parametrize("n", range(2))
def test_slow(device_driver, n): pass
def test_without_a_timeout(device_driver): pass
"""
    )

    with scripted_server() as controller:
        slow, fast = appium(session=Answer(rest=b" ", pause=60)), appium()

        def answer(call: str) -> Answer:
            return (
                slow(call) if len(received(controller, "/session")) < 3 else fast(call)
            )

        controller.answer = answer
        config = {"appiumUrl": controller.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        result = pytester.runpytest()

    result.assert_outcomes(errors=2, passed=1)

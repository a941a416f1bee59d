"""pytest-timeout limits the time of a test, without the wait for its device."""

from typing import NamedTuple

import pytest

from pytest_device.plugin.provider.timeouts import TimerNotes, start_limited
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


LOADS_THE_CLIENT_SLOWLY = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "appium.webdriver":
            time.sleep(2)

for name in [name for name in sys.modules if name.partition(".")[0] == "appium"]:
    del sys.modules[name]
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize(
    ("fixture", "seconds"),
    [
        ("device_driver", 4),
        pytest.param("module_device_driver", 4, marks=pytest.mark.nightly),
        # Loads the client, which takes a while.
        ("request", 8),
    ],
)
def test_a_timeout_while_a_driver_starts_is_a_short_infrastructure_error(
    pytester: pytest.Pytester, service: FaultyService, fixture: str, seconds: int
) -> None:
    start = (
        'request.getfixturevalue("device_driver")' if fixture == "request" else "pass"
    )
    pytester.makepyfile(
        f"""{DRIVEN}
@pytest.mark.timeout({seconds})
def test_slow({fixture}): {start}
def test_next(device_session): pass
"""
    )

    with scripted_server() as controller:
        controller.answer = appium(session=Answer(rest=b" ", pause=60))
        config = {"appiumUrl": controller.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        if fixture == "request":
            pytester.makeconftest(LOADS_THE_CLIENT_SLOWLY)
            result = pytester.runpytest_subprocess()
        else:
            result = pytester.runpytest()

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            f"infrastructure: the test's timeout of {seconds} s (pytest-timeout) ended while the Appium driver was starting, *",
            "devices: 2 created, 2 stopped (confirmed); *",  # what is still starting could disturb the next test
        ]
    )
    assert len(result.outlines) <= 30
    result.stdout.no_fnmatch_line("*urllib3*")


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


def test_a_driver_whose_start_never_ends_but_sends_data_is_ended_by_the_tests_timeout(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        f"""{DRIVEN}
@pytest.mark.timeout(3)
def test_slow(device_driver): pass
"""
    )

    with scripted_server() as controller:
        controller.answer = appium(session=Answer(rest=b" ", pause=0.1))
        config = {"appiumUrl": controller.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["infrastructure: the test's timeout of 3 s (pytest-timeout) ended while *"]
    )
    assert service.statuses() == ["stopped"]


class TimerSettings(NamedTuple):
    """The part of pytest-timeout's settings in use."""

    timeout: float


class Timers:
    """Stands in for the timers of pytest-timeout."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        """After which a timer ends the test, None without one."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, settings: TimerSettings) -> bool:
        self.seconds = settings.timeout
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_cancel_timer(self) -> bool:
        self.seconds = None
        return True


def test_a_test_whose_driver_starts_when_its_time_is_over_has_a_timer(
    pytester: pytest.Pytester,
) -> None:
    item = pytester.getitem("def test_func(): pass")
    timers = Timers()
    item.config.pluginmanager.register(timers)
    TimerNotes().pytest_timeout_set_timer(item, TimerSettings(-0.5))  # it is over

    with start_limited(item, lost=pytest.fail):
        pass

    assert timers.seconds == 0.1

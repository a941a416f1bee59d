"""How long tests and boots take, remembered from run to run."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_device import SessionRequest
from pytest_device.scheduling.history import History, boot_key
from pytest_device.sessions.boots import boot_seconds
from pytest_device.sessions.models import Session
from pytest_device.testing import FaultyService

APP = "11111111-2222-4333-8444-555555555555"
BUILD = "21111111-2222-4333-8444-555555555555"


class Cache:
    """As much of pytest's as is used, across the border of JSON."""

    def __init__(self, **values: object) -> None:
        self.files = {f"device/{name}": json.dumps(value) for name, value in values.items()}

    def get(self, key: str, default: object) -> object:
        return json.loads(self.files[key]) if key in self.files else default

    def set(self, key: str, value: object) -> None:
        self.files[key] = json.dumps(value)


def later(cache: Cache, history: History) -> History:
    history.save()
    return History(cache)


def test_of_a_test_the_mean_of_old_and_new_is_remembered() -> None:
    cache = Cache()
    first = History(cache)
    assert first.test_seconds("test_a.py::test") is None
    first.add_test("test_a.py::test", 4.0)
    second = later(cache, first)
    assert second.test_seconds("test_a.py::test") == 4.0
    second.add_test("test_a.py::test", 2.0)

    assert later(cache, second).test_seconds("test_a.py::test") == 3.0


def test_the_newest_twenty_thousand_tests_are_remembered() -> None:
    cache = Cache(test_seconds={str(number): 1.0 for number in range(20_000)})
    history = History(cache)
    history.add_test("0", 1.0)
    history.add_test("new", 1.0)

    known = later(cache, history)

    assert [known.test_seconds(test) for test in ("0", "new", "1", "2")] == [1.0, 1.0, None, 1.0]


def test_the_newest_fifty_boots_are_remembered() -> None:
    cache = Cache(boot_seconds={"ios appium": [float(number) for number in range(60)]})
    history = History(cache)
    assert history.boots("ios appium") == tuple(range(10, 60))
    history.add_boot("ios appium", 60.0)

    assert later(cache, history).boots("ios appium") == tuple(range(11, 61))


def test_the_usual_boot_is_the_median_and_of_an_unknown_device_that_of_its_kin() -> None:
    history = History(
        Cache(
            boot_seconds={"ios appium": [1, 2, 90], "ios appium 0f": [40, 60], "android appium": [7], "ios argent": []}
        )
    )

    assert history.usual_boot("ios appium") == 2
    assert history.usual_boot("ios appium 0f") == 50
    assert history.usual_boot("ios appium 3c") == 40
    assert history.usual_boot("ios argent") is None


def test_without_a_cache_nothing_is_known_of_earlier_runs() -> None:
    history = History(None)
    history.add_test("test", 2.0)
    history.add_boot("ios appium", 3.0)
    history.save()

    assert (history.test_seconds("test"), history.usual_boot("ios appium")) == (2.0, 3.0)
    assert History(None).test_seconds("test") is None


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e9])
def test_a_time_that_cannot_be_is_not_remembered(seconds: float) -> None:
    cache = Cache()
    history = History(cache)
    history.add_test("test", seconds)
    history.add_boot("ios appium", seconds)
    history.save()

    assert cache.files == {}


@pytest.mark.parametrize(
    "damaged",
    ["{", "[3]", "3", '{"test": "4"}', '{"test": [NaN, -1]}', '{"test": 1e9}', pytest.param("[" * 9**5, id="brackets")],
)
def test_a_damaged_cache_is_as_good_as_none(pytester: pytest.Pytester, damaged: str) -> None:
    cache = pytester.parseconfigure().cache
    assert cache is not None
    for name in ("test_seconds", "boot_seconds"):
        cache.set(f"device/{name}", None)
        Path(f".pytest_cache/v/device/{name}").write_text(damaged)
    history = History(cache)

    assert history.test_seconds("test") is None
    assert history.usual_boot("test") is None
    history.add_test("test", 2.0)
    history.add_boot("test", 2.0)
    history.save()
    assert History(cache).test_seconds("test") == History(cache).usual_boot("test") == 2.0


def request(**arguments: Any) -> SessionRequest:
    return SessionRequest.from_arguments(**{"app_id": APP, "platform": "ios", "type": "appium"} | arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"name": "mine"}, {"max_duration_minutes": 7}, {"max_idle_time_minutes": 3}, {"app_id": BUILD}],
)
def test_what_a_boot_does_not_depend_on_makes_no_difference(arguments: Mapping[str, Any]) -> None:
    assert boot_key(request(**arguments)) == boot_key(request()) == "ios appium"


def test_each_thing_that_a_boot_depends_on_makes_a_difference() -> None:
    several: list[dict[str, Any]] = [
        {},
        {"platform": "android"},
        {"type": "argent"},
        {"device_identifier": "iPhone 17"},
        {"device_identifier": "iPhone 17 Pro"},
        {"package_version": "3.1"},
        {"package_version": "iPhone 17"},
        {"build_id": BUILD},
        {"application_archive_url": "https://builds.example/app"},
        {"vendor_go": True},
        {"vendor_go": True, "sdk_version": "54"},
    ]

    assert len({boot_key(request(**arguments)) for arguments in several}) == len(several)


def test_a_key_tells_nothing_that_may_be_a_secret() -> None:
    source = {"application_archive_url": "https://me:hidden@builds.example/app?X-Signature=hidden"}
    secret = request(**source, device_identifier="hidden", launch_args=["hidden"], open_url="app://hidden")

    assert "hidden" not in boot_key(secret)
    assert boot_key(secret) == boot_key(
        request(application_archive_url="https://builds.example/other", device_identifier="hidden")
    )


def session(**times: datetime) -> Session:
    made = datetime(2026, 11, 21, tzinfo=UTC)
    values = {"id": BUILD, "app_id": APP, "url": "https://devices.example/1", "job_run_id": "1", "type": "appium"}
    told = {"platform": "ios", "status": "in-progress", "max_duration_minutes": 30}
    wire = {name: time.isoformat() for name, time in {"created_at": made, "updated_at": made, **times}.items()}
    return Session.model_validate(values | told | wire, by_name=True)


def test_a_boot_took_what_the_service_says() -> None:
    made = datetime(2026, 11, 21, tzinfo=UTC)

    assert boot_seconds(session(started_at=made + timedelta(seconds=52.5))) == 52.5
    assert boot_seconds(session(started_at=made - timedelta(seconds=1))) is None
    assert boot_seconds(session()) is None


TIMES = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call):
    report = yield
    report.duration = {"setup": 50, "call": 8, "teardown": 1}[call.when]
    if call.when == "setup":
        report.device_waited = 46
    return report
"""
SUITE = """
import pytest

pytestmark = pytest.mark.device(platform="android", share="run")

def test_passes(device_session): pass
def test_fails(device_session): assert 0
def test_is_skipped(device_session): pytest.skip()
@pytest.mark.skip
def test_is_not_even_set_up(device_session): pass
@pytest.mark.xfail
def test_is_expected_to_fail(device_session): assert 0
def test_loses_its_device(device_session, device_client):
    device_client.stop(device_session.id)
    assert 0
"""


TWO = """
import pytest

pytestmark = pytest.mark.device(platform="android")

def test_first(): pass
def test_second(): pass
"""


def remembered() -> dict[str, float]:
    times: dict[str, float] = json.loads(Path(".pytest_cache/v/device/test_seconds").read_text())
    return times


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_tests_that_ran_are_remembered_without_their_wait_for_a_device(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    pytester.makeconftest(TIMES)
    pytester.makepyfile(test_it=SUITE)

    pytester.runpytest(*distributed).assert_outcomes(passed=1, failed=1, skipped=2, xfailed=1, errors=1)

    names = ["test_passes", "test_fails", "test_is_expected_to_fail"]
    assert remembered() == {f"test_it.py::{name}": 13.0 for name in names}


def test_a_test_that_had_no_device_is_not_remembered(pytester: pytest.Pytester, service: FaultyService) -> None:
    service.add_fault("boot", "fail", reason="no booted device", times=1)
    pytester.makepyfile(test_it=TWO)

    pytester.runpytest().assert_outcomes(passed=1, errors=1)

    assert list(remembered()) == ["test_it.py::test_second"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_a_suite_without_devices_is_not_remembered(pytester: pytest.Pytester, distributed: list[str]) -> None:
    pytester.makepyfile("def test_plain(): pass")

    pytester.runpytest(*distributed).assert_outcomes(passed=1)

    assert not Path(".pytest_cache/v/device").exists()


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_a_run_without_pytest_s_cache_remembers_nothing(pytester: pytest.Pytester, distributed: list[str]) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("-p", "no:cacheprovider", "-k", "passes", *distributed)

    result.assert_outcomes(passed=1, deselected=0 if distributed else 5)
    assert not Path(".pytest_cache").exists()

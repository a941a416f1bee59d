"""A crash of the app's page: the app's fault, and the device stays."""

from typing import Any, Final

import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import WebDriverException

from tests.service.appium_driver.conftest import (
    APP,
    APP_ID,
    seen,
)

CRASHED: Final = f"The application under test with bundle id '{APP_ID}' is not running, possibly crashed"
SUITE: Final = """
import pytest
pytestmark = pytest.mark.device(platform="{platform}", type="appium", share="run")
seen = []

@pytest.fixture
def device_appium_options():
    return {{"appium:app": {app!r}, "{id}": "{app_id}"}}

def crash(driver):
    driver.command_executor.add_command("cdp", "POST", "/session/$sessionId/goog/cdp/execute")
    driver.execute("cdp", {{"cmd": "Page.crash", "params": {{}}}})

def test_crashes(device_driver, device_session):
    seen.append(device_session.id)
    crash(device_driver)

def test_uses_it_after(device_driver, device_session):
    device_driver.implicitly_wait(10)
    assert device_driver.find_element("xpath", "//*[@resource-id='title' or @name='title']").text == "Notes"
    assert seen == [device_session.id]
"""


@pytest.fixture(params=["phone", "iphone"])
def driver(request: pytest.FixtureRequest) -> Remote:
    """The app launches again on the device that other tests use, too."""
    driver: Remote = request.getfixturevalue(request.param)
    return driver


def crash(driver: Remote) -> None:
    commands: Any = driver.command_executor
    commands.add_command("cdp", "POST", "/session/$sessionId/goog/cdp/execute")
    with pytest.raises(WebDriverException, match="crashed"):
        driver.execute("cdp", {"cmd": "Page.crash", "params": {}})


def test_a_crash_is_reported_until_the_app_is_launched_again(driver: Remote) -> None:
    crash(driver)

    for ask in (
        lambda: seen(driver, "title"),
        driver.get_screenshot_as_png,
        lambda: driver.tap([(9, 9)]),
    ):
        with pytest.raises(WebDriverException, match=CRASHED):
            ask()
    assert driver.query_app_state(APP_ID) == 1
    log = driver.get_log(
        "crashlog" if driver.capabilities["platformName"].lower() == "ios" else "logcat"
    )
    assert "the page has crashed (crashed)" in [line["message"] for line in log]

    driver.activate_app(APP_ID)
    assert (seen(driver, "title").text, driver.query_app_state(APP_ID)) == ("Notes", 4)


def test_a_crash_of_the_web_view_is_reported_in_the_native_context_too(
    driver: Remote,
) -> None:
    driver.switch_to.context(f"WEBVIEW_{APP_ID}")
    crash(driver)

    driver.switch_to.context("NATIVE_APP")
    with pytest.raises(WebDriverException, match=CRASHED):
        seen(driver, "title")

    driver.activate_app(APP_ID)
    assert seen(driver, "title").text == "Notes"


def test_a_crash_in_the_background_is_reported_when_the_app_returns(
    phone: Remote,
) -> None:
    phone.background_app(-1)
    phone.switch_to.context(f"WEBVIEW_{APP_ID}")
    crash(phone)
    phone.switch_to.context("NATIVE_APP")
    assert phone.query_app_state(APP_ID) == 1
    phone.activate_app(APP_ID)
    assert seen(phone, "title").text == "Notes"


# `plugin/test_appium` has the verdict on a crash that is reported in these words.
@pytest.mark.nightly
@pytest.mark.usefixtures("installed_programs")
@pytest.mark.parametrize(
    ("platform", "capability"),
    [("android", "appium:appPackage"), ("ios", "appium:bundleId")],
)
def test_the_verdict_on_a_crash_is_the_app_and_the_next_test_has_the_same_device(
    pytester: pytest.Pytester, platform: str, capability: str
) -> None:
    pytester.makepyfile(
        test_it=SUITE.format(
            platform=platform, app=str(APP), id=capability, app_id=APP_ID
        )
    )

    result = pytester.runpytest_subprocess("--device-local", "-v")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["test_it.py::test_uses_it_after PASSED*"])
    result.stdout.fnmatch_lines(
        ["ERROR test_it.py::test_crashes - app: the app crashed: *"]
    )
    result.stdout.fnmatch_lines(
        [
            "devices: 1 created, 1 stopped (confirmed); *",
            "1 app error (not a test failure)",
            "app: test_it.py::test_crashes",
        ]
    )
    assert "infrastructure:" not in result.stdout.str()

"""A native app on an Android emulator or phone; without one, the tests are skipped."""

import shutil
import subprocess

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

ID = "io.appium.android.apis:id"


def has_device() -> bool:
    """Return whether adb lists a device that is ready."""
    adb = shutil.which("adb")
    if adb is None:
        return False
    listed = subprocess.run([adb, "devices"], capture_output=True, text=True, check=False)
    return any(line.endswith("\tdevice") for line in listed.stdout.splitlines())


# A run that names its device, or wants a real one, starts it or fails: in CI, a skipped test looks like a passed one.
pytestmark = [
    pytest.mark.device(platform="android", type="appium"),
    pytest.mark.skipif(
        "not config.getoption('--device-local-real') and not config.getoption('--device-avd') and not has_device()",
        reason="adb lists no device that is ready: start an emulator, or name one with --device-avd",
    ),
]


@pytest.fixture
def controls(device_driver: WebDriver) -> WebDriver:
    """Open the screen with one control of each kind."""
    device_driver.implicitly_wait(10)
    for title in ("Views", "Controls", "1. Light Theme"):
        device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, title).click()
    return device_driver


def test_checks_a_box(controls: WebDriver) -> None:
    box = controls.find_element(AppiumBy.ID, f"{ID}/check1")
    box.click()
    assert box.get_attribute("checked") == "true"


def test_types_a_text(controls: WebDriver) -> None:
    field = controls.find_element(AppiumBy.ID, f"{ID}/edit")
    field.send_keys("Ada")
    assert field.text == "Ada"

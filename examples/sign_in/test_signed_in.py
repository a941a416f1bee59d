"""The same app, started with a user who is already signed in."""

from collections.abc import Callable

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device.auth import TokenResponse

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


@pytest.fixture
def app_arguments(app_arguments: list[str], device_sign_in: Callable[[str], TokenResponse]) -> list[str]:
    tokens = device_sign_in("ada")
    return [*app_arguments, f"--access={tokens.access_token}"]


def test_begins_signed_in(device_driver: WebDriver) -> None:
    status = (AppiumBy.ACCESSIBILITY_ID, "status")
    WebDriverWait(device_driver, 10).until(expected_conditions.text_to_be_present_in_element(status, "Hello Ada"))

"""Tests that start with a signed-in user, through launch arguments or a deep link."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device.auth import launch_arguments, link_with_tokens
from pytest_device.auth.provider import IdentityProvider

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


def wait_for_greeting(driver: WebDriver) -> None:
    status = by_test_id("status")
    WebDriverWait(driver, 10).until(expected_conditions.text_to_be_present_in_element(status, "Hello Ada"))


class TestByLaunchArguments:
    @pytest.fixture
    def app_arguments(self, app_arguments: list[str], device_identity_provider: IdentityProvider) -> list[str]:
        return [*app_arguments, *launch_arguments(device_identity_provider.sign_in("ada"))]

    def test_begins_signed_in(self, device_driver: WebDriver) -> None:
        wait_for_greeting(device_driver)


def test_a_link_signs_in(device_driver: WebDriver, device_identity_provider: IdentityProvider) -> None:
    tokens = device_identity_provider.sign_in("ada")
    device_driver.get(link_with_tokens("account://signed-in", tokens))

    wait_for_greeting(device_driver)

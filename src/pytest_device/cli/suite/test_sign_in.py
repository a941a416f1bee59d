"""Each test runs twice: on Android and on iOS."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium")


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


def test_greets_the_user(device_driver: WebDriver):
    device_driver.find_element(*by_test_id("name")).send_keys("Ada")
    device_driver.find_element(*by_test_id("sign-in")).click()
    assert device_driver.find_element(*by_test_id("message")).text == "Welcome, Ada"


def test_requires_a_name(device_driver: WebDriver):
    device_driver.find_element(*by_test_id("sign-in")).click()
    assert device_driver.find_element(*by_test_id("message")).text == "Enter your name"

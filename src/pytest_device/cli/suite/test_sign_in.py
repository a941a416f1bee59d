"""Each test runs twice: on Android and on iOS."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium")


def test_greets_the_user(device_driver: WebDriver):
    device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "name").send_keys("Ada")
    device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "sign-in").click()
    assert device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "message").text == "Welcome, Ada"


def test_requires_a_name(device_driver: WebDriver):
    device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "sign-in").click()
    assert device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "message").text == "Enter your name"

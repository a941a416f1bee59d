"""Locators, waits, deep links and `mobile:` commands as in UiAutomator2 and XCUITest suites."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device import Platform

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")

APP = {Platform.ANDROID: {"package": "org.example.notes"}, Platform.IOS: {"bundleId": "org.example.notes"}}
HEADING = {
    Platform.ANDROID: (AppiumBy.ANDROID_UIAUTOMATOR, 'new UiSelector().textStartsWith("Notes")'),
    Platform.IOS: (AppiumBy.IOS_PREDICATE, "label BEGINSWITH 'Notes'"),
}


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


def test_adds_a_note(device_driver: WebDriver, device_platform: Platform) -> None:
    device_driver.find_element(*by_test_id("text")).send_keys("buy milk")
    device_driver.find_element(*by_test_id("add")).click()
    heading = HEADING[device_platform]
    WebDriverWait(device_driver, 10).until(expected_conditions.text_to_be_present_in_element(heading, "Notes: 1"))


def test_begins_without_notes(device_driver: WebDriver, device_platform: Platform) -> None:
    assert device_driver.find_element(*HEADING[device_platform]).text == "Notes: 0"


def test_opens_a_deep_link(device_driver: WebDriver, device_platform: Platform) -> None:
    device_driver.execute_script("mobile: deepLink", {"url": "notes://notes/7", **APP[device_platform]})
    title = device_driver.find_element(*by_test_id("title"))
    assert title.text == "Note 7"


def test_turns_to_landscape(device_driver: WebDriver) -> None:
    device_driver.orientation = "LANDSCAPE"
    assert device_driver.orientation == "LANDSCAPE"

"""pytest-bdd scenarios: a tag selects the device, the steps use the plugin's fixtures."""

import pytest

pytest.importorskip("pytest_bdd")

from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from pytest_bdd import given, parsers, scenarios, then, when

scenarios("notes.feature")


@given("the app is open", target_fixture="app")
def app(device_driver: WebDriver) -> WebDriver:
    return device_driver


@when(parsers.parse('I write "{title}"'))
def write(app: WebDriver, title: str) -> None:
    app.find_element(AppiumBy.ACCESSIBILITY_ID, "title").send_keys(title)


@when(parsers.parse('I press "{button}"'))
def press(app: WebDriver, button: str) -> None:
    app.find_element(AppiumBy.ACCESSIBILITY_ID, button).click()


@then(parsers.parse('it says "{text}"'))
def says(app: WebDriver, text: str) -> None:
    assert app.switch_to.alert.text == text


@then(parsers.parse('the title is "{title}"'))
def has_title(app: WebDriver, title: str) -> None:
    assert app.find_element(AppiumBy.ACCESSIBILITY_ID, "title").text == title

"""Tests like those of public suites, with the locators and commands that they use on phones."""

from collections.abc import Generator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

import tests.spec.phones
from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import WAIT_SECONDS, driven
from tests.spec.phones.row import APP_ID, Command

APP: Final = Path(tests.spec.phones.__file__).parent / "app"
LOGIN: Final = """
  <h1 aria-label="Login-screen">Login</h1>
  <input aria-label="input-email" placeholder="Email">
  <input type="password" aria-label="input-password" placeholder="Password">
  <div role="button" tabindex="0" aria-label="button-LOGIN"
    onclick="document.querySelector('[role=alertdialog]').hidden = false">LOGIN</div>
  <div role="alertdialog" aria-labelledby="title" aria-describedby="text" hidden>
    <p id="title">Success</p><p id="text">You are logged in!</p>
    <button onclick="this.parentElement.hidden = true">OK</button>
  </div>"""
FORMS: Final = """
  <input aria-label="text-input" oninput="this.nextElementSibling.textContent = value">
  <p aria-label="">-</p>
  <input type="checkbox" role="switch" aria-label="switch">
  <select aria-label="Dropdown"><option>Select an item...</option>
    <option>webdriver.io is awesome</option><option>Appium is awesome</option></select>"""
SWIPE: Final = """
  <div style="display: flex; width: 300px; overflow-x: scroll" aria-label="Carousel">
    <p style="flex: none; width: 300px; height: 200px">GREAT COMMUNITY</p>
    <p style="flex: none; width: 300px; height: 200px">JS.FOUNDATION</p></div>"""


@pytest.fixture(scope="module")
def android_app(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(APP), "appium:appPackage": APP_ID}) as driver:
        yield driver
        driver.remove_app(APP_ID)


@pytest.fixture(scope="module")
def ios_app(ios: Session) -> Generator[Remote]:
    with driven(ios, {"app": str(APP), "appium:bundleId": APP_ID}) as driver:
        yield driver
        driver.remove_app(APP_ID)


@pytest.fixture(params=["android_app", "ios_app"])
def driver(request: pytest.FixtureRequest) -> Remote:
    driver: Remote = request.getfixturevalue(request.param)
    driver.implicitly_wait(WAIT_SECONDS)
    driver.activate_app(APP_ID)
    return driver


def is_ios(driver: Remote) -> bool:
    return bool(driver.capabilities["platformName"].lower() == "ios")


def show(driver: Remote, page: str) -> None:
    driver.get(f"table:///?page={quote(page)}")


def test_a_login_ends_in_a_native_alert(driver: Remote) -> None:
    show(driver, LOGIN)
    for name in ("input-email", "input-password"):
        driver.find_element(By.ACCESSIBILITY_ID, name).send_keys("someone")
    if driver.is_keyboard_shown():  # an iPhone doesn't hide it by a command
        driver.find_element(By.ACCESSIBILITY_ID, "Login-screen").click()
    driver.find_element(By.ACCESSIBILITY_ID, "button-LOGIN").click()

    if is_ios(driver):
        alert = (By.IOS_PREDICATE, "type == 'XCUIElementTypeAlert'")
        text = driver.find_element(*alert).get_attribute("label")
        button = (By.ACCESSIBILITY_ID, "OK")
    else:
        alert = (
            By.XPATH,
            '*//android.widget.TextView[@resource-id="android:id/alertTitle"]',
        )
        text = driver.find_element(*alert).text
        button = (By.XPATH, '*//android.widget.Button[@text="OK"]')
    shown = WebDriverWait(driver, WAIT_SECONDS).until(
        expected_conditions.alert_is_present()
    )
    assert (text, shown.text) == ("Success", "Success\nYou are logged in!")
    driver.find_element(*button).click()

    gone = expected_conditions.invisibility_of_element_located(alert)
    driver.implicitly_wait(0)
    assert WebDriverWait(driver, WAIT_SECONDS).until(gone)


def test_a_switch_and_a_dropdown_take_a_value(driver: Remote) -> None:
    show(driver, FORMS)
    switch = driver.find_element(By.ACCESSIBILITY_ID, "switch")
    switch.click()
    if is_ios(driver):
        assert switch.get_attribute("value") == "1"
    else:
        assert switch.get_attribute("checked") == "true"

    dropdown = driver.find_element(By.ACCESSIBILITY_ID, "Dropdown")
    dropdown.click()
    if is_ios(driver):
        wheel = driver.find_element(By.XPATH, "*//XCUIElementTypePickerWheel")
        wheel.send_keys("Appium is awesome")
        driver.find_element(By.ACCESSIBILITY_ID, "Done").click()
        assert dropdown.get_attribute("value") == "Appium is awesome"
    else:
        option = "//android.widget.ListView/*[@text='Appium is awesome']"
        driver.find_element(By.XPATH, option).click()
        assert dropdown.text == "Appium is awesome"


def test_a_swipe_shows_the_next_card(driver: Remote) -> None:
    show(driver, SWIPE)
    next_card = "//*[@text='JS.FOUNDATION' or @label='JS.FOUNDATION']"
    before = driver.find_element(By.XPATH, next_card).rect["x"]
    driver.swipe(280, 100, 20, 100, 400)
    after = driver.find_element(By.XPATH, next_card).rect["x"]
    assert after < before


def test_an_event_that_was_logged_is_listed(driver: Remote) -> None:
    driver.log_event("vendor", "checked")
    assert "vendor:checked" in driver.get_events()
    described = Command("GET", "")(driver)
    assert isinstance(described, dict)
    assert described["platformName"] == driver.capabilities["platformName"]


def test_a_permission_is_asked_for_again_after_it_was_reset(ios_app: Remote) -> None:
    ios_app.activate_app(APP_ID)
    asks = "navigator.mediaDevices.getUserMedia({video: true}).catch(() => {})"
    show(ios_app, f'<button onclick="{asks}">Ask</button>')
    camera = {"service": "camera"}
    for _ in range(2):
        ios_app.execute_script("mobile: resetPermission", camera)
        ios_app.find_element(By.CLASS_NAME, "XCUIElementTypeButton").click()
        alert = WebDriverWait(ios_app, WAIT_SECONDS).until(
            expected_conditions.alert_is_present()
        )
        assert alert.text.endswith("Would Like to Access the Camera")
        alert.dismiss()
    assert (
        ios_app.execute_script("mobile: getPermission", {**camera, "bundleId": APP_ID})
        == "no"
    )

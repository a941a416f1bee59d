"""The same screen on both platforms: find elements, type, click, read text, take a screenshot."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

from pytest_device import Session

# The app is a file for Appium's fake device; the markers below extend this one. Remove it for your own app.
pytestmark = pytest.mark.device(device_identifier="fake")

PNG = b"\x89PNG\r\n\x1a\n"


def sign_in(driver: WebDriver, name: str) -> str:
    """Fill in the form, click the button and return the greeting."""
    username = driver.find_element(AppiumBy.ACCESSIBILITY_ID, "username")
    username.send_keys(name)
    assert username.text == name
    driver.find_element(AppiumBy.ACCESSIBILITY_ID, "password").send_keys("correct horse")
    driver.find_element(AppiumBy.ACCESSIBILITY_ID, "sign-in").click()
    greeting: str = driver.switch_to.alert.text
    driver.switch_to.alert.accept()
    return greeting


@pytest.mark.device(platform="android", type="appium")
def test_signs_in_on_android(device_session: Session, device_driver: WebDriver) -> None:
    assert device_session.platform == "android"
    assert sign_in(device_driver, "ada") == "Welcome back"


@pytest.mark.device(platform="ios", type="appium")
def test_signs_in_on_ios(device_session: Session, device_driver: WebDriver) -> None:
    assert device_session.platform == "ios"
    assert sign_in(device_driver, "grace") == "Welcome back"


@pytest.mark.device(platform="android", type="appium")
class TestScreen:
    def test_shows_its_parts(self, device_driver: WebDriver) -> None:
        source = device_driver.page_source
        assert 'id="username"' in source
        assert 'id="sign-in"' in source

    def test_offers_no_recovery_yet(self, device_driver: WebDriver) -> None:
        assert not device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "forgotten").is_enabled()

    def test_can_be_photographed(self, device_driver: WebDriver) -> None:
        assert device_driver.get_screenshot_as_png().startswith(PNG)

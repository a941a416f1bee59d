"""Tests that run on both platforms: ``test_asks_before_it_discards[android]`` and ``[ios]``.

``--device-platform ios`` runs the iOS half, ``--device-spread`` runs each test on one of its platforms.
"""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

from pytest_device import Platform

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium")

BACK = {Platform.ANDROID: "Navigate up", Platform.IOS: "Back"}


def test_asks_before_it_discards(device_driver: WebDriver, device_platform: Platform) -> None:
    device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, BACK[device_platform]).click()
    assert device_driver.switch_to.alert.text == "Discard the note?"


@pytest.mark.device(platform="ios")  # the closest marker wins, argument by argument
def test_shares_via_air_drop(device_driver: WebDriver) -> None:
    assert device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "Share via AirDrop").is_displayed()

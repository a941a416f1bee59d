"""Two devices in one test: one named marker each; the devices boot in parallel."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

from pytest_device import Session

APP = str(Path(__file__).with_name("app.xml"))


@pytest.fixture
def device_appium_options() -> dict[str, dict[str, str]]:
    """Return the options of each device; options without names would apply to both."""
    return {"alice": {"appium:app": APP}, "bob": {"appium:app": APP, "appium:language": "fr"}}


@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios")
@pytest.mark.device(type="appium")  # without a name: applies to both
def test_bob_joins_with_the_code_on_the_phone_of_alice(
    device_sessions: Mapping[str, Session], device_drivers: Mapping[str, WebDriver]
) -> None:
    assert device_sessions["alice"].platform == "android"
    assert device_sessions["bob"].platform == "ios"
    alice, bob = device_drivers["alice"], device_drivers["bob"]

    alice.find_element(AppiumBy.ACCESSIBILITY_ID, "invite").click()
    _, _, code = alice.switch_to.alert.text.rpartition(" ")
    bob.find_element(AppiumBy.ACCESSIBILITY_ID, "code").send_keys(code)
    bob.find_element(AppiumBy.ACCESSIBILITY_ID, "join").click()

    assert bob.switch_to.alert.text == "Alice is here"

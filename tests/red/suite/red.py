"""A suite that fails: each test leaves a trace. One test passes, and leaves none."""

import sys
from collections.abc import Mapping

import pytest
from appium import webdriver
from appium.options.common import AppiumOptions
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device import AgentDevice, AppiumConfig, Argent, Session, device_step

ID = "accessibility id"
NOTES = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11"

fake = pytest.mark.device(type="appium", device_identifier="fake")
web = pytest.mark.device(device_identifier="chromium", build_id=NOTES)


@fake
@pytest.mark.device(platform="android")
def test_waits_on_android(device_driver: WebDriver, signed_in: str) -> None:
    assert signed_in == "correct horse"
    sys.stdout.write("a line of output\n")
    device_driver.find_element(ID, "username").send_keys("ada")
    with device_step("leave"):
        wait = WebDriverWait(device_driver, 1)
        wait.until(expected_conditions.presence_of_element_located((ID, "sign-out")))


@fake
@pytest.mark.device(platform="ios")
def test_asserts_on_ios(device_driver: WebDriver) -> None:
    device_driver.find_element(ID, "sign-in").click()
    assert device_driver.switch_to.alert.text == "Goodbye"


@fake
@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios")
def test_two_devices(device_drivers: Mapping[str, WebDriver]) -> None:
    alice, bob = device_drivers["alice"], device_drivers["bob"]
    alice.find_element(ID, "invite").click()
    bob.find_element(ID, "code").send_keys("123456")
    bob.find_element(ID, "leave").click()


@web
@pytest.mark.device(platform="android", type="agent-device")
def test_agent_device(device_agent_device: AgentDevice) -> None:
    device_agent_device.open("org.example.notes")
    device_agent_device.fill('label="Text"', "buy milk")
    device_agent_device.press('label="Add"')
    device_agent_device.type("correct horse")
    device_agent_device.press('label="Adds"')


@web
@pytest.mark.device(platform="ios", type="argent")
def test_argent(device_argent: Argent) -> None:
    assert "Notes: 0" in device_argent.describe()
    device_argent.call("gesture-tap", x=0.5, y=0.15)
    device_argent.call("keyboard", text="correct horse")
    device_argent.call("gesture-tap", x=0.5, y=0.22)
    assert "Notes: 9" in device_argent.describe()


@pytest.mark.device(platform="android", type="appium", device_identifier="chromium")
def test_films(device_driver: WebDriver) -> None:
    device_driver.find_element(ID, "Text").send_keys("buy milk")
    device_driver.find_element(ID, "Add").click()
    assert "Notes: 9" in device_driver.page_source


@fake
@pytest.mark.device(platform="android")
def test_driver_of_its_own(device_session: Session) -> None:
    config = device_session.remote_config
    assert isinstance(config, AppiumConfig)
    options = AppiumOptions().load_capabilities(dict(config.capabilities))
    driver = webdriver.Remote(config.appium_url, options=options)
    driver.quit()
    assert not sys.modules, "made its own driver"


@fake
@pytest.mark.device(platform="android")
def test_passes(device_driver: WebDriver) -> None:
    assert device_driver.find_element(ID, "sign-in").is_enabled()

"""Fixtures of the suite: a driver and the first page."""

from pathlib import Path

import pytest
from appium.options.android import UiAutomator2Options
from appium.webdriver.webdriver import WebDriver
from pages import SignInPage

APP = Path(__file__).with_name("app.xml")


@pytest.fixture
def device_appium_options() -> UiAutomator2Options:
    return UiAutomator2Options().load_capabilities({"appium:app": str(APP), "appium:language": "en"})


@pytest.fixture
def driver(device_driver: WebDriver) -> WebDriver:
    return device_driver


@pytest.fixture
def sign_in_page(driver: WebDriver) -> SignInPage:
    return SignInPage(driver)

"""Fixtures of the suite: a driver and the first page."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from appium import webdriver
from appium.options.android import UiAutomator2Options
from appium.webdriver.webdriver import WebDriver
from pages import SignInPage

APP = Path(__file__).with_name("app.xml")


@pytest.fixture
def options() -> UiAutomator2Options:
    return UiAutomator2Options().load_capabilities({"appium:app": str(APP), "appium:language": "en"})


@pytest.fixture
def driver(options: UiAutomator2Options) -> Iterator[WebDriver]:
    driver = webdriver.Remote(os.environ["APPIUM_URL"], options=options)
    yield driver
    driver.quit()


@pytest.fixture
def sign_in_page(driver: WebDriver) -> SignInPage:
    return SignInPage(driver)

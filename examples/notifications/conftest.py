"""The app under test, which has a service worker."""

from pathlib import Path

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions

from pytest_device import Platform

APP = Path(__file__).with_name("app")


@pytest.fixture
def device_appium_options(device_platform: Platform) -> AppiumOptions:
    options = UiAutomator2Options() if device_platform == Platform.ANDROID else XCUITestOptions()
    options.app = str(APP)
    return options

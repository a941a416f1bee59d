"""The app under test, which has a service worker."""

from pathlib import Path

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions

from pytest_device import Platform

APP = Path(__file__).with_name("app")


@pytest.fixture
def app_id() -> str:
    return "org.example.notes"


@pytest.fixture
def device_appium_options(device_platform: Platform, app_id: str) -> AppiumOptions:
    match device_platform:
        case Platform.ANDROID:
            android = UiAutomator2Options()
            android.app = str(APP)
            android.app_package = app_id
            return android
        case Platform.IOS:
            ios = XCUITestOptions()
            ios.app = str(APP)
            ios.bundle_id = app_id
            return ios

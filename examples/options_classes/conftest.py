"""Options classes of the Appium client, as for real devices, unchanged on the local device."""

from pathlib import Path

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions

from pytest_device import Platform

# A path works because the local service's Appium runs on this machine. A remote one needs a URL here.
APP = Path(__file__).parent.parent / "builds/5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a11/app"


@pytest.fixture
def device_appium_options(device_platform: Platform) -> AppiumOptions:
    match device_platform:
        case Platform.ANDROID:
            android = UiAutomator2Options()
            android.app = str(APP)
            android.app_package = "org.example.notes"
            android.auto_grant_permissions = True
            return android
        case Platform.IOS:
            ios = XCUITestOptions()
            ios.app = str(APP)
            ios.bundle_id = "org.example.notes"
            return ios

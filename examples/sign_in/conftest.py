"""Fixtures for the app under test and its identity provider."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions

from pytest_device import Platform

pytest.importorskip("joserfc", reason="needs the extra services: pip install 'pytest-device[services]'")

from pytest_device.auth.provider import IdentityProvider, User  # requires joserfc

APP = Path(__file__).with_name("app")


@pytest.fixture(scope="session")
def device_service_settings() -> Mapping[str, Mapping[str, Any]]:
    ada = User("ada", {"name": "Ada Lovelace"}, password="analytical engine")  # noqa: S106  # test data
    return {"device_identity_provider": {"users": [ada]}}


@pytest.fixture
def app_arguments(device_identity_provider: IdentityProvider) -> list[str]:
    """Return the launch arguments of the app. Tests that start signed in override this to add tokens."""
    return [f"--issuer={device_identity_provider.issuer}"]


@pytest.fixture
def device_appium_options(device_platform: Platform, app_arguments: list[str]) -> AppiumOptions:
    match device_platform:
        case Platform.ANDROID:
            android = UiAutomator2Options()
            android.app = str(APP)
            android.optional_intent_arguments = " ".join(app_arguments)
            return android
        case Platform.IOS:
            ios = XCUITestOptions()
            ios.app = str(APP)
            ios.process_arguments = {"args": app_arguments}
            return ios

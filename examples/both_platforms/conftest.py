"""Each platform has its own build: Appium options can depend on the platform."""

from pathlib import Path

import pytest

from pytest_device import Platform

BUILDS = {Platform.ANDROID: "android.xml", Platform.IOS: "ios.xml"}


@pytest.fixture
def device_appium_options(device_platform: Platform) -> dict[str, str]:
    return {"appium:app": str(Path(__file__).with_name(BUILDS[device_platform]))}

"""The app under test and its project. If the ini file sets ``device_app_root``, you can omit ``device_app``."""

from pathlib import Path

import pytest

from pytest_device import Platform
from pytest_device.app import Project, load_project

HERE = Path(__file__).parent
BUILD = HERE / "web"  # a web build; for a native app, the URL of its .apk or .app archive
INSTALLED = {Platform.ANDROID: "appium:appPackage", Platform.IOS: "appium:bundleId"}


@pytest.fixture(scope="session")
def device_app() -> Project:
    return load_project(HERE / "app", dynamic="never")


@pytest.fixture
def device_appium_options(device_app: Project, device_platform: Platform) -> dict[str, str | None]:
    return {"appium:app": str(BUILD), INSTALLED[device_platform]: device_app.identifier(device_platform)}

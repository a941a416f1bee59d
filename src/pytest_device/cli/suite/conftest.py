"""The app under test."""

from pathlib import Path

import pytest

APP = Path(__file__).with_name("app")  # a web build; for a native app, the URL of its .apk or .app archive


@pytest.fixture
def device_appium_options():
    return {"appium:app": str(APP)}

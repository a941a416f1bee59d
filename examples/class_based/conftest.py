"""The app under test."""

from pathlib import Path

import pytest


@pytest.fixture
def device_appium_options() -> dict[str, str]:
    return {"appium:app": str(Path(__file__).with_name("app.xml"))}

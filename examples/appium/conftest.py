"""The app under test, set as a capability because the Appium client installs it."""

from pathlib import Path

import pytest


@pytest.fixture
def device_appium_options() -> dict[str, str]:
    # A path works because the local service's Appium runs on this machine. A remote one needs a URL here.
    return {"appium:app": str(Path(__file__).with_name("app.xml"))}

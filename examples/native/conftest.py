"""The app under test: an APK from npm, which ``npm ci --ignore-scripts`` in this directory puts there."""

from pathlib import Path

import pytest

APP = Path(__file__).parent / "node_modules/android-apidemos/apks/ApiDemos-debug.apk"


@pytest.fixture
def device_appium_options() -> dict[str, str]:
    return {"appium:app": str(APP)}

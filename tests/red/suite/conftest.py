import os
from pathlib import Path
from typing import Any

import pytest
from appium.webdriver.webdriver import WebDriver

HERE = Path(__file__).parent


@pytest.fixture
def device_appium_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    marks = request.node.iter_markers("device")
    if any(mark.kwargs.get("device_identifier") == "chromium" for mark in marks):
        return {"appium:app": os.environ["NOTES_APP"]}
    if "device_driver" not in request.fixturenames:
        app = str(HERE / "chat.xml")
        return {name: {"appium:app": app} for name in ("alice", "bob")}
    return {"appium:app": str(HERE / "app.xml")}


@pytest.fixture
def signed_in(device_driver: WebDriver) -> str:
    """Sign in, as a fixture of the suite."""
    password = device_driver.find_element("accessibility id", "password")
    password.send_keys("correct horse")
    return str(password.text)

"""The fixtures: each joins two steps of the flow."""

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.sessions.models import Session


@pytest.fixture
def device_session(request: pytest.FixtureRequest) -> "Generator[Session]":
    """Provide the test's device session: in progress, with its connection details; stopped after the test."""
    from pytest_device.plugin.run import leased

    with leased(request.node) as session:
        yield session


@pytest.fixture
def device_appium_options() -> "AppiumOptions | Mapping[str, Any]":
    """Say what the suite wants of Appium: override it to return capabilities or one of the client's option classes.

    They win over the capabilities that the service gives for its device.
    """
    return {}


@pytest.fixture
def device_driver(
    device_session: "Session", device_appium_options: "AppiumOptions | Mapping[str, Any]"
) -> "Generator[WebDriver]":
    """Provide an Appium driver on the test's device (``type="appium"``); quit after the test."""
    from pytest_device.controllers.appium import driver

    with driver(device_session, device_appium_options) as started:
        yield started

"""The device behind Appium's fake driver.

It is asked itself: pages and controllers offer no command that it would have to refuse.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import Device
from pytest_device.service.devices.fake import Fake
from pytest_device.spec import Platform


def test_appium_gets_the_capabilities_of_its_fake_driver() -> None:
    tools = Fake(Platform.IOS, "iPhone 16").tools

    app = tools.capabilities["appium:app"]
    assert tools.capabilities == {
        "platformName": "Fake",
        "appium:automationName": "Fake",
        "appium:deviceName": "iPhone 16",
        "appium:app": app,
    }
    assert Path(str(app)).is_file()
    assert tools.appium_home is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda fake: fake.install(App(url="https://example.com")),
        lambda fake: fake.launch("app", ["--x"]),
        lambda fake: fake.open_url("notes://item"),
        lambda fake: fake.terminate("app"),
        lambda fake: fake.remove("app"),
        lambda fake: fake.clear(),
        lambda fake: fake.apps(),
        lambda fake: fake.screenshot(),
        lambda fake: fake.tap(0.5, 0.5),
        lambda fake: fake.orientation(),
        lambda fake: fake.rotate("LANDSCAPE"),
    ],
)
def test_everything_else_is_refused(
    ask: Callable[[Device], Coroutine[Any, Any, Any]],
) -> None:
    with pytest.raises(
        ControllerError, match="the device of this session is Appium's fake one: "
    ):
        asyncio.run(ask(Fake(Platform.ANDROID)))


def test_it_never_ends() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(Fake(Platform.ANDROID).ended(), 0.01))

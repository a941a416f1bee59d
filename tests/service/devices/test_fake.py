"""The device behind Appium's fake driver.

It is asked itself: pages and controllers offer no command that it would have to refuse.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import Device, Tools
from tests.fakes.machine import FakeMachine

_Result = TypeVar("_Result")
Use = Callable[[Device], Awaitable[_Result]]


def lent(directory: Path, use: Use[_Result]) -> _Result:
    """Use the device of a session that requests it, on a machine without others."""

    async def scenario() -> _Result:
        async with (
            FakeMachine(directory).devices() as devices,
            devices.lent(type="appium", deviceIdentifier="fake") as device,
        ):
            return await use(device)

    return asyncio.run(scenario())


def test_appium_gets_the_capabilities_of_its_fake_driver(tmp_path: Path) -> None:
    async def tools(device: Device) -> Tools:
        return device.tools

    seen = lent(tmp_path, tools)

    app = seen.capabilities["appium:app"]
    assert seen.capabilities == {
        "platformName": "Fake",
        "appium:automationName": "Fake",
        "appium:deviceName": "fake",
        "appium:app": app,
    }
    assert Path(str(app)).is_file()
    assert seen.appium_home is None


@pytest.mark.parametrize(
    "use",
    [
        lambda device: device.install(App(url="https://example.com")),
        lambda device: device.launch("app", ["--x"]),
        lambda device: device.open_url("notes://item"),
        lambda device: device.terminate("app"),
        lambda device: device.remove("app"),
        lambda device: device.clear(),
        lambda device: device.apps(),
        lambda device: device.screenshot(),
        lambda device: device.tap(0.5, 0.5),
        lambda device: device.orientation(),
        lambda device: device.rotate("LANDSCAPE"),
    ],
)
def test_everything_else_is_refused(use: Use[object], tmp_path: Path) -> None:
    with pytest.raises(
        ControllerError, match="the device of this session is Appium's fake one: "
    ):
        lent(tmp_path, use)


def test_it_never_ends(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        lent(tmp_path, lambda device: asyncio.wait_for(device.ended(), 0.01))

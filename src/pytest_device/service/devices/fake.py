"""The device of Appium's fake driver: it has no screen, and only that driver can use it."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState, Orientation, Tools
from pytest_device.spec import Platform

KIND: Final = "fake"
BLANK_APP: Final = Path(__file__).parent / "blank.xml"


class Fake:
    """A device, see ``devices.base.Device``; only Appium can use it, and every method fails."""

    kind = KIND

    def __init__(self, platform: Platform, identifier: str | None = None) -> None:
        self.platform = platform
        self.name = identifier or f"fake {platform} device"

    @property
    def tools(self) -> Tools:
        """The capabilities that Appium's fake driver requires; it refuses the names of a real platform and its driver."""
        return Tools(
            {
                "platformName": "Fake",
                "appium:automationName": "Fake",
                "appium:deviceName": self.name,
                # The driver requires one; a suite may replace it.
                "appium:app": str(BLANK_APP),
            }
        )

    async def install(self, app: App) -> str:
        self._refuse(f"no app can be installed ({app.path or app.url})")

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        with_arguments = " with arguments" if arguments else ""
        self._refuse(f"{application_id} cannot be launched{with_arguments}")

    async def open_url(self, url: str, application_id: str | None = None) -> None:  # noqa: ARG002  # unused
        self._refuse("no address can be opened")

    async def terminate(self, application_id: str) -> bool:
        self._refuse(f"{application_id} cannot be terminated")

    async def remove(self, application_id: str) -> bool:
        self._refuse(f"{application_id} cannot be removed")

    async def clear(self, application_id: str | None = None) -> None:
        self._refuse(f"the state of {application_id or 'its apps'} cannot be cleared")

    async def apps(self) -> Mapping[str, AppState]:
        self._refuse("it has no apps")

    async def screenshot(self) -> bytes:
        self._refuse("it has no screen")

    async def tap(self, x: float, y: float) -> None:
        self._refuse(f"it has no screen to tap at {x:g}, {y:g}")

    async def orientation(self) -> Orientation:
        self._refuse("it has no screen")

    async def rotate(self, orientation: Orientation) -> None:
        self._refuse(f"it has no screen to rotate to {orientation}")

    async def ended(self) -> str:
        """Wait forever: it has no process that could exit."""
        await asyncio.Event().wait()
        return "never"

    def _refuse(self, reason: str) -> NoReturn:
        raise ControllerError(
            f"the device of this session is Appium's fake one: {reason}"
        )

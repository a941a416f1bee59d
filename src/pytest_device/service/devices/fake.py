"""The device behind Appium's fake driver: it has no screen, and nothing but that driver reaches it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

from pytest_device.errors import ControllerError
from pytest_device.service.apps.base import App
from pytest_device.service.devices.base import AppState, Orientation, Tools
from pytest_device.spec import Platform

KIND: Final = "fake"
BLANK_APP: Final = Path(__file__).parent / "blank.xml"


class Fake:
    """The device, see ``devices.base.Device``; it refuses all but to be driven by Appium."""

    kind = KIND

    def __init__(self, platform: Platform, identifier: str | None = None) -> None:
        self.platform = platform
        self.name = identifier or f"fake {platform} device"

    @property
    def tools(self) -> Tools:
        """What Appium's fake driver wants."""
        return Tools(
            {
                "platformName": "Fake",
                "appium:automationName": "Fake",
                "appium:deviceName": self.name,
                "appium:app": str(BLANK_APP),  # it wants one; a suite gives its own in its place
            }
        )

    async def install(self, app: App) -> str:
        """Refuse."""
        self._refuse(f"no app can be installed ({app.path or app.url})")

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Refuse."""
        self._refuse(f"{application_id} cannot be launched{' with arguments' if arguments else ''}")

    async def open_url(self, url: str, application_id: str | None = None) -> None:  # noqa: ARG002  never of use
        """Refuse."""
        self._refuse("no address can be opened")

    async def terminate(self, application_id: str) -> bool:
        """Refuse."""
        self._refuse(f"{application_id} cannot be ended")

    async def remove(self, application_id: str) -> bool:
        """Refuse."""
        self._refuse(f"{application_id} cannot be removed")

    async def clear(self, application_id: str | None = None) -> None:
        """Refuse."""
        self._refuse(f"the state of {application_id or 'its apps'} cannot be cleared")

    async def apps(self) -> Mapping[str, AppState]:
        """Refuse."""
        self._refuse("it has no apps")

    async def screenshot(self) -> bytes:
        """Refuse."""
        self._refuse("it has no screen")

    async def tap(self, x: float, y: float) -> None:
        """Refuse."""
        self._refuse(f"it has no screen to touch at {x:g}, {y:g}")

    async def orientation(self) -> Orientation:
        """Refuse."""
        self._refuse("it has no screen")

    async def rotate(self, orientation: Orientation) -> None:
        """Refuse."""
        self._refuse(f"it has no screen to turn to {orientation}")

    async def ended(self) -> str:
        """Wait without end: there is nothing of it that could."""
        await asyncio.Event().wait()
        return "never"

    def _refuse(self, what: str) -> NoReturn:
        raise ControllerError(f"the device of this session is Appium's fake one: {what}")


@asynccontextmanager
async def made(platform: Platform, identifier: str | None) -> AsyncGenerator[Fake, None]:
    """Make one; there is nothing to end."""
    yield Fake(platform, identifier)

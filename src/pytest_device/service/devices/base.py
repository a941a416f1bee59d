"""What a session asks of its device, whatever kind it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal, Protocol

from pytest_device.service.apps.base import App
from pytest_device.spec import Platform

Orientation = Literal["PORTRAIT", "LANDSCAPE"]
"""In WebDriver's and Appium's spelling."""


class AppState(IntEnum):
    """What Appium's ``queryAppState`` answers."""

    NOT_INSTALLED = 0
    NOT_RUNNING = 1
    BACKGROUND = 3
    FOREGROUND = 4


@dataclass(frozen=True, slots=True)
class Tools:
    """By what the controllers reach a device.

    ``capabilities`` are Appium's. ``appium_home`` has the Appium driver for it, None where this package brings that.
    ``debugging_port`` is that of a browser, None where the device is none.
    """

    capabilities: Mapping[str, str]
    appium_home: Path | None = None
    debugging_port: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that the controllers' programs need to find this device and no other."""


class Device(Protocol):
    """A device that is up and belongs to one session.

    Every method raises ControllerError, with the cause in words for the session's page, when it cannot be done; and
    each is bounded in time. An ``application_id`` is what ``install`` returned. Points are fractions of the screen as
    it is shown, from (0, 0) at the upper left to (1, 1).
    """

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def platform(self) -> Platform: ...
    @property
    def tools(self) -> Tools: ...

    async def install(self, app: App) -> str:
        """Install an app, in the place of one with its id; return its id."""
        ...

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Start an installed app anew, or bring it to the front when it runs and no arguments are given."""
        ...

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        """Open a web address or a deep link, the latter in the app it belongs to or in the one named."""
        ...

    async def terminate(self, application_id: str) -> bool:
        """End an app; False when it did not run."""
        ...

    async def remove(self, application_id: str) -> bool:
        """Remove an app with its state; False when it was not there."""
        ...

    async def clear(self, application_id: str | None = None) -> None:
        """Forget what an app, or every app, has stored, and end it."""
        ...

    async def apps(self) -> Mapping[str, AppState]:
        """Tell the apps that were installed here, with their states."""
        ...

    async def screenshot(self) -> bytes:
        """Return what the screen shows, as PNG or JPEG."""
        ...

    async def tap(self, x: float, y: float) -> None:
        """Touch a point of the screen."""
        ...

    async def orientation(self) -> Orientation:
        """Tell how the screen is held."""
        ...

    async def rotate(self, orientation: Orientation) -> None:
        """Turn the screen."""
        ...

    async def ended(self) -> str:
        """Wait until the device is gone; return how it ended and what it said last."""
        ...

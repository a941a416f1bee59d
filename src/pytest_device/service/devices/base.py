"""The interface of a session's device, common to all kinds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Final, Literal, Protocol

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.spec import Platform

Orientation = Literal["PORTRAIT", "LANDSCAPE"]
"""Spelled as in WebDriver and Appium."""


_DRIVERS: Final[Mapping[Platform, tuple[str, str]]] = {
    Platform.ANDROID: ("Android", "UiAutomator2"),
    Platform.IOS: ("iOS", "XCUITest"),
}


def capabilities(platform: Platform, udid: str) -> Mapping[str, str]:
    """Return the Appium capabilities for a device."""
    name, automation = _DRIVERS[platform]
    return {
        "platformName": name,
        "appium:automationName": automation,
        "appium:udid": udid,
    }


class RequestError(ControllerError):
    """A request names something that is unavailable: a build, an app, a device. A retry would fail, too."""


class BusyError(ControllerError):
    """Every matching device is in use by another session: unlike other errors, a retry may succeed."""


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A screenshot as the device encoded it."""

    data: bytes
    media_type: str


class AppState(IntEnum):
    """The values of Appium's ``queryAppState``."""

    NOT_INSTALLED = 0
    NOT_RUNNING = 1
    BACKGROUND = 3
    FOREGROUND = 4


@dataclass(frozen=True, slots=True)
class Tools:
    """How the controllers reach a device.

    Attributes:
        capabilities: The capabilities of an Appium session on the device.
        appium_home: The directory with the user's Appium driver for the device, None if this package brings the driver.
        debugging_port: The port of the relay to a browser, None if the device is not a browser.
        environ: Variables that the controllers' programs need to find this device and no other.
    """

    capabilities: Mapping[str, str | int]
    appium_home: Path | None = None
    debugging_port: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a device before it is up, and all that the start of a controller needs."""

    name: str
    platform: Platform
    tools: Tools


Expect = Callable[[Facts], None]
"""Receives the facts of a device that is about to start."""


class Device(Protocol):
    """A running device that belongs to one session.

    Every method raises ControllerError, with the cause for the session page, if it fails, and is limited in time. An
    ``application_id`` is a value that ``install`` returned. Points are fractions of the visible screen, from (0, 0) at
    the upper left to (1, 1).
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
        """Install an app, replacing one with the same ID; return its ID."""
        ...

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Restart an installed app, or bring it to the front if it is running and there are no arguments."""
        ...

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        """Open a web URL or a deep link; the latter in the given app, or in the one that handles it."""
        ...

    async def terminate(self, application_id: str) -> bool:
        """Terminate an app; return False if it was not running."""
        ...

    async def remove(self, application_id: str) -> bool:
        """Remove an app with its state; return False if it was not installed."""
        ...

    async def clear(self, application_id: str | None = None) -> None:
        """Clear the stored data of an app, or of every app, and terminate it."""
        ...

    async def apps(self) -> Mapping[str, AppState]:
        """Return the apps that this session installed, with their states."""
        ...

    async def screenshot(self) -> bytes:
        """Return a screenshot as PNG or JPEG."""
        ...

    async def tap(self, x: float, y: float) -> None:
        """Tap a point of the screen."""
        ...

    async def orientation(self) -> Orientation:
        """Return the screen orientation."""
        ...

    async def rotate(self, orientation: Orientation) -> None:
        """Rotate the screen."""
        ...

    async def ended(self) -> str:
        """Wait until the device exits; return the reason, with its last output."""
        ...


_MEDIA_TYPES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
)


async def take_screenshot(device: Device) -> Screenshot:
    """Return a screenshot that a page may show. Raises ControllerError, also for data that is no image."""
    data = await device.screenshot()
    for signature, media_type in _MEDIA_TYPES:
        if data.startswith(signature):
            return Screenshot(data, media_type)

    raise ControllerError("the device did not return a PNG or JPEG screenshot")

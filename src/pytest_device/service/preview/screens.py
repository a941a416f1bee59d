"""Screenshots of devices, shared by all viewers."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Device

SECONDS_BETWEEN: Final = 0.3
SHARE: Final = 4
"""Pause after a screenshot as a multiple of its duration, so that the device has most of its time for the test."""
MOST_SECONDS_BETWEEN: Final = 5.0
KEEP_SECONDS: Final = 30.0
"""Seconds for which an unused screenshot is kept."""
MOST_KEPT: Final = 50
"""Maximum number of ended, viewed sessions whose last screenshot is kept."""

_KINDS: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A screenshot as the device encoded it."""

    data: bytes
    media_type: str


@dataclass(slots=True)
class _Screen:
    """A device's last screenshot, or the reason why there is none, and when (by the clock) the next is due."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    last: Screenshot | ControllerError | None = None
    shown: Screenshot | None = None
    """The last successful screenshot."""
    due: float = 0.0
    changed: bool = True
    """Whether the device was used since its last screenshot began."""


class Screens:
    """Takes screenshots at a limited rate, for any number of viewers; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._screens: dict[str, _Screen] = {}
        self._kept: dict[str, Screenshot] = {}
        """The last screenshots of ended sessions."""

    async def screenshot(self, session_id: str, device: Device) -> Screenshot:
        """Return a recent screenshot of a session's device. Raises ControllerError."""
        self._forget_old()
        screen = self._screens.setdefault(session_id, _Screen())
        async with screen.lock:
            if screen.last is None or screen.changed or self._clock() >= screen.due:
                await self._take(screen, device)
            if isinstance(screen.last, Screenshot):
                screen.shown = screen.last
                return screen.last
            raise ControllerError(str(screen.last))

    def last(self, session_id: str) -> Screenshot | None:
        """Return an ended session's newest screenshot, None if no viewer saw one; keep it from now on."""
        screen = self._screens.get(session_id)
        if screen and screen.shown:
            self._kept = dict([*self._kept.items(), (session_id, screen.shown)][-MOST_KEPT:])
        return self._kept.get(session_id)

    def has_changed(self, session_id: str) -> None:
        """Make the next screenshot of a session due at once."""
        if session_id in self._screens:
            self._screens[session_id].changed = True

    async def _take(self, screen: _Screen, device: Device) -> None:
        began, screen.changed = self._clock(), False
        screen.last = await _taken(device)
        now = self._clock()
        screen.due = now + min(max(SECONDS_BETWEEN, SHARE * (now - began)), MOST_SECONDS_BETWEEN)

    def _forget_old(self) -> None:
        limit = self._clock() - KEEP_SECONDS
        self._screens = {
            one: screen for one, screen in self._screens.items() if screen.lock.locked() or screen.due > limit
        }


async def _taken(device: Device) -> Screenshot | ControllerError:
    try:
        data = await device.screenshot()
    except ControllerError as error:
        return error
    for beginning, media_type in _KINDS:
        if data.startswith(beginning):
            return Screenshot(data, media_type)
    return ControllerError("the device did not return a PNG or JPEG screenshot")

"""What is known of a session's programs, also some time after their end."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.activity import Activity
from pytest_device.service.runners.base import Boot, Booting, Moment
from pytest_device.service.runners.controller import Controller
from pytest_device.spec import DEFAULT_SESSION_TYPE, Platform, SessionType

KEPT: Final = 200
"""Sessions that have ended, and moments of each."""


@dataclass(slots=True)
class Record:
    """One session: what was asked for, how far it is, what happened to it. The only thing here that changes."""

    id: str
    request: Mapping[str, Any]
    clock: Callable[[], float]
    activity: Activity
    boot: Boot = field(default_factory=Booting)
    device: Device | None = None
    controller: Controller | None = None
    moments: deque[Moment] = field(default_factory=lambda: deque[Moment](maxlen=KEPT))

    @property
    def type(self) -> SessionType:
        """What drives the device."""
        return SessionType(self.request.get("type", DEFAULT_SESSION_TYPE))

    @property
    def platform(self) -> Platform:
        """What the device runs."""
        return Platform(self.request["platform"])

    @property
    def log(self) -> str:
        """The last lines of the controller's log, without secrets."""
        return self.controller.journal.text if self.controller else ""

    def note(self, text: str) -> None:
        """Note something that happens now."""
        self.moments.append(Moment(self.clock(), text))

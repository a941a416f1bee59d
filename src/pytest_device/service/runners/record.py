"""The state and the timeline of a session's programs, kept for a while after their end."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.base import Boot, Booting, LogEntry
from pytest_device.service.runners.controller import Controller
from pytest_device.service.runners.journal import Activity
from pytest_device.spec import DEFAULT_SESSION_TYPE, SessionType

KEPT: Final = 200
"""How many ended sessions are kept, and how many entries of each timeline."""


@dataclass(slots=True)
class Record:
    """One session: its request, its state and its timeline. The only mutable value here."""

    id: str
    request: Mapping[str, Any]
    clock: Callable[[], float]
    activity: Activity
    boot: Boot = field(default_factory=Booting)
    device: Device | None = None
    controller: Controller | None = None
    entries: deque[LogEntry] = field(default_factory=lambda: deque[LogEntry](maxlen=KEPT))

    @property
    def type(self) -> SessionType:
        """The session type, which names the controller."""
        return SessionType(self.request.get("type", DEFAULT_SESSION_TYPE))

    @property
    def log(self) -> str:
        """The last lines of the controller's log, without secrets."""
        return self.controller.journal.text if self.controller else ""

    def note(self, text: str) -> None:
        """Add an entry to the timeline."""
        self.entries.append(LogEntry(self.clock(), text))

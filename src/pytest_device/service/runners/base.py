"""The interface between the service and the programs behind its sessions."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_device.service.devices.base import Device, Screenshot
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.spec import DEFAULT_SESSION_TYPE, SessionType

if TYPE_CHECKING:
    from pytest_device.service.runners.controller import Controller

KEPT: Final = 200
"""Maximum number of ended sessions to keep, and of entries in each timeline: the memory of a service must not grow with its life."""
KEPT_SCREENSHOTS: Final = 50
"""Maximum number of ended sessions whose last screenshot is kept: one of a phone may take two megabytes."""


@dataclass(frozen=True, slots=True)
class Booting:
    """The device and its controller are not ready yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """Ready; ``remote_config`` is the session's ``remoteConfig``, in the document's spelling."""

    remote_config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """Device or controller did not start, or exited. The session page shows the reason.

    ``at`` is the time (Unix seconds), None if unknown.
    """

    reason: str
    at: float | None = None


Boot = Booting | Running | Failed

GONE: Final = Failed(
    "the session has no processes: it was stopped, or the service was restarted"
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a session's timeline; ``at`` in Unix seconds."""

    at: float
    text: str


@dataclass(slots=True)
class Record:
    """The programs of one session: their state and their timeline. The only mutable value here.

    The timeline and the log stay available for a while after the session's end.

    Attributes:
        id: The session's ID.
        request: The body of its create request.
        clock: Returns Unix seconds.
        boot: Whether the programs are starting, running or have failed.
        failed_by_request: Whether the session failed because of its request: a retry would fail, too.
        device: The device of a running session; None before, after, and for a session without one.
        device_name: Name and kind of that device. It outlives the device.
        screenshot: The newest screenshot that a viewer saw, or that was taken when the session failed. It outlives the
            device.
        controller: The controller, if the session has one and it is running.
        last_request: When the last request to the controller began or ended (Unix seconds).
        open_requests: The number of requests to the controller in progress.
        output: The controller's output.
        entries: The timeline.
    """

    id: str
    request: Mapping[str, Any]
    clock: Callable[[], float] = time.time
    boot: Boot = field(default_factory=Booting)
    failed_by_request: bool = False
    device: Device | None = None
    device_name: str | None = None
    screenshot: Screenshot | None = None
    controller: "Controller | None" = None
    last_request: float | None = None
    open_requests: int = 0
    output: OutputTail = field(default_factory=OutputTail)
    entries: deque[LogEntry] = field(
        default_factory=lambda: deque[LogEntry](maxlen=KEPT)
    )

    @property
    def type(self) -> SessionType:
        """The session type, which determines the controller."""
        return SessionType(self.request.get("type", DEFAULT_SESSION_TYPE))

    def note(self, text: str) -> None:
        """Add an entry to the timeline."""
        self.entries.append(LogEntry(self.clock(), text))

    def use(self, device: Device) -> None:
        """Record the device that the session has now."""
        self.device = device
        self.device_name = f"{device.name} ({device.kind})"

    @property
    def last_activity(self) -> float | None:
        """When the controller was last used, which is now while a request is in progress; None if it never was."""
        return self.clock() if self.open_requests else self.last_request

    def begin_request(self) -> None:
        """Record the start of a request to the controller."""
        self.last_request = self.clock()
        self.open_requests += 1

    def end_request(self) -> None:
        """Record the end of a request; one without a start is ignored."""
        self.last_request = self.clock()
        # A request may end after `forget_programs`, which has forgotten its start.
        self.open_requests = max(0, self.open_requests - 1)

    def forget_programs(self) -> None:
        """Forget the programs, which are being stopped: nobody may use them anymore."""
        self.boot = GONE
        self.device = None
        self.controller = None
        self.last_request = None
        self.open_requests = 0


class Runner(Protocol):
    """Starts and stops the programs of sessions; each session's programs are a group that leaves no process behind."""

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Start booting for a valid create request; return at once."""
        ...

    def record(self, session_id: str) -> Record:
        """Return the current state of a session's programs, from memory, without waiting."""
        ...

    def stop(self, session_id: str) -> None:
        """Start stopping the session's programs; return at once. Repeated calls do nothing."""
        ...

    async def close(self) -> None:
        """Stop the programs of all sessions; return when none of their processes is left."""
        ...

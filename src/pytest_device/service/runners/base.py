"""The interface between the service and the programs behind its sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_device.service.devices.base import Device


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

    ``at`` is the time (Unix seconds), None if unknown. ``by_request``: a retry of the request would fail, too.
    """

    reason: str
    at: float | None = None
    by_request: bool = False


Boot = Booting | Running | Failed


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a session's timeline; ``at`` in Unix seconds."""

    at: float
    text: str


class Runner(Protocol):
    """Starts and stops the programs of sessions; each session's programs are a group that leaves no processes behind.

    By default there is no device to show, no timeline and no log.
    """

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Start booting for a valid create request; return at once."""
        ...

    def status(self, session_id: str) -> Boot:
        """Return the state of the boot, from memory, without waiting."""
        ...

    def last_activity(self, session_id: str) -> float | None:
        """Return when the controller was last used (Unix seconds), None if it was not used since it became ready."""
        ...

    def failed_by_request(self, session_id: str) -> bool:
        """Return whether a session failed because of its request; available for a while after its end."""
        del session_id
        return False

    def device(self, session_id: str) -> Device | None:
        """Return the device of a running session; None before, after, and for a session without one."""
        del session_id
        return None

    def log_entries(self, session_id: str) -> Sequence[LogEntry]:
        """Return the timeline of the session's programs, oldest entry first; available for a while after its end."""
        del session_id
        return ()

    def log(self, session_id: str) -> str:
        """Return the last lines of the controller's log, without secrets; available for a while after the end."""
        del session_id
        return ""

    def stop(self, session_id: str) -> None:
        """Start stopping the session's programs; return at once. Repeated calls do nothing."""
        ...

    async def close(self) -> None:
        """Stop the programs of all sessions; return when none of their processes is left."""
        ...

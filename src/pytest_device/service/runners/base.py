"""What the local service asks of the real programs behind a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_device.service.devices.base import Device


@dataclass(frozen=True, slots=True)
class Booting:
    """The device and its controller are not ready yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """Ready: the ``remoteConfig`` of the session, in the document's spelling."""

    remote_config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The device or its controller did not come up, or died. The reason is shown on the session's page."""

    reason: str


Boot = Booting | Running | Failed


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to the programs of a session, in words for its page; ``at`` in Unix seconds."""

    at: float
    text: str


class Runner(Protocol):
    """Starts and ends the programs of sessions, each session's as one group that leaves nothing behind."""

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Begin to boot for a valid create request; return at once."""
        ...

    def look(self, session_id: str) -> Boot:
        """Tell how far the session's programs are, from memory, without waiting."""
        ...

    def last_activity(self, session_id: str) -> float | None:
        """Tell when the controller was last used (Unix seconds), None when not since it is ready."""
        ...

    def device(self, session_id: str) -> Device | None:
        """Return the device of a session that is up, None before, after, and where there is none to be seen."""
        ...

    def moments(self, session_id: str) -> Sequence[Moment]:
        """Tell what happened to the session's programs, also some time after its end; the oldest first."""
        ...

    def log(self, session_id: str) -> str:
        """Return the last lines of the controller's log, without secrets, also some time after the session's end."""
        ...

    def stop(self, session_id: str) -> None:
        """Begin to end the session's programs; return at once. Repeating it does nothing."""
        ...

    async def close(self) -> None:
        """End the programs of all sessions; return when no process of theirs is left."""
        ...

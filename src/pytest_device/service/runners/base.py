"""What the local service asks of the real programs behind a session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


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

    def stop(self, session_id: str) -> None:
        """Begin to end the session's programs; return at once. Repeating it does nothing."""
        ...

    async def close(self) -> None:
        """End the programs of all sessions; return when no process of theirs is left."""
        ...

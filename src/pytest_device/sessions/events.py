"""What happens to a session, told to whoever reports it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session  # loads pydantic, which whoever only reports events needs not


class Kind(StrEnum):
    """What happened."""

    CREATED = "created"
    STATUS = "status"
    READY = "ready"
    START_FAILED = "start-failed"
    """It turned errored before it was ready, and another session is tried in its place."""
    STOPPED = "stopped"
    STOP_DELAYED = "stop-delayed"
    """Not stopped yet, and still being tried."""
    STOP_FAILED = "stop-failed"
    KEPT = "kept"
    """Left running on purpose."""
    WARM = "warm"
    """Left up for the next run, for a while."""
    TAKEN_OVER = "taken-over"
    """Had from an earlier run, in progress, in place of being created."""
    UNUSED = "unused"
    """Booted ahead, and no test has had it."""
    QUEUED = "queued"
    """Of no session: a test has waited until there might be one more."""
    NOTE = "note"
    """Of no session: something about the run as a whole; or, with its id, of one that only an earlier run has had."""
    CREATE_UNKNOWN = "create-unknown"
    """The answer to a create call was lost: a session may exist, and nothing can find it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one session. Holds no connection details and survives JSON.

    ``waited_seconds`` counts from the create call on this machine's clock, or is what was queued; ``minutes`` is how
    long the session may run on at most if nobody stops it; ``running_seconds`` is what the service's own time stamps
    say between ``startedAt`` and ``finishedAt``, None when it gave no such times. Of a session that is ready
    ``boot_key`` tells with which others its boot compares, and ``boot_seconds`` how long that took by the service, None
    as above. ``late_seconds`` is how long after it happened it is told where it happened behind the tests, else None.
    """

    kind: Kind
    label: str = ""
    session_id: str = ""
    url: str = ""
    text: str = ""
    waited_seconds: float = 0.0
    minutes: int = 0
    running_seconds: float | None = None
    boot_key: str = ""
    boot_seconds: float | None = None
    late_seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values only."""
        return {**asdict(self), "kind": self.kind.value}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the event that ``to_json`` was asked of."""
        return cls(kind=Kind(values["kind"]), **{name: value for name, value in values.items() if name != "kind"})


Emit = Callable[[Event], None]


def nobody(_event: Event) -> None:
    """Tell nobody."""


def running_seconds(session: "Session") -> float | None:
    """Return how long the session ran by the service's own times, or None when one of them is missing."""
    if session.started_at is None or session.finished_at is None:
        return None
    return (session.finished_at - session.started_at).total_seconds()

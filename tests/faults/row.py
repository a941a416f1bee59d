"""What a row of the table of faults is: a run, what strikes it and when, and what must hold afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.faults.room import Room

NOBODY: Final = ""
"""What is told when nobody is left to tell."""


class Promise(StrEnum):
    """What must have become of the sessions."""

    STOPPED = "stopped"
    """By whom need not matter."""
    SWEPT = "stopped by the next run"
    BOUNDED = "ends at its limit"
    """Nothing can find it or nothing can stop it: the run says so."""
    KEPT = "kept on purpose"
    NONE = "none was created"


def nothing(_room: "Room") -> None:
    """Do nothing."""


def plainly(room: "Room") -> None:
    """Start pytest on the row's suite."""
    room.start()


def stopped(count: int = 1) -> str:
    """Return the pattern of a receipt of so many sessions, all proven stopped."""
    return rf"created {count}, proven stopped {count}, unknown 0"


Act = Callable[["Room"], None]


@dataclass(frozen=True)
class Row:
    """One fault.

    ``arm`` prepares it, ``start`` starts the run, ``when`` waits for its moment, ``fault`` lets it strike. ``told`` is
    a pattern that a line of the output must match. ``limit`` is how many seconds run and stop take at most
    on a machine that does nothing else.
    """

    name: str
    words: str
    """What this promises, and what it does not, for whoever reads the table."""
    suite: Mapping[str, str]
    promise: Promise = Promise.STOPPED
    told: str = field(default_factory=stopped)
    options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    start: Act = plainly
    arm: Act = nothing
    when: Act = nothing
    fault: Act = nothing
    sessions: int = 1
    """How many must have been created, or the row would show nothing."""
    status: int | None = None
    """What the run must end with."""
    network: bool = False
    """Whether the run reaches the service through a network that can fail."""
    limit: float = 30.0


@dataclass(frozen=True)
class Record:
    """What a row showed."""

    name: str
    stopped: bool
    seconds: float | None
    """From the fault until the last session was stopped."""
    told: str
    status: int | None
    problems: tuple[str, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Record":
        """Return the record that became these values."""
        return cls(**{**values, "problems": tuple(values["problems"])})

"""A row of the fault table: a run, its fault, the moment of the fault, and the expected result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.faults.room import Room

NOBODY: Final = ""
"""The expected output when no run is left to report."""


class Promise(StrEnum):
    """The expected end of the sessions."""

    STOPPED = "stopped"
    """By any process."""
    SWEPT = "stopped by the next run"
    BOUNDED = "ends at its limit"
    """The session can't be found or can't be stopped; the run reports it."""
    KEPT = "kept on purpose"
    NONE = "none was created"


def nothing(_room: "Room") -> None:
    """Do nothing."""


def plainly(room: "Room") -> None:
    """Start pytest on the row's suite."""
    room.start()


def stopped(count: int = 1) -> str:
    """Return a pattern for a receipt in which all sessions are confirmed as stopped."""
    return rf"created {count}, proven stopped {count}, unknown 0"


Act = Callable[["Room"], None]


@dataclass(frozen=True)
class Row:
    """One fault.

    ``arm`` prepares the fault, ``start`` starts the run, ``when`` waits for the moment, and ``fault`` injects the
    fault. ``told`` is a pattern that a line of the output must match. ``limit`` is the maximum time of run and stop
    on an idle machine, in seconds.
    """

    name: str
    words: str
    """The result, for readers of the table."""
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
    """The minimum number of created sessions; with fewer, the row would prove nothing."""
    status: int | None = None
    """The expected exit code."""
    network: bool = False
    """Whether the run reaches the service through a faulty network."""
    limit: float = 30.0


@dataclass(frozen=True)
class Record:
    """The result of a row."""

    name: str
    stopped: bool
    seconds: float | None
    """From the fault to the end of the last session."""
    told: str
    status: int | None
    problems: tuple[str, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Record":
        """Return a record from its JSON values."""
        return cls(**{**values, "problems": tuple(values["problems"])})

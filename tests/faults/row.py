"""A row of the fault table: a run, the fault that strikes it and when, and what must hold afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.faults.row_environment import RowEnvironment

NOBODY: Final = ""
"""For runs that end without output."""


class Promise(StrEnum):
    """What must happen to the sessions."""

    STOPPED = "stopped"
    """By the run or by the reaper."""
    SWEPT = "stopped by the next run"
    BOUNDED = "ends at its limit"
    """Nothing can find or stop the session, and the run reports that."""
    KEPT = "kept on purpose"
    NONE = "none was created"


def nothing(_env: "RowEnvironment") -> None:
    """Do nothing."""


def plainly(env: "RowEnvironment") -> None:
    """Start pytest on the row's suite."""
    env.start()


NONE_KEPT_OR_UNKNOWN: Final = r"(, \d (failed to start|unused))*;"
"""How a receipt goes on where no session was kept and none is unknown."""


def stopped(count: int = 1) -> str:
    """Return the pattern of a receipt with ``count`` sessions, all confirmed stopped."""
    return rf"{count} created, {count} stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}"


Act = Callable[["RowEnvironment"], None]


@dataclass(frozen=True)
class Row:
    """One fault.

    ``arm`` prepares it, ``start`` starts the run, ``when`` waits for its moment, ``fault`` triggers it. ``reported``
    is a pattern that a line of the output must match. ``limit`` is the maximum duration in seconds of run and stop on
    a quiet machine.
    """

    name: str
    words: str
    """What the row promises and what it does not, for readers of the table."""
    suite: Mapping[str, str]
    promise: Promise = Promise.STOPPED
    reported: str = field(default_factory=stopped)
    options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    start: Act = plainly
    arm: Act = nothing
    when: Act = nothing
    fault: Act = nothing
    sessions: int = 1
    """How many sessions must be created, else the row would prove nothing."""
    status: int | None = None
    """The expected exit status."""
    network: bool = False
    """Whether the run reaches the service through a faulty network."""
    redis: bool = False
    """Whether the runs share their limit through a Redis server."""
    limit: float = 30.0


@dataclass(frozen=True)
class Record:
    """The result of a row."""

    name: str
    stopped: bool
    seconds: float | None
    """From the fault to the end of the last session."""
    reported: str
    status: int | None
    problems: tuple[str, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Record":
        """Return the record that was saved as these values."""
        return cls(**{**values, "problems": tuple(values["problems"])})

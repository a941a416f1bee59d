"""What a session needs to be created and watched, besides what a test requires of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from pytest_device.sessions.models import Session
from pytest_device.sessions.relay import Relay
from pytest_device.sessions.session_client import SessionClient, may_have_created

ProblemOf = Callable[[Session], str | None]
"""What is wrong with the controller of a session in progress, None when nothing is."""


def unasked(_session: Session) -> None:
    """Take every controller for reachable."""


class WarmSession(NamedTuple):
    """A session that an earlier run left up and that is this process's now."""

    session: Session
    ready_at: float
    """Since when it has been ready, on this process's clock."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """How the sessions of a process are created."""

    client: SessionClient
    clock: Callable[[], float]
    relay: Relay = field(default_factory=Relay)
    problem_of: ProblemOf = unasked
    leaves_unknown: Callable[[BaseException], bool] = may_have_created
    """Returns whether a create call that ended so may have left a session that nobody can name."""
    attempts: int = 1
    """How many sessions are created, one after the other, until one does not fail to start."""


class Server(Enum):
    """Who advances a session."""

    TEST = auto()
    """The test that waits for it."""
    BACKGROUND = auto()
    """Nobody waits for it yet; it stays so when it is ready before a test gets it."""
    DROPPED = auto()
    """Nobody will wait for it any more: it is stopped in the background."""
    NOBODY = auto()
    """It was started ahead and is being stopped before any test used it."""

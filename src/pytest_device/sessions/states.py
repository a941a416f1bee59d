"""The states and outcomes of a session, as tables.

    requested -> queued -> starting -> ready -> ended
        ^                     |
        +------ retried ------+

Standard library only. Only this module decides whether a session is over, confirmed as ended, or to be retried.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """A session's state, as seen by the process that requested it."""

    REQUESTED = "requested"
    """Not created yet."""
    QUEUED = "queued"
    """Refused for lack of capacity; will be requested again."""
    STARTING = "starting"
    """Created, but its device or its controller is not usable yet."""
    READY = "ready"
    ENDED = "ended"
    """No work is left here: stopped as far as possible, deliberately left running, or never created."""


TRANSITIONS: Final[Mapping[State, Collection[State]]] = MappingProxyType(
    {
        State.REQUESTED: {State.QUEUED, State.STARTING, State.READY, State.ENDED},
        State.QUEUED: {State.QUEUED, State.STARTING, State.ENDED},
        State.STARTING: {State.READY, State.REQUESTED, State.ENDED},
        State.READY: {State.ENDED},
        State.ENDED: {State.ENDED},  # an interrupted stop is retried
    }
)


def moved(state: State, to: State) -> State:
    """Return the next state; raises RuntimeError for a transition that is not in the table."""
    if to not in TRANSITIONS[state]:
        raise RuntimeError(f"a session that is {state} cannot become {to}")
    return to


class AdvancedBy(StrEnum):
    """Who advances a session that is not ready yet."""

    TEST = "test"
    """The test that waits for it."""
    BACKGROUND = "background"
    """The background thread, for later tests; stays so if it becomes ready before a test uses it."""
    DROPPED = "dropped"
    """The background thread, which stops it: no test needs it anymore."""
    NOBODY = "nobody"
    """Nobody: it was prefetched and is being stopped unused."""


class Outcome(StrEnum):
    """The outcome of a session."""

    STOPPED = "stopped"
    """The service confirmed that it stopped or errored."""
    GONE = "gone"
    """The service has returned 404 for a minute for a session that it knew."""
    DELAYED = "delayed"
    """Not stopped yet; its stop is retried in the background."""
    REFUSED = "refused"
    """The stop call failed."""
    UNKNOWN = "unknown"
    """The response to its create call was lost: it may be running under an unknown ID."""
    KEPT = "kept"
    """Deliberately left running until its own limits end it."""
    WARM = "warm"
    """Kept running for a while, for the next run."""
    ATTACHED = "attached"
    """Created elsewhere, and left running."""


PROVEN: Final = frozenset({Outcome.STOPPED, Outcome.GONE})
"""Confirmed as ended."""
OVER: Final = PROVEN | {Outcome.KEPT, Outcome.WARM, Outcome.ATTACHED}
"""This run is done with the session."""
RETRIABLE: Final = frozenset({Outcome.DELAYED, Outcome.REFUSED})
"""Another stop call may still end it."""


def final_outcome(outcomes: Sequence[Outcome], users: int) -> Outcome | None:
    """Return a session's final outcome, None while it may be running and no stop was tried.

    Outcomes may come from several processes, in any order: a confirmed end takes precedence, and a session counts as
    warm only if each of its ``users`` left it warm and no stop was tried since.
    """
    return (
        _newest(outcomes, PROVEN)
        or _newest(outcomes, {Outcome.KEPT, Outcome.ATTACHED})
        or _newest(outcomes, RETRIABLE)
        or (Outcome.WARM if is_left_by_all(outcomes, users) else None)
    )


def is_left_by_all(outcomes: Sequence[Outcome], users: int) -> bool:
    """Return whether every user of a session left it warm."""
    return outcomes.count(Outcome.WARM) >= max(users, 1)


def _newest(outcomes: Sequence[Outcome], among: Collection[Outcome]) -> Outcome | None:
    return next((one for one in reversed(outcomes) if one in among), None)

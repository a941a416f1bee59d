"""The states of a session and what may come of it, as tables: is it over, is it proven, may it be tried again.

    requested -> queued -> starting -> ready -> ended
        ^                     |
        +------ retried ------+

Standard library only. This is the one place that decides whether a session is over, proven or to be retried.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """Where a session is, seen from the process that requested it."""

    REQUESTED = "requested"
    """Not created yet."""
    QUEUED = "queued"
    """Refused for lack of capacity, and requested again."""
    STARTING = "starting"
    """Created; its device, or its controller, cannot be used yet."""
    READY = "ready"
    ENDED = "ended"
    """Nothing is left to do for it here: stopped as far as it can be, left running on purpose, or never created."""


TRANSITIONS: Final[Mapping[State, Collection[State]]] = MappingProxyType(
    {
        State.REQUESTED: {State.QUEUED, State.STARTING, State.READY, State.ENDED},
        State.QUEUED: {State.QUEUED, State.STARTING, State.ENDED},
        State.STARTING: {State.READY, State.REQUESTED, State.ENDED},
        State.READY: {State.ENDED},
        State.ENDED: {State.ENDED},  # an interrupted stop is tried again
    }
)


def moved(state: State, to: State) -> State:
    """Return the next state; raises RuntimeError for one that the table does not have."""
    if to not in TRANSITIONS[state]:
        raise RuntimeError(f"a session that is {state} cannot become {to}")
    return to


class Outcome(StrEnum):
    """What came of a session."""

    STOPPED = "stopped"
    """The service said that it stopped or errored."""
    GONE = "gone"
    """The service has not known a session that it knew for a minute."""
    DELAYED = "delayed"
    """Not stopped yet; its stop is retried in the background."""
    REFUSED = "refused"
    """The stop call failed."""
    UNKNOWN = "unknown"
    """The answer to its create call was lost: it may be running, and nobody can name it."""
    KEPT = "kept"
    """Left running on purpose, until its own limits end it."""
    WARM = "warm"
    """Left up for the next run, for a while."""
    ATTACHED = "attached"
    """Another's, and left running as it was found."""


PROVEN: Final = frozenset({Outcome.STOPPED, Outcome.GONE})
"""It is confirmed as ended."""
OVER: Final = PROVEN | {Outcome.KEPT, Outcome.WARM, Outcome.ATTACHED}
"""This run is done with it."""
RETRIABLE: Final = frozenset({Outcome.DELAYED, Outcome.REFUSED})
"""Another stop call may still end it."""


def final_outcome(outcomes: Sequence[Outcome], users: int) -> Outcome | None:
    """Return what came of a session in the end, None while it may be running and nobody has tried to stop it.

    Its outcomes may come from several processes, in any order: a proof beats everything, and what was left up counts
    as warm only when each of its ``users`` left it so and nobody tried to stop it since.
    """
    return (
        _newest(outcomes, PROVEN)
        or _newest(outcomes, {Outcome.KEPT, Outcome.ATTACHED})
        or _newest(outcomes, RETRIABLE)
        or (Outcome.WARM if is_left_by_all(outcomes, users) else None)
    )


def is_left_by_all(outcomes: Sequence[Outcome], users: int) -> bool:
    """Return whether a session was left up as often as somebody had it."""
    return outcomes.count(Outcome.WARM) >= max(users, 1)


def _newest(outcomes: Sequence[Outcome], among: Collection[Outcome]) -> Outcome | None:
    return next((one for one in reversed(outcomes) if one in among), None)

r"""The life of a session as two tables: what the run that requested it sees, and what the reaper does.

In the run; each state may be followed by an end:

    requested -> queued -> starting -> ready -> stopped, gone, delayed, refused,
        ^                     |                 kept, warm, attached, unknown, ended
        +------ retried ------+

In the reaper; the ledger stores the phases in ``RECORDED``:

    creating ---------> live <------> warm, kept
        |    \            |
        |     lost        |
        |                 v
    abandoned -------> stop due -> stopping -> checking -> stopped, gone
                          ^                       |
                          +------- retried -------+

Standard library only. Only this module decides whether a session is over, confirmed as ended, or to be retried.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

_S = TypeVar("_S", bound=StrEnum)


class State(StrEnum):
    """A session's state, as seen by the process that requested it."""

    REQUESTED = "requested"
    """Not created yet."""
    QUEUED = "queued"
    """Refused for lack of capacity, or by a gateway; will be requested again."""
    STARTING = "starting"
    """Created, but its device or its controller is not usable yet."""
    READY = "ready"

    # Ends: no work is left here.
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
    ENDED = "ended"
    """Never created, or its stop was interrupted."""


PROVEN: Final = frozenset({State.STOPPED, State.GONE})
"""Confirmed as ended."""
OVER: Final = PROVEN | {State.KEPT, State.WARM, State.ATTACHED}
"""This run is done with the session."""
RETRIABLE: Final = frozenset({State.DELAYED, State.REFUSED})
"""Another stop call may still end it."""
ENDS: Final = OVER | RETRIABLE | {State.UNKNOWN, State.ENDED}
"""No work is left for the session in the process that requested it."""

_TRIED: Final = PROVEN | RETRIABLE
"""Results of a stop call."""
# A response, or an interrupt, may end it before the run has noted that it was created.
_BEFORE_READY: Final = _TRIED | {State.UNKNOWN, State.ATTACHED, State.ENDED}
TRANSITIONS: Final[Mapping[State, Collection[State]]] = MappingProxyType(
    {
        State.REQUESTED: _BEFORE_READY | {State.QUEUED, State.STARTING, State.READY},
        State.QUEUED: _BEFORE_READY | {State.QUEUED, State.STARTING},
        State.STARTING: _BEFORE_READY | {State.READY, State.REQUESTED},
        State.READY: OVER | RETRIABLE | {State.ENDED},
        # An interrupted stop is retried.
        State.ENDED: _TRIED | {State.ATTACHED, State.ENDED},
        # A second stop changes nothing.
        **{end: {end} for end in ENDS - {State.ENDED}},
    }
)


class Phase(StrEnum):
    """What the reaper does, or has done, for a session.

    The values of those in ``RECORDED`` are the ledger's words, which other versions read: don't change them.
    """

    CREATING = "asked"
    """Sends its create call, and waits for the response."""
    ABANDONED = "abandoned"
    """As before, but stops it as soon as its ID is known; if its create call was never sent, doesn't send it."""
    LIVE = "live"
    """Nothing: the run uses it."""
    STOP_DUE = "stop due"
    """Sends a stop call."""
    STOPPING = "stopping"
    """Looks it up every few seconds while the stop call is open."""
    CHECKING = "checking"
    """Looks it up: the response to the stop call doesn't prove its end."""
    WARM = "warm"
    """Kept running for the next run until a given time, free to be claimed."""
    KEPT = "kept"
    """Nothing: deliberately left running until its own limits or ``pytest-device stop`` end it."""
    LOST = "lost"
    """Nothing: the response to the create call was lost, and a session with an unknown ID may be running."""
    STOPPED = "stopped"
    """Stopped when no process could read the report: a tombstone for the next sweep."""
    GONE = "gone"
    """As before, but the service no longer knew it."""


WITHOUT_ID: Final = frozenset({Phase.CREATING, Phase.LOST})
"""The session's ID is not known."""
TOMBSTONES: Final = frozenset({Phase.STOPPED, Phase.GONE})
"""The session has ended."""
RECORDED: Final = WITHOUT_ID | TOMBSTONES | {Phase.LIVE, Phase.WARM, Phase.KEPT}
"""Phases in the ledger: a session that is being stopped is recorded as live until that is proven."""
_MAY_END: Final = frozenset({Phase.STOPPED, Phase.KEPT, Phase.WARM})
"""How a session may end at any time: a late response proves it, or the run leaves it running after all."""
PHASES: Final[Mapping[Phase, Collection[Phase]]] = MappingProxyType(
    {
        Phase.CREATING: {Phase.LIVE, Phase.ABANDONED, Phase.LOST},
        Phase.ABANDONED: {Phase.STOP_DUE, Phase.LOST},
        Phase.LIVE: _MAY_END | {Phase.STOP_DUE},
        Phase.STOP_DUE: _MAY_END | {Phase.STOPPING},
        Phase.STOPPING: _MAY_END | {Phase.CHECKING},
        Phase.CHECKING: _MAY_END | {Phase.STOP_DUE, Phase.GONE},
        # A run claims it, or it is to be stopped.
        Phase.WARM: {Phase.LIVE},
        Phase.KEPT: {Phase.LIVE},
        # Until its time is up: nobody knows its ID.
        Phase.LOST: (),
        Phase.STOPPED: (),
        Phase.GONE: (),
    }
)


def moved(state: _S, to: _S, table: Mapping[_S, Collection[_S]]) -> _S:
    """Return the next state; raises RuntimeError for a transition that is not in the table."""
    if to not in table[state]:
        raise RuntimeError(f"a session that is {state} cannot become {to}")
    return to


def final_state(ends: Sequence[State], users: int) -> State | None:
    """Return how a session ended, None while it may be running and no stop was tried.

    Ends may come from several processes, in any order: a confirmed end takes precedence, and a session counts as
    warm only if each of its ``users`` left it warm and no stop was tried since.
    """
    return (
        _newest(ends, PROVEN)
        or _newest(ends, {State.KEPT, State.ATTACHED})
        or _newest(ends, RETRIABLE)
        or (State.WARM if is_left_by_all(ends, users) else None)
    )


def is_left_by_all(ends: Sequence[State], users: int) -> bool:
    """Return whether every user of a session left it warm."""
    return ends.count(State.WARM) >= max(users, 1)


def _newest(ends: Sequence[State], among: Collection[State]) -> State | None:
    return next((end for end in reversed(ends) if end in among), None)

"""The tables of a session's life are complete: each state has a row, and each can be reached."""

from collections.abc import Collection, Mapping
from enum import StrEnum

import pytest

from pytest_device.sessions.states import (
    ENDS,
    PHASES,
    RECORDED,
    TOMBSTONES,
    TRANSITIONS,
    Phase,
    State,
    moved,
)

TABLES = [
    (TRANSITIONS, State, State.REQUESTED),
    (PHASES, Phase, Phase.CREATING),
]


@pytest.mark.parametrize(("table", "states", "first"), TABLES)
def test_each_state_has_a_row_and_can_be_reached(
    table: Mapping[StrEnum, Collection[StrEnum]],
    states: type[StrEnum],
    first: StrEnum,
) -> None:
    assert table.keys() == set(states)

    reached, following = {first}, [first]
    while following:
        new = set(table[following.pop()]) - reached
        reached |= new
        following += new

    assert reached == set(states)


def test_an_end_is_not_left_except_that_an_interrupted_stop_is_retried() -> None:
    left = {end for end in ENDS if set(TRANSITIONS[end]) != {end}}

    assert left == {State.ENDED}
    assert set(TRANSITIONS[State.ENDED]) <= ENDS


def test_only_a_recorded_session_that_is_running_is_used_or_stopped_again() -> None:
    final = {phase for phase in Phase if not PHASES[phase]}

    assert final == TOMBSTONES | {Phase.LOST}
    assert final < RECORDED


def test_a_transition_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="is gone cannot become live"):
        moved(Phase.GONE, Phase.LIVE, PHASES)

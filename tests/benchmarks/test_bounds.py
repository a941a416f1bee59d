"""The lower bounds of parallel runs: no schedule can go below them, and easy cases reach them."""

import random

import pytest
from benchmarks.parallel.bounds import (
    Work,
    least_billed,
    least_boots,
    least_seconds,
    unknowing_seconds,
)
from benchmarks.parallel.cells import CELLS, Cell, suite_of

TWO_KINDS = Work({"phone": [3.0, 2.0], "tablet": [4.0]}, {"phone": 5.0, "tablet": 6.0})


def test_with_one_session_boots_and_tests_follow_each_other() -> None:
    assert least_seconds(TWO_KINDS, workers=4, sessions=1) == pytest.approx(
        5 + 6 + 3 + 2 + 4
    )


def test_with_free_prefetching_a_worker_waits_only_for_the_fastest_boot() -> None:
    assert least_seconds(TWO_KINDS, workers=1, sessions=None) == 5 + 3 + 2 + 4


def test_tests_on_a_slow_device_start_after_its_boot() -> None:
    work = Work({"phone": [1.0], "tablet": [4.0, 4.0]}, {"phone": 1.0, "tablet": 20.0})

    assert least_seconds(work, workers=1, sessions=None) == 20 + 4 + 4


def test_no_test_is_split() -> None:
    assert least_seconds(TWO_KINDS, workers=100, sessions=None) == 6 + 4


def test_one_test_more_than_workers_takes_as_long_as_two_tests() -> None:
    work = Work({"phone": [2.0] * 5}, {"phone": 1.0})

    assert least_seconds(work, workers=4, sessions=None) == 1 + 2 + 2


def test_a_limit_is_paid_for_with_the_boots_that_it_makes_room_for() -> None:
    work = Work({"phone": [1.0] * 60}, {"phone": 10.0})

    assert least_seconds(work, workers=8, sessions=3) == pytest.approx(
        (60 + 3 * 10) / 3
    )


def test_a_limit_is_paid_for_with_the_boots_of_the_kinds_that_need_them() -> None:
    work = Work({"phone": [1.0], "tablet": [1.0] * 40}, {"phone": 1.0, "tablet": 10.0})

    assert least_seconds(work, workers=8, sessions=3) == pytest.approx(
        (1 + 1 + 40 + 3 * 10) / 3
    )


def test_tests_without_a_device_need_no_boot() -> None:
    while_it_boots = Work({"phone": [1.0]}, {"phone": 10.0}, free=[2.0] * 4)
    for_longer = Work({"phone": [1.0]}, {"phone": 10.0}, free=[2.0] * 12)

    assert least_seconds(while_it_boots, workers=2, sessions=1) == 10 + 1
    assert least_seconds(for_longer, workers=2, sessions=1) == (1 + 12 * 2) / 2


def test_an_unhurried_run_needs_one_session_of_each_kind() -> None:
    assert least_boots(TWO_KINDS, within=100) == 2
    assert least_billed(TWO_KINDS, within=100) == 5 + 6 + 3 + 2 + 4


def test_a_fast_run_needs_enough_sessions_for_all_tests() -> None:
    work = Work({"phone": [1.0] * 60}, {"phone": 10.0})

    assert least_boots(work, within=10 + 15) == 4
    assert least_billed(work, within=10 + 15) == 60 + 4 * 10


def test_no_run_is_faster_than_a_boot() -> None:
    with pytest.raises(ValueError, match="within"):
        least_boots(TWO_KINDS, within=6)


def test_without_known_durations_a_long_test_sometimes_starts_late() -> None:
    work = Work({"phone": [9.0, 1.0, 1.0]}, {"phone": 5.0})

    assert least_seconds(work, workers=2, sessions=None) == 5 + 9
    # Two of six orders have it last, behind a short one.
    assert unknowing_seconds(work, workers=2, sessions=None) == pytest.approx(
        5 + 9 + 1 / 3, abs=0.1
    )


@pytest.mark.parametrize("seed", range(50))
def test_no_feasible_schedule_is_below_the_bound(seed: int) -> None:
    chance = random.Random(seed)
    kinds = [f"kind {number}" for number in range(chance.randint(1, 4))]
    tests = {
        kind: [chance.lognormvariate(0, 1) for _ in range(chance.randint(1, 9))]
        for kind in kinds
    }
    work = Work(tests, {kind: chance.lognormvariate(1, 1) for kind in kinds})
    lanes = chance.randint(1, 6)

    seconds, boots, billed = carried_out(work, lanes, chance)

    assert seconds >= least_seconds(work, workers=lanes, sessions=lanes) - 1e-9
    assert seconds >= least_seconds(work, workers=lanes, sessions=None) - 1e-9
    assert boots >= least_boots(work, within=seconds)
    assert billed >= least_billed(work, within=seconds) - 1e-9


def carried_out(
    work: Work, lanes: int, chance: random.Random
) -> tuple[float, int, float]:
    """Give the next test to the first free worker, which boots a session if it holds one of another kind."""
    left = [(kind, seconds) for kind, tests in work.tests.items() for seconds in tests]
    chance.shuffle(left)
    free_at, holds = [0.0] * lanes, [""] * lanes
    boots, billed = 0, 0.0
    for kind, seconds in left:
        lane = free_at.index(min(free_at))
        boot = 0.0 if holds[lane] == kind else work.boots[kind]
        boots += boot > 0
        billed += boot + seconds
        free_at[lane] += boot + seconds
        holds[lane] = kind
    return max(free_at), boots, billed


@pytest.mark.parametrize("cell", CELLS[:5], ids=lambda cell: cell.name)
def test_a_generated_suite_is_reproducible_and_has_all_kinds(cell: Cell) -> None:
    suite = suite_of(cell, 10.0)

    assert suite == suite_of(cell, 10.0)
    assert (len(suite.tests), len(suite.boots)) == (cell.tests, cell.kinds)

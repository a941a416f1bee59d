"""The ideal scheduler without durations: it keeps to the bounds, and wastes nothing but what it can't know."""

import pytest
from benchmarks.parallel.bounds import Work, least_billed, least_seconds
from benchmarks.parallel.ideal import ideal
from benchmarks.parallel.workloads import FAMILIES, Family, of_family


def test_with_one_session_boots_and_tests_follow_each_other() -> None:
    work = Work({"phone": [3.0, 2.0], "tablet": [4.0]}, {"phone": 5.0, "tablet": 6.0})

    assert ideal(work, workers=4, sessions=1) == (5 + 3 + 2 + 6 + 4,) * 2


def test_a_session_without_tests_is_replaced_by_one_of_the_kind_that_ends_last() -> (
    None
):
    work = Work(
        {"phone": [10.0] * 4, "tablet": [10.0] * 2}, {"phone": 5.0, "tablet": 5.0}
    )

    # The tablet ends at 25; the second phone runs the fourth test from 30 on.
    assert ideal(work, workers=2, sessions=2) == (40, 40 + 25 + 10)


def test_without_a_limit_any_worker_finds_a_session_for_any_test() -> None:
    work = Work(
        {"phone": [10.0] * 4, "tablet": [10.0] * 2}, {"phone": 5.0, "tablet": 5.0}
    )

    assert ideal(work, workers=2, sessions=None)[0] == 5 + 30


def test_tests_without_a_device_run_while_devices_boot() -> None:
    work = Work({"phone": [1.0]}, {"phone": 9.0}, free=[2.0] * 5)

    assert ideal(work, workers=1, sessions=None) == (10 + 1, 10 + 1)


def test_a_long_test_sometimes_starts_late() -> None:
    work = Work({"phone": [9.0, 1.0, 1.0]}, {"phone": 5.0})

    # Two of six orders have it last, behind a short one.
    assert ideal(work, workers=2, sessions=None)[0] == pytest.approx(
        5 + 9 + 1 / 3, abs=0.25
    )


@pytest.mark.parametrize("family", FAMILIES[::4], ids=lambda family: family.name)
def test_it_does_not_beat_the_bound(family: Family) -> None:
    run = of_family(family, 0)
    limits = run.workers, run.sessions

    seconds, billed = ideal(run.work(), *limits)

    assert seconds >= least_seconds(run.work(), *limits)
    assert billed >= least_billed(run.work(), seconds)

"""Runs in virtual time: no run beats its bound, and guesses help where tests are alike."""

from statistics import geometric_mean

import pytest
from benchmarks.parallel.bounds import least_seconds
from benchmarks.parallel.cells import CELLS
from benchmarks.parallel.simulation import (
    XDIST,
    Case,
    PluginScheduler,
    VirtualRun,
    Workload,
    XdistScheduler,
    known_history,
)
from benchmarks.parallel.workloads import FAMILIES, of_cell, of_family, without_names

ANDROID, IOS = "android agent-device a", "ios agent-device b"
VARIANTS = 5


def workload(*kinds: str | None, workers: int, sessions: int | None = None) -> Workload:
    cases = [Case(f"test_a.py::test_{n}", kind, 10.0) for n, kind in enumerate(kinds)]
    return Workload("small", cases, {ANDROID: 60.0, IOS: 30.0}, workers, sessions)


def test_one_worker_boots_then_runs_its_tests() -> None:
    run = VirtualRun(workload(ANDROID, ANDROID, ANDROID, workers=1))

    outcome = run.run(PluginScheduler())

    assert (outcome.seconds, outcome.boots, outcome.billed) == (90.0, 1, 90.0)


def test_the_next_device_boots_during_tests_if_the_limit_allows() -> None:
    tests = [*[ANDROID] * 4, *[IOS] * 4]

    seconds = [
        VirtualRun(of).run(PluginScheduler(known_history(of))).seconds
        for of in (
            workload(*tests, workers=1),
            workload(*tests, workers=1, sessions=1),
        )
    ]

    assert seconds[0] < seconds[1] == 60 + 30 + 80


def test_a_fixture_per_worker_boots_every_kind_on_every_worker() -> None:
    run = VirtualRun(workload(*[ANDROID, IOS, None] * 8, workers=2))

    outcome = run.run(XdistScheduler("load"))

    assert outcome.boots == 4
    assert sorted(test for _, test, *_ in run.log) == list(range(24))


@pytest.mark.parametrize("dist", XDIST)
def test_no_scheduler_of_xdist_beats_the_bound(dist: str) -> None:
    for family in FAMILIES[:6]:
        run = of_family(family, 0)
        if run.sessions is None:
            outcome = VirtualRun(run).run(XdistScheduler(dist))
            assert outcome.seconds >= bound(run)


def bound(run: Workload) -> float:
    return least_seconds(run.work(), run.workers, run.sessions)


@pytest.mark.parametrize(
    "run",
    [
        *[of_cell(cell) for cell in CELLS if cell.tests <= 60],
        *[of_family(family, 1) for family in FAMILIES],
    ],
    ids=lambda run: run.name,
)
def test_the_plugin_does_not_beat_the_bound_or_exceed_the_limit(run: Workload) -> None:
    for history in (None, known_history(run)):
        virtual = VirtualRun(run)
        outcome = virtual.run(PluginScheduler(history))

        assert outcome.seconds >= bound(run) * (1 - 1e-9)
        assert virtual.most_sessions <= (run.sessions or len(run.cases))


def guessed(name: str) -> float:
    """Return the time of first runs over that of the same tests with nothing to guess from."""
    (family,) = [family for family in FAMILIES if family.name == name]
    runs = [of_family(family, number) for number in range(VARIANTS)]
    return geometric_mean(
        first_run(run) / first_run(without_names(run)) for run in runs
    )


def first_run(run: Workload) -> float:
    return VirtualRun(run).run(PluginScheduler()).seconds


@pytest.mark.parametrize("name", ["parametrized", "by module and function", "by size"])
def test_guesses_shorten_first_runs_of_tests_that_are_alike(name: str) -> None:
    assert guessed(name) < 0.97


@pytest.mark.parametrize("name", ["uncorrelated cases", "unlike its size"])
def test_wrong_guesses_cost_little(name: str) -> None:
    assert guessed(name) < 1.03

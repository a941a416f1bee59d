"""The bars of the benchmark of parallel runs, and its chart."""

from dataclasses import replace
from xml.etree import ElementTree as ET

from benchmarks.parallel.drawing import drawn
from benchmarks.parallel.report import by_cell, means, misses
from benchmarks.parallel.runs import BY_HAND, KNOWN, UNKNOWN, Measured, Policy


def run(
    policy: Policy, over: float, billed_over: float = 1.0, cell: str = "t200-k3-w4"
) -> Measured:
    return Measured(
        cell=cell,
        policy=policy.name,
        workers=4,
        seconds=10 * over,
        least_seconds=10.0,
        unknowing_seconds=11.0,
        boots=4,
        least_boots=4,
        billed=40 * billed_over,
        least_billed=40.0,
        whole_seconds=12.0,
        busy=0.3,
    )


def test_runs_within_all_bars_miss_none() -> None:
    assert (
        misses([run(UNKNOWN, 1.14), run(KNOWN, 1.05, 1.04), run(BY_HAND[0], 1.5)]) == []
    )


def test_each_missed_bar_is_named_with_its_cell() -> None:
    reported = misses(
        [run(UNKNOWN, 1.16), run(KNOWN, 1.11, 1.06), run(BY_HAND[0], 1.02)]
    )

    assert [line.partition(":")[0] for line in reported] == [
        "t200-k3-w4, plugin",
        "t200-k3-w4, plugin, first run",
        "plugin",
        "t200-k3-w4, plugin",
        "t200-k3-w4, plugin",
    ]
    assert [line.partition("(")[2] for line in reported] == [
        "bar: 1.1)",
        "bar: 1.15); the best possible without durations is 1.100 on average",
        "bar: 1.06)",
        "bar: 1.05)",
        "bar: 1.03 of it)",
    ]


def test_small_suites_have_their_own_bar() -> None:
    assert misses([run(KNOWN, 1.19, 1.5, cell="t20-k2-w4")]) == []
    assert misses([run(KNOWN, 1.21, cell="t20-k2-w4")]) == [
        "t20-k2-w4, plugin: 1.210 of the bound (bar: 1.2)"
    ]


def test_the_tables_have_a_row_for_each_policy_and_each_suite() -> None:
    runs = [
        run(KNOWN, 1.0),
        run(KNOWN, 1.21, 1.1, cell="t20-k2-w4"),
        run(BY_HAND[0], 2.0),
        run(BY_HAND[1], 1.5),
    ]

    assert "| plugin | 1.10 | 1.21 | 1.05 | 1.10 | 2 |" in means(runs).splitlines()
    assert by_cell(runs).splitlines()[-1] == (
        "| 200 tests, 3 kinds, 4 workers, no limit | 10.0 s | 1.00 |  |  |  | 1.50 |  | 4 of 4 | 1.00 |"
    )


def test_the_drawing_has_a_dot_for_each_run_in_both_panels() -> None:
    one = run(KNOWN, 1.1)

    drawing = ET.fromstring(
        drawn([one, replace(one, cell="t20-k2-w4"), run(BY_HAND[0], 2.0)])
    )

    assert len(drawing.findall(".//{*}circle")) == 6

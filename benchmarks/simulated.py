"""Whole runs in virtual time over their lower bounds: the plugin's scheduler compared with pytest-xdist's.

Many random workloads in about a minute, always with the same result. ``parallel/simulation.py`` defines a run,
``parallel/workloads.py`` the workloads. No scheduler without durations always reaches a bound that needs them, so
``parallel/ideal.py`` says how close an ideal one comes. Exits with 1 if a bar is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel.bounds import least_billed, least_seconds
from benchmarks.parallel.cells import CELLS
from benchmarks.parallel.ideal import ideal
from benchmarks.parallel.simulation import (
    XDIST,
    PluginScheduler,
    VirtualRun,
    Workload,
    XdistScheduler,
    known_history,
)
from benchmarks.parallel.workloads import FAMILIES, of_cell, of_family, without_names

MAX_TESTS: Final = 600
"""Of a cell: larger ones take long to simulate."""
KNOWN_BAR: Final = 1.08
"""Of the lower bound, by the geometric mean of all workloads."""
UNKNOWN_BAR: Final = 1.15
"""First runs: of the lower bound if the ideal scheduler reaches that, otherwise of the ideal scheduler's time."""
WORST: Final = 10
"""Number of kinds to show again: those that take longest of the ideal scheduler's time."""

IDEAL: Final = "ideal"
"""The ideal scheduler without durations."""
THRIFTY: Final = "thrifty"
"""The same with at most one session per worker."""
KNOWN: Final = "known"
FIRST: Final = "first run"
NOTHING: Final = "no guesses"
"""A first run of tests that are not alike."""
BILLED: Final = "billed"
"""A first run's bill over the least."""
COLUMNS: Final = (IDEAL, THRIFTY, KNOWN, FIRST, NOTHING, BILLED, *XDIST)
BILL_OF: Final = {IDEAL: "ideal's bill", THRIFTY: "thrifty one's bill"}
"""Over the least, not shown for single kinds."""
ALL: Final = (*COLUMNS, *BILL_OF.values())

Ratios = Mapping[str, Sequence[float]]
"""Times over their bounds by column, of several workloads."""


def main() -> int:
    """Simulate, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--variants",
        type=int,
        default=10,
        help="random workloads of each kind (default: 10)",
    )
    parser.add_argument("--only", default="", help="kinds whose names contain this")
    arguments = parser.parse_args()

    rows: dict[str, Ratios] = {}
    print(_line("over the bound: mean, worst", COLUMNS))
    for name, workloads in _kinds(arguments.variants):
        if arguments.only in name:
            rows[name] = ratios(workloads)
            print(_row(name, rows[name]), flush=True)

    every = _joined(list(rows.values()))
    print(_row("all", every), "", *_worst(rows), sep="\n")
    missed = list(misses(rows))
    print("", *_first_runs(every), *missed, sep="\n")
    print("BAR MISSED" if missed else "bars met")
    return 1 if missed else 0


def _kinds(variants: int) -> Iterator[tuple[str, Sequence[Workload]]]:
    """Yield the name and the workloads of each kind."""
    for cell in CELLS:
        if cell.tests <= MAX_TESTS:
            yield cell.name, [of_cell(cell, number) for number in range(variants)]
    for family in FAMILIES:
        yield family.name, [of_family(family, number) for number in range(variants)]


def ratios(workloads: Sequence[Workload]) -> Ratios:
    """Run workloads under each scheduler."""
    over: dict[str, list[float]] = {column: [] for column in ALL}
    for workload in workloads:
        work = workload.work()
        at_once = workload.workers, workload.sessions
        least = least_seconds(work, *at_once)
        known = VirtualRun(workload).run(PluginScheduler(known_history(workload)))
        first = VirtualRun(workload).run(PluginScheduler())
        nothing = VirtualRun(without_names(workload)).run(PluginScheduler())

        one_each = min(workload.workers, workload.sessions or workload.workers)

        for column, limit in ((IDEAL, workload.sessions), (THRIFTY, one_each)):
            seconds, billed = ideal(work, workload.workers, limit)
            over[column].append(seconds / least)
            over[BILL_OF[column]].append(billed / least_billed(work, seconds))
        over[KNOWN].append(known.seconds / least)
        over[FIRST].append(first.seconds / least)
        over[NOTHING].append(nothing.seconds / least)
        over[BILLED].append(first.billed / least_billed(work, first.seconds))
        for dist in XDIST:
            if width := _width_by_hand(workload):
                by_hand = VirtualRun(workload, width).run(XdistScheduler(dist))
                over[dist].append(by_hand.seconds / least)
    return over


def _width_by_hand(workload: Workload) -> int:
    """Return how many workers can each keep a session of every kind to their end."""
    if workload.sessions is None:
        return workload.workers
    return min(workload.workers, workload.sessions // len(workload.boots))


def _worst(rows: Mapping[str, Ratios]) -> Iterator[str]:
    """Yield the kinds whose first runs take longest of the ideal scheduler's time, worst first."""
    yield f"{'first runs, worst kinds':27}{'of the ideal':>14}{'of the bound':>14}{'ideal':>9}{'thrifty':>9}"
    over = {name: _over(row[FIRST], row[IDEAL]) for name, row in rows.items()}
    for name in sorted(over, key=over.__getitem__, reverse=True)[:WORST]:
        first, ideal, thrifty = (
            geometric_mean(rows[name][column]) for column in (FIRST, IDEAL, THRIFTY)
        )
        yield f"{name:27}{over[name]:14.3f}{first:14.3f}{ideal:9.3f}{thrifty:9.3f}"


def _over(seconds: Sequence[float], others: Sequence[float]) -> float:
    ratios = (one / other for one, other in zip(seconds, others, strict=True))
    return geometric_mean(ratios)


def _first_runs(every: Ratios) -> Iterator[str]:
    """Yield the means of first runs where the ideal scheduler reaches the bar, and elsewhere; and what it is billed."""
    runs = list(zip(every[IDEAL], every[THRIFTY], every[FIRST], strict=True))
    for where, group in (
        (
            f"ideal at most {UNKNOWN_BAR}",
            [run for run in runs if run[0] <= UNKNOWN_BAR],
        ),
        ("ideal above it", [run for run in runs if run[0] > UNKNOWN_BAR]),
    ):
        if group:
            ideal, thrifty, first = zip(*group, strict=True)
            yield (
                f"first runs, {where}: {len(group)} workloads, {geometric_mean(first):.3f} of the bound "
                f"(ideal: {geometric_mean(ideal):.3f}), {_over(first, ideal):.3f} of the ideal's time, "
                f"{_over(first, thrifty):.3f} of the thrifty one's"
            )
    bills = (
        f"{name}: {geometric_mean(every[name]):.2f}"
        for name in (BILLED, *BILL_OF.values())
    )
    yield f"over the least bill: {', '.join(bills)}"


def misses(rows: Mapping[str, Ratios]) -> Iterator[str]:
    """Yield every bar that is missed, in words."""
    known = geometric_mean(ratio for row in rows.values() for ratio in row[KNOWN])
    if known > KNOWN_BAR:
        yield f"Missed: known: {known:.3f} of the bounds (bar: {KNOWN_BAR})"

    for name, row in rows.items():
        ideal, first = geometric_mean(row[IDEAL]), geometric_mean(row[FIRST])
        least = 1.0 if ideal <= UNKNOWN_BAR else ideal
        if first > UNKNOWN_BAR * least:
            yield (
                f"Missed: {name}, first run: {first:.3f} of the bound "
                f"(ideal: {ideal:.3f}, bar: {UNKNOWN_BAR * least:.3f})"
            )


def _joined(rows: Sequence[Ratios]) -> Ratios:
    return {column: [one for row in rows for one in row[column]] for column in ALL}


def _row(name: str, row: Ratios) -> str:
    cells = [
        f"{geometric_mean(row[column]):.2f} {max(row[column]):.2f}"
        if row[column]
        else ""
        for column in COLUMNS
    ]
    return _line(name, cells)


def _line(name: str, cells: Sequence[str]) -> str:
    return (f"{name:27}" + "".join(f"{cell:>12}" for cell in cells)).rstrip()


if __name__ == "__main__":
    sys.exit(main())

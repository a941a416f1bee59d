"""Whole runs in virtual time over their lower bounds: the plugin's scheduler compared with pytest-xdist's.

Many random workloads in about a minute, always with the same result. ``parallel/simulation.py`` defines a run,
``parallel/workloads.py`` the workloads. Exits with 1 if a bar is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel.bounds import least_billed, least_seconds, unknowing_seconds
from benchmarks.parallel.cells import CELLS
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
"""The same for first runs of the workloads whose bound can be reached."""
REACHED: Final = 1.05
"""Of the lower bound, on average, by the best possible scheduler without durations: the bound can be reached."""
GUESSED: Final = frozenset({"parametrized", "by module", "by size"})
"""Workloads whose durations can be guessed, by the start of their names: their bound can be reached, too."""

BEST: Final = "best first"
"""The best possible scheduler without durations, if devices run any test: no scheduler can have a better mean."""
KNOWN: Final = "known"
FIRST: Final = "first run"
NOTHING: Final = "no guesses"
"""A first run of tests that are not alike."""
BILLED: Final = "billed"
"""A first run's bill over the least."""
COLUMNS: Final = (BEST, KNOWN, FIRST, NOTHING, BILLED, *XDIST)

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

    missed = list(misses(rows))
    print(_row("all", _joined(list(rows.values()))), "", *missed, sep="\n")
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
    over: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for workload in workloads:
        work = workload.work()
        at_once = workload.workers, workload.sessions
        least = least_seconds(work, *at_once)
        known = VirtualRun(workload).run(PluginScheduler(known_history(workload)))
        first = VirtualRun(workload).run(PluginScheduler())
        nothing = VirtualRun(without_names(workload)).run(PluginScheduler())

        over[BEST].append(unknowing_seconds(work, *at_once) / least)
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


def misses(rows: Mapping[str, Ratios]) -> Iterator[str]:
    """Yield every bar that is missed, in words."""
    known = geometric_mean(ratio for row in rows.values() for ratio in row[KNOWN])
    if known > KNOWN_BAR:
        yield f"Missed: known: {known:.3f} of the bounds (bar: {KNOWN_BAR})"

    for name, row in rows.items():
        can_be_reached = geometric_mean(row[BEST]) <= REACHED
        can_be_guessed = name.startswith(tuple(GUESSED))
        first = geometric_mean(row[FIRST])
        if (can_be_reached or can_be_guessed) and first > UNKNOWN_BAR:
            yield f"Missed: {name}, first run: {first:.3f} of the bound (bar: {UNKNOWN_BAR})"


def _joined(rows: Sequence[Ratios]) -> Ratios:
    return {column: [one for row in rows for one in row[column]] for column in COLUMNS}


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

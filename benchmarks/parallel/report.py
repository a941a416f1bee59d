"""The tables of a measurement and its bars."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from benchmarks.parallel.cells import CELLS, Cell
from benchmarks.parallel.runs import (
    BY_HAND,
    KNOWN,
    OTHERS,
    PER_MODULE,
    PER_TEST,
    POLICIES,
    STOCK,
    UNKNOWN,
    Measured,
    Policy,
)

SMALL_TESTS: Final = 60
"""Suites of fewer tests have a bar of their own: one test more on a worker is much there."""
KNOWN_BAR: Final = 1.10
KNOWN_MEAN_BAR: Final = 1.06
BILLED_BAR: Final = 1.05
SMALL_BAR: Final = 1.20
UNKNOWN_BAR: Final = 1.15
OTHERS_BAR: Final = 1.03
"""Of the best of the others, in each cell."""
BUSY: Final = 0.5
"""Above which a run is said to have had too little of the machine."""

Runs = Sequence[Measured]


def shown(cell: Cell, runs: Runs) -> str:
    """Return what was measured of one cell, for the terminal."""
    least = "".join(f": at least {run.least_seconds:.1f} s" for run in runs[:1])
    rows = [
        f"  {run.policy:30} {run.seconds:6.1f} s {run.over:6.2f}   "
        f"{run.boots:4} boots, least {run.least_boots:3}   billed {run.billed_over:5.2f}"
        + (f"   with {run.workers} workers" if run.workers != cell.workers else "")
        + (f"   CPUs {run.busy:.0%} busy" if run.busy > BUSY else "")
        for run in runs
    ]
    return "\n".join([f"{cell} ({cell.name}){least}", *rows])


def means(runs: Runs) -> str:
    """Return for each policy the geometric means over all cells that it could run, as a Markdown table."""
    return "\n".join(
        [
            "| policy | time over its bound | worst | billed over the least | worst | cells |",
            "| --- | --- | --- | --- | --- | --- |",
            *(
                _mean_row(policy, of_policy(runs, policy))
                for policy in POLICIES
                if of_policy(runs, policy)
            ),
        ]
    )


def _mean_row(policy: Policy, runs: Runs) -> str:
    over, billed = [run.over for run in runs], [run.billed_over for run in runs]
    figures = (
        statistics.geometric_mean(over),
        max(over),
        statistics.geometric_mean(billed),
        max(billed),
    )
    return f"| {policy.name} | {' | '.join(f'{figure:.2f}' for figure in figures)} | {len(runs)} |"


def by_cell(runs: Runs) -> str:
    """Return each cell as a row of a Markdown table: time over its bound, and the plugin's boots and bill."""
    head = "| suite | bound | plugin | first run | per test | per module | by hand | order alone | boots | billed |"
    rows = [
        _cell_row(cell, {run.policy: run for run in runs if run.cell == cell.name})
        for cell in cells_of(runs)
    ]
    return "\n".join([head, f"|{' --- |' * 10}", *rows])


def _cell_row(cell: Cell, runs: Mapping[str, Measured]) -> str:
    by_hand = [runs[policy.name].over for policy in BY_HAND if policy.name in runs]
    shown_over = {name: f"{run.over:.2f}" for name, run in runs.items()}
    ours = runs.get(KNOWN.name)
    columns = [
        str(cell),
        f"{next(iter(runs.values())).least_seconds:.1f} s",
        *(
            shown_over.get(policy.name, "")
            for policy in (KNOWN, UNKNOWN, PER_TEST, PER_MODULE)
        ),
        f"{min(by_hand):.2f}" if by_hand else "",
        shown_over.get(STOCK.name, ""),
        f"{ours.boots} of {ours.least_boots}" if ours else "",
        f"{ours.billed_over:.2f}" if ours else "",
    ]
    return f"| {' | '.join(columns)} |"


def cells_of(runs: Runs) -> list[Cell]:
    """Return the cells that were measured."""
    return [cell for cell in CELLS if any(run.cell == cell.name for run in runs)]


def of_policy(runs: Runs, policy: Policy) -> list[Measured]:
    """Return the runs under one policy."""
    return [run for run in runs if run.policy == policy.name]


def misses(runs: Runs) -> list[str]:
    """Return every bar that is missed, in words."""
    small = {cell.name for cell in CELLS if cell.tests < SMALL_TESTS}
    known, unknown = of_policy(runs, KNOWN), of_policy(runs, UNKNOWN)
    large = [run for run in known if run.cell not in small]
    return [
        *_above(KNOWN_BAR, large),
        *_above(SMALL_BAR, [run for run in known if run.cell in small]),
        *(
            f"{miss}; {_unknowing(run)}"
            for run in unknown
            if run.cell not in small
            for miss in _above(UNKNOWN_BAR, [run])
        ),
        *_above_mean(large),
        *(
            f"{run.cell}, {run.policy}: billed {run.billed_over:.3f} of the least (bar: {BILLED_BAR})"
            for run in large
            if run.billed_over > BILLED_BAR
        ),
        *_behind(runs, known),
    ]


def _above(bar: float, runs: Iterable[Measured]) -> Iterator[str]:
    for run in runs:
        if run.over > bar:
            yield f"{run.cell}, {run.policy}: {run.over:.3f} of the bound (bar: {bar})"


def _unknowing(run: Measured) -> str:
    return f"the best possible without durations is {run.unknowing_seconds / run.least_seconds:.3f} on average"


def _above_mean(runs: Runs) -> Iterator[str]:
    if (
        runs
        and (mean := statistics.geometric_mean(run.over for run in runs))
        > KNOWN_MEAN_BAR
    ):
        yield f"{KNOWN.name}: {mean:.3f} of the bounds by the geometric mean (bar: {KNOWN_MEAN_BAR})"


def _behind(runs: Runs, ours: Runs) -> Iterator[str]:
    """Return the cells in which another policy was faster."""
    for run in ours:
        others = [
            one
            for policy in OTHERS
            for one in of_policy(runs, policy)
            if one.cell == run.cell
        ]
        best = min(others, key=lambda one: one.over, default=run)
        if run.over > OTHERS_BAR * best.over:
            yield f"{run.cell}, {run.policy}: {run.over:.3f}, {best.policy}: {best.over:.3f} (bar: {OTHERS_BAR} of it)"

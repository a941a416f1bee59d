"""Wall time and bill of whole runs, over their lower bounds: the plugin compared with common alternatives.

Real pytest-xdist runs at a service in a separate process, with boot and test times scaled down.
``parallel/bounds.py`` defines and explains the bounds, ``parallel/cells.py`` the suites, ``parallel/runs.py`` the
policies. Exits with 1 if a bar is missed.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel import results
from benchmarks.parallel.cells import CELLS, QUICK, Cell, Suite, suite_of
from benchmarks.parallel.drawing import drawn
from benchmarks.parallel.report import by_cell, means, misses, shown
from benchmarks.parallel.runs import POLICIES, Measured, Policy, RunFailedError, measure

QUICK_SECONDS: Final = 5.0
WHOLE: Final = "makespan"
DRAWING: Final = results.DOCS / "makespan.svg"


def main() -> int:
    """Measure, print, and return the exit status."""
    arguments = _arguments()
    runs, failed = _read(arguments.read) if arguments.read else _measure(arguments)
    missed = [*failed, *misses(runs)]
    print(means(runs), "", *missed, sep="\n")
    if arguments.write:
        reported = (
            "\n".join(f"- Missed: {miss}" for miss in missed) or "All bars are met."
        )
        busy = f"The CPUs were at most {max(run.busy for run in runs):.0%} busy during a run, with whatever else ran."
        results.write(
            arguments.write, f"{busy}\n\n{means(runs)}\n\n{by_cell(runs)}\n\n{reported}"
        )
        if arguments.write == WHOLE:
            DRAWING.write_text(drawn(runs))
    print("BAR MISSED" if missed else "bars met")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="three cells only, and shorter"
    )
    parser.add_argument(
        "--cells",
        nargs="+",
        metavar="NAME",
        help=f"some of {', '.join(cell.name for cell in CELLS)}",
    )
    parser.add_argument(
        "--policies", nargs="+", metavar="START", help="those whose names start so"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=7.0,
        help="the least that a run may take (default: 7)",
    )
    parser.add_argument(
        "--times",
        type=float,
        default=1.0,
        help="run everything so many times as slowly (default: 1)",
    )
    parser.add_argument("--json", type=Path, help="write every run there, cell by cell")
    parser.add_argument(
        "--read", type=Path, help="measure nothing: take the runs from such a file"
    )
    parser.add_argument(
        "--write",
        nargs="?",
        const=WHOLE,
        metavar="PART",
        help=f"refresh a part of {results.PAGE.name} (default: {WHOLE}, and with it {DRAWING.name})",
    )
    return parser.parse_args()


def _measure(arguments: argparse.Namespace) -> tuple[list[Measured], list[str]]:
    """Return every run, and messages about those that failed."""
    runs: list[Measured] = []
    failed: list[str] = []
    for cell in _cells(arguments):
        suite = suite_of(
            cell,
            QUICK_SECONDS if arguments.quick else arguments.seconds,
            arguments.times,
        )
        ended = _of_cell(cell, suite, _policies(arguments))
        runs += [run for run in ended if isinstance(run, Measured)]
        failed += [f"FAILED: {run}" for run in ended if isinstance(run, RunFailedError)]
        print(shown(cell, [run for run in runs if run.cell == cell.name]), flush=True)
        if arguments.json:
            arguments.json.write_text(
                json.dumps([asdict(run) for run in runs], indent=1)
            )
    return runs, failed


def _read(path: Path) -> tuple[list[Measured], list[str]]:
    return [Measured(**run) for run in json.loads(path.read_text())], []


def _cells(arguments: argparse.Namespace) -> Sequence[Cell]:
    if not arguments.cells:
        return QUICK if arguments.quick else CELLS
    by_name = {cell.name: cell for cell in CELLS}
    return [by_name[name] for name in arguments.cells]


def _policies(arguments: argparse.Namespace) -> Sequence[Policy]:
    return [
        policy
        for policy in POLICIES
        if policy.name.startswith(tuple(arguments.policies or [""]))
    ]


def _of_cell(
    cell: Cell, suite: Suite, policies: Sequence[Policy]
) -> list[Measured | RunFailedError]:
    with tempfile.TemporaryDirectory() as directory:
        return list(measure(cell, suite, policies, Path(directory)))


if __name__ == "__main__":
    sys.exit(main())

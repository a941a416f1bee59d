"""Cost of the plugin for a suite that does not use it: wall time of whole runs, and import time."""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

RATIO_BAR: Final = 1.02
"""With the plugin over without it, at the largest number of tests: where it counts, and noise is smallest."""
IMPORT_BAR_MS: Final = 2.0
WAYS: Final = {
    "with the plugin": (),
    "without it": ("-p", "no:device"),
    "without it again": ("-p", "no:device"),
}
TESTS_PER_FILE: Final = 100
REPORT_OUR_MODULES: Final = """
import sys

def pytest_unconfigure():
    print(*(name for name in sys.modules if name.startswith("pytest_device")), sep=", ")
"""
IMPORT_AND_REPORT_MS: Final = """
import time
import pytest
started = time.perf_counter()
import {modules}
print((time.perf_counter() - started) * 1000)
"""


def main() -> int:
    """Print every figure next to its bar; return 1 if a bar is missed."""
    arguments = _arguments()
    ratios = [_ratio(tests, arguments.repeats) for tests in sorted(arguments.tests)]
    import_ms = _import_ms(arguments.repeats)
    met = ratios[-1] <= RATIO_BAR and import_ms <= IMPORT_BAR_MS
    print("bars met" if met else "BAR MISSED")
    return 0 if met else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=9,
        help="runs of each kind that count (default: %(default)s)",
    )
    parser.add_argument(
        "--tests",
        type=int,
        nargs="+",
        default=[1, 5000],
        help="sizes of the suites (default: 1 5000)",
    )
    return parser.parse_args()


def _ratio(tests: int, repeats: int) -> float:
    """Run a suite each way in turn, each round in another order; the first round only warms caches."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as directory:
        suite = Path(directory)
        _write_suite(suite, tests)
        for number in range(repeats + 1):
            # A fixed order was worth 3 % to whoever came second.
            for way in random.sample(list(WAYS), len(WAYS)):
                took = _run_seconds(suite, *WAYS[way])
                seconds[way] += [took] if number else []
    medians = [statistics.median(runs) for runs in seconds.values()]
    for (way, runs), median in zip(seconds.items(), medians, strict=True):
        print(
            f"{tests} tests, {way}: {median:.3f} s ({min(runs):.3f} to {max(runs):.3f})"
        )
    with_plugin, without, again = medians
    print(
        f"{tests} tests, ratio of medians: {with_plugin / without:.3f} (bar at the largest suite: {RATIO_BAR})"
    )
    print(
        f"{tests} tests, ratio of the same twice: {again / without:.3f} (1 but for the machine's noise)"
    )
    return with_plugin / without


def _write_suite(directory: Path, tests: int) -> None:
    (directory / "pytest.ini").write_text("[pytest]\n")
    for first in range(0, tests, TESTS_PER_FILE):
        numbers = range(first, min(first + TESTS_PER_FILE, tests))
        source = "\n".join(f"def test_{number}(): pass" for number in numbers)
        (directory / f"test_{first}.py").write_text(source)


def _run_seconds(suite: Path, *options: str) -> float:
    started = time.perf_counter()
    _python("-m", "pytest", "-q", *options, cwd=suite)
    return time.perf_counter() - started


def _import_ms(repeats: int) -> float:
    """Import what a run without a device imports of this package, hooks included, after pytest itself."""
    with tempfile.TemporaryDirectory() as directory:
        suite = Path(directory)
        _write_suite(suite, 1)
        (suite / "conftest.py").write_text(REPORT_OUR_MODULES)
        modules = _python("-m", "pytest", "-q", cwd=suite).splitlines()[-1]
        timed = IMPORT_AND_REPORT_MS.format(modules=modules)
        runs = [float(_python("-c", timed, cwd=suite)) for _ in range(repeats + 1)][1:]
    print(f"imported by every run: {modules}")
    print(
        f"importing these after pytest: {statistics.median(runs):.2f} ms (bar: {IMPORT_BAR_MS})"
    )
    return statistics.median(runs)


def _python(*arguments: str, cwd: Path) -> str:
    """Run a fresh interpreter that may cache bytecode, as an installed package has it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())

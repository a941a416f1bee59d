"""Cost of planning: ordering 20,000 device tests, distributing them to workers, and workers without devices.

Medians of whole runs in random order, each compared with the same run repeated, which shows the noise. Exits with 1 if
a bar is missed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel.cells import KINDS
from benchmarks.parallel.service import APP_ID, TOKEN, service

from pytest_device.options import TOKEN_VARIABLE, Options

PLANNING_BAR: Final = 0.02
"""Of the time of collection, for the order of device tests, and for their distribution."""
WORKERS_BAR: Final = 1.03
"""A run with workers and without devices, over the same without the plugin."""
TESTS_PER_FILE: Final = 100
WITH: Final = ("-p", "device")
WORKERS: Final = ("-p", "xdist", "-n", "2")
STAMPS: Final = "BENCHMARK_STAMPS"
FIRST_TEST: Final = """
import os
import time

import pytest


def stamp(what):
    with open(os.environ["BENCHMARK_STAMPS"], "a") as stamps:
        stamps.write(f"{what} {time.time()!r}\\n")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    stamp("collected")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    stamp("began")
    item.session.shouldstop = "measured"
    return True
"""
"""The first test of each worker is stamped and not run."""

Ways = Mapping[str, Callable[[], tuple[float, ...]]]


def main() -> int:
    """Print every figure next to its bar; return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="runs of each kind that count (default: %(default)s)",
    )
    parser.add_argument(
        "--tests",
        type=int,
        default=20_000,
        help="device tests to collect (default: %(default)s)",
    )
    arguments = parser.parse_args()
    met = True
    for measure in (_order, _distribution, _workers):
        lines, is_met = measure(arguments.tests, arguments.repeats)
        met &= is_met
        print(*lines, sep="\n", flush=True)
    print("bars met" if met else "BAR MISSED")
    return 0 if met else 1


def _order(tests: int, repeats: int) -> tuple[list[str], bool]:
    """Collect in one process: ordered, in the order of the files, and without the plugin.

    What counts is the time on a CPU: collection waits for nothing, and other programs disturb that less.
    """
    with tempfile.TemporaryDirectory() as directory:
        suite = _device_suite(Path(directory), tests)
        collect = ("--collect-only", "-qq")
        ways: Ways = {
            "ordered": lambda: _seconds(suite, *WITH, *collect),
            "order left alone": lambda: _seconds(
                suite, *WITH, *collect, Options.reorder.flag
            ),
            "order left alone again": lambda: _seconds(
                suite, *WITH, *collect, Options.reorder.flag
            ),
            "without the plugin": lambda: _seconds(suite, *collect),
        }
        medians = _medians(ways, repeats)
    ordered, alone, again, _without = (cpu for _, cpu in medians.values())
    lines = [
        f"{tests} device tests collected, {way}: {wall:.2f} s, {cpu:.2f} s of CPU"
        for way, (wall, cpu) in medians.items()
    ]
    lines += [
        f"order, of the time of collection: {ordered / alone - 1:.1%} (bar: {PLANNING_BAR:.0%})",
        f"order, the same twice: {again / alone - 1:.1%} (0 but for the machine's noise)",
    ]
    return lines, ordered / alone - 1 <= PLANNING_BAR


def _distribution(tests: int, repeats: int) -> tuple[list[str], bool]:
    """Let two workers collect; measure the time from then to the first test."""
    with tempfile.TemporaryDirectory() as directory:
        suite = _device_suite(Path(directory), tests)
        (suite / "conftest.py").write_text(FIRST_TEST)
        with service(
            suite, {" ".join(kind.values()): 0.0 for kind in KINDS.values()}
        ) as running:
            ours = *WITH, *WORKERS, "--device-url", running.url
            knowing = *ours, Options.durations.flag, str(_durations(suite, tests))
            ways: Ways = {
                "by the plugin": lambda: _until_first_test(suite, *ours),
                "by the plugin, all durations but ten known": lambda: _until_first_test(
                    suite, *knowing
                ),
                "by pytest-xdist": lambda: _until_first_test(suite, *WORKERS),
                "by pytest-xdist again": lambda: _until_first_test(suite, *WORKERS),
            }
            medians = _medians(ways, repeats)
    lines = [
        f"{tests} device tests distributed to 2 workers, {way}: {gap:.3f} s after {collected:.2f} s of collection"
        for way, (gap, collected) in medians.items()
    ]
    (gap, _), (guessed, _), (stock, collected), (again, _) = medians.values()
    more, noise = (gap - stock) / collected, (again - stock) / collected
    guessing = (guessed - stock) / collected
    lines += [
        f"distribution over pytest-xdist's, of the time of collection: {more:.1%} (bar: {PLANNING_BAR:.0%})",
        f"distribution, all durations but ten known: {guessing:.1%} (bar: {PLANNING_BAR:.0%})",
        f"distribution, the same twice: {noise:.1%} (0 but for the machine's noise)",
    ]
    return lines, max(more, guessing) <= PLANNING_BAR


def _workers(_tests: int, repeats: int) -> tuple[list[str], bool]:
    """Run tests that need no device with two workers, with the plugin and without."""
    tests = 2000
    with tempfile.TemporaryDirectory() as directory:
        suite = _suite(
            Path(directory), tests, lambda number: f"def test_{number}(): pass"
        )
        ways: Ways = {
            "with the plugin": lambda: _seconds(suite, *WORKERS, *WITH),
            "without it": lambda: _seconds(suite, *WORKERS),
            "without it again": lambda: _seconds(suite, *WORKERS),
        }
        medians = _medians(ways, repeats * 2)
    plugin, without, again = (wall for wall, _ in medians.values())
    lines = [
        f"{tests} tests without a device, 2 workers, {way}: {wall:.2f} s, {cpu:.2f} s of CPU"
        for way, (wall, cpu) in medians.items()
    ]
    lines += [
        f"2 workers without devices, ratio: {plugin / without:.3f} (bar: {WORKERS_BAR})",
        f"2 workers without devices, ratio of the same twice: {again / without:.3f} (1 but for the machine's noise)",
    ]
    return lines, plugin / without <= WORKERS_BAR


def _medians(ways: Ways, repeats: int) -> Mapping[str, Sequence[float]]:
    """Run each way in turn, each round in another order; the first round only warms caches."""
    runs: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
    for number in range(repeats + 1):
        for way in random.sample(list(ways), len(ways)):
            took = ways[way]()
            runs[way] += [took] if number else []
    return {
        way: [statistics.median(figures) for figures in zip(*of_way, strict=True)]
        for way, of_way in runs.items()
    }


def _durations(suite: Path, tests: int) -> Path:
    """Write a file of pytest-split with the durations of all tests but ten, which are guessed from the others."""
    path = suite / ".test_durations"
    seconds = {_nodeid(number): 1.0 + number % 7 for number in range(tests)}
    for number in range(0, tests, tests // 10):
        del seconds[_nodeid(number)]
    path.write_text(json.dumps(seconds))
    return path


def _nodeid(number: int) -> str:
    first = number - number % TESTS_PER_FILE
    return f"{_file(first)}::test_{number}"


def _file(first: int) -> str:
    return f"test_{first:05}.py"


def _device_suite(directory: Path, tests: int) -> Path:
    """Write tests of three kinds, mixed in every file."""
    kinds = list(KINDS.values())[:3]

    def written(number: int) -> str:
        arguments = ", ".join(
            f"{name}={value!r}" for name, value in kinds[number % len(kinds)].items()
        )
        return f"@pytest.mark.device({arguments})\ndef test_{number}(): pass"

    return _suite(directory, tests, written)


def _suite(directory: Path, tests: int, written: Callable[[int], str]) -> Path:
    (directory / "pytest.ini").write_text(
        "[pytest]\nmarkers = device: known without the plugin, too\n"
    )
    for first in range(0, tests, TESTS_PER_FILE):
        numbers = range(first, min(first + TESTS_PER_FILE, tests))
        source = "\n\n".join(map(written, numbers))
        (directory / _file(first)).write_text(f"import pytest\n\n{source}\n")
    return directory


def _until_first_test(suite: Path, *options: str) -> tuple[float, float]:
    """Return the seconds from the end of collection to the first test, and those from the start to that end."""
    stamps = suite / "stamps"
    stamps.unlink(missing_ok=True)
    started = time.time()
    _run(suite, *options, statuses=(0, 2))  # 2: the run was cut short, as it was to be
    reported = [line.split() for line in stamps.read_text().splitlines()]
    collected = max(float(moment) for what, moment in reported if what == "collected")
    return min(
        float(moment) for what, moment in reported if what == "began"
    ) - collected, collected - started


def _seconds(suite: Path, *options: str) -> tuple[float, float]:
    """Return the seconds that a run took, and those that its processes had of a CPU."""
    started, before = time.perf_counter(), os.times()
    _run(suite, *options)
    took, after = time.perf_counter() - started, os.times()
    cpu = (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )
    return took, cpu


def _run(suite: Path, *options: str, statuses: Sequence[int] = (0,)) -> None:
    """Run pytest with only the plugins that the options name; raise RuntimeError if it fails."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEVICE_", "PYTEST_"))
    }
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    own = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        TOKEN_VARIABLE: TOKEN,
        "DEVICE_APP_ID": APP_ID,
        "DEVICE_STATE_DIR": str(suite / "state"),
        STAMPS: str(suite / "stamps"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    ended = subprocess.run(
        command,
        cwd=suite,
        env=inherited | own,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if ended.returncode not in statuses:
        raise RuntimeError(
            f"{' '.join(options)}: pytest ended with {ended.returncode}\n{ended.stdout[-4000:]}"
        )


if __name__ == "__main__":
    sys.exit(main())

"""Run pytest on a suite under each policy and measure the time by the clocks of the service and the tests.

Every run is a real pytest process with pytest-xdist workers.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from benchmarks.parallel.bounds import (
    least_billed,
    least_boots,
    least_seconds,
    unknowing_seconds,
)
from benchmarks.parallel.cells import KINDS, Cell, Suite
from benchmarks.parallel.service import APP_ID, TOKEN, Service, service
from benchmarks.parallel.suite import STAMPS, write_by_hand, write_marked

from pytest_device.options import TOKEN_VARIABLE

RUN_SECONDS: Final = 600.0
"""Timeout of a run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to run a suite: pytest's options; with the marker or ``by_hand``."""

    name: str
    options: tuple[str, ...] = ()
    by_hand: bool = False


KNOWN: Final = Policy("plugin")
UNKNOWN: Final = Policy("plugin, first run", ("--cache-clear",))
PER_TEST: Final = Policy(
    "a session per test", ("--device-share", "test", "--dist", "load")
)
PER_MODULE: Final = Policy(
    "a session per module, loadfile", ("--device-share", "module", "--dist", "loadfile")
)
BY_HAND: Final = tuple(
    Policy(f"a fixture per worker, {dist}", ("--dist", dist), by_hand=True)
    for dist in ("load", "loadscope", "worksteal")
)
OTHERS: Final = (PER_TEST, PER_MODULE, *BY_HAND)
"""What people have today, and what the plugin's scheduler has to be better than."""
STOCK: Final = Policy("the plugin's order, worksteal", ("--dist", "worksteal"))
POLICIES: Final = (UNKNOWN, KNOWN, *OTHERS, STOCK)
"""In this order: what the first run writes into pytest's cache is what the second one knows."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The duration of one run in seconds, and its lower bounds for the actual durations of its tests.

    ``least_seconds`` is for any schedule, ``unknowing_seconds`` for the average of those by one who does not know how
    long tests take, ``least_boots`` and ``least_billed`` for one that takes as long as the run.
    """

    cell: str
    policy: str
    workers: int
    seconds: float
    least_seconds: float
    unknowing_seconds: float
    boots: int
    least_boots: int
    billed: float
    least_billed: float
    whole_seconds: float
    """From the start of pytest to its end."""
    busy: float
    """The part of the machine's CPUs that was busy meanwhile, with whatever else ran: above a half it is reported."""

    @property
    def over(self) -> float:
        """Return the time over its lower bound."""
        return self.seconds / self.least_seconds

    @property
    def billed_over(self) -> float:
        """Return what is billed over the least."""
        return self.billed / self.least_billed


def workers_of(policy: Policy, cell: Cell) -> int:
    """Return the workers that a policy can have, 0 where it has none.

    A fixture per worker keeps a session of every kind to the worker's end and waits for nobody's: the limit of sessions
    has to hold all of them.
    """
    if not policy.by_hand or cell.sessions is None:
        return cell.workers
    return min(cell.workers, cell.sessions // cell.kinds)


class RunFailedError(Exception):
    """A run failed: its figures would mean nothing."""


def measure(
    cell: Cell, suite: Suite, policies: Sequence[Policy], directory: Path
) -> Iterator[Measured | RunFailedError]:
    """Run the suite of a cell under each policy that can run it, one after the other, at a service of its own."""
    write_marked(suite, directory / "marked")
    write_by_hand(suite, directory / "by_hand")
    with service(
        directory,
        {
            " ".join(KINDS[kind].values()): seconds
            for kind, seconds in suite.boots.items()
        },
    ) as running:
        environ = _environment(running, directory, suite.poll_seconds)
        for policy in policies:
            if workers := workers_of(policy, cell):
                stamps = directory / "stamps"
                stamps.unlink(missing_ok=True)
                try:
                    took = _run(policy, cell, workers, environ, directory)
                    yield _measured(policy, cell, suite, running, stamps, workers, took)
                except RunFailedError as error:
                    yield error
                    running.sessions()  # none of these is the next run's


def _run(
    policy: Policy,
    cell: Cell,
    workers: int,
    environ: Mapping[str, str],
    directory: Path,
) -> tuple[float, float]:
    """Run pytest; return how long it took, and the part of the machine's CPUs that was busy."""
    log = directory / "log"
    with log.open("w") as output:
        psutil.cpu_percent()  # from here on
        started = time.perf_counter()
        ended = subprocess.run(
            _command(policy, cell, workers),
            cwd=directory / ("by_hand" if policy.by_hand else "marked"),
            env=environ,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=RUN_SECONDS,
            check=False,
        )
    if ended.returncode:
        raise RunFailedError(
            f"{cell}, {policy.name}: pytest ended with {ended.returncode}\n{log.read_text()[-4000:]}"
        )
    return time.perf_counter() - started, psutil.cpu_percent() / 100


def _command(policy: Policy, cell: Cell, workers: int) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        str(workers),
        *policy.options,
    ]
    if policy.by_hand:
        return command
    # What other policies do is nothing that the plugin's own runs learn from.
    command += [] if policy in (KNOWN, UNKNOWN) else ["-o", "cache_dir=.other_cache"]
    command += ["--device-max-sessions", str(cell.sessions)] if cell.sessions else []
    return [*command, "-p", "device"]


def _environment(
    running: Service, directory: Path, poll_seconds: float
) -> Mapping[str, str]:
    """Return the variables of a run: no plugin of the environment takes part but those that the command names."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEVICE_", "PYTEST_"))
        and name != "PYTHONDONTWRITEBYTECODE"
    }
    return inherited | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        TOKEN_VARIABLE: TOKEN,
        "DEVICE_URL": running.url,
        "DEVICE_APP_ID": APP_ID,
        "DEVICE_POLL_INTERVAL_SECONDS": str(poll_seconds),
        "DEVICE_STATE_DIR": str(directory / "state"),
        STAMPS: str(directory / "stamps"),
    }


def _measured(
    policy: Policy,
    cell: Cell,
    suite: Suite,
    running: Service,
    stamps: Path,
    workers: int,
    took: tuple[float, float],
) -> Measured:
    """Return the duration of a run from its first create call or test."""
    spans = {
        int(number): (float(start), float(end))
        for number, start, end in map(str.split, _lines(stamps))
    }
    if missing := sum(test.number not in spans for test in suite.tests):
        raise RunFailedError(f"{cell}, {policy.name}: {missing} tests did not run")
    sessions = running.sessions()
    if left := [session for session in sessions if session.finished_at is None]:
        raise RunFailedError(
            f"{cell}, {policy.name}: {len(left)} sessions were not stopped"
        )
    started = min(
        *(session.created_at for session in sessions),
        *(start for start, _ in spans.values()),
    )
    work = suite.work({number: end - start for number, (start, end) in spans.items()})
    seconds = max(end for _, end in spans.values()) - started
    return Measured(
        cell=cell.name,
        policy=policy.name,
        workers=workers,
        seconds=seconds,
        least_seconds=least_seconds(work, cell.workers, cell.sessions),
        unknowing_seconds=unknowing_seconds(work, cell.workers, cell.sessions),
        boots=len(sessions),
        least_boots=least_boots(work, seconds),
        billed=sum(
            (session.finished_at or 0.0) - session.created_at for session in sessions
        ),
        least_billed=least_billed(work, seconds),
        whole_seconds=took[0],
        busy=took[1],
    )


def _lines(stamps: Path) -> list[str]:
    return stamps.read_text().splitlines()

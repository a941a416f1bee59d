"""Cost of sessions for the process that holds them: CPU and memory per session, and stopping all, from 25 to 200.

A separate process holds each number of sessions as a run would: all of them boot in the background, with the reaper,
at a local service with simulated devices. Costs should grow linearly; the output has the exponent of a log-log fit and
its bar. Exits with 1 if a bar is missed.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psutil

from pytest_device.plugin.provider.backend import RemoteBackend
from pytest_device.sessions.attempt import SessionConfig
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import Event, Stopped
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.network import endpoint_at
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.reaper.channel import NAME
from pytest_device.sessions.reporter import Relay, SafetyNet
from pytest_device.sessions.request import DeviceRequirement, SessionRequest
from pytest_device.sessions.runs import OwnRun, new_run
from pytest_device.settings import LOCAL_APP_ID, resolve
from pytest_device.testing import FaultyService, faulty_service

COUNTS: Final = (25, 50, 100, 200)
EXPONENT_BAR: Final = 1.15
"""Of costs over the number of sessions: 1 is linear, the rest is noise."""
BOOT_SECONDS: Final = 10.0
POLICY: Final = WaitPolicy(poll_interval_seconds=2.0)
WAIT_SECONDS: Final = 300.0
TESTS: Final = 20
"""Tests that acquire and release one session among all those that are held."""
COSTS: Final[Mapping[str, str]] = {
    "boot_cpu": "booting: CPU seconds of the run",
    "reaper_cpu": "booting: CPU seconds of the reaper",
    "kilobytes": "memory of the run, KB",
    "stop_cpu": "stopping all: CPU seconds of the run",
    "stop_seconds": "stopping all: seconds",
}
"""The costs that must grow linearly."""
FACTS: Final[Mapping[str, str]] = {
    "boot_seconds": "booting all: seconds",
    "hold_cpu": "holding all for 2 s: CPU seconds of the run",
    "test_ms": "a test among them, take and give back: ms",
}

Figures = dict[str, float]


def main() -> int:
    """Print every figure, and the exponents next to their bar; return 1 if it is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="processes for each count (default: %(default)s)",
    )
    parser.add_argument("--hold", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.hold:
        print(json.dumps(_held(arguments.hold)))
        return 0
    with (
        faulty_service(boot_seconds=BOOT_SECONDS) as service,
        tempfile.TemporaryDirectory() as directory,
    ):
        rounds = [
            [_measured(service, Path(directory), count) for count in COUNTS]
            for _ in range(arguments.repeats)
        ]
    medians = [_medians(figures) for figures in zip(*rounds, strict=True)]
    exponents = [_reported(cost, text, medians) for cost, text in COSTS.items()]
    for fact, text in FACTS.items():
        print(f"{text}: {_row(fact, medians)}")
    met = max(exponents) <= EXPONENT_BAR
    print("bars met" if met else "BAR MISSED")
    return 0 if met else 1


def _medians(figures: Sequence[Figures]) -> Figures:
    return {
        name: statistics.median(one[name] for one in figures) for name in figures[0]
    }


def _reported(cost: str, text: str, medians: Sequence[Figures]) -> float:
    exponent = _exponent([figures[cost] for figures in medians])
    each = medians[-1][cost] / COUNTS[-1]
    print(
        f"{text}: {_row(cost, medians)}; {each:.3g} each; exponent {exponent:.2f} (bar: {EXPONENT_BAR})"
    )
    return exponent


def _row(name: str, medians: Sequence[Figures]) -> str:
    return ", ".join(
        f"{count}: {figures[name]:.3g}"
        for count, figures in zip(COUNTS, medians, strict=True)
    )


def _exponent(costs: Sequence[float]) -> float:
    """Return the slope of the straight line that fits the logarithms best."""
    return statistics.linear_regression(
        [math.log(count) for count in COUNTS], [math.log(cost) for cost in costs]
    ).slope


def _measured(service: FaultyService, directory: Path, count: int) -> Figures:
    mark = directory / uuid4().hex
    environment = (
        os.environ
        | {
            "DEVICE_URL": service.url,
            "DEVICE_TOKEN": service.token,
            "DEVICE_STATE_DIR": str(mark),
            "PATH": f"{os.environ['PATH']}{os.pathsep}{mark}",  # by which the process knows its reaper
        }
    )
    command = [sys.executable, __file__, "--hold", str(count)]
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


# In the process that holds them.


class Run:
    """What a run has: the way to the service with its reaper, and a pool over it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        settings = resolve({}, environ, {})
        state_dir = Path(environ["DEVICE_STATE_DIR"])
        self.events: list[Event] = []
        self.backend = RemoteBackend(
            settings,
            endpoint_at(str(settings.url), settings.token),
            run=OwnRun.join(state_dir, new_run(), "main"),
            worker=None,
            reporter=self,
        )
        relay = Relay(self.events.append)
        config = SessionConfig(self.backend.sessions(), time.monotonic, relay)
        self.pool = Pool(config, sleep=time.sleep)

    def event(self, event: Event) -> None:
        """Remember it."""
        self.events.append(event)

    def note(self, text: str) -> None:
        """Show it."""
        print(text, file=sys.stderr)

    def warn(self, net: SafetyNet, text: str) -> None:
        """Show it."""
        print(f"{net}: {text}", file=sys.stderr)

    progress = note


def _held(count: int) -> Figures:
    """Boot, hold and stop so many sessions, and one before them that has everything loaded; return what it took."""
    run, reaper = Run(os.environ), _Reaper(os.environ["DEVICE_STATE_DIR"])
    first = run.pool.acquire([_need("first")], POLICY)
    needs = [_need(f"number {number}") for number in range(count)]
    cpu, seconds, memory, of_reaper = (
        time.process_time(),
        time.monotonic(),
        _kilobytes(),
        reaper.cpu(),
    )

    run.pool.prefetch(needs, POLICY)
    _join_background()
    held = run.pool.acquire(needs, POLICY)

    figures = {
        "boot_cpu": time.process_time() - cpu,
        "boot_seconds": time.monotonic() - seconds,
        "kilobytes": _kilobytes() - memory,
        "reaper_cpu": reaper.cpu() - of_reaper,
    }
    figures["hold_cpu"] = _cpu_of(lambda: time.sleep(2))
    figures["test_ms"] = _test_ms(run.pool, held)
    seconds = time.monotonic()
    figures["stop_cpu"] = _cpu_of(lambda: _stop(run, [*first, *held]))
    figures["stop_seconds"] = time.monotonic() - seconds
    stopped = sum(isinstance(event, Stopped) for event in run.events)
    if stopped != count + 1:
        raise RuntimeError(f"{stopped} of {count + 1} sessions were stopped")
    return figures


def _stop(run: Run, held: Sequence[DeviceSession]) -> None:
    run.pool.release(held, lambda _need: 0)
    run.events += run.backend.close(WAIT_SECONDS)


def _need(among: str) -> DeviceRequirement:
    request = SessionRequest.from_arguments(
        app_id=LOCAL_APP_ID, platform="android", type="appium", max_duration_minutes=60
    )
    return DeviceRequirement(request, among)


def _join_background() -> None:
    for thread in threading.enumerate():
        if thread.name == "pytest-device-background":
            thread.join(WAIT_SECONDS)


def _test_ms(pool: Pool, held: Sequence[DeviceSession]) -> float:
    """Return the cost of one test that reuses a session while all others are idle."""
    pool.release(held, lambda _need: len(held))
    started = time.perf_counter()
    for one in held[:TESTS]:
        pool.release(pool.acquire([one.requirement], POLICY), lambda _need: len(held))
    return (time.perf_counter() - started) * 1000 / TESTS


def _cpu_of(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _kilobytes() -> float:
    return float(psutil.Process().memory_full_info().uss) / 1024


class _Reaper:
    """The reaper of this process and its senders, known by a mark in their search path."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def cpu(self) -> float:
        """Return the CPU seconds that they have used."""
        return sum(
            _cpu_seconds(process)
            for process in psutil.process_iter()
            if self._is_ours(process)
        )

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return process.cmdline()[-1:] == [
                NAME
            ] and self._mark in process.environ().get("PATH", "")
        return False


def _cpu_seconds(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        times: Any = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


if __name__ == "__main__":
    sys.exit(main())

"""Cost of leak protection: runs beside a plain fixture, the reaper's start and memory, 50 stops compared with one.

Runs at a local service with simulated devices; both sides of each ratio are measured in the same run of the script.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.reaper.channel import NAME
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import ReaperClient, ReaperConfig
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.runs import OwnRun
from pytest_device.testing import FaultyService, faulty_service

RATIO_BAR: Final = 1.10
"""A run with the plugin over one with the plain fixture, where devices take half a second to boot."""
START_BAR_MS: Final = 20.0
"""Of the run's own time, for starting the reaper."""
MEMORY_BAR_MB: Final = 15.0
TERM_BAR_SECONDS: Final = 0.2
STOPS_BAR: Final = 2.0
"""The time of 50 stops over that of one."""

TESTS: Final = 20
BOOTS: Final = (0.5, 0.0)
"""Seconds that a device takes to boot; the bar is for the first."""
POLL_SECONDS: Final = 0.2
STOPS: Final = 50
STOP_SECONDS: Final = 0.5
"""How long the service takes to answer a stop call."""

WITH_PLUGIN: Final = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
@pytest.mark.device(platform="android", type="appium")
def test_driven(device_session, number):
    assert device_session.status == "in-progress"
"""
WAITS: Final = """
import time
import pytest

@pytest.mark.device(platform="android", type="appium")
def test_driven(device_session):
    print("reached", flush=True)
    time.sleep(60)
"""
WITH_PLAIN_FIXTURE: Final = """
import os, time
import httpx
import pytest

PATH = "/v2/device-run-sessions"
BODY = {{"appId": os.environ["DEVICE_APP_ID"], "platform": "android", "type": "appium", "maxDurationMinutes": 30}}

@pytest.fixture(scope="session")
def client():
    headers = {{"Authorization": f"Bearer {{os.environ['DEVICE_TOKEN']}}"}}
    with httpx.Client(base_url=os.environ["DEVICE_URL"], headers=headers, trust_env=False) as client:
        yield client

@pytest.fixture
def session(client):
    session = client.post(PATH, json=BODY).raise_for_status().json()["data"]
    try:
        while session["status"] != "in-progress":
            time.sleep(float(os.environ["DEVICE_POLL_INTERVAL_SECONDS"]))
            session = client.get(f"{{PATH}}/{{session['id']}}").raise_for_status().json()["data"]
        yield session
    finally:
        client.post(f"{{PATH}}/{{session['id']}}/stop").raise_for_status()

@pytest.mark.parametrize("number", range({tests}))
def test_driven(session, number):
    assert session["status"] == "in-progress"
"""
WAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "with the plugin": ("plugin.py",),
    "with a plain fixture": ("-p", "no:device", "plain.py"),
    "with a plain fixture again": ("-p", "no:device", "plain.py"),
}


def main() -> int:
    """Print every figure next to its bar; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="runs of each kind that count (default: %(default)s)",
    )
    repeats: int = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as directory:
        met = [_runs(Path(directory), boot, repeats) <= RATIO_BAR for boot in BOOTS][:1]
        with faulty_service() as service:
            met += (
                _reaper(service, Path(directory), repeats),
                _terminated(service, Path(directory), repeats),
            )
            met += [_stops(service, Path(directory), repeats)]
    print("bars met" if all(met) else "BAR MISSED")
    return 0 if all(met) else 1


def _runs(directory: Path, boot: float, repeats: int) -> float:
    """Run the suite each way in turn, each round in another order; the first round only warms caches."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "plugin.py").write_text(WITH_PLUGIN.format(tests=TESTS))
    (directory / "plain.py").write_text(WITH_PLAIN_FIXTURE.format(tests=TESTS))
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with faulty_service(boot_seconds=boot) as service:
        for number in range(repeats + 1):
            for way in random.sample(list(WAYS), len(WAYS)):
                took = _timed(lambda way=way: _run(directory, service, WAYS[way]))  # type: ignore[misc]
                seconds[way] += [took] if number else []
    medians = [statistics.median(runs) for runs in seconds.values()]
    for (way, runs), median in zip(seconds.items(), medians, strict=True):
        print(
            f"{TESTS} tests, boot {boot:g} s, {way}: {median:.3f} s ({min(runs):.3f} to {max(runs):.3f})"
        )
    plugin, plain, again = medians
    bar = f"bar: {RATIO_BAR}" if boot else "no bar: no boot to hide behind"
    print(
        f"{TESTS} tests, boot {boot:g} s, ratio of medians: {plugin / plain:.3f} ({bar})"
    )
    print(
        f"{TESTS} tests, boot {boot:g} s, ratio of the same twice: {again / plain:.3f} (1 but for the machine's noise)"
    )
    print(
        f"{TESTS} tests, boot {boot:g} s, more for each test: {(plugin - plain) / TESTS * 1000:.1f} ms"
    )
    return plugin / plain


def _terminated(service: FaultyService, directory: Path, repeats: int) -> bool:
    """End runs in a test by a signal, and wait for the stop call that follows."""
    (directory / "waits.py").write_text(WAITS)
    seconds: dict[signal.Signals, list[float]] = {
        signal.SIGTERM: [],
        signal.SIGKILL: [],
    }
    for _ in range(repeats):
        for number in random.sample(list(seconds), 2):
            service.reset()
            with _started(directory, service, ["waits.py", "-s"]) as run:
                assert run.stdout
                while b"reached" not in run.stdout.readline():
                    pass
                run.send_signal(number)
                seconds[number].append(_timed(lambda: _wait_for_stop(service)))
                run.stdout.read()
    term, kill = (statistics.median(each) for each in seconds.values())
    print(
        f"from SIGTERM to the stop call: {term:.3f} s (bar: {TERM_BAR_SECONDS:g}); from SIGKILL: {kill:.3f} s"
    )
    return term <= TERM_BAR_SECONDS


def _wait_for_stop(service: FaultyService) -> None:
    while "stop" not in (operation for operation, _ in service.requests()):
        time.sleep(0.005)


def _run(suite: Path, service: FaultyService, options: Sequence[str]) -> None:
    with _started(suite, service, options) as run:
        run.communicate()
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, run.args)


def _started(
    suite: Path, service: FaultyService, options: Sequence[str]
) -> subprocess.Popen[bytes]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    } | {
        "DEVICE_URL": service.url,
        "DEVICE_TOKEN": service.token,
        "DEVICE_APP_ID": service.app_id,
        "DEVICE_POLL_INTERVAL_SECONDS": str(POLL_SECONDS),
        "DEVICE_STATE_DIR": str(suite / "state"),
        "DEVICE_SHARE": "test",  # as the plain fixture has it: a session for each test
    }
    command = [sys.executable, "-m", "pytest", "-q", *options]
    return subprocess.Popen(command, cwd=suite, env=environment, stdout=subprocess.PIPE)


def _reaper(service: FaultyService, directory: Path, repeats: int) -> bool:
    """Start owners with a reaper and owners with a thread; measure the memory of a reaper."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    megabytes: list[float] = []
    for _ in range(repeats):
        for detached in random.sample([True, False], 2):
            started = time.perf_counter()
            owner = _owner(service, directory, detached=detached)
            seconds[detached].append(time.perf_counter() - started)
            owner.create(_request(service))  # waits until the reaper is ready
            if detached:
                megabytes += [_resident_megabytes(process) for process in _reapers()]
            owner.close(10)
    start_ms = (
        statistics.median(seconds[True]) - statistics.median(seconds[False])
    ) * 1000
    print(
        f"starting the reaper, of the run's own time: {start_ms:.1f} ms (bar: {START_BAR_MS:g})"
    )
    print(
        f"the reaper after a call, resident: {max(megabytes):.1f} MB at most (bar: {MEMORY_BAR_MB:g})"
    )
    return start_ms <= START_BAR_MS and max(megabytes) <= MEMORY_BAR_MB


def _stops(service: FaultyService, directory: Path, repeats: int) -> bool:
    """Stop one session, and many at once, at a service that takes its time for each."""
    service.add_fault("stop", "delay", seconds=STOP_SECONDS, times=None)
    seconds: dict[int, list[float]] = {1: [], STOPS: []}
    for _ in range(repeats):
        for count in random.sample([1, STOPS], 2):
            owner = _owner(service, directory)
            for _ in range(count):
                owner.create(_request(service))
            seconds[count].append(_timed(lambda owner=owner: owner.close(60)))  # type: ignore[misc]
    one, many = (statistics.median(seconds[count]) for count in (1, STOPS))
    answer = f"{STOP_SECONDS:g} s for an answer"
    print(
        f"one stop: {one:.3f} s; {STOPS} stops: {many:.3f} s; ratio {many / one:.2f} ({answer}; bar: {STOPS_BAR:g})"
    )
    return many / one <= STOPS_BAR


def _owner(
    service: FaultyService, directory: Path, *, detached: bool = True
) -> ReaperClient:
    return ReaperClient(
        DeviceClient(service.url, service.token),
        Endpoint(service.url, service.token),
        vendor="vendor",
        run=OwnRun.join(directory / "state", "a-run", "main"),
        config=ReaperConfig(detached=detached),
        reporter=SilentReporter(),
    )


def _request(service: FaultyService) -> SessionRequest:
    return SessionRequest.from_arguments(
        app_id=service.app_id, platform="android", type="appium"
    )


def _reapers() -> list[psutil.Process]:
    """Return every reaper there is, without senders: the machine should run no others meanwhile."""
    found = [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [""])[-1] == NAME
    ]
    pids = {process.pid for process in found}
    return [process for process in found if process.ppid() not in pids]


def _resident_megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1024 / 1024


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())

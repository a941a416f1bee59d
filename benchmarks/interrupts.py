"""Time from Ctrl-C to the stop call, with and without workers: the plugin compared with a plain fixture.

Starts pytest runs whose tests hold a device or wait for one, and sends SIGINT to their process group, as a terminal
does. The service records when the last of the run's devices was stopped. Exits with 1 if a bar is missed.
"""

import argparse
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel.service import APP_ID, TOKEN, Service, service

from pytest_device.service.store import Store

LATE_SECONDS: Final = 3.0
"""A stop call after this time waited for something: pytest-xdist interrupts a worker again after five seconds."""
LATE_BAR: Final = 0
RATIO_BAR: Final = 1.5
"""The median with the plugin over the median with the plain fixture, with workers.

No bar without workers: pytest formats the interrupt's traceback before it tears down, which takes most of the time, and
before which only a fixture whose own setup is interrupted stops its device.
"""

BOOTS: Final = {"android appium ready": 0.0, "android appium never": 3600.0}
MOMENTS: Final = {"in a test": "ready", "while the device boots": "never"}
"""The device whose boot time leads to the moment."""
WAIT_SECONDS: Final = 90.0

WITH_PLUGIN: Final = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("number", range(2))
@pytest.mark.device(platform="android", type="appium", device_identifier=os.environ["DEVICE"])
def test_driven(device_session, number):
    pathlib.Path(f"reached-{number}").touch()
    time.sleep(60)
"""
WITH_PLAIN_FIXTURE: Final = """
import os, pathlib, time
import httpx
import pytest

PATH = "/v2/device-run-sessions"
BODY = {
    "appId": os.environ["DEVICE_APP_ID"],
    "platform": "android",
    "type": "appium",
    "deviceIdentifier": os.environ["DEVICE"],
    "maxDurationMinutes": 30,
}

@pytest.fixture(scope="session")
def client():
    headers = {"Authorization": f"Bearer {os.environ['DEVICE_TOKEN']}"}
    with httpx.Client(base_url=os.environ["DEVICE_URL"], headers=headers, trust_env=False) as client:
        yield client

@pytest.fixture
def session(client):
    session = client.post(PATH, json=BODY).raise_for_status().json()["data"]
    try:
        while session["status"] != "in-progress":
            time.sleep(5)  # as the plugin does
            session = client.get(f"{PATH}/{session['id']}").raise_for_status().json()["data"]
        yield session
    finally:
        client.post(f"{PATH}/{session['id']}/stop").raise_for_status()

@pytest.mark.parametrize("number", range(2))
def test_driven(session, number):
    pathlib.Path(f"reached-{number}").touch()
    time.sleep(60)
"""


@dataclass(frozen=True)
class Way:
    """A kind of run, and the seconds from the signal to the last stop call of each."""

    name: str
    suite: str
    options: Sequence[str]
    workers: int
    seconds: list[float] = field(default_factory=list)

    @property
    def late(self) -> int:
        """Return how many runs stopped a device late, or not at all."""
        return sum(seconds > LATE_SECONDS for seconds in self.seconds)

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.seconds)

    def report(self) -> str:
        """Return the distribution."""
        ordered = sorted(self.seconds)
        p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
        return (
            f"{self.name}, {len(ordered)} runs: median {self.median:.3f} s, 95th percentile {p95:.3f} s, "
            f"longest {ordered[-1]:.3f} s; 95th percentile over the median: {p95 / self.median:.2f}; "
            f"after more than {LATE_SECONDS:g} s: {self.late}"
        )


def ways() -> list[Way]:
    """Return each way without and with workers."""
    plain, plugin = (WITH_PLAIN_FIXTURE, ()), (WITH_PLUGIN, ("-p", "device"))
    return [
        Way(f"{name}, {text}", suite, (*options, *distribution), workers)
        for workers, text, distribution in (
            (0, "no workers", ()),
            (2, "2 workers", ("-p", "xdist", "-n2", "--dist=load")),
        )
        for name, (suite, options) in (("plugin", plugin), ("plain fixture", plain))
    ]


def main() -> int:
    """Print every figure next to its bar; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs",
        type=int,
        default=100,
        help="runs of each of the four ways (default: %(default)s)",
    )
    runs: int = parser.parse_args().runs
    measured = ways()
    with tempfile.TemporaryDirectory() as name, service(Path(name), BOOTS) as devices:
        for number in range(runs):
            moment = list(MOMENTS)[number % len(MOMENTS)]
            for way in random.sample(measured, len(measured)):
                directory = Path(tempfile.mkdtemp(dir=name))
                way.seconds.append(
                    interrupted(
                        way,
                        MOMENTS[moment],
                        directory,
                        devices,
                        Path(name) / "sessions.db",
                    )
                )

    for way in measured:
        print(way.report())

    met = True
    for plugin, plain in (measured[:2], measured[2:]):
        ratio, has_bar = plugin.median / plain.median, plugin.workers > 0
        bar = f"bar: {RATIO_BAR}" if has_bar else "no bar"
        print(f"{plugin.name} over {plain.name}, medians: {ratio:.2f} ({bar})")
        print(
            f"{plugin.name}, after more than {LATE_SECONDS:g} s: {plugin.late} (bar: {LATE_BAR})"
        )
        met &= plugin.late <= LATE_BAR and not (has_bar and ratio > RATIO_BAR)
    print("bars met" if met else "BAR MISSED")
    return 0 if met else 1


def interrupted(
    way: Way, device: str, directory: Path, devices: Service, store: Path
) -> float:
    """Interrupt a run; return the seconds until its last device was stopped, infinity if one was not."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(way.suite)
    devices.sessions()
    expected = max(1, way.workers)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *way.options],
        cwd=directory,
        env=_environment(directory, devices.url, device),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as run:
        before = _count(store)
        if device == "ready":
            _await(lambda: len(list(directory.glob("reached-*"))) >= expected)
        else:
            _await(lambda: _count(store) >= before + expected)
        time.sleep(random.uniform(0.2, 0.5))  # until each process sleeps
        sent_at = time.time()
        os.killpg(run.pid, signal.SIGINT)
        run.wait(WAIT_SECONDS)
        stopped_at = [session.finished_at or math.inf for session in devices.sessions()]
    return max(stopped_at) - sent_at


def _environment(directory: Path, url: str, device: str) -> Mapping[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEVICE_")
    } | {
        "DEVICE_URL": url,
        "DEVICE_TOKEN": TOKEN,
        "DEVICE_APP_ID": APP_ID,
        "DEVICE_STATE_DIR": str(directory / "state"),
        "DEVICE": device,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # At its end, a run would clean up after other runs.
        "PYTEST_DEBUG_TEMPROOT": str(directory),
    }


def _count(path: Path) -> int:
    with closing(Store.open(path)) as store:
        return len(store.load())


def _await(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(
                f"a run did not get its devices within {WAIT_SECONDS:g} s"
            )
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())

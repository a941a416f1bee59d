"""Time until a run's first test starts: with a warm device, with a device that has to boot, and without a device.

Real pytest runs at a local service with simulated devices. All times count from the start of the pytest process; both
sides of each ratio are measured in the same run of the script.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_device.testing import FaultyService, faulty_service

BAR_SECONDS: Final = 2.0
"""For having a warm device, beyond a test that has none."""
BOOT_SECONDS: Final = 6.0
POLL_SECONDS: Final = 0.5
"""A service far away is asked less often, which costs the boot more: this is to its favour."""
KEEP_MINUTES: Final = 10

SUITE: Final = """
import os, time
import pytest

with_device = pytest.mark.device(platform="android", type="appium")

def stamp():
    with open(os.environ["STARTED"], "w") as file:
        file.write(repr(time.time()))

@with_device
def test_device(device_session):
    stamp()
    assert device_session.status == "in-progress"

def test_plain():
    stamp()
"""
WAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "no device": ("-k", "plain"),
    "warm device": ("-k", "device", f"--device-keep-warm={KEEP_MINUTES}"),
    "fresh device": ("-k", "device"),
}


def main() -> int:
    """Print medians and ratios; return 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="runs of each kind that count (default: %(default)s)",
    )
    parser.add_argument(
        "--boot-seconds",
        type=float,
        default=BOOT_SECONDS,
        help="(default: %(default)s)",
    )
    given = parser.parse_args()
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with (
        tempfile.TemporaryDirectory() as name,
        faulty_service(boot_seconds=given.boot_seconds) as service,
    ):
        directory = Path(name)
        (directory / "pytest.ini").write_text("[pytest]\n")
        (directory / "test_it.py").write_text(SUITE)
        # The first round warms caches, and a device.
        for number in range(given.repeats + 1):
            for way in random.sample(list(WAYS), len(WAYS)):
                took = _first_test(directory, service, WAYS[way])
                seconds[way] += [took] if number else []
        _stop(directory, service)
        created = len(service.sessions())
    for way, runs in seconds.items():
        print(
            f"{way}: first test after {statistics.median(runs):.2f} s ({min(runs):.2f} to {max(runs):.2f})"
        )
    none, warm, fresh = seconds.values()
    print(
        f"boot {given.boot_seconds:g} s, {created} created in {3 * (given.repeats + 1)} runs"
    )
    print(
        f"first test, warm over fresh: {statistics.median(warm) / statistics.median(fresh):.3f}"
    )
    of_warm, of_fresh = _beyond(none, warm), _beyond(none, fresh)
    print(
        f"for the device alone: warm {of_warm:.2f} s (bar: {BAR_SECONDS:g}), fresh {of_fresh:.2f} s"
    )
    print(f"for the device alone, warm over fresh: {of_warm / of_fresh:.3f}")
    return int(of_warm > BAR_SECONDS)


def _beyond(none: Sequence[float], having: Sequence[float]) -> float:
    """Return the median delay of the first test with a device."""
    return statistics.median(
        later - sooner for sooner, later in zip(none, having, strict=True)
    )


def _first_test(suite: Path, service: FaultyService, options: tuple[str, ...]) -> float:
    stamp, started = suite / "started", time.time()
    command = [sys.executable, "-m", "pytest", "-q", *options]
    subprocess.run(
        command,
        cwd=suite,
        env=_environment(suite, service),
        check=True,
        stdout=subprocess.PIPE,
    )
    return float(stamp.read_text()) - started


def _stop(suite: Path, service: FaultyService) -> None:
    """Keep nothing warm, and leave no reaper behind."""
    program = Path(sys.executable).with_name("pytest-device")
    subprocess.run(
        [program, "stop"],
        env=_environment(suite, service),
        check=True,
        stdout=subprocess.PIPE,
    )


def _environment(suite: Path, service: FaultyService) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    } | {
        "DEVICE_URL": service.url,
        "DEVICE_TOKEN": service.token,
        "DEVICE_APP_ID": service.app_id,
        "DEVICE_POLL_INTERVAL_SECONDS": str(POLL_SECONDS),
        "DEVICE_STATE_DIR": str(suite / "state"),
        "STARTED": str(suite / "started"),
    }


if __name__ == "__main__":
    sys.exit(main())

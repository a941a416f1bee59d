"""A long run with a fault in every few requests: what leaks a little at each test shows here."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.testing import FaultyService
from tests.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

TESTS: Final = 2_000
FILES: Final = 20
SUITE: Final = """
import pytest

@pytest.mark.device(platform="{platform}")
@pytest.mark.parametrize("number", range({count}))
def test_holds_its_device(device_session, number):
    assert device_session.status == "in-progress"
"""
COUNTS_DESCRIPTORS: Final = """
import os
import psutil

def pytest_sessionfinish(session):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "coordinator")
    (session.config.rootpath / f"{worker}.descriptors").write_text(str(psutil.Process().num_fds()))
"""
UNAVAILABLE: Final[Mapping[str, Any]] = {
    "status": 503,
    "body": '{"message": "try again"}',
    "headers": {"Retry-After": "0"},
}
FAULTS: Final[Sequence[tuple[str, str, Mapping[str, Any]]]] = (
    ("get", "reply", UNAVAILABLE),
    ("create", "reply", UNAVAILABLE),
    ("stop", "reply", UNAVAILABLE),
    ("get", "reset-request", {}),
    ("stop", "lose-answer", {}),
    ("get", "truncate", {}),
    ("create", "delay", {"seconds": 0.5}),
)
"""Faults that no test of a run may notice."""


@pytest.mark.parametrize("workers", [0, 3])
def test_a_long_run_with_many_faults_passes_and_leaves_nothing(
    pytester: pytest.Pytester, service: FaultyService, tmp_path: Path, workers: int
) -> None:
    for number in range(FILES):
        platform = "ios" if number % 2 else "android"
        pytester.makepyfile(
            **{f"test_{number}": SUITE.format(platform=platform, count=TESTS // FILES)}
        )
    pytester.makeconftest(COUNTS_DESCRIPTORS)
    for number in range(TESTS // 10):
        operation, effect, options = FAULTS[number % len(FAULTS)]
        service.add_fault(operation, effect, skip=number * 10, **options)

    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"-n{workers}",
        "--device-report=artifacts",
    ]
    run = subprocess.run(
        command,
        executable=sys.executable,
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-5000:]
    assert f"{TESTS} passed" in run.stdout
    assert Counter(service.statuses()) == {"stopped": TESTS}
    report = json.loads((pytester.path / "artifacts/device-run.json").read_text())
    receipt = report["receipt"]
    assert (receipt["created"], receipt["stopped"], receipt["not_stopped"]) == (
        TESTS,
        TESTS,
        [],
    )
    assert eventually(lambda: not [*(tmp_path / "state/runs").iterdir()])

    descriptors = [
        int(path.read_text()) for path in pytester.path.glob("*.descriptors")
    ]
    assert len(descriptors) == workers + 1
    assert max(descriptors) < 50

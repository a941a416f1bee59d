"""The suite as test files: with the marker, and with handwritten fixtures per worker."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.parallel.cells import KINDS, Suite, Test

STAMPS: Final = "BENCHMARK_STAMPS"
"""The variable that names the file into which each test writes when it began and ended."""

_WORK: Final = """
import os
import time

import pytest


@pytest.fixture
def work():
    def sleep(number, seconds):
        started = time.time()
        time.sleep(seconds)
        with open(os.environ["BENCHMARK_STAMPS"], "a") as stamps:
            stamps.write(f"{number} {started!r} {time.time()!r}\\n")

    return sleep
"""
_BY_HAND: Final = """
import httpx

PATH = "/v2/device-run-sessions"


@pytest.fixture(scope="session")
def client():
    headers = {"Authorization": f"Bearer {os.environ['DEVICE_TOKEN']}"}
    with httpx.Client(base_url=os.environ["DEVICE_URL"], headers=headers, trust_env=False, timeout=30) as client:
        yield client


def running(client, **device):
    body = {"appId": os.environ["DEVICE_APP_ID"], "maxDurationMinutes": 30, **device}
    session = client.post(PATH, json=body).raise_for_status().json()["data"]
    try:
        while session["status"] != "in-progress":
            time.sleep(float(os.environ["DEVICE_POLL_INTERVAL_SECONDS"]))
            session = client.get(f"{PATH}/{session['id']}").raise_for_status().json()["data"]
        yield session
    finally:
        client.post(f"{PATH}/{session['id']}/stop").raise_for_status()
"""
_FIXTURE: Final = """

@pytest.fixture(scope="session")
def {kind}(client):
    yield from running(client, platform="{platform}", type="{type}", deviceIdentifier="{device_identifier}")
"""


def write_marked(suite: Suite, directory: Path) -> None:
    """Write the suite as users of the plugin have it: a marker says what a test needs."""
    _write(directory, suite.tests, _WORK, _marked)


def write_by_hand(suite: Suite, directory: Path) -> None:
    """Write the suite as it is written without the plugin: a session-scoped fixture for each kind of device."""
    fixtures = "".join(
        _FIXTURE.format(kind=kind, **KINDS[kind]) for kind in suite.boots
    )
    _write(directory, suite.tests, f"{_WORK}{_BY_HAND}{fixtures}", _with_fixture)


def _write(
    directory: Path,
    tests: Iterable[Test],
    conftest: str,
    written: Callable[[Test], str],
) -> None:
    directory.mkdir()
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "conftest.py").write_text(conftest)
    for module, its_tests in groupby(tests, lambda test: test.module):
        source = "\n\n".join(map(written, its_tests))
        (directory / f"test_{module:03}.py").write_text(f"import pytest\n\n{source}\n")


def _marked(test: Test) -> str:
    mark = f"@pytest.mark.device({_arguments(KINDS[test.kind])})\n" if test.kind else ""
    return f"{mark}def test_{test.number}(work): work({test.number}, {test.seconds!r})"


def _with_fixture(test: Test) -> str:
    device = f"{test.kind}, " if test.kind else ""
    return (
        f"def test_{test.number}({device}work): work({test.number}, {test.seconds!r})"
    )


def _arguments(kind: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in kind.items())

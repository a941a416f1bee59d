"""A user inspects the device of a failed test."""

import re

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.screen import TerminalRun

SUITE = """
import pytest
pytestmark = pytest.mark.device(platform="android", share="run")
seen = []

@pytest.fixture
def torn_down():
    yield
    print("torn down")

def test_fails(device_session, torn_down):
    seen.append(device_session.id)
    assert False

def test_next(device_session): assert device_session.id not in seen
"""
PAGE = r"device android agent-device: session page:\s+http://127.0.0.1:\d+/sessions/"
PREVIEW = r"device android agent-device: live preview:\s+https://[\w-]+.simulated.invalid/preview"


@pytest.fixture(autouse=True)
def suite(service: FaultyService, pytester: pytest.Pytester) -> FaultyService:
    pytester.makepyfile(test_it=SUITE)
    return service


def shown(run: TerminalRun, pattern: str) -> bool:
    return re.search(pattern, run.raw) is not None


@pytest.mark.parametrize(
    "args",
    [
        (),
        *(
            pytest.param((arg,), marks=pytest.mark.nightly)
            for arg in ("-s", "-v", "-q")
        ),
        ("-qq",),
    ],
)
def test_the_device_of_a_failed_test_is_kept_until_enter_is_pressed(
    suite: FaultyService, args: tuple[str, ...]
) -> None:
    run = TerminalRun("--device-keep-on-failure", *args, keyboard=True)
    run.read_until(lambda run: shown(run, "press Enter"))

    assert suite.statuses() == ["in-progress"]
    assert shown(run, rf"device failed: test_it.py::test_fails: assert False\s+{PAGE}")
    assert shown(run, PREVIEW)
    assert not shown(run, "torn down")  # the test's own state is there to be seen, too

    run.type("\n")
    run.finish()

    assert run.process.returncode == 1
    if "-qq" not in args:  # which writes no counts
        assert any("1 failed, 1 passed" in line for line in run.lines())
    # Whoever looked may have left anything behind: the next test has another device.
    assert suite.statuses() == ["stopped", "stopped"]


@pytest.mark.parametrize("args", [(), pytest.param(("-q",), marks=pytest.mark.nightly)])
def test_pytests_debugger_is_shown_where_the_device_is_and_keeps_it(
    suite: FaultyService, args: tuple[str, ...]
) -> None:
    run = TerminalRun("--pdb", *args, keyboard=True)
    run.read_until(lambda run: shown(run, r"\(Pdb\)"))

    assert re.search(f"{PAGE}.*{PREVIEW}.*Pdb", run.raw, flags=re.DOTALL)
    assert suite.statuses() == ["in-progress"]

    run.type("quit\n")
    run.finish()

    assert set(suite.statuses()) == {"stopped"}


def test_without_a_keyboard_the_run_does_not_pause(suite: FaultyService) -> None:
    run = TerminalRun("--device-keep-on-failure").finish()

    assert not shown(run, "press Enter")
    assert suite.statuses() == ["in-progress", "stopped"]
    assert shown(run, r"devices: 2 created, 1 stopped \(confirmed\), 1 kept;")

"""Rows: other plugins that end or repeat tests."""

from typing import Final

from tests.faults.acts import (
    KILL,
    sends_worker,
    slow,
    trick,
)
from tests.faults.network import late
from tests.faults.row import NOBODY, Promise, Row, stopped
from tests.faults.suites import HOLDS, PASSES, files, suite

_SIGNAL: Final = ("--timeout=1", "--timeout-method=signal")
_THREAD: Final = ("--timeout=1", "--timeout-method=thread")
_LONGER: Final = "--timeout=4"
"""For a test that must pass, also on a busy machine."""
_CREATES: Final = files(
    """
    from pytest_device import SessionRequest

    def test_driven(device_client):
        device_client.create(SessionRequest(app_id=os.environ["DEVICE_APP_ID"], platform="android"))
    """
)
_DIES_ONCE: Final = suite(
    """
    died = DIRECTORY / "died"
    if not died.exists():
        died.touch()
        hold()
    """
)
ROWS: Final = (
    Row(
        "pytest-timeout (signal) in a test",
        "The test fails; its session is stopped.",
        HOLDS,
        options=_SIGNAL,
        status=1,
    ),
    Row(
        "pytest-timeout (thread) in a test",
        "It ends the process without notice; the reaper stops the session.",
        HOLDS,
        options=_THREAD,
        reported=NOBODY,
        status=1,
    ),
    Row(
        "pytest-timeout (signal) inside a test's own create call",
        "The response is not lost: the session is stopped when it arrives.",
        _CREATES,
        options=_SIGNAL,
        network=True,
        arm=trick("create", late(2.5)),
        status=1,
    ),
    Row(
        "pytest-timeout (thread) inside a test's own create call",
        "The same.",
        _CREATES,
        options=_THREAD,
        network=True,
        arm=trick("create", late(2.5)),
        reported=NOBODY,
        status=1,
    ),
    Row(
        "pytest-timeout (signal) while the device boots",
        "The wait does not count as the test's time; stopped.",
        PASSES,
        options=(*_SIGNAL, _LONGER),
        arm=slow("boot", 6),
        reported=r"1 stopped \(confirmed\)",
        status=0,
    ),
    Row(
        "pytest-timeout (thread) while the device boots",
        "The same.",
        PASSES,
        options=(*_THREAD, _LONGER),
        arm=slow("boot", 6),
        reported=r"1 stopped \(confirmed\)",
        status=0,
    ),
    Row(
        "pytest-timeout (signal) inside stop",
        "Stopped.",
        PASSES,
        options=_SIGNAL,
        arm=slow("stop", 2.5),
        reported=r"1 stopped \(confirmed\)",
    ),
    Row(
        "pytest-timeout (thread) inside stop",
        "Stopped.",
        PASSES,
        options=_THREAD,
        arm=slow("stop", 2.5),
        reported=NOBODY,
    ),
    Row(
        "pytest-timeout (thread) in a worker",
        "The worker dies; its session is stopped and in the receipt.",
        HOLDS,
        options=(*_THREAD, "-n1", "--max-worker-restart=0"),
        status=1,
    ),
    Row(
        "pytest-rerunfailures repeats a failed test",
        "Each attempt has its own session, and each is stopped.",
        suite("assert False"),
        options=("--reruns=2",),
        reported=stopped(3),
        sessions=3,
        status=1,
    ),
    Row(
        "pytest-rerunfailures repeats a test after its worker was killed",
        "Both sessions are stopped.",
        _DIES_ONCE,
        options=("--reruns=1", "-n1"),
        fault=sends_worker(KILL),
        reported=stopped(2),
        sessions=2,
    ),
    Row(
        "pytest-rerunfailures and a session that fails before it is ready",
        "Each attempt's session is stopped.",
        suite(),
        options=("--reruns=1",),
        arm=lambda env: env.service.add_fault("boot", "fail"),
        reported=r"2 stopped \(confirmed\)",
        sessions=2,
        status=0,
    ),
    Row(
        "--forked",
        "The run is refused before a session is created.",
        PASSES,
        Promise.NONE,
        options=("--forked",),
        reported=r"^ERROR: pytest-forked runs .* in a forked process",
        sessions=0,
        status=4,
    ),
)

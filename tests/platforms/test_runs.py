"""Whole runs on systems that this machine imitates: each stops its sessions, however it ends."""

import json
from typing import Final

import pytest

from tests.platforms.suite import FOREIGN, IMITATED_AT_NIGHT, Suite
from tests.waiting import eventually

TWO_PLATFORMS = """
import pytest

@pytest.mark.device(platform="android")
def test_android(device_session):
    assert device_session.id

@pytest.mark.device(platform="ios")
def test_ios(device_session):
    assert device_session.id
"""
INTERRUPTED = """
import signal

import pytest

@pytest.mark.device(platform="android")
def test_interrupted(device_session):
    signal.raise_signal(signal.SIGINT)
"""
KILLED = """
import os, signal

import pytest

@pytest.mark.device(platform="android")
def test_killed(device_session):
    # On Windows, any signal but two ends a process as TerminateProcess does.
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
WORKERS = """
import pytest

@pytest.mark.parametrize("number", range(4))
@pytest.mark.device(platform="android")
def test_on_a_worker(device_session, number, worker_id):
    assert worker_id.startswith("gw")
"""
FOREIGN_TEXT = """
import pytest

@pytest.mark.device(platform="android")
def test_größe(device_session):
    print("1 → 2\\nthe next line")
    raise AssertionError("2 → 3")
"""

STOP_SECONDS: Final = 180.0
"""How long a reaper may take to stop a session: some of these systems are emulated, on a machine that may be busy."""


@IMITATED_AT_NIGHT
def test_an_interrupted_run_stops_its_session(suite: Suite) -> None:
    suite.write("test_it.py", INTERRUPTED)

    run = suite.pytest()

    assert run.status == 2, run.output
    assert suite.service.statuses() == ["stopped"]


def test_the_reaper_of_a_killed_run_stops_its_session(suite: Suite) -> None:
    suite.write("test_it.py", KILLED)

    run = suite.pytest()

    assert run.status != 0, run.output
    assert eventually(lambda: suite.service.statuses() == ["stopped"], STOP_SECONDS)


def test_the_next_run_passes_and_stops_the_session_of_a_killed_run_without_a_reaper(
    suite: Suite,
) -> None:
    suite.write("test_it.py", KILLED)
    suite.pytest("--device-no-reaper")
    assert suite.service.statuses() == ["in-progress"]

    # A name of a session is not ASCII, which a pipe of Windows may be.
    listed = suite.command("sessions", PYTHONIOENCODING="ascii")
    assert "live (run finished)" in listed.output

    # To look at a dead run has not made it look alive.
    suite.write("test_it.py", TWO_PLATFORMS)
    run = suite.pytest()
    assert run.status == 0, run.output
    assert "2 passed" in run.output
    assert "devices: 2 created, 2 stopped (confirmed)" in run.output
    assert suite.service.statuses() == ["stopped"] * 3


@pytest.mark.parametrize(
    ("python", "encoding"),
    [
        *(
            pytest.param(*system.values, encoding, marks=system.marks)
            for system in FOREIGN
            for encoding in ("ascii", "cp1252")
        ),
        ("macos_like", "ascii"),
        pytest.param("macos_like", "cp1252", marks=pytest.mark.nightly),
    ],
    indirect=["python"],
)
def test_a_failed_test_has_its_own_reason_with_what_the_output_cannot_encode_escaped(
    suite: Suite, encoding: str
) -> None:
    suite.write("test_it.py", FOREIGN_TEXT)

    run = suite.pytest("-rA", "--device-report=report", PYTHONIOENCODING=encoding)

    assert run.status == 1, run.output
    lines = run.output.splitlines()
    assert r"1 \u2192 2" in lines
    assert "the next line" in lines
    assert r"E       AssertionError: 2 \u2192 3" in lines
    assert any(line.startswith("artifacts: ") for line in lines)
    assert any(line.startswith("open it: pytest-device trace open") for line in lines)
    assert "devices: 1 created, 1 stopped (confirmed)" in run.output
    assert suite.service.statuses() == ["stopped"]
    report = suite.directory / "report/device-run.json"
    receipt = json.loads(report.read_text("utf-8"))["receipt"]
    assert (receipt["created"], receipt["stopped"]) == (1, 1)


@IMITATED_AT_NIGHT
def test_workers_run_tests_and_stop_their_sessions(suite: Suite) -> None:
    suite.write("test_it.py", WORKERS)

    run = suite.pytest("-n", "2")

    assert run.status == 0, run.output
    assert "4 passed" in run.output
    assert set(suite.service.statuses()) == {"stopped"}


@IMITATED_AT_NIGHT
def test_doctor_finds_the_service(suite: Suite) -> None:
    doctor = suite.command("doctor")

    assert doctor.status == 0, doctor.output
    assert f"{suite.service.url} responds and accepts the token" in doctor.output


@IMITATED_AT_NIGHT
def test_init_writes_a_suite_that_pytest_collects(suite: Suite) -> None:
    init = suite.command("init", ".")
    assert init.status == 0, init.output

    run = suite.pytest("--collect-only", "-q")

    assert run.status == 0, run.output
    assert "4 tests collected" in run.output


@IMITATED_AT_NIGHT
def test_without_a_browser_the_local_service_says_so_in_one_line(suite: Suite) -> None:
    suite.write("test_it.py", TWO_PLATFORMS)

    run = suite.pytest("--device-local", PATH="")

    assert run.status == pytest.ExitCode.USAGE_ERROR, run.output
    (line,) = [line for line in run.output.splitlines() if "ERROR" in line]
    assert line.startswith("ERROR: the local service failed to start: ")
    assert "Traceback" not in run.output

"""The traces of a run: when they are kept, where, and what happens if they can't be."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from pytest_device.testing import FaultyService
from tests.cli.running import call

SUITE = """
import pytest
from pytest_device import device_step

@pytest.mark.device(platform="android")
def test_fails(device_session):
    with device_step("look"):
        assert 1 == 2

@pytest.mark.device(platform="android")
def test_passes(device_session):
    with device_step("look"): pass

def test_plain():
    with device_step("nothing is recorded"): pass

def test_fails_without_a_device():
    raise ValueError
"""
KILLED = """
import os, signal, pytest
from pytest_device import device_step

@pytest.mark.device(platform="android")
def test_killed(device_session):
    with device_step("last words"):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def traces(directory: Path) -> list[str]:
    """Return the tests that have a trace."""
    return sorted(
        path.parent.name.rpartition("-")[0] for path in directory.glob("*/*/trace.zip")
    )


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        pytest.param([], ["test_it.py-test_fails"], marks=pytest.mark.nightly),
        (["--device-trace=off"], []),
        (["--device-trace=on"], ["test_it.py-test_fails", "test_it.py-test_passes"]),
        (["-n1"], ["test_it.py-test_fails"]),
    ],
)
def test_a_trace_is_kept_as_the_option_says(
    pytester: pytest.Pytester,
    service: FaultyService,
    options: list[str],
    kept: list[str],
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest(*options)

    result.assert_outcomes(passed=2, failed=2)
    assert traces(pytester.path) == kept
    assert not list(pytester.path.glob("**/trace.partial*"))
    assert service.statuses()


def test_a_run_without_failures_leaves_no_directory(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    pytester.runpytest("-k", "passes").assert_outcomes(passed=1, deselected=3)

    assert service.statuses() == ["stopped"]
    assert not (pytester.path / "device-artifacts").exists()


def test_a_wrong_mode_is_a_usage_error_that_names_all_modes(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("--device-trace=always")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--device-trace='always'*'off' or 'on' or 'retain-on-failure'*"]
    )
    assert service.statuses() == []


def test_a_test_that_got_no_device_has_a_trace_with_the_reason(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", reason="no room", times=None)
    pytester.makepyfile(test_it=SUITE)

    options = ("--device-start-attempts=1", "--device-type=appium")
    result = pytester.runpytest("-k", "test_passes", *options)

    result.assert_outcomes(errors=1, deselected=3)
    result.stdout.fnmatch_lines(["open it: pytest-device trace open *"])
    # It drove no device, neither with a driver of its own.
    result.stdout.no_fnmatch_line("no commands: *")
    (trace,) = pytester.path.glob("*/*/trace.zip")
    with ZipFile(trace) as zipped:
        events = list(map(json.loads, zipped.read("test.trace").splitlines()))
    (wait,) = [one for one in events if one.get("method") == "waitForDevice"]
    (error,) = [one for one in events if one["type"] == "error"]
    ends = [one for one in events if one.get("callId") == wait["callId"]]
    assert "failed to start" in ends[-1]["error"]["message"]
    assert "failed to start" in error["message"]
    assert not [one for one in events if one.get("method") == "fail"]


def test_the_lines_of_a_killed_run_become_a_trace(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makepyfile(test_it=KILLED, test_later="def test_plain(): pass")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py"]
    ended = subprocess.run(command, cwd=pytester.path, env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(pytester.path.glob("*/*/trace.partial-*/test.trace"))

    # The next run does so, too: a row of tests/faults.
    listed = call("trace", "list", str(pytester.path / "device-artifacts"))
    assert "test_it.py::test_killed" in listed.stdout
    assert listed.stdout.startswith("interrupted ")

    (trace,) = pytester.path.glob("*/*/trace.zip")
    with ZipFile(trace) as zipped:
        assert b"last words" in zipped.read("test.trace")
    assert not list(pytester.path.glob("**/trace.partial*"))


INTERRUPTED = """
import pytest
from pytest_device import device_step

@pytest.fixture
def cleaned():
    yield
    with device_step("clean up"):
        pass

@pytest.mark.device(platform="android")
def test_is_interrupted(device_session, cleaned):
    raise KeyboardInterrupt
"""


def test_the_trace_of_an_interrupted_test_has_its_teardown(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(INTERRUPTED)

    result = pytester.runpytest("-p", "no:cacheprovider", no_reraise_ctrlc=True)

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "cannot save" not in result.stdout.str()
    (trace,) = pytester.path.glob("*/*/trace.zip")
    with ZipFile(trace) as zipped:
        assert "clean up" in zipped.read("test.trace").decode()
    listed = call("trace", "list", str(pytester.path / "device-artifacts"))
    assert listed.stdout.startswith("interrupted ")
    assert service.statuses() == ["stopped"]


TWICE = """
import os, subprocess, sys
import pytest
from pytest_device import device_step

NOTE = " ".join(["cannot", "save"])

@pytest.mark.device(platform="android")
def test_fails(device_session):
    if "INNER" not in os.environ:
        command = [sys.executable, "-m", "pytest", __file__, "-p", "no:cacheprovider"]
        inner = subprocess.run(command, env={**os.environ, "INNER": "1"}, capture_output=True, text=True)
        assert "the inner error" in inner.stdout
        assert NOTE not in inner.stdout
    with device_step("after the other run"):
        pass
    assert 0, "the outer error" if "INNER" not in os.environ else "the inner error"
"""


def test_two_runs_that_write_the_same_trace_at_once_do_not_disturb_each_other(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(TWICE)

    result = pytester.runpytest("-p", "no:cacheprovider")

    result.assert_outcomes(failed=1)
    assert "cannot save" not in result.stdout.str()
    assert "the outer error" in result.stdout.str()
    (trace,) = pytester.path.glob("*/*/trace.zip")
    with ZipFile(trace) as zipped:
        text = zipped.read("test.trace").decode()
    assert "the outer error" in text
    assert "after the other run" in text
    assert not list(pytester.path.glob("**/trace.partial*"))
    assert service.statuses() == ["stopped", "stopped"]


def test_traces_that_cannot_be_written_are_noted_once(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-artifacts-dir=left")

    result.assert_outcomes(passed=2, failed=2)
    notes = [line for line in result.outlines if "cannot save artifacts" in line]
    assert len(notes) == 1
    assert service.statuses()


def test_a_test_with_a_long_name_has_a_trace(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        test_it=f"""
import pytest

@pytest.mark.device(platform="android")
def test_{"x" * 300}(device_session):
    assert 0
"""
    )

    pytester.runpytest().assert_outcomes(failed=1)

    (trace,) = pytester.path.glob("*/*/trace.zip")
    assert len(trace.parent.name) < 120
    assert "x" * 300 in call("trace", "list", str(trace)).stdout
    assert service.statuses() == ["stopped"]


def test_a_trace_is_a_property_of_the_report(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    pytester.runpytest("-k", "fails", "--junitxml=report.xml")

    text = (pytester.path / "report.xml").read_text()
    assert text.count('name="device_trace"') == 1
    assert "pytest-device trace open device-artifacts/" in text
    assert service.statuses() == ["stopped"]


def archive_of(lines: str) -> bytes:
    """Return an archive with these lines, as another tool might write it."""
    file = io.BytesIO()
    with ZipFile(file, "w") as zipped:
        zipped.writestr("test.trace", lines)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 cut", "is not a trace, or is cut off"),
        (b"", "is not a trace, or is cut off"),
        (archive_of('{"wallTime": null}'), "is not a trace, or is cut off"),
        (archive_of('{"wallTime": 1e400}'), "is not a trace, or is cut off"),
        (archive_of("[" * 100_000), "is not a trace, or is cut off"),
    ],
    ids=["cut", "empty", "time", "never", "deep"],
)
def test_a_damaged_trace_is_one_clear_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    trace = tmp_path / "trace.zip"
    trace.write_bytes(content)

    ran = call("trace", "open", str(trace))

    assert ran.returncode == 2
    assert ran.stderr.startswith(f"pytest-device: {trace} {message}")
    assert ran.stderr.count("\n") == 1


def test_a_missing_trace_is_one_clear_line(tmp_path: Path) -> None:
    missing = call("trace", "open", str(tmp_path / "none"))
    assert missing.returncode == 2
    assert "does not exist" in missing.stderr

    empty = call("trace", "open", str(tmp_path))
    assert empty.returncode == 2
    assert "has no traces" in empty.stderr


@pytest.mark.nightly
def test_2000_tests_have_traces_in_bounded_memory(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        """
import resource

MEMORY = []

def pytest_runtest_logfinish():
    MEMORY.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

def pytest_terminal_summary(terminalreporter):
    grown = MEMORY[-1] - MEMORY[len(MEMORY) // 10]
    terminalreporter.write_line(f"grown by {grown // 1024} MB")
"""
    )
    pytester.makepyfile(
        test_it="""
import pytest
from pytest_device import device_step

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("number", range(2000))
def test_steps(device_session, number):
    for count in range(20):
        with device_step(f"step {number} {count} {'x' * 1000}"):
            pass
"""
    )

    result = pytester.runpytest_subprocess(
        "-q", "--device-share=run", "--device-trace=on", "-p", "no:logging"
    )

    result.assert_outcomes(passed=2000)
    (line,) = [line for line in result.outlines if line.startswith("grown by ")]
    assert int(line.split()[2]) <= 30
    assert len(traces(pytester.path)) == 2000
    assert service.statuses() == ["stopped"]

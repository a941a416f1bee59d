"""Runs with ``--looponfail`` of pytest-xdist, which repeats them whenever a file changes."""

import signal
import subprocess
import sys

import pytest

from pytest_device.testing import FaultyService

FAILING = """
import pytest

@pytest.mark.device(platform="android")
def test_driven(device_session):
    assert False
"""


def test_a_failed_test_is_not_repeated_because_of_its_own_artifacts(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FAILING)
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "pytest", "-f"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout
        lines: list[str] = []
        for line in run.stdout:
            lines.append(line)
            if "### Watching:" in line:
                run.send_signal(signal.SIGINT)

    # Those that pytest-xdist would take for a change of the suite.
    visible = {path.name for path in pytester.path.iterdir() if path.name[0] != "."}
    assert visible - {"__pycache__"} == {f"{pytester.path.name[:-1]}.py"}
    for directory in (".device-artifacts", ".device-report"):
        assert (pytester.path / directory / ".gitignore").exists()
    assert "another run is writing" not in "".join(lines)
    assert service.statuses() == ["stopped"]


def test_a_directory_that_is_watched_is_a_usage_error(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytester.makepyfile(FAILING)
    monkeypatch.setenv("DEVICE_REPORT", "output/.report")

    result = pytester.runpytest_subprocess(
        "-f", "--device-artifacts-dir=output/artifacts", timeout=60
    )

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --device-artifacts-dir='output/artifacts' must begin with a dot, or be outside of the directories *"
        ]
    )
    assert "DEVICE_REPORT" not in result.stderr.str()
    assert service.sessions() == []

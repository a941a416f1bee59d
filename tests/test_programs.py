"""Waiting for a child process."""

import subprocess
import sys

import pytest

from pytest_device import programs


@pytest.fixture(params=["with-descriptors", "without"])
def sleeper(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> "subprocess.Popen[bytes]":
    """Provide a process that exits at the end of its input."""
    if request.param == "without":
        monkeypatch.setattr(sys, "platform", "other")
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "import sys; sys.stdin.read(); sys.exit(3)"],
        stdin=subprocess.PIPE,
    )


def test_the_exit_of_a_process_is_waited_for(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        programs.wait_for_exit(sleeper, 0)

    assert sleeper.stdin
    sleeper.stdin.close()
    programs.wait_for_exit(sleeper, 60)
    assert sleeper.returncode == 3
    programs.wait_for_exit(sleeper, 0)  # once more

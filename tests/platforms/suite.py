"""A suite in a directory, and runs of it on another system."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pytest_device.testing import FaultyService
from tests.platforms.foreign_python import ForeignPython

FOREIGN: Final = (
    pytest.param("windows", marks=pytest.mark.windows),
    pytest.param("arm64", marks=pytest.mark.arm64),
)
"""The systems that have an environment of their own, outside of the gate."""
IMITATED_AT_NIGHT: Final = pytest.mark.parametrize(
    "python",
    [*FOREIGN, pytest.param("macos_like", marks=pytest.mark.nightly)],
    indirect=True,
)
"""For a test that the gate runs on Linux alone: on these systems, and at night on the imitated one."""
RUN_SECONDS: Final = 600.0
"""After this time a run counts as hanging: an emulated one starts in ten seconds, on a busy machine in minutes."""


class Result(NamedTuple):
    """How a run ended, and what it printed."""

    status: int
    output: str


class Suite:
    """The files of a suite; its runs use the service, and have a state directory of their own."""

    def __init__(
        self, python: ForeignPython, service: FaultyService, directory: Path
    ) -> None:
        self.service = service
        self.directory = directory / "suite"
        self.directory.mkdir()
        self.state = directory / "state"
        self._python = python

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")

    def pytest(self, *options: str, **environ: str) -> Result:
        """Run pytest in the suite's directory."""
        return self.python("-m", "pytest", *options, **environ)

    def command(self, *arguments: str, **environ: str) -> Result:
        """Run ``pytest-device``; pip makes no Windows program of it on this machine."""
        code = "import sys; from pytest_device.cli import main; sys.exit(main())"
        return self.python("-c", code, *arguments, **environ)

    def python(self, *arguments: str, **environ: str) -> Result:
        """Run the system's Python, and wait for it to end."""
        process = self._python.start(
            arguments, cwd=self.directory, environ={**self.environment(), **environ}
        )
        try:
            output, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"the run hangs:\n{output}") from None
        return Result(process.returncode, output)

    def environment(self) -> Mapping[str, str]:
        return {
            "DEVICE_URL": self.service.url,
            "DEVICE_TOKEN": self.service.token,
            "DEVICE_APP_ID": self.service.app_id,
            "DEVICE_POLL_INTERVAL_SECONDS": "0.1",
            "DEVICE_STATE_DIR": f"{self._python.drive}{self.state}",
        }

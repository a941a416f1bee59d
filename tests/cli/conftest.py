"""A service with faults, and a state directory with runs in it."""

import json
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_device.testing import FaultyService
from tests.cli.running import call
from tests.sessions.state_directory import StateDirectory


@pytest.fixture(autouse=True)
def _commands_are_forks(programs_are_forks: None) -> None:
    """Start the commands of these tests as forks; another ``code`` remains a fresh interpreter."""


class Ledgers(StateDirectory):
    """A state directory, and what the commands say of it."""

    def listed(self) -> list[dict[str, Any]]:
        found = call("sessions", "--json", "--state-dir", str(self.path))
        sessions: list[dict[str, Any]] = json.loads(found.stdout)["sessions"]
        return sessions

    def stop(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {
            "DEVICE_URL": self.service.url,
            "DEVICE_TOKEN": self.service.token,
            **environ,
        }
        return call("stop", "--state-dir", str(self.path), *arguments, **given)


@pytest.fixture
def ledgers(service: FaultyService, tmp_path: Path) -> Generator[Ledgers]:
    with closing(Ledgers(service, tmp_path)) as ledgers:
        yield ledgers

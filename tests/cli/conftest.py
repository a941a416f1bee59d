"""A service with faults, and a state directory with runs in it."""

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.runs import OwnRun
from pytest_device.testing import FaultyService
from tests.cli.running import call
from tests.sessions.reaper_clients import entry_of, request_at


@pytest.fixture(autouse=True)
def _commands_are_forks(programs_are_forks: None) -> None:
    """Start the commands of these tests as forks; another ``code`` remains a fresh interpreter."""


class Ledgers:
    """A state directory with runs in it, and sessions at a service."""

    def __init__(self, service: FaultyService, state_dir: Path) -> None:
        self.service, self.state_dir = service, state_dir
        self.live: list[OwnRun] = []

    def entry(self, **values: Any) -> Entry:
        """Return a running session with its entry."""
        with DeviceClient(self.service.url, self.service.token) as client:
            session = client.create(request_at(self.service))
        return entry_of(str(session.id), self.service, url=session.url, **values)

    def run(self, *entries: Entry, alive: bool = False) -> OwnRun:
        run = OwnRun.join(self.state_dir, uuid4().hex, "main")
        for entry in entries:
            run.ledger.write(entry)
        if alive:
            self.live.append(run)
        else:
            run.leave()
        return run

    def listed(self) -> list[dict[str, Any]]:
        found = call("sessions", "--json", "--state-dir", str(self.state_dir))
        sessions: list[dict[str, Any]] = json.loads(found.stdout)["sessions"]
        return sessions

    def stop(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {
            "DEVICE_URL": self.service.url,
            "DEVICE_TOKEN": self.service.token,
            **environ,
        }
        return call("stop", "--state-dir", str(self.state_dir), *arguments, **given)


@pytest.fixture
def ledgers(service: FaultyService, tmp_path: Path) -> Generator[Ledgers]:
    ledgers = Ledgers(service, tmp_path)
    yield ledgers
    for live in ledgers.live:
        live.leave()

"""A client of the reaper at a running service, in this process or in one that can be killed, and its reaper."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psutil
import pytest

from pytest_device import DeviceClient, SessionRequest
from pytest_device.sessions.ledger import Entry, Ledger
from pytest_device.sessions.reaper.channel import NAME
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import ReaperClient, ReaperConfig
from pytest_device.sessions.reporter import Reporter
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.states import Phase
from pytest_device.testing import FaultyService
from tests import forking
from tests.fakes.reporter import RecordingReporter

RUN = "a-run"
either_way = pytest.mark.parametrize(
    "is_detached", [True, False], ids=["with a reaper", "without"]
)


class Served:
    """The connection settings of a service."""

    def __init__(self, url: str, token: str, app_id: str) -> None:
        self.url, self.token, self.app_id = url, token, app_id


def reaper_client_at(
    service: Served | FaultyService,
    state_dir: Path,
    *,
    run: OwnRun | None = None,
    has_ledger: bool = True,
    is_detached: bool = True,
    reporter: Reporter | None = None,
    **settings: Any,
) -> ReaperClient:
    """Return a client whose sessions a reaper supervises, or this process itself.

    ``settings`` are those of ``ReaperConfig``. Without a run, it belongs to one of its own.
    """
    run = run or OwnRun.join(state_dir, RUN, "main")
    return ReaperClient(
        DeviceClient(service.url, service.token),
        Endpoint(service.url, service.token),
        vendor="vendor",
        run=run if has_ledger else None,
        config=ReaperConfig(detached=is_detached, **settings),
        reporter=reporter or RecordingReporter(),
    )


@contextmanager
def reaper_client(
    service: FaultyService, state_dir: Path, **more: Any
) -> Generator[ReaperClient]:
    """Provide a client as ``reaper_client_at`` returns it, and close it at the end in any case."""
    client = reaper_client_at(service, state_dir, **more)
    try:
        yield client
    finally:
        client.close(10)


def entries(state_dir: Path) -> list[Entry]:
    """Return what the ledger of the clients' run holds."""
    return Ledger(str(state_dir / "runs" / RUN)).read()[0]


def write_entry(state_dir: Path, entry: Entry) -> None:
    """Write to that ledger, as a run that has ended since."""
    directory = state_dir / "runs" / RUN
    directory.mkdir(parents=True)
    Ledger(str(directory)).write(entry)


def states(state_dir: Path) -> list[str]:
    """Return the states of the sessions in that ledger."""
    return [entry.state for entry in entries(state_dir)]


def request_at(service: Served | FaultyService, name: str = "a test") -> SessionRequest:
    return SessionRequest.from_arguments(
        app_id=service.app_id,
        platform="android",
        type="appium",
        name=name,
        max_duration_minutes=10,
    )


def entry_of(
    session_id: str, at: Served | FaultyService, *, state: str = "live", **values: Any
) -> Entry:
    """Return what a ledger holds of a session."""
    entry = Entry(
        uuid4().hex,
        "main",
        at.url,
        "android appium",
        "a test",
        "2026-01-01T00:00:00+00:00",
        15,
        session_id,
        state=Phase(state),
    )
    return entry._replace(**values)


@contextmanager
def owning_elsewhere(
    service: FaultyService, state_dir: Path, *, sessions: int = 1, fork: bool = False
) -> Generator[subprocess.Popen[str]]:
    """Provide a process group whose leader owns sessions and waits to be killed: see ``owns_sessions``."""
    command = [sys.executable, *forking.OWNER, str(state_dir), str(sessions)]
    where = {"url": service.url, "token": service.token, "app_id": service.app_id}

    with forking.Popen(
        [*command, *(["fork"] if fork else [])],
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(where) + "\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def created_ids(process: subprocess.Popen[str]) -> list[str]:
    """Wait for what the process owns."""
    assert process.stdout is not None
    return cast("list[str]", json.loads(process.stdout.readline()))


def reapers(mark: str) -> list[psutil.Process]:
    """Return the reapers, without their senders, that were started with a mark in their search path.

    One that has not detached itself yet is none.
    """
    found = {
        process.pid: process
        for process in psutil.process_iter()
        if _is_reaper(process, mark)
    }
    return [process for process in found.values() if not found.keys() & _above(process)]


def _is_reaper(process: psutil.Process, mark: str) -> bool:
    with suppress(psutil.Error):
        return process.cmdline()[-1:] == [NAME] and mark in process.environ().get(
            "PATH", ""
        )
    return False


def _above(process: psutil.Process) -> set[int]:
    with suppress(psutil.Error, ProcessLookupError):
        return {process.ppid(), os.getsid(process.pid)}
    return {process.pid}  # it has ended

"""Consecutive runs of one user at one service, which keep sessions warm for each other."""

import subprocess
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pytest_device import WaitPolicy
from pytest_device.events import Event, Ready, StateChanged
from pytest_device.sessions.attempt import SessionConfig
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.warm import (
    WarmConfig,
    WarmEntry,
    WarmStore,
    left_warm,
    request_digest,
)
from pytest_device.testing import FaultyService
from tests.cli.running import call
from tests.fakes.reporter import SILENT, RecordingReporter
from tests.sessions.pool_harness import requirement
from tests.sessions.reaper_clients import Served, reaper_client_at
from tests.sessions.state_directory import StateDirectory

Requirement = DeviceRequirement
"""What a test needs."""
_POLICY = WaitPolicy(30, 0.01)


def requirement_at(
    at: FaultyService, sharing_key: str = "run", minutes: int = 1, **arguments: object
) -> Requirement:
    """Return what a test needs of the service: see ``requirement``."""
    defaults = {"name": "a test", "max_duration_minutes": 30}
    return requirement(
        sharing_key, minutes=minutes, app_id=at.app_id, **(defaults | arguments)
    )


def digest_of(requirement: Requirement, state_dir: Path) -> str:
    """Return by what the ledgers of a state directory identify a request."""
    return request_digest(requirement, state_dir)


class WarmRun:
    """One pytest process, which acquires sessions from a pool and keeps those warm that it releases.

    ``problem`` is that of every controller, ``later`` how far its clocks have advanced.
    """

    def __init__(
        self,
        at: FaultyService,
        state_dir: Path,
        minutes: int = 10,
        *,
        is_detached: bool = False,
        has_ledger: bool = True,
        token: str = "",
    ) -> None:
        self.recorder = RecordingReporter()
        self.events = self.recorder.events
        self.problem: str | None = None
        self.later = timedelta()
        self._is_closed = False
        self.run = OwnRun.join(state_dir, uuid4().hex, "main")
        self.owner = reaper_client_at(
            Served(at.url, token or at.token, at.app_id),
            state_dir,
            run=self.run,
            has_ledger=has_ledger,
            is_detached=is_detached,
            reporter=SILENT,
        )
        relay = Relay(self.recorder.event)
        self.warm = WarmStore(
            WarmConfig(
                minutes,
                state_dir,
                owner=lambda: self.owner,
                problem_of=lambda _session: self.problem,
                relay=relay,
                clock=lambda: time.monotonic() + self.later.total_seconds(),
                now=lambda: datetime.now(UTC) + self.later,
                shuffle=lambda _left: None,
            )
        )
        config = SessionConfig(self.owner, time.monotonic, relay)
        self.pool = Pool(config, sleep=lambda _seconds: None, warm=self.warm)

    def acquire(self, *requirements: Requirement) -> DeviceSession:
        """Acquire sessions for a test; return the last."""
        return self.pool.acquire(requirements, _POLICY)[-1]

    def prefetch(self, *requirements: Requirement) -> None:
        """Start sessions for later tests."""
        self.pool.prefetch(requirements, _POLICY)

    def release(self, held: DeviceSession) -> None:
        """Release a session that no later test needs."""
        self.pool.release([held], lambda _requirement: 0)

    def use(self, requirement: Requirement) -> str:
        """Use a session for a test and release it; return its ID."""
        held = self.acquire(requirement)
        self.release(held)
        return str(held.session.id)

    def close(self) -> list[Event]:
        """End in order; return what happened since the last test."""
        self._is_closed = True
        self.pool.close()
        return [*self.owner.close(10)]

    def leave_at_once(self) -> list[Event]:
        """End like a killed process: wait for nothing."""
        self._is_closed = True
        return [*self.owner.close(0)]

    def end(self) -> None:
        """Close it unless the test has, keeping nothing warm."""
        if not self._is_closed:
            self.warm.end()
            self.close()

    def kinds(self) -> list[type[Event]]:
        """Return the types of what was reported, without what every start reports."""
        return [
            type(event)
            for event in self.events
            if not isinstance(event, StateChanged | Ready)
        ]


class WarmRuns(StateDirectory):
    """Runs one after the other, or at the same time; those that a test leaves open end with ``open_runs``.

    Each supervises its sessions itself, since it starts sooner than one with a reaper, unless ``is_detached``.
    """

    def __init__(
        self, service: FaultyService, path: Path, open_runs: ExitStack
    ) -> None:
        super().__init__(service, path)
        self._open_runs = open_runs

    def start(
        self,
        minutes: int = 10,
        *,
        is_detached: bool = False,
        token: str = "",
    ) -> WarmRun:
        """Start a run that keeps sessions warm for so many minutes."""
        run = WarmRun(
            self.service,
            self.path,
            minutes,
            is_detached=is_detached,
            token=token,
        )
        self._open_runs.callback(run.end)
        return run

    def left(self, requirement: Requirement, *, is_detached: bool = False) -> str:
        """Let a finished run keep a session warm; return its ID."""
        run = self.start(is_detached=is_detached)
        session_id = run.use(requirement)
        run.close()
        return session_id

    def ending(
        self, requirement: Requirement, after: timedelta, *, is_detached: bool = False
    ) -> str:
        """Let a finished run keep a session warm for this long; return its ID."""
        run = self.start(is_detached=is_detached)
        session_id = self.keep(run, requirement, after)
        run.close()
        return session_id

    def keep(self, run: WarmRun, requirement: Requirement, after: timedelta) -> str:
        """Let a run keep a session warm for this long; return its ID."""
        held, now = run.acquire(requirement), datetime.now(UTC)
        assert run.owner.keep_warm(
            held.session.id,
            until=now + after,
            ends=now + timedelta(hours=1),
            request_digest=digest_of(requirement, self.path),
        )
        run.pool.keep(held)
        return str(held.session.id)

    def offered(self) -> list[WarmEntry]:
        """Return what a later run may take over."""
        return left_warm(self.path, self.service.url, datetime.now(UTC))

    def command(
        self, name: str, *arguments: str, token: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on this state directory."""
        return call(
            name,
            *arguments,
            "--state-dir",
            str(self.path),
            DEVICE_URL=self.service.url,
            DEVICE_TOKEN=token or self.service.token,
        )

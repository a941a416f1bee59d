"""A state directory with runs in it, whose sessions exist at a service."""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from pytest_device import DeviceClient
from pytest_device.events import Event
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.runs import OwnRun, PastRun, account_of, past_runs
from pytest_device.sessions.sweep import SweepResult, reconcile, stop_all, sweep
from pytest_device.testing import FaultyService
from tests.sessions.reaper_clients import entry_of, request_at


class StateDirectory:
    """The state directory of one user of a service: what earlier runs left in it, and what a later one finds."""

    def __init__(self, service: FaultyService, path: Path) -> None:
        self.service, self.path = service, path
        self.live: list[OwnRun] = []

    def entry(self, **values: Any) -> Entry:
        """Return a running session with its entry."""
        with DeviceClient(self.service.url, self.service.token) as client:
            session = client.create(request_at(self.service))
        return entry_of(
            str(session.id), self.service, **({"url": session.url} | values)
        )

    def run(self, *entries: Entry, alive: bool = False) -> OwnRun:
        """Write entries into the ledger of a run, which then ends unless it is ``alive``."""
        run = OwnRun.join(self.path, uuid4().hex, "main")
        for entry in entries:
            run.ledger.write(entry)

        if alive:
            self.live.append(run)
        else:
            run.leave()
        return run

    def runs(self) -> list[PastRun]:
        """Return the runs that have left something."""
        return past_runs(self.path)

    def entries(self) -> list[Entry]:
        """Return what the ledgers of all runs hold."""
        return [entry for run in self.runs() for entry in run.ledger.read()[0]]

    def states(self) -> list[str]:
        """Return the states of these entries."""
        return [entry.state for entry in self.entries()]

    def account(self, token: str) -> str:
        """Return what entries hold of a token."""
        return account_of(self.path, token)

    def sweep(self, *, token: str = "", exclude: str = "") -> SweepResult:
        """Stop what finished runs have left, as a run does at its beginning; with the service's own token by default."""
        return sweep(
            self.path, self._endpoint(token), exclude=exclude, timeout_seconds=5
        )

    def reconcile(
        self,
        run: OwnRun,
        *,
        known: tuple[str, ...] = (),
        seconds: float = 5,
        leaves_warm: bool = True,
    ) -> list[Event]:
        """Stop what dead processes of a run have left, as it does at its end; return what has not been reported."""
        return [
            *reconcile(
                run,
                self._endpoint(),
                known=known,
                until=time.monotonic() + seconds,
                leaves_warm=leaves_warm,
            )
        ]

    def stop_all(self, *entries: Entry) -> list[Event]:
        """Stop sessions, all at once."""
        return [*stop_all(self._endpoint(), entries, 5)]

    def close(self) -> None:
        """End the runs that are still alive."""
        for run in self.live:
            run.leave()

    def _endpoint(self, token: str = "") -> Endpoint:
        return Endpoint(self.service.url, token or self.service.token)

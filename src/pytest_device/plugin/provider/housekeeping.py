"""Sweeps at the start of a run and reconciles at its end, once for all its processes."""

import os
import threading
import time
from pathlib import Path
from typing import Final

import pytest

from pytest_device.plugin.output.terminal import Terminal
from pytest_device.plugin.provider.backend import MAIN, joined
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.network import endpoint_at
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.sweep import LEAST_SECONDS, reconcile, stop_all, sweep
from pytest_device.settings import Settings
from pytest_device.spec import LONGEST_MINUTES

_IS_INIT: Final = (
    "pytest was process 1 of its container, so the reaper ended with it: start the container with an init process "
    "(docker run --init)"
)
_IN_ORDER: Final = frozenset(
    {
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.INTERRUPTED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    }
)


class Sweeper:
    """Stops sessions that earlier runs left on this machine, concurrently with the tests."""

    def __init__(self, settings: Settings, service: Endpoint, run_name: str) -> None:
        self._settings, self._service, self._run_name = settings, service, run_name
        self._notes: list[str] = []
        self._thread = threading.Thread(
            target=self._sweep, name="pytest-device-sweep", daemon=True
        )
        self._thread.start()

    def _sweep(self) -> None:
        state_dir = self._settings.state_dir
        if state_dir is None:
            return
        try:
            swept = sweep(
                Path(state_dir),
                self._service,
                but=self._run_name,
                timeout_seconds=self._settings.stop_timeout_seconds,
            )
        except OSError as error:
            self._notes.append(f"could not check for sessions of earlier runs: {error}")
        else:
            self._notes += swept.notes()

    def notes(self, until: float) -> list[str]:
        """Return its notes; wait for its end until ``until`` on the monotonic clock."""
        self._thread.join(max(LEAST_SECONDS, until - time.monotonic()))
        return self._notes


class Housekeeping:
    """Used once per run, in the process that was started as pytest."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        token: str,
        run_name: str,
        terminal: Terminal,
    ) -> None:
        self._settings, self._service, self._terminal = (
            settings,
            endpoint_at(url, token),
            terminal,
        )
        self._notes: list[str] = []
        self.run: OwnRun | None = None
        self._sweeper: Sweeper | None = None
        if settings.local:
            return
        self.run = joined(settings, run_name, MAIN, terminal)
        self._sweeper = Sweeper(
            settings, self._service, self.run.name if self.run else ""
        )

    def finish(
        self, session: pytest.Session, *, until: float, others: bool, by_signal: bool
    ) -> None:
        """Stop what other processes of this run left, count it, and fail a run that may have leaked.

        Stops are retried until ``until``, on the monotonic clock. ``by_signal``: whether a signal ended the run.
        """
        leaves_warm = not was_interrupted(session, by_signal=by_signal)
        receipt = self._terminal.receipt
        tried = (
            self._reconciled(self.run, until, leaves_warm=leaves_warm)
            if self.run
            else set[str]()
        )
        if others:
            left = [
                Entry.of_session(
                    of.session_id,
                    label=of.label,
                    url=of.url,
                    minutes=of.minutes or LONGEST_MINUTES,
                )
                for of in (event.session for event in receipt.not_stopped())
                if of.session_id not in tried
            ]
            for event in stop_all(self._service, left, until - time.monotonic()):
                self._terminal.event(event)
        if self._sweeper:
            self._notes += self._sweeper.notes(until)
        if os.getpid() == 1:
            self._notes.append(_IS_INIT)
        for text in self._notes:
            self._terminal.note(text)
        if (
            receipt.not_stopped() or receipt.lost
        ) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _reconciled(self, run: OwnRun, until: float, *, leaves_warm: bool) -> set[str]:
        """Return the IDs of the sessions that other processes left."""
        try:
            known = self._terminal.receipt.known()
            events = reconcile(
                run, self._service, known=known, until=until, leaves_warm=leaves_warm
            )
            run.leave()
        except OSError as error:
            self._notes.append(f"the ledger is no longer readable: {error}")
            return set()
        for event in events:
            self._terminal.event(event)
        return {event.session.session_id for event in events}


def was_interrupted(session: pytest.Session, *, by_signal: bool) -> bool:
    """Return whether a run was interrupted: then it keeps no sessions warm.

    ``-x`` and ``--stepwise`` don't count as interruption, since another run soon follows.
    """
    if by_signal or (
        session.exitstatus == pytest.ExitCode.INTERRUPTED and not session.shouldstop
    ):
        return True
    return session.exitstatus not in _IN_ORDER

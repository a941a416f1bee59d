"""The resources that a process opens to provide devices to its tests, and closes at the end of the run."""

import os
import time
from collections.abc import Sequence
from typing import Any, Final

import pytest

from pytest_device.figures import counted
from pytest_device.plugin.markers import Names
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.pause import Pause
from pytest_device.plugin.output.terminal import Terminal
from pytest_device.plugin.provider.backend import (
    MAIN,
    Backend,
    LocalBackend,
    RemoteBackend,
    joined,
)
from pytest_device.plugin.provider.devices import Devices
from pytest_device.plugin.provider.housekeeping import (
    Housekeeping,
    Sweeper,
    was_interrupted,
)
from pytest_device.plugin.provider.lookahead import Lookahead, WholeRun
from pytest_device.plugin.state import LOCAL, history_of, needs_of
from pytest_device.redact import Redactor
from pytest_device.sessions.breaker import Judge
from pytest_device.sessions.events import Event
from pytest_device.settings import Settings

WORKER_STOP_SECONDS: Final = 5.0
"""Maximum seconds that a pytest-xdist worker waits for its stops at its end: pytest-xdist kills it after ten."""


class Connection:
    """The connection to the service."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        run_name: str,
        log: EventLog,
        terminal: Terminal | None,
    ) -> None:
        self._config, self._settings, self._run_name = config, settings, run_name
        self._log, self._terminal = log, terminal
        self._backend: Backend | None = None
        self._devices: Devices | None = None
        self._housekeeping: Housekeeping | None = None
        self._sweeper: Sweeper | None = None

    def open(
        self,
        items: Sequence[pytest.Item],
        redactor: Redactor,
        lookahead: Lookahead | None,
        pause: Pause,
        judge: Judge | None,
    ) -> Devices:
        """Connect to the service and return the devices; start a local service, if this process owns it, or a reaper.

        Raises ConfigError.
        """
        self._backend = self._opened(items, redactor)
        self._devices = Devices(
            self._settings,
            self._backend,
            Names(os.environ, self._run_name[:8]),
            redactor=redactor,
            log=self._log,
            pause=pause,
            lookahead=lookahead
            or WholeRun(items, history_of(self._config), self._settings.prefetch),
            judge=judge,
        )
        return self._devices

    def _opened(self, items: Sequence[pytest.Item], redactor: Redactor) -> Backend:
        given: dict[str, Any] = getattr(self._config, "workerinput", {})
        settings = self._settings
        worker: str | None = given.get("workerid")
        if settings.local:
            requests = [
                need.request for item in items for need in needs_of(item).values()
            ]
            return LocalBackend(
                settings, given.get(LOCAL), self._log, requests, redactor
            )
        if self._terminal:
            url, token = str(settings.url), settings.token
            self._housekeeping = Housekeeping(
                settings, url, token, self._run_name, self._terminal
            )
            run = self._housekeeping.run
        else:
            run = joined(settings, self._run_name, str(worker), self._log)
        backend = RemoteBackend(
            settings, run=run, worker=worker, reporter=self._log, redactor=redactor
        )
        if (
            not self._terminal and run and not run.is_joined_by(MAIN)
        ):  # on another machine than the coordinator
            self._sweeper = Sweeper(settings, backend.service, run.name)
        return backend

    def on_termination(self) -> None:
        """Start stopping sessions before the run ends; called in a signal handler."""
        if self._backend:
            self._backend.on_termination()

    def close(self, session: pytest.Session, *, by_signal: bool) -> None:
        """Stop the remaining sessions, and report events since the last report: an interrupted test has none."""
        until = time.monotonic() + self._settings.stop_timeout_seconds
        self._close_devices(session, by_signal=by_signal)
        for event in self._closed(self._backend) if self._backend else ():
            self._log.event(event)
        for text in (
            self._sweeper.notes(min(until, time.monotonic() + WORKER_STOP_SECONDS))
            if self._sweeper
            else ()
        ):
            self._log.note(text)
        self._log.deliver()
        if self._terminal:
            if self._housekeeping:
                self._housekeeping.finish(
                    session, until=until, others=False, by_signal=by_signal
                )
            self._terminal.save_receipt(self._settings)

    def _close_devices(self, session: pytest.Session, *, by_signal: bool) -> None:
        try:
            if self._devices:
                self._devices.close(
                    interrupted=was_interrupted(session, by_signal=by_signal)
                )
        except Exception as error:  # noqa: BLE001  # a suite's hook failed: the run's report must still appear
            self._log.note(
                f"pytest_device_stopping failed at the end of the run: {type(error).__name__}: {error}"
            )
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _closed(self, backend: Backend) -> list[Event]:
        seconds = self._settings.stop_timeout_seconds
        if not self._terminal:
            return backend.close(min(seconds, WORKER_STOP_SECONDS))
        if pending := backend.pending():
            sessions = counted(pending, "session")
            self._terminal.show(
                f"waiting up to {seconds:.0f} s for {sessions} to stop (Ctrl-C to skip)"
            )
        return backend.close(seconds)

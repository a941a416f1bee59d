"""A process's connection to the service: opened before its first test, closed after its last one."""

import time
from collections.abc import Sequence
from typing import Any, Final

import pytest

from pytest_device.plugin.markers import SessionNaming
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.terminal import Pause, Terminal
from pytest_device.plugin.provider.backend import (
    MAIN,
    Backend,
    Housekeeping,
    LocalBackend,
    RemoteBackend,
    Sweeper,
    joined,
    was_interrupted,
)
from pytest_device.plugin.provider.devices import Devices
from pytest_device.plugin.provider.requirements import Lookahead, WholeRun
from pytest_device.plugin.signals import GracefulShutdown
from pytest_device.plugin.state import LOCAL, history_of, is_skipped, requirements_of
from pytest_device.sessions.breaker import Breaker
from pytest_device.sessions.events import Event
from pytest_device.sessions.network import checked_endpoint
from pytest_device.settings import Settings

_WORKER_STOP_SECONDS: Final = 5.0
"""Maximum seconds that a pytest-xdist worker waits for its stops at its end: pytest-xdist kills it after ten."""


class Connection:
    """The connection to the service."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        run_name: str,
        names: SessionNaming,
        log: EventLog,
        terminal: Terminal | None,
    ) -> None:
        self._config = config
        self._settings = settings
        self._run_name = run_name
        self._names = names
        self._log = log
        self._terminal = terminal
        self._redactor = redactor_of(config)
        self._backend: Backend | None = None
        self._devices: Devices | None = None
        self._housekeeping: Housekeeping | None = None
        self._sweeper: Sweeper | None = None

    def open(
        self,
        items: Sequence[pytest.Item],
        lookahead: Lookahead | None,
        pause: Pause,
        breaker: Breaker | None,
    ) -> Devices:
        """Connect to the service and return the devices; start a local service, if this process owns it, or a reaper.

        Raises ConfigError.
        """
        self._backend = (
            self._open_local(items) if self._settings.local else self._open_remote()
        )
        self._devices = Devices(
            self._settings,
            self._backend,
            self._names,
            redactor=self._redactor,
            log=self._log,
            pause=pause,
            lookahead=lookahead
            or WholeRun(items, history_of(self._config), self._settings.prefetch),
            breaker=breaker,
        )

        return self._devices

    def _open_local(self, items: Sequence[pytest.Item]) -> LocalBackend:
        worker_input: dict[str, Any] = getattr(self._config, "workerinput", {})
        # Without those of skipped tests: nothing has to be installed for them.
        requests = [
            requirement.request
            for item in items
            if not is_skipped(item)
            for requirement in requirements_of(item).values()
        ]
        # The sessions of a pytest-xdist run are used by its workers.
        is_coordinator = self._config.pluginmanager.has_plugin("dsession")

        return LocalBackend(
            self._settings,
            worker_input.get(LOCAL),
            self._log,
            requests,
            self._redactor,
            drives=not is_coordinator,
        )

    def _open_remote(self) -> RemoteBackend:
        settings = self._settings
        worker_input: dict[str, Any] = getattr(self._config, "workerinput", {})
        worker: str | None = worker_input.get("workerid")

        service = checked_endpoint(str(settings.url), settings.token)
        if self._terminal:
            self._housekeeping = Housekeeping(
                settings, service, self._run_name, self._terminal
            )
            run = self._housekeeping.run
        else:
            run = joined(settings, self._run_name, str(worker), self._log)

        backend = RemoteBackend(
            settings,
            service,
            run=run,
            worker=worker,
            reporter=self._log,
            redactor=self._redactor,
        )

        # On another machine than the coordinator, whose own sweep does not see this machine's ledger.
        if not self._terminal and run and not run.is_joined_by(MAIN):
            self._sweeper = Sweeper(settings, service, run.name)

        return backend

    def on_termination(self) -> None:
        """Start stopping sessions before the run ends; called in a signal handler."""
        if self._backend:
            self._backend.on_termination()

    def close(self, session: pytest.Session, signals: GracefulShutdown) -> None:
        """Stop the remaining sessions, and report events since the last report: an interrupted test has none."""
        until = time.monotonic() + self._settings.stop_timeout_seconds
        by_signal = signals.exit_status is not None
        self._close_devices(session, by_signal=by_signal)

        if self._backend:
            for event in self._close_backend(self._backend, signals):
                self._log.event(event)

        if self._sweeper:
            sweep_until = min(until, time.monotonic() + _WORKER_STOP_SECONDS)
            for text in self._sweeper.notes(sweep_until):
                self._log.note(text)

        self._log.deliver()

        if self._terminal:
            if self._housekeeping:
                self._housekeeping.finish(
                    session, until=until, others=False, by_signal=by_signal
                )

            self._terminal.save_report()

    def _close_devices(self, session: pytest.Session, *, by_signal: bool) -> None:
        try:
            if self._devices:
                self._devices.close(
                    interrupted=was_interrupted(session, by_signal=by_signal)
                )
        # A suite's hook failed: the report of the run must still appear. The latter two derive from BaseException only.
        except (
            Exception,  # noqa: BLE001
            pytest.fail.Exception,
            pytest.skip.Exception,
        ) as error:
            self._log.note(
                f"pytest_device_stopping failed at the end of the run: {type(error).__name__}: {error}"
            )
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _close_backend(
        self, backend: Backend, signals: GracefulShutdown
    ) -> list[Event]:
        """Stop the remaining sessions; return the events that were not reported yet."""
        seconds = self._settings.stop_timeout_seconds
        if not self._terminal:
            # Ctrl-C reaches a worker twice: from the terminal, and from the coordinator.
            return backend.close(min(seconds, _WORKER_STOP_SECONDS))

        if awaited := backend.awaited(seconds):
            hint = " (Ctrl-C to skip)" if self._settings.reaper else ""
            self._terminal.show(f"{awaited}{hint}")

        return backend.close(seconds, signals.skips_waits)

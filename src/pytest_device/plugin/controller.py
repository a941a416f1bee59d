"""The controlling process of a pytest-xdist run: the one local service, and the workers' usage errors."""

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

from pytest_device.errors import ConfigError
from pytest_device.local import LocalService
from pytest_device.plugin.options import settings_of, usage_error, will_run
from pytest_device.plugin.secrets import redactor_of
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal
from pytest_device.sessions.events import Event, Kind

if TYPE_CHECKING:
    from pytest_device.plugin.household import Household
    from pytest_device.settings import Settings

LOCAL: Final = "device_local"
"""Key of a worker's input: address, token and log of the run's local service. The token goes through the pipe."""
RUN: Final = "device_run"
"""Key of a worker's input: the name that all processes of the run share."""
PROBLEMS: Final = "device_problems"
"""Key of a worker's output: what is wrong with the configuration."""


class _Worker(Protocol):
    """What is used of pytest-xdist's ``WorkerController``."""

    workerinput: dict[str, Any]


def _new_run() -> str:
    from pytest_device.sessions.runs import new_run

    return new_run()


class Controller:
    """Registered only where pytest-xdist distributes tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._service: LocalService | None = None
        self._household: Household | None = None
        self._run_name = ""
        self._problems: dict[str, None] = {}
        self._signals = EndInOrder()
        self._terminal = Terminal(config)
        config.pluginmanager.register(self._terminal, "device-terminal")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: _Worker) -> None:
        """Give the worker the run's local service, started with the first worker."""
        try:
            settings = settings_of(self._config)
            if not (settings.local.value or settings.url.value):
                return
            self._signals.install()
            node.workerinput[RUN] = self._run_name = self._run_name or _new_run()
            if settings.local.value and will_run(self._config):
                node.workerinput[LOCAL] = self._started(settings)
            if self._household is None and will_run(self._config) and not any(settings.service_problems()):
                self._household = self._kept(settings)
        except ConfigError as error:
            raise usage_error(error.problems) from None

    def _started(self, settings: "Settings") -> dict[str, str]:
        if self._service is None:
            self._service = LocalService.start(
                progress=self._terminal.show,
                types=[],  # the workers alone know which
                **settings.of_local_service(),
            )
        return {"url": self._service.url, "token": self._service.token, "log_path": str(self._service.log_path)}

    def _kept(self, settings: "Settings") -> "Household":
        from pytest_device.plugin.household import Household
        from pytest_device.sessions.network import service_at

        url, token = str(settings.url.value), settings.token
        if self._service is not None:
            url, token = self._service.url, self._service.token
        else:
            redactor_of(self._config)
        return Household(settings, service_at(url, token), self._run_name, self._terminal)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: _Worker) -> None:
        """Collect what the worker found wrong, the same as all workers do, and what its reports did not tell."""
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        self._terminal.count(output.get(EVENTS, ()))
        self._problems |= dict.fromkeys(output.get(PROBLEMS, ()))

    @pytest.hookimpl(trylast=True)  # after pytest-xdist has ended the workers
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what workers did not prove stopped; end with the status of a usage error or a signal if there was one.

        A worker that was killed stops nothing, and of an interrupted one no report arrives any more.
        """
        if self._household:
            seconds = settings_of(self._config).stop_timeout_seconds.value
            self._household.finish(session, until=time.monotonic() + seconds, others=True)
            self._save_receipt()
        if self._problems:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status

    def _save_receipt(self) -> None:
        from pytest_device.plugin.artifacts import save_receipt

        if note := save_receipt(settings_of(self._config), self._terminal.receipt, self._config):
            self._terminal.count([Event(Kind.NOTE, text=note).to_json()])

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Say what was wrong."""
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    def pytest_keyboard_interrupt(self) -> None:
        """Let the end take its time, and tell the workers: pytest-xdist would wait ten seconds for them."""
        self._signals.close()
        if self._household and self._household.run and os.name != "nt":  # there, SIGTERM does not ask
            for pid in self._household.run.pids_of_others():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def pytest_unconfigure(self) -> None:
        """End the local service, after the workers."""
        self._signals.restore()
        if self._service is not None:
            self._service.close()

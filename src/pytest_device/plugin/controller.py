"""The controlling process of a pytest-xdist run: the one local service, and the workers' usage errors."""

from typing import Any, Final, Protocol

import pytest

from pytest_device.errors import ConfigError
from pytest_device.local import LocalService
from pytest_device.plugin.options import settings_of, usage_error, will_run
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal
from pytest_device.sessions.events import Event

LOCAL: Final = "device_local"
"""Key of a worker's input: address, token and log of the run's local service. The token goes through the pipe."""
PROBLEMS: Final = "device_problems"
"""Key of a worker's output: what is wrong with the configuration."""


class _Worker(Protocol):
    """What is used of pytest-xdist's ``WorkerController``."""

    workerinput: dict[str, Any]


class Controller:
    """Registered only where pytest-xdist distributes tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._service: LocalService | None = None
        self._problems: dict[str, None] = {}
        self._signals = EndInOrder()
        self._terminal = Terminal(config)
        config.pluginmanager.register(self._terminal, "device-terminal")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: _Worker) -> None:
        """Give the worker the run's local service, started with the first worker."""
        try:
            settings = settings_of(self._config)
            if settings.local.value or settings.url.value:
                self._signals.install()
            if not (settings.local.value and will_run(self._config)):
                return
            if self._service is None:
                self._service = LocalService.start(app_id=str(settings.app_id.value), progress=self._terminal.show)
        except ConfigError as error:
            raise usage_error(error.problems) from None
        node.workerinput[LOCAL] = {
            "url": self._service.url,
            "token": self._service.token,
            "log_path": str(self._service.log_path),
        }

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
        if left := self._terminal.receipt.not_stopped():
            self._terminal.count(event.to_json() for event in self._stop(left))
        if self._problems:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Say what was wrong."""
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    def _stop(self, events: list[Event]) -> list[Event]:
        from pytest_device.sessions.client import DeviceClient
        from pytest_device.sessions.lease import stopped

        settings = settings_of(self._config)
        url, token = str(settings.url.value), settings.token
        if self._service is not None:
            url, token = self._service.url, self._service.token
        with DeviceClient(url, token) as client:
            return [stopped(client, event) for event in events]

    def pytest_unconfigure(self) -> None:
        """End the local service, after the workers."""
        self._signals.restore()
        if self._service is not None:
            self._service.close()

"""The controlling process of a pytest-xdist run: the one local service, and the workers' usage errors."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import pytest

from pytest_device.errors import ConfigError
from pytest_device.local import LocalService
from pytest_device.plugin.line import LINE, OVER, Channel, Left, Line
from pytest_device.plugin.options import CHOSEN_DIST, others_that_deal, settings_of, usage_error, will_run
from pytest_device.plugin.secrets import redactor_of
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal
from pytest_device.sessions.event_codec import to_plain
from pytest_device.sessions.events import Note

if TYPE_CHECKING:
    from pytest_device.plugin.household import Household
    from pytest_device.plugin.schedule import Lineup
    from pytest_device.settings import Settings

LOCAL: Final = "device_local"
"""Key of a worker's input: address, token and log of the run's local service. The token goes through the pipe."""
RUN: Final = "device_run"
"""Key of a worker's input: the name that all processes of the run share."""
PROBLEMS: Final = "device_problems"
"""Key of a worker's output: what is wrong with the configuration."""


class _Gateway(Protocol):
    """What is used of execnet's ``Gateway``."""

    @property
    def spec(self) -> Any: ...
    def newchannel(self) -> Channel: ...


class _Worker(Protocol):
    """What is used of pytest-xdist's ``WorkerController``."""

    workerinput: dict[str, Any]
    gateway: "_Gateway"


def _is_here(node: _Worker) -> bool:
    """Tell whether a worker is on this machine, as far as its specification tells."""
    spec = node.gateway.spec
    return bool(spec.popen) and not spec.via


def _check_place(settings: "Settings", node: _Worker) -> None:
    if settings.local.value and not _is_here(node):
        raise ConfigError(f"{settings.local.source} serves this machine alone, and --tx names another one")


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
        self._lines: dict[Any, Line] = {}
        """By worker."""
        self._chosen = config.stash.get(CHOSEN_DIST, "no")
        self._deals = False
        """Whether tests are dealt by their devices, by a scheduler of ours."""
        self._left: Left | None = None
        self._has_told_shard = False
        config.pluginmanager.register(self._terminal, "device-terminal")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: _Worker) -> None:
        """Give the worker a line to here, and the run's local service, started with the first worker."""
        node.workerinput[LINE] = channel = node.gateway.newchannel()
        self._lines[node] = Line(channel, self._terminal.show)
        try:
            settings = settings_of(self._config)
            if not (settings.local.value or settings.url.value):
                return
            _check_place(settings, node)
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
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object:
        """Deal tests by their devices, unless the user says how they are distributed."""
        if others_that_deal(config):
            return None
        self._deals = True
        from pytest_device.plugin.distribution import DeviceScheduling

        settings = settings_of(config)
        return DeviceScheduling(
            config,
            log,
            lines=self._lines,
            history=self._terminal.history,
            most=settings.max_sessions.value,
            fresh_ahead=settings.prefetch.value,
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: _Worker, ids: Sequence[str]) -> None:
        """Say what the user's way of distribution costs, and begin to watch which devices are needed no more."""
        line = self._lines[node]
        lineup = line.lineup
        if line.shard and not self._has_told_shard:
            self._has_told_shard = True
            self._terminal.announce(line.shard)
        if self._deals or self._left or lineup is None or not lineup.has_devices():
            return
        self._left = Left(lineup, ids)
        self._tell_trap(lineup, ids)

    def _tell_trap(self, lineup: "Lineup", ids: Sequence[str]) -> None:
        from pytest_device.plugin.traps import trap

        dist = f"--dist {self._chosen}"
        decides = len(self._lines) > 1 and others_that_deal(self._config) == [dist]
        if decides and (costs := trap(self._chosen, lineup, ids)):
            self._terminal.show(f"{dist} {costs}. Without --dist, tests are dealt by their devices")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Let workers stop the devices that no test will need that has not begun."""
        if self._left and (over := self._left.begun(nodeid)) and self._chosen != "each":
            for line in self._lines.values():
                line.tell(OVER, over)

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
            until, by_signal = time.monotonic() + seconds, self._signals.exit_status is not None
            self._household.finish(session, until=until, others=True, by_signal=by_signal)
            self._save_receipt()
        if self._problems:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status

    def _save_receipt(self) -> None:
        from pytest_device.plugin.artifacts import save_receipt

        if note := save_receipt(settings_of(self._config), self._terminal.receipt, self._config):
            self._terminal.count([to_plain(Note(note))])

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Say what was wrong."""
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    def pytest_keyboard_interrupt(self) -> None:
        """Let the end take its time, and tell the workers: pytest-xdist would wait ten seconds for them."""
        self._signals.close()
        if self._household and self._household.run and os.name != "nt":  # there, SIGTERM does not ask
            here = {line.pid or 0 for node, line in self._lines.items() if _is_here(node)}
            for pid in here.intersection(self._household.run.pids_of_others()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def pytest_unconfigure(self) -> None:
        """End the local service, after the workers."""
        self._signals.restore()
        if self._service is not None:
            self._service.close()

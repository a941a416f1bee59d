"""The coordinator of a pytest-xdist run: what its workers share, their channels and their usage errors."""

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.local import LocalService
from pytest_device.plugin.options import (
    conflicting_distribution_options,
    settings_of,
    usage_error,
    will_run,
)
from pytest_device.plugin.output.outcomes import phase_of, watch_outcomes
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.terminal import DISCARDED, EVENTS, Terminal
from pytest_device.plugin.signals import GracefulShutdown
from pytest_device.plugin.state import LOCAL, PROBLEMS, RUN, add_durations
from pytest_device.plugin.xdist.channel import CHANNEL, Channel, WorkerChannel
from pytest_device.plugin.xdist.messages import Interrupt

if TYPE_CHECKING:
    from pytest_device.plugin.provider.backend import Housekeeping
    from pytest_device.sessions.breaker import RunBreaker
    from pytest_device.settings import Settings


class _Gateway(Protocol):
    """The part of execnet's ``Gateway`` in use."""

    @property
    def id(self) -> str: ...
    @property
    def spec(self) -> Any: ...
    def newchannel(self) -> Channel: ...


class Worker(Protocol):
    """The part of pytest-xdist's ``WorkerController`` in use."""

    workerinput: dict[str, Any]
    gateway: "_Gateway"


class Coordinator:
    """Registered only if pytest-xdist distributes tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._service: LocalService | None = None
        self._housekeeping: Housekeeping | None = None
        self._run_name = ""
        self._problems: dict[str, None] = {}
        self._signals = GracefulShutdown()
        self._terminal = Terminal(config)
        self._channels: dict[Any, WorkerChannel] = {}
        """By worker."""
        self._has_announced_shard = False
        self._breaker: RunBreaker | None = None
        config.pluginmanager.register(self._terminal, "device-terminal")
        watch_outcomes(config, self._terminal)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Worker) -> None:
        """Give the worker a channel, and the run's name and local service, which start with the first worker."""
        node.workerinput[CHANNEL] = channel = node.gateway.newchannel()
        try:
            settings = settings_of(self._config)
            add_durations(self._config, settings)
            self._breaker = self._breaker or self._terminal.new_breaker()
            name = str(node.workerinput["workerid"])
            self._channels[node] = WorkerChannel(
                channel, self._terminal, name, self._breaker, self._add_problem
            )
            if settings.local or settings.url:
                self._connect(node, settings)
        except ConfigError as error:
            raise usage_error(error.problems) from None

    def _add_problem(self, problem: str) -> None:
        self._problems[problem] = None

    def _connect(self, node: Worker, settings: "Settings") -> None:
        """Give the worker the run's name and local service; begin the ledger and the sweep with the first worker."""
        from pytest_device.sessions.runs import new_run

        if settings.local and not _is_here(node):
            raise ConfigError(
                f"{settings.source('local')} only serves this machine, but --tx names another one"
            )

        self._signals.install()

        self._run_name = self._run_name or new_run()
        if settings.local and will_run(self._config):
            node.workerinput[LOCAL] = self._started(settings)

        if (
            self._housekeeping is None
            and will_run(self._config)
            and not any(settings.service_problems())
        ):
            self._housekeeping = self._new_housekeeping(settings)
            if self._housekeeping.run:
                # Another run may have the first name.
                self._run_name = self._housekeeping.run.name

        node.workerinput[RUN] = self._run_name

    def _started(self, settings: "Settings") -> dict[str, str]:
        if self._service is None:
            self._service = LocalService.start(
                progress=self._terminal.progress,
                types=[],  # only the workers know the types
                **settings.local_service_config(),
            )

        return {
            "url": self._service.url,
            "token": self._service.token,
            "log_path": str(self._service.log_path),
        }

    def _new_housekeeping(self, settings: "Settings") -> "Housekeeping":
        from pytest_device.plugin.provider.backend import Housekeeping
        from pytest_device.sessions.network import endpoint_at

        if self._service is not None:
            service = endpoint_at(self._service.url, self._service.token)
        else:
            service = endpoint_at(str(settings.url), settings.token)
            redactor_of(self._config)  # from now on, masks the reports of all workers

        return Housekeeping(settings, service, self._run_name, self._terminal)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object:
        """Assign tests by device, unless the user chose a distribution."""
        if conflicting_distribution_options(config):
            return None

        from pytest_device.plugin.xdist.scheduler import DeviceScheduling

        history = self._terminal.history
        settings = settings_of(config)

        return DeviceScheduling(
            config, log, channels=self._channels, history=history, settings=settings
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Worker) -> None:
        """Announce the shard; record the run once it has tests with devices."""
        channel = self._channels[node]
        if channel.shard and not self._has_announced_shard:
            self._has_announced_shard = True
            self._terminal.announce(channel.shard)

        plan = channel.plan
        if plan and plan.has_devices():
            from pytest_device.plugin.output.ci_report import report_to_ci
            from pytest_device.plugin.output.device_report import record_tests

            settings = settings_of(self._config)
            record_tests(self._config, settings, self._terminal)
            report_to_ci(self._config, settings, self._terminal)

    # Around plugins that run the test again.
    @pytest.hookimpl(optionalhook=True, wrapper=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport
    ) -> Generator[None, object, object]:
        """Add the crash to the reports, with a note if no error reports it because the test runs again."""
        result = yield
        if not self._has_devices():
            return result

        # The crashed worker attached no events to it, by which other reports are recognized.
        self._terminal.event(phase_of(report))
        worker = escaped(str(vars(report)["node"].gateway.id))
        if not report.failed:
            self._terminal.note(
                f"worker {worker} crashed while running {crashitem}, which ran again"
            )

        return result

    def _has_devices(self) -> bool:
        plans = (channel.plan for channel in self._channels.values())
        return any(plan and plan.has_devices() for plan in plans)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Worker) -> None:
        """Collect the worker's usage errors, and events that its reports did not carry."""
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        worker = escaped(node.gateway.id)
        self._terminal.log_discarded(output.get(DISCARDED, ()), worker)
        self._terminal.count(output.get(EVENTS, ()))
        if node in self._channels:  # it may have ended before it was set up
            self._channels[node].lost()

        self._problems |= dict.fromkeys(output.get(PROBLEMS, ()))

    # Begins before pytest-xdist stops the workers, and ends after that.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Stop the sessions that workers left; exit with the status of a usage error or a signal if there was one.

        A killed worker stops nothing, and the reports of an interrupted one no longer arrive.
        """
        # From here on, an interrupt would lose the summary of the run.
        self._signals.close()

        try:
            yield
        finally:
            self._finish(session)

    def _finish(self, session: pytest.Session) -> None:
        if self._housekeeping:
            settings = settings_of(self._config)
            until = time.monotonic() + settings.stop_timeout_seconds
            by_signal = self._signals.exit_status is not None
            self._housekeeping.finish(
                session, until=until, others=True, by_signal=by_signal
            )
            self._terminal.save_report()

        if self._problems:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status

    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> None:
        """Write the workers' usage errors."""
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {escaped(problem)}", red=True)

    def pytest_keyboard_interrupt(self) -> None:
        """Shut down gracefully, and end the workers: pytest-xdist would let their tests run for five seconds.

        Not by a signal to their processes: Ctrl-C sends them one at the same time, and of two signals in succession
        their main threads may notice neither.
        """
        self._signals.close()
        for channel in self._channels.values():
            channel.send(Interrupt())

    def pytest_unconfigure(self) -> None:
        """Stop the local service, after the workers."""
        self._signals.restore()
        if self._service is not None:
            self._service.close()


def _is_here(node: Worker) -> bool:
    """Return whether a worker runs on this machine, according to its spec."""
    spec = node.gateway.spec
    return bool(spec.popen) and not spec.via

"""Runs one pytest process with device tests: what it registers, its start and its end."""

import os
import sys
from collections.abc import Generator, Sequence

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.connection import Connection
from pytest_device.plugin.device_tests import DeviceTests
from pytest_device.plugin.grouping import Grouping, needless_starts
from pytest_device.plugin.markers import SessionNaming
from pytest_device.plugin.options import usage_error, will_run
from pytest_device.plugin.output.carriers import DeviceCarriers
from pytest_device.plugin.output.ci_report import report_to_ci
from pytest_device.plugin.output.device_report import record_tests
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.outcomes import Outcomes, watch_outcomes
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.terminal import Pause, Terminal
from pytest_device.plugin.output.trace import DeviceTraces
from pytest_device.plugin.output.video import DeviceVideos
from pytest_device.plugin.provider.devices import CURRENT_DEVICES, Devices
from pytest_device.plugin.retries import InfrastructureRetries
from pytest_device.plugin.signals import GracefulShutdown
from pytest_device.plugin.state import RUN, note_end
from pytest_device.plugin.xdist.worker import WorkerLink, WorkerLookahead
from pytest_device.sessions.breaker import Breaker
from pytest_device.sessions.runs import new_run
from pytest_device.settings import Settings


class DeviceRun:
    """Registered as a plugin only in a process that has device tests to run."""

    def __init__(
        self, config: pytest.Config, settings: Settings, grouping: Grouping
    ) -> None:
        self.settings = settings
        self._config = config
        self._pid = os.getpid()
        self.name: str = getattr(config, "workerinput", {}).get(RUN) or new_run()
        self.names = SessionNaming(os.environ, self.name[:8])
        self._redactor = redactor_of(config)
        is_worker = hasattr(config, "workerinput")
        self._terminal = None if is_worker else Terminal(config)
        self._link = WorkerLink.of(config) if is_worker else None
        self._pause = Pause(config, self._terminal)
        self._log = EventLog(config, self._redactor, self._terminal, self._link)
        self._connection = Connection(
            config, settings, self.name, self.names, self._log, self._terminal
        )
        self._signals = GracefulShutdown(self._connection.on_termination)
        self._lookahead: WorkerLookahead | None = None
        self._grouping = grouping
        self._ordered: Sequence[pytest.Item] = ()

    def missing(self) -> list[str]:
        """Return the settings that the tests need and that are missing."""
        attended = self.settings.keep_on_failure and self._pause.is_possible()
        return list(self.settings.service_problems(attended=attended))

    def note(self, text: str) -> None:
        """Add a note on the whole run to its receipt."""
        self._log.note(text)

    def register(self, ordered: Sequence[pytest.Item]) -> None:
        """Register for the run; ``ordered`` are the tests, empty if another plugin ordered them."""
        self._ordered = ordered
        self._config.pluginmanager.register(self, "device-run")

        if self._terminal:
            self._config.pluginmanager.register(self._terminal, "device-terminal")
            watch_outcomes(self._config, self._terminal)

            if will_run(self._config):
                record_tests(self._config, self.settings, self._terminal)
                report_to_ci(self._config, self.settings, self._terminal)

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist reports the end of collection
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send this worker's requirements to the coordinator, which from then on reports the tests that it assigns.

        Without a coordinator, the tests run in this order: note what it costs.
        """
        if self._link is None:
            if will_run(self._config):
                self._note_needless_starts(session.items)
            return

        # Else --ff or another plugin.
        may_order = bool(self._ordered) and _is_in_order(session.items, self._ordered)
        plan = self._grouping.plan(session.items, may_order=may_order)
        self._lookahead = self._link.lookahead(
            session.items,
            self.settings,
            on_interrupt=self._signals.interrupt,
        )
        self._link.send_plan(plan)

    def _note_needless_starts(self, items: Sequence[pytest.Item]) -> None:
        or_remove = ""
        if not self.settings.reorder:
            or_remove = f", or remove {self.settings.source('reorder')}"

        for line in needless_starts(items):
            self.note(f"{line}{or_remove}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Open the connection to the service."""
        if not will_run(self._config):
            return

        try:
            self._signals.install()
            breaker: Breaker | None = None
            if self._link:
                breaker = self._link.breaker
            elif self._terminal:
                breaker = self._terminal.new_breaker()

            devices = self._connection.open(
                session.items, self._lookahead, self._pause, breaker
            )
        except ConfigError as error:
            raise usage_error(error.problems) from None

        _exempt_from_pyfakefs()
        self._config.stash[CURRENT_DEVICES] = devices
        self._register_tests(devices)

    def _register_tests(self, devices: Devices) -> None:
        """Register what takes part in each test, in this order: each completes the reports of those before it.

        Now, after the hooks of all others, also those of directories that were collected: theirs lie within.
        """
        tests = DeviceTests(
            self._config,
            devices,
            self._log,
            self._redactor,
            self._pause,
            self._signals,
        )
        self._config.pluginmanager.register(tests, "device-tests")

        traces = DeviceTraces(self._config, self._log)
        if self._terminal:
            traces.finish_left_over()

        self._config.pluginmanager.register(traces, "device-traces")

        if self.settings.video != "off":
            videos = DeviceVideos(self.settings, self._log)
            self._config.pluginmanager.register(videos, "device-videos")

        carriers = DeviceCarriers(self._config, self.settings, self._log.call_hook)
        self._config.pluginmanager.register(carriers, "device-carriers")

        if self.settings.retry_infrastructure:
            retries = InfrastructureRetries(devices)
            self._config.pluginmanager.register(retries, "device-retries")

        self._config.pluginmanager.register(Outcomes(), "device-outcomes")

    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Shut down gracefully."""
        note_end(self._config, excinfo)
        self._signals.close()

    # After pytest's teardown, even if it was interrupted or failed.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Stop the remaining sessions."""
        try:
            yield
        except KeyboardInterrupt:
            # Nothing else catches it here, and the summary of the run would be lost.
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        finally:
            # Otherwise a forked child that runs to the end: its parent reconciles.
            if os.getpid() == self._pid:
                self._finish(session)

    def _finish(self, session: pytest.Session) -> None:
        # From here on, an interrupt would lose the summary of the run, and with --device-no-reaper its sessions.
        self._signals.close()

        self._set_exit_status(session)
        self._connection.close(session, self._signals)
        # Again: a signal may have arrived meanwhile.
        self._set_exit_status(session)

    def _set_exit_status(self, session: pytest.Session) -> None:
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status

    def pytest_unconfigure(self) -> None:
        """Restore the signal handlers."""
        self._signals.restore()


def _is_in_order(items: Sequence[pytest.Item], ordered: Sequence[pytest.Item]) -> bool:
    """Return whether tests are in the same order as before, except for removed ones."""
    if items == ordered:  # much faster, and nearly always true
        return True
    earlier_index = {item: index for index, item in enumerate(ordered)}
    indexes = [earlier_index.get(item, -1) for item in items]
    return indexes == sorted(indexes)


def _exempt_from_pyfakefs() -> None:
    """Let this package write its ledger and artifacts to the real disk while a test fakes the file system."""
    pyfakefs = sys.modules.get("pyfakefs.fake_filesystem_unittest")
    if pyfakefs is None:
        return

    own_modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("pytest_device")
    ]
    pyfakefs.Patcher.SKIPMODULES.update(own_modules)

"""Runs one pytest process with device tests: connection, tests, end."""

import os
import sys
from collections.abc import Generator, Sequence

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.grouping import Grouping
from pytest_device.plugin.options import is_dry_run, usage_error, will_run
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.pause import Pause
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.terminal import Terminal
from pytest_device.plugin.protocol import DeviceTests
from pytest_device.plugin.provider.connection import Connection
from pytest_device.plugin.provider.devices import CURRENT_DEVICES
from pytest_device.plugin.signals import GracefulShutdown
from pytest_device.plugin.state import RUN
from pytest_device.plugin.xdist.worker import WorkerLink, WorkerLookahead
from pytest_device.sessions.runs import new_run
from pytest_device.settings import Settings

_PLUGINS = ("device-run", "device-tests", "device-terminal")


class DeviceRun:
    """Registered as a plugin only in a process that has device tests to run."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self._config = config
        self._pid = os.getpid()
        self.name: str = getattr(config, "workerinput", {}).get(RUN) or new_run()
        self._redactor = redactor_of(config)
        self._terminal = None if hasattr(config, "workerinput") else Terminal(config)
        self._pause = Pause(config, self._terminal)
        self._link = WorkerLink.of(config)
        self._log = EventLog(config, self._redactor, self._terminal, self._link)
        self._connection = Connection(
            config, settings, self.name, self._log, self._terminal
        )
        self._signals = GracefulShutdown(self._connection.on_termination)
        self._lookahead: WorkerLookahead | None = None
        self._grouping = Grouping()
        self._ordered: Sequence[pytest.Item] = ()

    def missing(self) -> list[str]:
        """Return the missing settings that the tests need."""
        if not will_run(self._config) or is_dry_run(self._config):
            return []
        attended = self.settings.keep_on_failure and self._pause.is_possible()
        return list(self.settings.service_problems(attended=attended))

    def register(self, ordered: Sequence[pytest.Item], grouping: Grouping) -> None:
        """Register for the run; ``ordered`` are the tests, empty if another plugin ordered them.

        Ends an earlier run in this process (``--looponfail``).
        """
        self._grouping = grouping
        self._ordered = ordered
        for name in _PLUGINS:
            if self._config.pluginmanager.has_plugin(name):
                self._config.pluginmanager.unregister(name=name)
        self._config.pluginmanager.register(self, "device-run")
        if self._terminal:
            self._config.pluginmanager.register(self._terminal, "device-terminal")

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist reports the end of collection
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send this worker's requirements to the coordinator, which from then on reports the tests that it assigns."""
        if self._link is None:
            return
        may_order = bool(self._ordered) and _is_in_order(
            session.items, self._ordered
        )  # else --ff or another plugin
        plan = self._grouping.plan(session.items, may_order=may_order)
        self._lookahead = self._link.lookahead(
            session.items, self._grouping.needs, self.settings
        )
        self._link.send_plan(plan)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Open the connection to the service."""
        if not will_run(self._config):
            return
        try:
            self._signals.install()
            judge = self._link.judge if self._link else None
            devices = self._connection.open(
                session.items, self._redactor, self._lookahead, self._pause, judge
            )
        except ConfigError as error:
            raise usage_error(error.problems) from None
        if faked := sys.modules.get(
            "pyfakefs.fake_filesystem_unittest"
        ):  # write ledger and artifacts to the real disk
            ours = [
                module
                for name, module in sys.modules.items()
                if name.startswith("pytest_device")
            ]
            faked.Patcher.SKIPMODULES.update(ours)
        self._config.stash[CURRENT_DEVICES] = devices
        tests = DeviceTests(
            devices, self._log, self._redactor, self._pause, self._signals
        )
        self._config.pluginmanager.register(tests, "device-tests")

    def pytest_keyboard_interrupt(self) -> None:
        """Shut down gracefully."""
        self._signals.close()

    @pytest.hookimpl(
        wrapper=True, trylast=True
    )  # after pytest's teardown, even if it was interrupted or failed
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Stop the remaining sessions."""
        try:
            yield
        finally:
            if (
                os.getpid() == self._pid
            ):  # otherwise a forked child that runs to the end: its parent reconciles
                self._finish(session)

    def _finish(self, session: pytest.Session) -> None:
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status
        self._connection.close(session, by_signal=self._signals.exit_status is not None)

    def pytest_unconfigure(self) -> None:
        """Restore the signal handlers."""
        self._signals.restore()


def _is_in_order(items: Sequence[pytest.Item], ordered: Sequence[pytest.Item]) -> bool:
    """Return whether tests are in the same order as before, except for removed ones."""
    if items == ordered:  # much faster, and nearly always true
        return True
    places = {item: place for place, item in enumerate(ordered)}
    now = [places.get(item, -1) for item in items]
    return now == sorted(now)

"""Wraps each test of a run with devices: releases its devices and completes its report."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pytest

from pytest_device.errors import (
    AgentDeviceError,
    ArgentError,
    ControllerLostError,
    DeviceError,
    NotAttemptedError,
    SessionError,
)
from pytest_device.escape import escaped
from pytest_device.local import log_lines
from pytest_device.plugin.output import artifacts
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.failure import (
    add_section,
    describe,
    message_only,
    represent_briefly,
    shorten,
)
from pytest_device.plugin.output.pause import Pause
from pytest_device.plugin.output.terminal import attach
from pytest_device.plugin.provider.held_drivers import mark_unusable, sessions_of
from pytest_device.plugin.provider.timeouts import TimerNotes
from pytest_device.plugin.signals import GracefulShutdown
from pytest_device.plugin.state import FAILED, PROVIDING, WAITED
from pytest_device.redact import Redactor
from pytest_device.report.verdict import Verdict, verdict_of

if TYPE_CHECKING:
    from pytest_device.plugin.provider.devices import Devices
    from pytest_device.sessions.models import Session

_BLAMED: Final = pytest.StashKey[DeviceError]()
"""A test's infrastructure error that hooks were not notified of yet."""
_HAD: Final = pytest.StashKey[Mapping[str, "Session"]]()
"""The sessions that a test had until its teardown."""
_REFUSALS: Final = (AgentDeviceError, ArgentError)
"""A controller's refusal of a call by the suite, in a fixture or a test: the suite's own error."""


class DeviceTests(TimerNotes):
    """Registered as a plugin while a process runs tests with ``devices``."""

    def __init__(
        self,
        devices: "Devices",
        log: EventLog,
        redactor: Redactor,
        pause: Pause,
        signals: GracefulShutdown,
    ) -> None:
        self.devices = devices
        self._settings = devices.settings
        self._log, self._redactor, self._pause, self._signals = (
            log,
            redactor,
            pause,
            signals,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Set the current test, and start booting devices for later tests."""
        self._log.item = self.devices.item = item
        self.devices.look_ahead(item)

    @pytest.hookimpl(tryfirst=True)  # before pytest sets up
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Resume a driver of a wider scope, or request a new one."""
        self.devices.resume(item)

    @pytest.hookimpl(
        wrapper=True, trylast=True
    )  # around teardown, inside of capturing and logging
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Release the test's sessions after teardown of all fixtures that use them."""
        try:
            result = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise  # the end of the run stops the remaining sessions
        except BaseException as error:  # including what pytest.fail() raises
            item.stash[FAILED] = True
            try:
                self._release(item, nextitem)
            except DeviceError as failure:
                error.add_note(str(failure))
            raise
        self._release(item, nextitem)
        return result

    def _release(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        sessions = item.stash[_HAD] = self.devices.sessions(item)
        try:
            self.devices.release(item, nextitem)
        except DeviceError as error:
            if verdict_of(error) is Verdict.INFRASTRUCTURE:
                item.stash[_BLAMED] = error
            raise
        finally:
            self._notify_hooks(item, sessions)

    def _notify_hooks(
        self, item: pytest.Item, sessions: "Mapping[str, Session]"
    ) -> None:
        """Notify hooks of an infrastructure error, once."""
        error = item.stash.get(_BLAMED, None)
        if error is None:
            return
        del item.stash[_BLAMED]
        at_fault = [
            one
            for one in sessions.values()
            if str(one.id) == getattr(error, "session_id", None)
        ]
        session = next(iter([*at_fault, *sessions.values()]), None)
        item.ihook.pytest_device_infrastructure_error(
            item=item, error=error, device_session=session
        )

    @pytest.hookimpl(
        specname="pytest_runtest_makereport"
    )  # after pytest's own, which sets the error of unittest
    def pytest_runtest_shorten_error(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> None:
        """Leave out the frames of an error that don't help users, before pytest represents it."""
        if call.excinfo is None:
            return
        error = _device_error(item, call)
        if call.excinfo.value is error and not isinstance(error, ControllerLostError):
            represent_briefly(call.excinfo)  # it is reported as its message
        elif not item.config.getoption(
            "fulltrace", default=False
        ):  # which -p no:terminal removes
            shorten(call.excinfo)

    @pytest.hookimpl(wrapper=True)  # around plugins that handle expected failures
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark errors that are not the test's fault, and add details of the devices."""
        report = yield
        error, directory = _device_error(item, call), None
        item.stash[FAILED] = report.failed or (
            report.when != "setup" and item.stash.get(FAILED, False)
        )
        if report.failed and call.excinfo and call.when != "teardown":
            directory = artifacts.save(
                item,
                self.devices.sessions(item),
                self._settings,
                self._redactor,
                self._log,
            )
            error = self._look_up(item, report, call.excinfo.value, error)
        verdict = (
            self._blame(item, report, call.excinfo, error)
            if error and call.excinfo
            else None
        )
        if report.failed and not isinstance(error, NotAttemptedError):
            self._add_devices(item, report, error, directory)
        cause = (
            self._redactor.text(error.cause)
            if isinstance(error, NotAttemptedError)
            else ""
        )
        attach(
            report,
            self._log.take(),
            verdict,
            cause=cause,
            waited=item.stash.get(WAITED, 0.0),
        )
        item.stash[WAITED] = 0.0
        if (
            self._signals.exit_status is not None
        ):  # still running: the test caught the KeyboardInterrupt
            item.session.shouldstop = "terminated by a signal"
        return report

    def _look_up(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        raised: BaseException,
        error: DeviceError | None,
    ) -> DeviceError | None:
        """Check the sessions of a failed test; return the error that caused the failure."""
        problem = self.devices.failure_cause(item, raised)
        if problem is None or (error and not isinstance(error, ControllerLostError)):
            return error
        report.sections.append(("Error in the test", str(report.longrepr)))
        return problem

    def _blame(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        excinfo: pytest.ExceptionInfo[BaseException],
        error: DeviceError,
    ) -> Verdict:
        """Report an error that is not the test's own; return its verdict."""
        verdict = verdict_of(error)
        if error not in getattr(
            excinfo.value, "exceptions", ()
        ):  # a group shows each of its errors
            text = "\n".join([f"{verdict}: {error}", *getattr(error, "__notes__", [])])
            report.longrepr = message_only(excinfo, self._redactor.text(text))
        if verdict is Verdict.INFRASTRUCTURE:
            if report.when != "teardown":
                item.stash[_BLAMED] = error
            if not (
                isinstance(error, SessionError) and error.reason
            ):  # the message lacks the reason
                self._add_log(item, report)
        return verdict

    def pytest_runtest_logfinish(self) -> None:
        """Collect the results of forked children."""
        self.devices.children.learn()

    def _add_devices(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        error: DeviceError | None,
        directory: Path | None,
    ) -> None:
        page = error.url if isinstance(error, SessionError) else None
        is_local = self.devices.backend.log_path is not None
        now = self.devices.sessions(item)
        sessions = item.stash.get(_HAD, now) if report.when == "teardown" else now
        text = describe(
            item, sessions, page=page, directory=directory, has_pages=not is_local
        )
        if text:
            add_section(report, "device", self._redactor.text(escaped(text)))

    def _add_log(self, item: pytest.Item, report: pytest.TestReport) -> None:
        log_path = self.devices.backend.log_path
        ids = self._log.session_ids() | {
            str(one.id) for one in self.devices.sessions(item).values()
        }
        if log_path and (lines := log_lines(log_path, ids)):
            report.sections.append(
                ("Captured local device service log", escaped(lines))
            )

    @pytest.hookimpl(tryfirst=True)  # before pytest's debugger takes over
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Show the user where to find the device of a failed test, and wait if requested."""
        if not isinstance(node, pytest.Item) or not (
            sessions := self.devices.sessions(node)
        ):
            return
        if self._pause.offer(sessions, keep=self._settings.keep_on_failure):
            mark_unusable(sessions_of(node))  # the user may have changed the device


def _device_error(item: pytest.Item, call: pytest.CallInfo[None]) -> DeviceError | None:
    """Return the error of providing a device, also from an exception group; the test's own errors are the test's."""
    if call.excinfo is None:
        return None
    error: object = call.excinfo.value
    provided = item.stash.get(PROVIDING, None)
    if call.when == "call":
        return (
            error
            if isinstance(error, ControllerLostError)
            else provided
            if error is provided
            else None
        )
    errors: list[object] = [error]
    if isinstance(error, BaseExceptionGroup):
        errors += cast("BaseExceptionGroup[BaseException]", error).exceptions
    met = (one for one in errors if isinstance(one, DeviceError))
    return next(
        (one for one in met if one is provided or not isinstance(one, _REFUSALS)), None
    )

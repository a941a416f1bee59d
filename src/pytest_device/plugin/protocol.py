"""What happens around each test of a run with devices: its devices are given back, its report says what it met."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from pytest_device.errors import AgentDeviceError, ArgentError, ControllerLostError, DeviceError
from pytest_device.local import log_lines
from pytest_device.plugin.output import artifacts
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.pause import Pause
from pytest_device.plugin.output.terminal import attach
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.state import FAILED, PROVIDING, WAITED
from pytest_device.redact import Redactor
from pytest_device.report.verdict import Verdict, verdict_of

if TYPE_CHECKING:
    from pytest_device.plugin.provider.devices import Devices
    from pytest_device.sessions.models import Session

_BLAMED: Final = pytest.StashKey[DeviceError]()
"""An error of the infrastructure that a test has met and that no hook was notified of yet."""
_REFUSALS: Final = (AgentDeviceError, ArgentError)
"""What a controller says of what a suite asked of it, in a fixture as in a test: its own affair."""


class DeviceTests:
    """Registered as a plugin while a process runs tests with ``devices``."""

    def __init__(
        self, devices: "Devices", log: EventLog, redactor: Redactor, pause: Pause, signals: EndInOrder
    ) -> None:
        self.devices = devices
        self._settings = devices.settings
        self._log, self._redactor, self._pause, self._signals = log, redactor, pause, signals

    def keeps(self, item: pytest.Item) -> bool:
        """Return whether the sessions of a test are to be left running because it failed."""
        return self._settings.keep_on_failure and item.stash.get(FAILED, False) and not self._pause.is_possible()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Remember which test is at hand, and let the devices of others boot beside it."""
        self._log.item = self.devices.item = item
        self.devices.look_ahead(item)

    @pytest.hookimpl(wrapper=True, trylast=True)  # around what tears down, within what captures and logs
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Give the test's sessions back when all that used them has been torn down."""
        with self._given_back(item, nextitem):
            return (yield)

    @contextmanager
    def _given_back(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
        try:
            yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise  # the end of the run stops what is left
        except BaseException as error:  # also what pytest.fail() raises
            item.stash[FAILED] = True
            try:
                self._give_back(item, nextitem)
            except DeviceError as failure:
                error.add_note(str(failure))
            raise
        self._give_back(item, nextitem)

    def _give_back(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        sessions = self.devices.taken(item)
        try:
            self.devices.release(item, nextitem, keep=self.keeps(item))
        except DeviceError as error:
            item.stash[_BLAMED] = error
            raise
        finally:
            self._notify_hooks(item, sessions)

    def _notify_hooks(self, item: pytest.Item, sessions: "Mapping[str, Session]") -> None:
        """Let hooks know of an error of the infrastructure, once."""
        error = item.stash.get(_BLAMED, None)
        if error is None:
            return
        del item.stash[_BLAMED]
        if verdict_of(error) is Verdict.INFRASTRUCTURE:
            at_fault = [one for one in sessions.values() if str(one.id) == getattr(error, "session_id", None)]
            session = next(iter([*at_fault, *sessions.values()]), None)
            item.ihook.pytest_device_infrastructure_error(item=item, error=error, device_session=session)

    @pytest.hookimpl(wrapper=True)  # around what makes expected failures of some
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say plainly what is not the test's fault, and add what the local service logged."""
        report = yield
        item.stash[FAILED] = report.failed or (report.when != "setup" and item.stash.get(FAILED, False))
        error, verdict = _device_error(item, call), None
        if report.failed and call.excinfo and call.when != "teardown":
            artifacts.save(item, self.devices.taken(item), self._settings, self._redactor, self._log)
            error = self._look_up(item, report, call.excinfo, error)
        if error and call.excinfo:
            verdict = verdict_of(error)
            if call.when != "teardown":
                item.stash[_BLAMED] = error
            if call.excinfo.value is error:
                notes = getattr(error, "__notes__", [])
                report.longrepr = self._plain(call.excinfo, "\n".join([f"{verdict}: {error}", *notes]))
            self._add_log(item, report)
        attach(report, self._log.take(), verdict, waited=item.stash.get(WAITED, 0.0))
        item.stash[WAITED] = 0.0
        if self._signals.exit_status is not None:  # and yet here: the test has caught what should have ended the run
            item.session.shouldstop = "terminated by a signal"
        return report

    def _look_up(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        excinfo: pytest.ExceptionInfo[BaseException],
        error: DeviceError | None,
    ) -> DeviceError | None:
        """Look at the sessions of a test that failed; return what is to blame if it is not the test."""
        problem = self.devices.loss(item, excinfo.value)
        if problem is None or (error and not isinstance(error, ControllerLostError)):
            return error
        report.sections.append(("Error in the test", str(report.longrepr)))
        report.longrepr = self._plain(excinfo, f"{Verdict.INFRASTRUCTURE}: {problem}")
        return problem

    def _plain(self, error: pytest.ExceptionInfo[BaseException], message: str) -> Any:
        """Return the error as its message alone: a traceback through the plugin would say nothing to a user."""
        message = self._redactor.text(message)
        shown = error.getrepr(style="value", chain=False)
        if shown.reprcrash:
            shown.reprcrash.message = message
        shown.reprtraceback.reprentries[0].lines = message.splitlines()
        return shown

    def _add_log(self, item: pytest.Item, report: pytest.TestReport) -> None:
        log_path = self.devices.backend.log_path
        ids = self._log.session_ids() | {str(one.id) for one in self.devices.taken(item).values()}
        if log_path and (lines := log_lines(log_path, ids)):
            report.sections.append(("Captured local device service log", lines))

    @pytest.hookimpl(tryfirst=True)  # before pytest's debugger takes over
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Show a person where the device of a failed test is, and wait for them when asked to."""
        if not isinstance(node, pytest.Item) or not (taken := self.devices.taken(node)):
            return
        if self._pause.offer(taken, keep=self._settings.keep_on_failure):
            self.devices.spend(node)  # whoever looked at it may have left anything behind


def _device_error(item: pytest.Item, call: pytest.CallInfo[None]) -> DeviceError | None:
    """Return the error of providing a device, also from among several; what the test itself raises is the test's."""
    if call.excinfo is None:
        return None
    error: object = call.excinfo.value
    provided = item.stash.get(PROVIDING, None)
    if call.when == "call":
        return error if isinstance(error, ControllerLostError) else provided if error is provided else None
    errors: list[object] = [error]
    if isinstance(error, BaseExceptionGroup):
        errors += cast("BaseExceptionGroup[BaseException]", error).exceptions
    met = (one for one in errors if isinstance(one, DeviceError))
    return next((one for one in met if one is provided or not isinstance(one, _REFUSALS)), None)

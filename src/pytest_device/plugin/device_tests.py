"""What happens around each test of a run with devices."""

from collections.abc import Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pytest

from pytest_device.errors import (
    AgentDeviceError,
    AppError,
    ArgentError,
    ControllerLostError,
    DeviceError,
    NotAttemptedError,
    SessionError,
    StatusError,
)
from pytest_device.escape import escaped
from pytest_device.local import log_lines, session_record
from pytest_device.plugin.limits import end_of_session
from pytest_device.plugin.output.carriers import note_devices
from pytest_device.plugin.output.device_report import describe_test
from pytest_device.plugin.output.event_log import EventLog
from pytest_device.plugin.output.evidence import Evidence, EvidenceTaker
from pytest_device.plugin.output.failure import (
    add_section,
    describe,
    message_only,
    place_of,
    represent_briefly,
    shorten,
    shows_all_frames,
)
from pytest_device.plugin.output.recording import silent_seconds
from pytest_device.plugin.output.terminal import (
    VERDICT_OF_SUBTESTS,
    Pause,
    attach,
    error_of,
    first_line,
)
from pytest_device.plugin.provider.acquired import Sessions, sessions_of
from pytest_device.plugin.provider.devices import Devices
from pytest_device.plugin.provider.timeouts import TimerNotes
from pytest_device.plugin.signals import TERMINATED, GracefulShutdown
from pytest_device.plugin.state import (
    ARGUMENTS,
    FAILED,
    PROVIDING,
    WAITED,
    requirements_of,
)
from pytest_device.redact import Redactor
from pytest_device.report.verdict import verdict_of
from pytest_device.verdict import Verdict

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session

_SESSIONS_BEFORE_TEARDOWN: Final = pytest.StashKey[Mapping[str, "Session"]]()
"""The sessions that a test had until its teardown."""
_FAULT: Final = pytest.StashKey[DeviceError]()
"""Why a test lost its device in the current attempt; what fails afterwards is not the test's own either."""
_SUBTESTS: Final = pytest.StashKey[list[Verdict | None]]()
"""The verdicts on the failed subtests of a test in the current attempt, None for a failure of their own."""
_REFUSALS: Final = (AgentDeviceError, ArgentError)
"""A controller's refusal of a call by the suite, in a fixture or a test: the suite's own error."""


@dataclass(slots=True)
class _Phase:
    """A phase of a test until its outcome is final.

    ``had_failed`` says whether an earlier one of the attempt failed, ``is_read`` whether the devices were read.
    """

    report: pytest.TestReport
    excinfo: pytest.ExceptionInfo[BaseException] | None = None
    had_failed: bool = False
    is_read: bool = False
    evidence: Evidence | None = None
    is_decided: bool = False

    @property
    def has_failed(self) -> bool:
        return self.report.failed or self.had_failed

    @property
    def error(self) -> BaseException | None:
        """What the phase raised; the error of a report that a hook made a failure, None without one."""
        if self.excinfo:
            return self.excinfo.value
        if self.report.failed:
            return error_of(self.report)
        return None


_PHASE: Final = pytest.StashKey[_Phase]()
"""The current or last phase of a test."""


class DeviceTests(TimerNotes):
    """Registered as a plugin while a process runs tests with ``devices``."""

    def __init__(
        self,
        config: pytest.Config,
        devices: Devices,
        log: EventLog,
        redactor: Redactor,
        pause: Pause,
        signals: GracefulShutdown,
    ) -> None:
        self.devices = devices
        self._settings = devices.settings
        self._log = log
        self._redactor = redactor
        self._pause = pause
        self._signals = signals
        self._evidence = EvidenceTaker(
            config,
            devices.settings,
            log,
            session_record if devices.backend.log_path else None,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Set the current test, and start booting devices for later tests."""
        self._log.item = item
        self.devices.item = item
        self.devices.look_ahead(item)

    @pytest.hookimpl(tryfirst=True)  # before pytest sets up
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Resume a driver of a wider scope, or request a new one."""
        self.devices.resume(item)

    # Within the trace's step for the test.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Read the devices of a failed method of unittest before its ``tearDown``; collect the verdicts on subtests."""
        item.stash[_SUBTESTS] = []
        try:
            with self._evidence.before_tear_down(
                item, lambda: self.devices.sessions(item)
            ):
                return (yield)
        except BaseException as error:
            self._evidence.note_raised(item, error)
            raise

    # Around teardown, inside of capturing and logging.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Release the test's sessions after teardown of all fixtures that use them."""
        item.stash[_SESSIONS_BEFORE_TEARDOWN] = self.devices.sessions(item)
        held = sessions_of(item)
        self._evidence.begin_teardown(item)
        try:
            result = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise  # the end of the run stops the remaining sessions
        except BaseException as error:  # including what pytest.fail() raises
            item.stash[FAILED] = True
            self._find_fault(item, held, error)
            try:
                self.devices.release(item, nextitem)
            except DeviceError as failure:
                error.add_note(str(failure))

            raise

        self.devices.release(item, nextitem)
        return result

    def _find_fault(
        self, item: pytest.Item, held: Sessions, error: BaseException
    ) -> None:
        """Check the sessions of a test whose teardown failed, unless one is known to be lost."""
        if _FAULT in item.stash:
            return

        fault = self._failure_cause(item, held, error)
        if fault is None:
            return

        item.stash[_FAULT] = fault

    def _failure_cause(
        self, item: pytest.Item, sessions: Sessions, error: BaseException
    ) -> DeviceError | None:
        """Return the problem with a session of a failed test, with the limit that may have ended it."""

        def explain_end(name: str, answer: "Session") -> str:
            return end_of_session(
                answer,
                sessions[name].requirement.request,
                silent_seconds(item.config, str(sessions[name].session.id)),
                item.stash.setdefault(ARGUMENTS, {}).get(name, {}),
                self._settings,
            )

        return self.devices.failure_cause(sessions, error, explain_end)

    # After pytest's own, which sets the error of unittest.
    @pytest.hookimpl(specname="pytest_runtest_makereport")
    def pytest_runtest_shorten_error(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> None:
        """Leave out the frames of an error that don't help users, before pytest represents it."""
        if call.excinfo is None:
            return

        error = _device_error(item, str(call.when), call.excinfo)
        if call.excinfo.value is error and not isinstance(error, ControllerLostError):
            represent_briefly(call.excinfo)  # it is reported as its message
        elif not shows_all_frames(item.config):
            shorten(call.excinfo)

    @pytest.hookimpl(wrapper=True)  # around plugins that handle expected failures
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Read the devices at the moment of a failure: what the hooks of others do takes time, and may change them."""
        note_devices(item, self.devices.sessions(item))
        report = yield
        phase = item.stash[_PHASE] = _Phase(
            report, call.excinfo, had_failed=item.stash.get(FAILED, False)
        )
        item.stash[FAILED] = phase.has_failed
        self._read_devices(item, phase)
        return report

    def _read_devices(self, item: pytest.Item, phase: _Phase) -> None:
        """Take evidence of a failure, once, while the test has its devices."""
        if phase.is_read or not phase.report.failed or phase.report.when == "teardown":
            return

        phase.is_read = True
        phase.evidence = self._evidence.take(item, self.devices.sessions(item))

    # Around the hooks of all others, which may change the outcome.
    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_makereport")
    def pytest_runtest_decide(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark errors that are not the test's fault, and add details of the devices."""
        report = yield
        phase = item.stash[_PHASE]
        if phase.is_decided:
            # A plugin has logged it, run the test again, and made it the report of that attempt.
            report = _without_details(report, item)
            phase = item.stash[_PHASE] = _Phase(report)

        phase.report = report
        self._complete(item, phase)
        # Still running: the test caught the KeyboardInterrupt.
        if self._signals.exit_status is not None:
            item.session.shouldstop = TERMINATED

        return report

    def _complete(self, item: pytest.Item, phase: _Phase) -> None:
        """Decide the verdict on a phase, and add all details to its report, whose outcome is final."""
        phase.is_decided = True
        report = phase.report
        item.stash[FAILED] = phase.has_failed

        evidence = self._evidence_of(item, phase)
        # After the evidence, which shows the moment of the failure.
        fault = self._fault_of(item, phase)
        own = _device_error(item, str(report.when), phase.excinfo)
        error = _explained(own, fault)

        verdict: Verdict | None = None
        if phase.error and not report.passed:
            verdict = self._decide(item, phase, phase.error, error)

        directory = self._save_details(item, report, error, verdict, evidence)

        explanation: Sequence[str] = ()
        if evidence and phase.error:
            explanation = self._evidence.write_report(
                item,
                self._reported_sessions(item, report),
                evidence,
                phase.error,
                phase.excinfo.tb if phase.excinfo else None,
                str(report.when),
                error,
                verdict,
            )

        # Its traceback holds the values of all variables.
        phase.excinfo = None

        if report.failed and not isinstance(error, NotAttemptedError):
            self._add_devices(item, report, error, directory, explanation)

        attach(
            report,
            self._log.take(),
            verdict,
            cause=self._cause_of(error),
            waited=item.stash.get(WAITED, 0.0),
            explanation=[self._redactor.text(escaped(line)) for line in explanation],
        )
        self._log.note_made(report)
        _note_subtests(item, report, verdict)

        describe_test(report, item, requirements_of(item).values())

        item.stash[WAITED] = 0.0

    @pytest.hookimpl(optionalhook=True)  # of pytest-assume
    def pytest_assume_fail(self, entry: str) -> None:
        """Take evidence when an assumption fails."""
        self.check_failed(entry)

    def check_failed(self, message: str) -> None:
        """Take evidence when a check fails that does not end its test."""
        item = self.devices.item
        if item is not None:
            self._evidence.take_of_check(item, self.devices.sessions(item), message)

    # Next to the terminal's, which counts the events.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which reports were logged."""
        item = self.devices.item
        phase = item.stash.get(_PHASE, None) if item else None
        # A plugin that repeats a test may log its report before that is handed over.
        if item and phase and phase.report is report and not phase.is_decided:
            self._complete(item, phase)

        self._log.note_logged(report)

    def _evidence_of(self, item: pytest.Item, phase: _Phase) -> Evidence | None:
        """Return what shows why a phase failed; save the logs of a test that did not fail, if its trace is kept, too."""
        report = phase.report
        if not report.failed:
            self._evidence.forget_checks(item)

        if report.when == "teardown":
            return self._evidence.of_check(item)

        self._read_devices(item, phase)

        if self._settings.trace == "on" and report.when == "call" and not report.failed:
            self._evidence.save_logs(item, self.devices.sessions(item))

        return phase.evidence

    def _fault_of(self, item: pytest.Item, phase: _Phase) -> DeviceError | None:
        """Return the fault of a session or its app that explains a failure, None without one."""
        if phase.report.when == "teardown":
            fault = item.stash.get(_FAULT, None)
            if fault:
                del item.stash[_FAULT]
            return fault if phase.error else None

        if not (phase.report.failed and phase.error):
            return None

        fault = self._failure_cause(item, sessions_of(item), phase.error)
        # The next commands of an app that crashed fail for reasons of their own.
        if fault and not isinstance(fault, AppError):
            item.stash[_FAULT] = fault

        return fault

    def _cause_of(self, error: DeviceError | None) -> str:
        """Return the earlier error because of which a test was not attempted, empty if it was."""
        if isinstance(error, NotAttemptedError):
            return self._redactor.text(error.cause)
        return ""

    def _decide(
        self,
        item: pytest.Item,
        phase: _Phase,
        raised: BaseException,
        error: DeviceError | None,
    ) -> Verdict | None:
        """Return the verdict on an error, None if it is the test's own; notify hooks if the test has devices."""
        verdict: Verdict | None = None
        if error:
            verdict = self._report_error(item, phase, raised, error)

        if phase.report.failed and requirements_of(item):
            self._log.call_hook(
                item.ihook.pytest_device_verdict,
                item=item,
                when=phase.report.when,
                verdict=verdict,
                error=error or raised,
            )

        return verdict

    def _report_error(
        self,
        item: pytest.Item,
        phase: _Phase,
        raised: BaseException,
        error: DeviceError,
    ) -> Verdict:
        """Report an error that is not the test's own; return its verdict."""
        verdict = verdict_of(error)
        # A group shows each of its errors.
        if error not in getattr(raised, "exceptions", ()):
            text = "\n".join([f"{verdict}: {error}", *getattr(error, "__notes__", [])])
            self._replace_text(item, phase, self._redactor.text(text), error)

        return verdict

    def _replace_text(
        self,
        item: pytest.Item,
        phase: _Phase,
        text: str,
        error: DeviceError,
    ) -> None:
        """Report an error as a text, with the test's own error below, if that is another, or with the test's line."""
        report = phase.report
        excinfo = phase.excinfo
        if excinfo is None:
            below = str(report.longrepr)
            report.longrepr = text
            add_section(report, "Error in the test", below)
            return

        is_lost = isinstance(excinfo.value, ControllerLostError)
        if error is not excinfo.value or (is_lost and shows_all_frames(item.config)):
            below = str(report.longrepr)
            report.longrepr = message_only(excinfo, text)
            add_section(report, "Error in the test", below)
        else:
            failing_line = place_of(excinfo, item.config)
            report.longrepr = message_only(excinfo, text, failing_line)

    def _save_details(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        error: DeviceError | None,
        verdict: Verdict | None,
        evidence: Evidence | None,
    ) -> Path | None:
        """Save what would be too long for the message of an infrastructure error; return the test's directory."""
        if not report.failed or (report.when == "teardown" and evidence is None):
            return None

        files = _reason_file(error)
        page = error.url if isinstance(error, SessionError) else None
        service_log = ""
        if verdict is Verdict.INFRASTRUCTURE:
            service_log = self._service_log(item)
        if service_log:
            files["service.log"] = service_log

        if evidence is None:
            evidence = self._evidence.save_without_devices(item, files, page)
        else:
            self._evidence.add_files(evidence, files)

        # Where nothing can be written, the report is the only place for it.
        if evidence is None and service_log:
            report.sections.append(("Captured local device service log", service_log))

        return evidence.directory if evidence else None

    def _add_devices(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        error: DeviceError | None,
        directory: Path | None,
        explanation: Sequence[str],
    ) -> None:
        page = error.url if isinstance(error, SessionError) else None
        is_local = self.devices.backend.log_path is not None
        text = describe(
            item,
            self._reported_sessions(item, report),
            page=page,
            directory=directory,
            has_pages=not is_local,
            explanation=explanation,
        )
        if text:
            add_section(report, "device", self._redactor.text(escaped(text)))

    def _reported_sessions(
        self, item: pytest.Item, report: pytest.TestReport
    ) -> "Mapping[str, Session]":
        """Return the sessions of a test; after its teardown, those that it had until then."""
        sessions = self.devices.sessions(item)
        return (
            item.stash.get(_SESSIONS_BEFORE_TEARDOWN, sessions)
            if report.when == "teardown"
            else sessions
        )

    def _service_log(self, item: pytest.Item) -> str:
        """Return what the local service logged about the test's sessions, empty for any other service."""
        log_path = self.devices.backend.log_path
        if log_path is None:
            return ""

        session_ids = {
            str(session.id) for session in self.devices.sessions(item).values()
        }
        return escaped(log_lines(log_path, self._log.session_ids() | session_ids))

    @pytest.hookimpl(tryfirst=True)  # before pytest's debugger takes over
    def pytest_exception_interact(
        self,
        node: pytest.Item | pytest.Collector,
        report: pytest.TestReport | pytest.CollectReport,
    ) -> None:
        """Show the user which test failed and where to find its device, and wait if requested."""
        if not isinstance(node, pytest.Item):
            return

        sessions = self.devices.sessions(node)
        if not sessions:
            return

        failure = f"{node.nodeid}: {self._redactor.text(first_line(report))}"
        if self._pause.offer(failure, sessions, keep=self._settings.keep_on_failure):
            # The user may have changed the device.
            self.devices.mark_unusable(sessions_of(node))


def _note_subtests(
    item: pytest.Item, report: pytest.TestReport, verdict: Verdict | None
) -> None:
    """Note the verdict on a failed subtest; on a test without a failure of its own, that of all of its failed subtests.

    pytest fails such a test only when it shows the report, and has no other sign of the subtests in it.
    """
    if report.when != "call":
        return

    verdicts = item.stash.get(_SUBTESTS, [])
    if report.failed:
        verdicts.append(verdict)
    elif verdicts and all(verdicts):
        vars(report)[VERDICT_OF_SUBTESTS] = str(verdicts[0])


def _explained(
    error: DeviceError | None, fault: DeviceError | None
) -> DeviceError | None:
    """Return what caused a failure: the fault of its session, unless an error of the plugin says more than that it is lost."""
    if fault is None or (error and not isinstance(error, ControllerLostError)):
        return error
    return fault


def _reason_file(error: DeviceError | None) -> dict[str, str]:
    """Return what a service said about an error and its message leaves out, as a file by its name."""
    if isinstance(error, SessionError) and error.explanation not in ("", error.reason):
        return {"reason.txt": error.explanation}
    if isinstance(error, StatusError) and error.detail not in str(error):
        return {"reason.txt": error.detail}
    return {}


def _without_details(report: pytest.TestReport, item: pytest.Item) -> pytest.TestReport:
    """Return a copy of a report without what this plugin has attached to it."""
    plain = copy(report)
    for name in vars(report):
        if name.startswith("device_"):
            delattr(plain, name)

    plain.user_properties = list(item.user_properties)
    return plain


def _device_error(
    item: pytest.Item, when: str, excinfo: pytest.ExceptionInfo[BaseException] | None
) -> DeviceError | None:
    """Return the error of providing a device, also from an exception group; the test's own errors are the test's."""
    if excinfo is None:
        return None

    error: object = excinfo.value
    provided = item.stash.get(PROVIDING, None)
    if when == "call":
        if isinstance(error, ControllerLostError):
            return error
        return provided if error is provided else None

    errors: list[object] = [error]
    if isinstance(error, BaseExceptionGroup):
        errors += cast("BaseExceptionGroup[BaseException]", error).exceptions

    for candidate in errors:
        if not isinstance(candidate, DeviceError):
            continue
        if candidate is provided or not isinstance(candidate, _REFUSALS):
            return candidate

    return None

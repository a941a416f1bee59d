"""The terminal: lines while devices start and stop, the pause after a failure, and the receipt at the end."""

import io
import os
import select
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, TextIO

import pytest

from pytest_device.escape import escaped
from pytest_device.platforms import SYSTEM
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.state import SESSION_URL, history_of
from pytest_device.settings import is_in_ci
from pytest_device.verdict import Verdict

# A distributed run without devices has a terminal, too, but no events.
if TYPE_CHECKING:
    from pytest_device.report.fold import Entry, Fold
    from pytest_device.report.receipt import Line, Receipt
    from pytest_device.report.run_report import RunReport
    from pytest_device.scheduling.history import History
    from pytest_device.sessions.breaker import RunBreaker
    from pytest_device.sessions.events import Event
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.reporter import SafetyNet

EVENTS: Final = "device_events"
VERDICT: Final = "device_verdict"
VERDICT_OF_SUBTESTS: Final = "device_verdict_of_subtests"
CAUSE: Final = "device_cause"
WAITED: Final = "device_waited"
EXPLANATION: Final = "device_explanation"
DISCARDED: Final = "device_discarded"
"""Attributes of a test report, which pytest-xdist sends to the coordinator unchanged.

The last has the reports before it that nobody has logged.
"""
RERUN: Final = "rerun"
"""The outcome of a failure that another plugin does not report as one, since it repeats the test."""
_READERS: Final = (
    "device-reports",
    "device-outcome-reporter",
    "device-report",
    "device-ci-report",
)
"""The plugins that are also told of reports that nobody has logged: those that mask or write what the run reports."""
_HIDDEN: Final = "*** (shown on a terminal only)"
"""In place of the URL of a live preview, which is a secret."""


def attach(
    report: pytest.TestReport,
    events: "list[Event]",
    verdict: "Verdict | None",
    *,
    cause: str,
    waited: float,
    explanation: "Sequence[str]" = (),
) -> None:
    """Attach session events to a report, and the verdict on an error that is not the test's own.

    Arguments:
        report: The report of a phase of the test.
        events: What happened to sessions since the last report.
        verdict: The verdict on the error, None for a test's own, or without one.
        cause: The earlier error because of which this test was not attempted, empty if it was.
        waited: For how many seconds the test waited for its device.
        explanation: Lines that the error does not have.
    """
    from pytest_device.sessions.events import to_plain

    # As plain values, in the dictionary: pytest-xdist sends all of that, but no objects.
    vars(report)[WAITED] = waited
    vars(report)[EVENTS] = [to_plain(event) for event in events]

    # Absent rather than empty: other code asks whether a report has them.
    if verdict:
        vars(report)[VERDICT] = verdict.value
    if cause:
        vars(report)[CAUSE] = cause
    if explanation:
        vars(report)[EXPLANATION] = list(explanation)


class Terminal:
    """Shows events; registered in the process that has the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        _escape_unencodable(config)
        self._is_written = False
        self._has_entries = False
        """Whether the receipt may have lines; without, the modules of reports need not be loaded."""
        self.history = history_of(config)
        self._seconds: dict[tuple[str, str], float] = {}
        """Seconds that unfinished tests have taken so far, by worker and node ID."""
        self._missing: set[SafetyNet] = set()
        """The safety nets that the user knows to be missing."""

    def show(self, text: str, color: str = "", *, even_if_quiet: bool = False) -> None:
        """Write one line now, bypassing pytest's capturing; under ``-q`` only if the run waits for the user."""
        with self._reporter(even_if_quiet=even_if_quiet) as reporter:
            if reporter is None:
                return

            _end_line(reporter)
            reporter.write_line(f"  device {escaped(text)}", **_markup(color))
            # A CI log would otherwise show it only after the wait that it is about.
            reporter.flush()

    progress = show

    def warn(self, net: "SafetyNet", text: str) -> None:
        """Show that a safety net is missing: once for all processes of the run, even under ``-q``."""
        if net not in self._missing:
            self._missing.add(net)
            self.show(text, "yellow", even_if_quiet=True)

    def preview(self, label: str, url: str) -> None:
        """Show where to watch a device; files and CI logs don't get the URL."""
        shown = _HIDDEN
        if is_watched(self._config, os.environ):
            shown = url

        self.show(f"{label}: live preview: {shown}", even_if_quiet=True)

    def announce(self, line: str) -> None:
        """Write one line unchanged, even under ``-q``."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            _end_line(reporter)
            reporter.write_line(escaped(line))

    @contextmanager
    def _reporter(self, *, even_if_quiet: bool = False) -> Generator[Any]:
        """Yield the terminal reporter with pytest's capturing disabled; None if nothing should be shown."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or (self._config.get_verbosity() < 0 and not even_if_quiet):
            yield None
            return

        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            yield reporter

    @cached_property
    def receipt(self) -> "Receipt":
        """The receipt of the run so far, made at the first use: a run without devices needs none."""
        from pytest_device.report.receipt import Receipt

        return Receipt(has_pages=not settings_of(self._config).local)

    @cached_property
    def folds(self) -> "list[Fold]":
        """All that is built from the events and incidents of the run: a report format is added here."""
        # The receipt first: the report of the run reads it.
        return [
            self.receipt,
            _BootTimes(self.history),
            self.run_report,
        ]

    @cached_property
    def run_report(self) -> "RunReport":
        """The report of the run so far, made at the first use."""
        from pytest_device.report.run_report import RunReport

        return RunReport(self.receipt, settings_of(self._config))

    def new_breaker(self) -> "RunBreaker":
        """Return the breaker of this run."""
        from pytest_device.plugin.limits import limit_of
        from pytest_device.sessions.breaker import RunBreaker
        from pytest_device.sessions.budget import Budget

        settings = settings_of(self._config)
        budget: Budget | None = None
        if settings.budget_minutes is not None:
            setting = limit_of("budget_minutes", settings.budget_minutes, settings)
            budget = Budget(settings.budget_minutes, time.monotonic, setting)

        return RunBreaker(
            settings.start_attempts,
            time.monotonic,
            interval_seconds=settings.poll_interval_seconds,
            budget=budget,
        )

    @cached_property
    def at_end(self) -> "list[Callable[[], str | None]]":
        """What saves reports when the last session has been reported; each returns a note if it could not."""
        return []

    def show_event(self, event: "Event", worker: str = "") -> None:
        """Write the line for an event if users need it, with the worker's name under pytest-xdist."""
        from pytest_device.report.lines import color_of, line_of, needs_line
        from pytest_device.sessions.events import Note, Queued

        # It is not about this moment: the receipt lists it.
        if isinstance(event, Note):
            return

        usual: float | None = None
        if not isinstance(event, Queued):
            usual = self.history.usual_boot(event.session.label)

        if self._config.get_verbosity() > 0 or needs_line(event, usual):
            self.show(f"{worker} {line_of(event)}".lstrip(), color_of(event))

    def count(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events, as plain values, to all reports."""
        for values in events:
            self.event(_read(values))

    def event(self, event: "Entry") -> None:
        """Add an event or an incident to all reports, with masked texts.

        Events of tests come masked, those of the coordinator's own stop calls do not.
        """
        from pytest_device.report.lines import Incident
        from pytest_device.report.phase import TestPhase
        from pytest_device.sessions.events import masked, timed

        if not isinstance(event, Incident | TestPhase):
            event = timed(masked(event, redactor_of(self._config).text), time.time())

        self._has_entries = True
        for fold in self.folds:
            fold.add(event)

    def note(self, text: str) -> None:
        from pytest_device.sessions.events import Note

        self.event(Note(text))

    def save_report(self) -> None:
        """Save the report of the run, if it is one with devices: a shard of it may have none."""
        if self.at_end or self.receipt.has_sessions:
            from pytest_device.plugin.output.report_files import save_report

            if note := save_report(self.run_report, self._config):
                self.note(note)

        for save in self.at_end:
            if note := save():
                self.note(note)

    def log_discarded(
        self, discarded: Iterable[dict[str, Any]], worker: str = ""
    ) -> None:
        """Report the phases of attempts whose reports another plugin has discarded, in this plugin's own reports only."""
        plugins = self._config.pluginmanager
        for values in discarded:
            report = self._config.hook.pytest_report_from_serializable(
                config=self._config, data=values
            )
            if worker:
                report.worker_id = worker

            self._count(report)
            others = [
                plugin
                for plugin in plugins.get_plugins()
                if plugins.get_name(plugin) not in _READERS
            ]
            readers = plugins.subset_hook_caller("pytest_runtest_logreport", others)
            readers(report=report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the events of a report, and show those that a worker could not show."""
        carried: dict[str, Any] = vars(report)
        # Nothing attaches events in a run without devices, which must not pay for what follows.
        if EVENTS not in carried:
            return

        worker = str(carried.get("worker_id", ""))
        # pytest keeps the report until the end of the run.
        self.log_discarded(carried.pop(DISCARDED, ()), worker)
        self._count(report)

    def _count(self, report: pytest.TestReport) -> None:
        """Add what a report says of sessions and durations to the reports of the run."""
        carried: dict[str, Any] = vars(report)
        worker = str(carried.get("worker_id", ""))
        events = [_read(values) for values in carried[EVENTS]]
        for event in events:
            if worker:
                self.show_event(event, worker)

            self.event(event)

        # A subtest's report is of another class, and its duration is part of its test's.
        if type(report) is pytest.TestReport:
            self._time(report, carried.get(WAITED, 0.0))
        if VERDICT in carried and report.failed:
            self._note_incident(report, Verdict(carried[VERDICT]), events)

    def _note_incident(
        self, report: pytest.TestReport, verdict: Verdict, events: "Sequence[Event]"
    ) -> None:
        from pytest_device.report.lines import Incident
        from pytest_device.sessions.events import Note, Queued

        pages: list[str] = []
        # The pages of a local service end with the run.
        if not settings_of(self._config).local:
            pages += [
                event.session.url
                for event in events
                if not isinstance(event, Note | Queued)
            ]
            pages += [
                str(value)
                for name, value in report.user_properties
                if name == SESSION_URL
            ]

        cause = vars(report).get(CAUSE, "")
        self.event(Incident(verdict, report.nodeid, first_line(report), pages, cause))

    def _time(self, report: pytest.TestReport, waited: float) -> None:
        """Record a test's duration, with its fixtures but without its wait for a device."""
        # By worker, too: with --dist each, all of them run the test.
        test = str(vars(report).get("worker_id", "")), report.nodeid
        if report.when == "setup":
            self._seconds[test] = 0.0
        if not _shows_length(report):
            self._seconds.pop(test, None)

        if test in self._seconds:
            self._seconds[test] += max(0.0, report.duration - waited)
            if report.when == "teardown":
                self.history.add_test(report.nodeid, self._seconds.pop(test))

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Report an infrastructure error in a test's call as an error, not as a failure.

        Tests that were not attempted have a category of their own: otherwise pytest would repeat the cause for each,
        twice.
        """
        if report.failed and CAUSE in vars(report):
            return "not attempted", "E", "ERROR"
        if report.when == "call" and report.failed and VERDICT in vars(report):
            return "error", "E", "ERROR"

        return None

    def pytest_sessionfinish(self) -> None:
        """Save the durations of boots and tests."""
        self.history.save()

    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> None:
        """Write the receipt, which names the tests of errors that pytest has shown already."""
        has_summary = not self._config.getoption("no_summary", default=False)
        shows_errors = has_summary and self._config.getoption("tbstyle") != "no"
        self._write_receipt(terminalreporter, with_causes=not shows_errors)

    def _write_receipt(
        self, terminalreporter: "pytest.TerminalReporter", *, with_causes: bool
    ) -> None:
        lines: list[Line] = []
        if self._has_entries and not self._is_written:
            lines = [
                *self.receipt.lines(with_causes=with_causes),
                *self.run_report.lines(),
            ]

        # ``pytest_unconfigure`` calls this again.
        self._is_written = True
        if lines:
            terminalreporter.ensure_newline()
            terminalreporter.section("devices")
            for line in lines:
                terminalreporter.write_line(escaped(line.text), **_markup(line.color))

    def pytest_unconfigure(self) -> None:
        """Write the receipt, too, after pytest.exit or an internal error, when pytest writes no summary."""
        reporter: pytest.TerminalReporter | None = (
            self._config.pluginmanager.get_plugin("terminalreporter")
        )
        if reporter:
            self._write_receipt(reporter, with_causes=True)


class _BootTimes:
    """Adds the boot times of a run to the history."""

    def __init__(self, history: "History") -> None:
        self._history = history

    def add(self, entry: "Entry", /) -> None:
        from pytest_device.sessions.events import Ready

        if isinstance(entry, Ready) and entry.boot_key:
            seconds = entry.boot_seconds
            if seconds is None:
                seconds = entry.session.waited_seconds

            self._history.add_boot(entry.boot_key, seconds)


def _read(values: dict[str, Any]) -> "Event":
    from pytest_device.sessions.events import from_plain

    return from_plain(values)


def _shows_length(report: pytest.TestReport) -> bool:
    """Return whether the test will probably take as long again: not if it was skipped or got no device."""
    if report.when == "teardown":
        return True

    ran = (
        report.passed
        or (report.when == "call" and report.failed)
        or hasattr(report, "wasxfail")
    )
    return ran and VERDICT not in vars(report)


def _escape_unencodable(config: pytest.Config) -> None:
    """Let pytest's output escape the characters that its encoding lacks, as that of a pipe on Windows lacks many.

    Otherwise, pytest escapes the whole text around one, with its line ends and colors, and what is written without
    pytest fails.
    """
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    stream = getattr(getattr(reporter, "_tw", None), "_file", None)
    if not isinstance(stream, io.TextIOWrapper) or stream.errors != "strict":
        return

    # It flushes first. What fails there, such as a pipe without a reader, fails again where output is written.
    with suppress(OSError):
        stream.reconfigure(errors="backslashreplace")


def _end_line(reporter: Any) -> None:
    reporter.ensure_newline()
    if reporter._tw.width_of_current_line:  # noqa: SLF001  # ensure_newline() ignores the progress dots
        reporter.write_line("")


def _markup(color: str) -> dict[str, bool]:
    return {color: True} if color else {}


def error_text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the message of an error, or the whole text of one that has none, such as that of a missing fixture."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message)
    # Not longreprtext, which begins with the worker and its Python under pytest-xdist.
    if isinstance(report.longrepr, str):
        return report.longrepr

    return report.longreprtext


def error_of(report: pytest.TestReport) -> BaseException:
    """Return the error of a phase that raised none: a hook of the suite made its report a failure."""
    return pytest.fail.Exception(error_text(report))


def first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the first line of an error."""
    lines = error_text(report).strip().splitlines()
    # A text without a message may begin with a place and lines of source.
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    lines = errors or lines
    return lines[0] if lines else "no error text"


def is_watched(config: pytest.Config, environ: Mapping[str, str]) -> bool:
    """Return whether the output is an interactive terminal; a pytest-xdist worker has no reporter at all."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty:
        return False

    # Some CI services have a terminal, and log everything that is written to it.
    return environ.get("TERM") != "dumb" and not is_in_ci(environ)


class Pause:
    """Shows URLs, and waits for Enter."""

    def __init__(self, config: pytest.Config, terminal: Terminal | None) -> None:
        self._config = config
        self._terminal = terminal

    @cache  # noqa: B019  # one instance per run
    def is_possible(self) -> bool:
        """Return whether the user can press Enter: input and output are a terminal that select() supports."""
        if (
            self._terminal is None
            or not self._is_on_terminal()
            or not SYSTEM.has_terminal_select
        ):
            return False

        with self._keyboard() as keyboard:
            return keyboard is not None and keyboard.isatty()

    def offer(
        self, failure: str, sessions: "Mapping[str, Session]", *, keep: bool
    ) -> bool:
        """Show what failed and where to find the devices, and wait if they are kept.

        Return whether the user had access to them. ``failure`` names the test and its error.
        """
        debugger = bool(self._config.getoption("usepdb", default=False))
        if self._terminal is None or not (debugger or (keep and self.is_possible())):
            return False

        from pytest_device.report.lines import with_pages

        # Before the debugger starts, pytest shows the error itself.
        if not debugger:
            self._show(f"failed: {failure}")

        for name, session in sessions.items():
            device = f"{session.platform} {session.type}"
            if name:
                device += f" {name!r}"

            self._show(with_pages(f"{device}: session page:", [session.page]))
            details = session.remote_config
            if details and details.web_preview_url:
                url = details.web_preview_url if self._is_on_terminal() else _HIDDEN
                self._show(with_pages(f"{device}: live preview:", [url]))

        if keep and not debugger:
            self._wait(min(session.limit_minutes for session in sessions.values()))

        return keep

    def _is_on_terminal(self) -> bool:
        """Return whether the output is a terminal: the debugger also runs without one."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        return reporter is not None and bool(reporter.isatty)

    def _show(self, line: str) -> None:
        """Write a line, even under ``-q``: a wait that no user knows of would be billed."""
        if self._terminal is not None:
            self._terminal.show(line, even_if_quiet=True)

    def _wait(self, minutes: int) -> None:
        """Wait for Enter, at most for the maximum duration of the session."""
        self._show(
            f"kept for up to {minutes} minutes: press Enter to stop it and continue"
        )

        with self._keyboard() as keyboard:
            if keyboard and select.select([keyboard], [], [], minutes * 60)[0]:
                keyboard.readline()

    @contextmanager
    def _keyboard(self) -> Generator[TextIO | None]:
        """Provide the real standard input, without pytest's capturing."""
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if capture:
            capture.suspend(in_=True)

        try:
            yield sys.__stdin__
        finally:
            if capture:
                capture.resume()

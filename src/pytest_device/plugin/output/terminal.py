"""Terminal output: lines while devices start and stop, and the receipt at the end."""

import os
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.escape import escaped
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.state import SESSION_URL, history_of

if (
    TYPE_CHECKING
):  # a distributed run without devices has a terminal, too, but no events
    from pytest_device.report.receipt import Receipt
    from pytest_device.report.verdict import Verdict
    from pytest_device.sessions.events import Event
    from pytest_device.settings import Settings

EVENTS: Final = "device_events"
VERDICT: Final = "device_verdict"
CAUSE: Final = "device_cause"
WAITED: Final = "device_waited"
"""Attributes of a test report, which pytest-xdist sends to the coordinator unchanged."""
_KEEPS_EVERY_LINE: Final = ("CI", "BUILD_NUMBER")
"""Variables by which pytest detects CI services; some of these have a terminal and log everything written to it."""


def attach(
    report: pytest.TestReport,
    events: "list[Event]",
    verdict: "Verdict | None",
    *,
    cause: str,
    waited: float,
) -> None:
    """Attach session events to a report, and the verdict on an error that is not the test's own.

    ``cause`` is the earlier error because of which this test was not attempted, empty if it was. ``waited`` is the
    number of seconds that the test waited for its device.
    """
    from pytest_device.sessions.events import to_plain

    vars(report)[WAITED] = waited
    vars(report)[EVENTS] = [to_plain(event) for event in events]
    if verdict:
        vars(report)[VERDICT] = verdict.value
    if cause:
        vars(report)[CAUSE] = cause


class Terminal:
    """Shows events; registered in the process that has the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_written = False
        self._is_drawn = False
        self._receipt: Receipt | None = None
        self.history = history_of(config)
        self._seconds: dict[tuple[str, str], float] = {}
        """Seconds that unfinished tests have taken so far, by worker and node ID."""

    def show(self, text: str, color: str = "", *, even_if_quiet: bool = False) -> None:
        """Write one line now, bypassing pytest's capturing; under ``-q`` only if the run waits for the user."""
        with self._reporter(even_if_quiet=even_if_quiet) as reporter:
            if reporter is None:
                return
            if self._is_drawn:
                self._erase(reporter)
            else:
                _end_line(reporter)
            reporter.write_line(f"  device {escaped(text)}", **_markup(color))
            reporter.flush()  # so that a CI log shows it during the wait

    progress = show

    def preview(self, label: str, url: str) -> None:
        """Show where to watch a device, and open it if requested; files and CI logs don't get the URL."""
        shown = (
            url
            if is_watched(self._config, os.environ)
            else "*** (shown on a terminal only)"
        )
        self.show(f"{label}: live preview: {shown}", even_if_quiet=True)
        if settings_of(self._config).preview_open:
            from pytest_device.plugin.output.preview import open_preview

            open_preview(self._config, url)

    def announce(self, line: str) -> None:
        """Write one line unchanged, even under ``-q``."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            _end_line(reporter)
            reporter.write_line(escaped(line))

    def draw(self, line: str) -> None:
        """Show a temporary line on a terminal; the next line, or an empty one, removes it."""
        with self._reporter() as reporter:
            if reporter is None or not (line or self._is_drawn):
                return
            if self._is_drawn:
                self._erase(reporter)
            else:
                _end_line(reporter)
                # Under -s, the cursor may be behind other output that must not be overwritten: as many blanks as
                # there are columns then end on the next line, or at the margin if the cursor was at the start of a
                # line.
                _write_raw(reporter, f"{' ' * _columns()}\r")
            self._is_drawn = bool(line)  # before the write, which an interrupt may end
            # Not rewrite(), after which pytest would misjudge the width of its next output.
            _write_raw(reporter, escaped(line)[: _columns() - 1])

    def _erase(self, reporter: Any) -> None:
        _write_raw(reporter, f"\r{' ' * (_columns() - 1)}\r")
        self._is_drawn = False

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

    @property
    def receipt(self) -> "Receipt":
        """Return the receipt of the run so far."""
        from pytest_device.report.receipt import Receipt

        self._receipt = self._receipt or Receipt(
            has_pages=not settings_of(self._config).local
        )
        return self._receipt

    def show_event(self, event: "Event", worker: str = "") -> None:
        """Write the line for an event if users need it, with the worker's name under pytest-xdist."""
        from pytest_device.report.lines import color_of, line_of, needs_line
        from pytest_device.sessions.events import Note, Queued

        if isinstance(event, Note):  # may occur at any point: the receipt lists it
            return
        usual = (
            None
            if isinstance(event, Queued)
            else self.history.usual_boot(event.session.label)
        )
        if self._config.get_verbosity() > 0 or needs_line(event, usual):
            self.show(f"{worker} {line_of(event)}".lstrip(), color_of(event))

    def count(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events, as plain values, to the receipt."""
        for values in events:
            self.event(_read(values))

    def event(self, event: "Event") -> None:
        from pytest_device.sessions.events import Ready

        self.receipt.add(event)
        if isinstance(event, Ready) and event.boot_key:
            seconds = (
                event.session.waited_seconds
                if event.boot_seconds is None
                else event.boot_seconds
            )
            self.history.add_boot(event.boot_key, seconds)

    def note(self, text: str) -> None:
        from pytest_device.sessions.events import Note

        self.event(Note(text))

    def save_receipt(self, settings: "Settings") -> None:
        """Save the receipt in the artifacts directory, if there is one."""
        from pytest_device.plugin.output.artifacts import save_receipt  # loads pydantic

        if note := save_receipt(settings, self.receipt, self._config):
            self.note(note)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the events of a report, and show those that a worker could not show."""
        carried: dict[str, Any] = vars(report)
        if EVENTS not in carried:  # a run without device tests
            return
        events = [_read(values) for values in carried[EVENTS]]
        for event in events:
            if worker := carried.get("worker_id"):
                self.show_event(event, worker)
            self.event(event)
        if type(report) is pytest.TestReport:  # not a subtest's report
            self._time(report, carried.get(WAITED, 0.0))
        if VERDICT in carried:
            self._note_incident(report, carried[VERDICT], events)

    def _note_incident(
        self, report: pytest.TestReport, verdict: str, events: "Sequence[Event]"
    ) -> None:
        from pytest_device.report.lines import Incident
        from pytest_device.sessions.events import Note, Queued

        pages = [
            event.session.url
            for event in events
            if not isinstance(event, Note | Queued)
        ] + [
            str(value) for name, value in report.user_properties if name == SESSION_URL
        ]
        pages = [] if settings_of(self._config).local else pages
        cause = vars(report).get(CAUSE, "")
        self.receipt.incidents.append(
            Incident(verdict, report.nodeid, _error(report), pages, cause)
        )

    def _time(self, report: pytest.TestReport, waited: float) -> None:
        """Record a test's duration, with its fixtures but without its wait for a device."""
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
        """Write the receipt."""
        lines = (
            []
            if self._is_written or self._receipt is None
            else list(self._receipt.lines())
        )
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
            self.pytest_terminal_summary(reporter)


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


def _end_line(reporter: Any) -> None:
    reporter.ensure_newline()
    if reporter._tw.width_of_current_line:  # noqa: SLF001  # ensure_newline() ignores the progress dots
        reporter.write_line("")


def _columns() -> int:
    """Return the width of the terminal, known only while its output is not captured."""
    return shutil.get_terminal_size().columns


def _markup(color: str) -> dict[str, bool]:
    return {color: True} if color else {}


def _error(report: pytest.TestReport) -> str:
    """Return the first line of an error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return lines[0] if lines else "no error text"


def is_watched(config: pytest.Config, environ: Mapping[str, str]) -> bool:
    """Return whether the output is an interactive terminal; a pytest-xdist worker has no reporter at all."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty:
        return False
    return environ.get("TERM") != "dumb" and not any(
        map(environ.get, _KEEPS_EVERY_LINE)
    )


def _write_raw(reporter: Any, text: str) -> None:
    """Write text that pytest must not count as its own output; the public method is missing in the oldest pytest."""
    stream = reporter._tw._file  # noqa: SLF001
    stream.write(text)
    stream.flush()

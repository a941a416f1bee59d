"""The process with the terminal: lines while devices come and go, and the receipt at the end."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Final

import pytest

from pytest_device.report.receipt import Receipt, line_of
from pytest_device.report.verdict import Verdict
from pytest_device.sessions.events import Event

EVENTS: Final = "device_events"
VERDICT: Final = "device_verdict"
"""Attributes of a test report, which pytest-xdist carries to the controlling process as they are."""


def attach(report: pytest.TestReport, events: list[Event], verdict: Verdict | None) -> None:
    """Let a report carry what happened to sessions, and who is to blame for an error that is not the test's."""
    vars(report)[EVENTS] = [event.to_json() for event in events]
    if verdict:
        vars(report)[VERDICT] = verdict.value


class Terminal:
    """Shows events; registered where the terminal is."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told = False
        self.receipt = Receipt()

    def show(self, line: str) -> None:
        """Write one line now, past pytest's capturing; nothing under ``-q``."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.get_verbosity() < 0:
            return
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.ensure_newline()
            if reporter._tw.width_of_current_line:  # noqa: SLF001  # ensure_newline() overlooks the dots of results
                reporter.write_line("")
            reporter.write_line(f"  device {line}")
            reporter.flush()  # a CI log must have it while the run still waits

    def show_event(self, event: Event) -> None:
        """Write what a watching person wants to know of an event."""
        line = line_of(event, verbose=self._config.get_verbosity() > 0)
        if line:
            self.show(line)

    def count(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events, as plain values, to the receipt."""
        for event in events:
            self.receipt.add(Event.from_json(event))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what the report carries."""
        carried: dict[str, Any] = vars(report)
        self.count(carried.get(EVENTS, ()))
        if VERDICT in carried:
            self.receipt.errors[carried[VERDICT]] += 1

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Write the receipt."""
        lines = [] if self._told else list(self.receipt.lines())
        self._told = True
        if lines:
            terminalreporter.ensure_newline()
            terminalreporter.section("devices")
            for line in lines:
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Write the receipt after pytest.exit or an internal error, too, when pytest writes no summary."""
        reporter: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            self.pytest_terminal_summary(reporter)

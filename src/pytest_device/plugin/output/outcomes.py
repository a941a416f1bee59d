"""What a test report says beside pytest's own result: verdict, attempt, quarantine, owner."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.plugin.output import allure
from pytest_device.plugin.output.exit_status import ExitStatus
from pytest_device.plugin.output.terminal import (
    EVENTS,
    RERUN,
    VERDICT,
    WAITED,
    Terminal,
    first_line,
)
from pytest_device.plugin.quarantine import QUARANTINE
from pytest_device.plugin.state import ATTEMPTS, FAILED

if TYPE_CHECKING:
    from pytest_device.report.phase import TestPhase

ATTEMPT: Final = "device_attempt"
"""Attribute of a report: the number of the attempt, from 1."""
RETRIED: Final = "device_retried"
"""Attribute and property of a report: the error because of which the test runs again."""
NOT_RETRIED: Final = "device_not_retried"
"""Property of a report: why the test does not run again."""
QUARANTINED: Final = "device_quarantine"
"""Attribute and property of a report: the quarantine, and the error that it keeps from failing the run."""
OWNER: Final = "device_owner"
"""Attribute of a report: the first argument of the test's marker ``owner``."""

_AROUND_CALL: Final = frozenset({"setup", "teardown"})
_OUTCOMES: Final = frozenset({"passed", "failed", "skipped"})
"""Those of pytest; a plugin that repeats a test gives its attempts another one."""

_Status = tuple[str, str, tuple[str, dict[str, bool]]]


class Outcomes:
    """Registered as a plugin while a process runs tests with devices, after those whose results it completes."""

    # Around whatever needs the number of the attempt.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Begin an attempt."""
        item.stash[ATTEMPTS] = item.stash.get(ATTEMPTS, 0) + 1
        item.stash[FAILED] = False
        yield

    # Around the hooks that attach the verdict and retry.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the verdict to the test's properties, and apply its quarantine."""
        report = yield

        if verdict := vars(report).get(VERDICT):
            add_property(item, report, VERDICT, verdict)
            if item.config.pluginmanager.has_plugin(allure.LISTENER):
                allure.add_verdict(verdict)

        if retried := vars(report).get(RETRIED):
            add_property(item, report, RETRIED, retried)

        quarantine = item.stash.get(QUARANTINE, None)
        if quarantine and report.failed:
            text = f"{quarantine}: {first_line(report)}"
            vars(report)[QUARANTINED] = text
            add_property(item, report, QUARANTINED, text)
            # As a failure that is expected: it counts neither as a failure nor as a pass.
            report.outcome = "skipped"
            report.wasxfail = f"quarantined {text}"

        return report


def add_property(
    item: pytest.Item, report: pytest.TestReport, name: str, value: str
) -> None:
    """Add a property to this report and the later ones of the attempt: JUnit XML takes them from the last."""
    item.user_properties.append((name, value))
    if (name, value) not in report.user_properties:
        report.user_properties.append((name, value))


def note_attempt(report: pytest.TestReport, item: pytest.Item) -> None:
    """Attach to a report which attempt of whose test it belongs to."""
    vars(report)[ATTEMPT] = item.stash.get(ATTEMPTS, 1)
    vars(report)[OWNER] = _owner_of(item)


def attempt_in(report: pytest.TestReport) -> int:
    """Return the number of the attempt in its process, from 1."""
    return int(vars(report).get(ATTEMPT, 1))


def is_repeated(report: pytest.TestReport) -> bool:
    """Return whether the test runs again because of this failure, by this plugin or by another one."""
    return RETRIED in vars(report) or str(report.outcome) not in _OUTCOMES


def _owner_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("owner")
    return str(mark.args[0]) if mark and mark.args else ""


class OutcomeReporter:
    """Registered as a plugin in the process that has the terminal: what it says about each outcome."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the phase of a test to the reports of a run with devices."""
        if EVENTS in vars(report):
            self._terminal.event(phase_of(report))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> _Status | None:
        """Show attempts that are repeated, and quarantined failures, as what they are."""
        return status_of(report)


def watch_outcomes(config: pytest.Config, terminal: Terminal) -> None:
    """Let outcomes decide what this process reports, and its exit status; replaces an earlier run's."""
    plugins: dict[str, object] = {
        "device-outcome-reporter": OutcomeReporter(terminal),
        "device-exit-status": ExitStatus(config),
    }

    for name, plugin in plugins.items():
        if config.pluginmanager.has_plugin(name):
            config.pluginmanager.unregister(name=name)

        config.pluginmanager.register(plugin, name)


def status_of(report: pytest.TestReport) -> _Status | None:
    """Return category, letter and word of an attempt that is repeated, or of a quarantined failure, else None."""
    # As pytest-rerunfailures does, which users may know.
    if RETRIED in vars(report):
        return "rerun", "R", ("RERUN", {"yellow": True})
    if QUARANTINED in vars(report):
        return "quarantined", "q", ("QUARANTINED", {"yellow": True})

    return None


def phase_of(report: pytest.TestReport) -> "TestPhase":
    """Return a report as a value."""
    from pytest_device.report.phase import TestPhase

    carried: dict[str, Any] = vars(report)
    error = carried.get(RETRIED) or carried.get(QUARANTINED) or ""
    if report.failed or (is_repeated(report) and not error):
        error = first_line(report)

    sessions = [
        str(value)
        for name, value in report.user_properties
        if name == "device_session" and value
    ]

    return TestPhase(
        test=report.nodeid,
        when=str(report.when),
        outcome=_outcome(report),
        attempt=attempt_in(report),
        # Two clocks: the wait may seem longer than the phase.
        seconds=max(0.0, report.duration - carried.get(WAITED, 0.0)),
        waited_seconds=carried.get(WAITED, 0.0),
        verdict=carried.get(VERDICT, ""),
        error=error,
        sessions=tuple(dict.fromkeys(sessions)),
        owner=carried.get(OWNER, ""),
    )


def _outcome(report: pytest.TestReport) -> str:
    """Return a word for the result of a phase."""
    if RETRIED in vars(report):
        return "retried"
    if QUARANTINED in vars(report):
        return "quarantined"
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed and (report.when in _AROUND_CALL or VERDICT in vars(report)):
        return "error"

    return RERUN if is_repeated(report) else str(report.outcome)

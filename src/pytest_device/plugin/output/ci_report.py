"""Reports a run with devices to the CI service that it runs on: job summary and annotations."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.options import Options
from pytest_device.plugin.output.artifacts import files_in
from pytest_device.plugin.output.carriers import DEVICE
from pytest_device.plugin.output.outcomes import phase_of
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.source_lines import failing_lines, is_users_file
from pytest_device.plugin.output.terminal import EXPLANATION, Terminal, first_line
from pytest_device.plugin.state import SESSION_URL, ended_by_interrupt
from pytest_device.report.attempts import Location
from pytest_device.report.ci_log import annotations
from pytest_device.report.job_summary import MAX_BYTES, RunSummary, summary
from pytest_device.report.phase import (
    REPEATED,
    TestPhase,
    deciding_phase,
    outcome_of,
)
from pytest_device.report.test_result import TestResult
from pytest_device.trace.playwright import ARCHIVE

if TYPE_CHECKING:
    from pytest_device.settings import Settings

CI_REPORT: Final = "device-ci-report"
"""Name of the plugin."""
GITHUB: Final = "github"
_ANNOTATES: Final = "pytest_github_actions_annotate_failures"
"""A plugin that annotates failed tests itself: each would have two annotations, of the ten that are shown."""


def report_to_ci(
    config: pytest.Config, settings: "Settings", terminal: Terminal
) -> None:
    """Report to GitHub from now on, if the run is a job of it."""
    if not is_github(settings.ci, os.environ) or config.pluginmanager.has_plugin(
        CI_REPORT
    ):
        return

    report = CiReport(config, settings, terminal)
    config.pluginmanager.register(report, CI_REPORT)
    terminal.at_end.append(report.save)


def is_github(setting: str, environ: Mapping[str, str]) -> bool:
    """Return whether a run reports to GitHub.

    >>> is_github("auto", {"GITHUB_ACTIONS": "true"})
    True
    """
    if setting == "auto":
        return environ.get("GITHUB_ACTIONS") == "true"

    return setting == GITHUB


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a run keeps its files."""

    start: Path
    """Where pytest was started: relative paths in tracebacks begin here."""
    root: Path
    """The root directory of the tests."""
    repository: Path

    def in_repository(self, path: str | Path, line: int) -> Location | None:
        """Return a line relative to the repository, as the service links it; None outside of it."""
        resolved = (self.start / path).resolve()
        if not resolved.is_relative_to(self.repository):
            return None
        return Location(resolved.relative_to(self.repository).as_posix(), line)

    def of_suite(self, path: str | Path, line: int) -> Location | None:
        """Return a line of the user's own files, else None."""
        resolved = (self.start / path).resolve()
        return self.in_repository(resolved, line) if is_users_file(resolved) else None

    def failing_line(self, report: pytest.TestReport) -> Location | None:
        """Return the innermost line of the suite in a traceback, else where the test begins."""
        for path, line in failing_lines(report):
            location = self.of_suite(path, line)
            if location:
                return location

        test_path, index, _ = report.location
        return self.in_repository(self.root / test_path, (index or 0) + 1)


def _import_error(report: pytest.CollectReport) -> str:
    """Return the error of a file: pytest's first line only names the file."""
    lines = report.longreprtext.splitlines()
    # As in pytest's tracebacks; the last one is the error itself.
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return errors[-1] if errors else first_line(report)


def _begins_again(result: TestResult, phase: TestPhase) -> bool:
    """Return whether a phase is the first one of a further attempt."""
    # After a crash, the next worker counts the attempts anew.
    after_crash = phase.when == "setup" and result.outcome in REPEATED
    return after_crash or phase.attempt != result.phases[-1].attempt


class CiReport:
    """Registered in the process that has the terminal, once a run has tests with devices."""

    def __init__(
        self, config: pytest.Config, settings: "Settings", terminal: Terminal
    ) -> None:
        self._config = config
        self._settings = settings
        self._terminal = terminal
        self._mask: Callable[[str], str] = redactor_of(config).text
        # Now: a test may change the environment.
        self._summary_path = os.environ.get("GITHUB_STEP_SUMMARY", "")
        start = config.invocation_params.dir
        repository = os.environ.get("GITHUB_WORKSPACE") or config.rootpath
        self._places = _Places(start, config.rootpath, Path(repository).resolve())
        self._results: dict[str, TestResult] = {}
        """By node ID."""
        self._is_interrupted = False
        self._is_annotated = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test's last attempt came to."""
        phase = phase_of(report)
        result = self._results.get(report.nodeid)
        if result is None or _begins_again(result, phase):
            repeated = result.repeated if result else []
            result = TestResult(report.nodeid, repeated=repeated)
            self._results[report.nodeid] = result

        self._describe(result, report)

        result.phases.append(phase)
        # Interrupted until its teardown.
        result.outcome = outcome_of(result.phases)
        if phase.outcome == "passed" or deciding_phase(result.phases) is not phase:
            return

        result.verdict = phase.verdict
        crash = getattr(report.longrepr, "reprcrash", None)
        result.message = str(crash.message) if crash and report.failed else phase.error
        result.explanation = vars(report).get(EXPLANATION, ())
        result.location = self._places.failing_line(report)
        if phase.outcome in REPEATED:
            result.repeated.append(phase.error)

    def _describe(self, result: TestResult, report: pytest.TestReport) -> None:
        """Take over what the report says of the devices; the last report of an attempt says all."""
        properties = {name: str(value) for name, value in report.user_properties}
        result.device = properties.get(DEVICE) or properties.get("device_platform", "")
        result.minutes = properties.get("device_minutes", "")
        # The pages of a local service end with the run.
        if not self._settings.local:
            result.page = properties.get(SESSION_URL, "")
        if directory := properties.get("device_artifacts"):
            result.files = self._files(Path(directory))

    def _files(self, directory: Path) -> str:
        traces = files_in(directory, ARCHIVE)
        path = traces[0] if traces else directory
        start = self._places.start
        shown = path.relative_to(start) if path.is_relative_to(start) else path
        return shown.as_posix()

    # Before the report is saved.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note whether the run was interrupted."""
        self._is_interrupted = ended_by_interrupt(session)

    def save(self) -> str | None:
        """Append the summary to the file of the job; return a note if that is not possible, else None."""
        if not self._summary_path:
            return None

        path = Path(self._summary_path)
        try:
            with path.open("a", encoding="utf-8", errors="replace") as file:
                # The limit applies to all that the step writes, also before pytest.
                used = file.tell()
                gap = "\n" if used else ""
                text = summary(self._run(), MAX_BYTES - used - len(gap), self._mask)
                file.write(gap + text if text else "")
        except OSError as error:
            reason = error.strerror
            return f"cannot write the job summary to {path} ({reason}): make it writable, or use {Options.ci.flag}=off"

        if not text:
            return f"the job summary is left out: {path} has {used} bytes, and GitHub refuses more than 1 MiB"

        return None

    def _run(self) -> RunSummary:
        terminal = self._terminal
        receipt = [line.text for line in terminal.receipt.lines()]
        minutes = [line.text for line in terminal.run_report.minute_lines()]

        return RunSummary(
            self._all_results(),
            # The minutes next to the receipt's first line, which counts the sessions.
            [*receipt[:1], *minutes, *receipt[1:]],
            self._settings.shard or "",
            self._is_interrupted,
        )

    def _all_results(self) -> Sequence[TestResult]:
        """Return the results of files that could not be collected, before this plugin was registered, and of tests."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        errors: list[Any] = reporter.stats.get("error", []) if reporter else []
        files = {
            report.nodeid: TestResult(
                report.nodeid,
                "error",
                message=_import_error(report),
                location=self._places.in_repository(
                    self._places.root / report.nodeid.partition("::")[0], 1
                ),
            )
            for report in errors
            if isinstance(report, pytest.CollectReport)
        }

        return [*files.values(), *self._results.values()]

    # Below the lines about devices.
    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(
        self, terminalreporter: "pytest.TerminalReporter"
    ) -> None:
        """Write the annotations."""
        if self._is_annotated:
            return

        self._is_annotated = True
        if self._config.pluginmanager.has_plugin(_ANNOTATES):
            return

        incidents = self._terminal.receipt.incidents
        for annotation in annotations(self._all_results(), incidents):
            terminalreporter.ensure_newline()
            terminalreporter.write_line(annotation.command(self._mask))

    def pytest_unconfigure(self) -> None:
        """Write them, too, after pytest.exit or an internal error, when pytest writes no summary."""
        reporter: pytest.TerminalReporter | None = (
            self._config.pluginmanager.get_plugin("terminalreporter")
        )
        if reporter:
            self.pytest_terminal_summary(reporter)

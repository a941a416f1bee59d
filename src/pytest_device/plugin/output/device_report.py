"""Records each attempt of each test as the run goes on, and writes the blob report at its end."""

import mimetypes
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from pytest_device.escape import escaped, without_colors
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.artifacts import directory_of, written_since
from pytest_device.plugin.output.outcomes import (
    QUARANTINED,
    RETRIED,
    attempt_in,
    is_repeated,
    note_attempt,
)
from pytest_device.plugin.output.recording import RECORDING, recorder_of
from pytest_device.plugin.output.report_files import DIRECTORY, OFF
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.output.source_lines import (
    failing_lines,
    is_users_file,
    snippet,
)
from pytest_device.plugin.output.terminal import (
    EVENTS,
    EXPLANATION,
    VERDICT,
    Terminal,
    error_text,
    first_line,
)
from pytest_device.plugin.state import SESSION_URL, ended_by_interrupt
from pytest_device.redact import Redactor
from pytest_device.report.attempts import (
    Attachment,
    Attempt,
    AttemptFailure,
    AttemptStarted,
    DeviceUsed,
    InvalidLinesError,
    Line,
    Location,
    RunEnded,
    RunStarted,
    Status,
    Step,
    step_from_plain,
)
from pytest_device.report.blob import TOOL
from pytest_device.report.directory import ReportDirectory
from pytest_device.report.phase import CRASH
from pytest_device.report.steps import steps_of_phase
from pytest_device.sessions.events import (
    Attached,
    Created,
    Kept,
    KeptWarm,
    Ready,
    Stopped,
    TakenOver,
)

if TYPE_CHECKING:
    from pytest_device.report.fold import Entry
    from pytest_device.sessions.events import SessionRef
    from pytest_device.sessions.request import DeviceRequirement
    from pytest_device.settings import Settings

RECORDER: Final = "device-report"
"""Name of the plugin that records the tests."""
MAX_OUTPUT: Final = 100_000
"""Characters of captured output per attempt; the end is kept, where a failure is."""
_TAGS: Final = "device_tags"
_PLATFORMS: Final = "device_platforms"
_STEPS: Final = "device_steps"
_FILES: Final = "device_files"
_FAILING_LINE: Final = "device_failing_line"
_SNIPPET: Final = "device_snippet"
"""Attributes of a test report, which pytest-xdist sends to the coordinator unchanged."""
_NO_TAGS: Final = frozenset({"device", "filterwarnings", "parametrize", "usefixtures"})
"""Markers that say how a test runs, not what it is; the platform of a device is the project."""
_ANNOTATIONS: Final = {
    "device_name": "device",
    "device_session": "session",
    SESSION_URL: "session page",
    "device_minutes": "device minutes",
    "device_quarantine": "quarantine",
    "device_not_retried": "not retried",
}
"""User properties of a test that its report shows, and what the report calls them."""
_NAMES: Final = {
    "trace.zip": "trace",
    "failure.md": "error-context",
}
"""Names by which the page knows an attachment: it opens traces, and copies the context of an error."""
_RUN_VARIABLES: Final = (
    ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"),
    ("CI_PIPELINE_ID",),
    ("CIRCLE_WORKFLOW_ID",),
    ("BUILDKITE_BUILD_ID",),
    ("BUILD_BUILDID",),
    ("BUILD_TAG",),
)
"""Environment variables that are the same in all shards of one run of a CI service."""
_PHASES: Final = {"setup": "Set up", "call": "Test", "teardown": "Tear down"}
"""What the trace calls the phases of a test, too."""


@dataclass(slots=True)
class _Open:
    """A test that has begun."""

    start: float
    retry: int
    reports: list[pytest.TestReport] = field(default_factory=list[pytest.TestReport])


@dataclass(slots=True)
class _Attempts:
    """The attempts at a test, by their numbers in the report, from 0."""

    begun: int = 0
    before_crash: int = 0
    """How many there were until a worker crashed: the next worker counts them anew."""
    open: dict[int, _Open] = field(default_factory=dict[int, _Open])
    """Those that have not ended."""

    def retry_of(self, report: pytest.TestReport) -> int:
        """Return the number of the attempt that a report belongs to."""
        if str(report.when) == CRASH:
            # The worker may not have reported the setup of this attempt.
            self.before_crash = max(self.begun, 1)
            return self.before_crash - 1

        return self.before_crash + attempt_in(report) - 1


def describe_test(
    report: pytest.TestReport,
    item: pytest.Item,
    requirements: "Iterable[DeviceRequirement]",
) -> None:
    """Attach to a report what only the process that runs the test knows: its attempt, markers, platforms and steps."""
    note_attempt(report, item)
    markers = {mark.name for mark in item.iter_markers()} - _NO_TAGS
    vars(report)[_TAGS] = sorted(markers)
    vars(report)[_PLATFORMS] = sorted(
        {str(requirement.request.platform) for requirement in requirements}
    )
    settings = settings_of(item.config)
    if vars(report)[_PLATFORMS]:
        vars(report)[_FILES] = str(directory_of(item, settings))

    if report.failed and settings.report != OFF:
        _add_source(report, item.config)

    recording = item.stash.get(RECORDING, None)
    if recording and settings.report != OFF:
        steps = steps_of_phase(
            recording.actions,
            _PHASES[str(report.when)],
            recorder_of(item.config).time_of_day,
        )
        vars(report)[_STEPS] = [asdict(step) for step in steps]


def _add_source(report: pytest.TestReport, config: pytest.Config) -> None:
    """Attach the line that failed, with those around it, to a report.

    Here, since only the process that ran the test knows what it typed: its source may have a password.
    """
    start = config.invocation_params.dir
    root = config.rootpath.resolve()
    for name, line in failing_lines(report):
        path = (start / name).resolve()
        if path.is_relative_to(root) and is_users_file(path):
            masker = recorder_of(config).masker
            vars(report)[_FAILING_LINE] = (path.relative_to(root).as_posix(), line)
            vars(report)[_SNIPPET] = masker.text(snippet(path, line))

            return


def record_tests(
    config: pytest.Config, settings: "Settings", terminal: Terminal
) -> None:
    """Record the tests of a run with devices from now on, unless the report is off."""
    if settings.report == OFF or config.pluginmanager.has_plugin(RECORDER):
        return

    report = DeviceReport(config, settings, terminal)
    config.pluginmanager.register(report, RECORDER)
    terminal.folds.append(report)
    terminal.at_end.append(report.finish)


class DeviceReport:
    """Registered in the process that has the terminal, once a run has tests with devices."""

    def __init__(
        self, config: pytest.Config, settings: "Settings", terminal: Terminal
    ) -> None:
        self._config = config
        self._terminal = terminal
        self._is_local = settings.local
        self._redactor: Redactor = redactor_of(config)
        self._directory = config.stash[DIRECTORY] = ReportDirectory(
            config.invocation_params.dir / settings.report,
            run_of_ci(os.environ) or "",
            (settings.shard or "").replace("/", "-of-"),
        )
        self._tests: dict[str, _Attempts] = {}
        self._devices: dict[str, tuple[str, float]] = {}
        """Label and start of each session that has not ended, by ID."""
        self._workers: dict[str, int] = {}
        """The number of the worker that uses a session, by its ID."""
        self._has_failed = False
        self._is_interrupted = False
        self._is_broken = False
        started = RunStarted(
            self._directory.run,
            settings.shard or "",
            str(config.rootpath),
            time.time(),
            f"{TOOL}/{version('pytest-device')}",
        )
        self._keep(started)

        if self._directory.note:
            terminal.note(self._directory.note)

    def add(self, entry: "Entry", /) -> None:
        """Record when sessions begin and end."""
        match entry:
            case Created() | TakenOver() | Attached() | Ready():
                self._begin_device(entry.session)
            case Stopped() | Kept() | KeptWarm():
                session = entry.session
                label, began = self._devices.pop(session.session_id, ("", 0.0))
                if label:
                    self._end_device(label, session.session_id, began, session.at)
            case _:
                pass

    def _begin_device(self, session: "SessionRef") -> None:
        """Note when a session was requested."""
        began = session.at - session.waited_seconds
        # A prefetched session counts its wait anew when a test begins to wait for it.
        _, earlier = self._devices.get(session.session_id, ("", began))
        self._devices[session.session_id] = session.label, min(began, earlier)

    def _end_device(
        self, label: str, session_id: str, began: float, ended: float
    ) -> None:
        seconds = max(0.0, ended - began)
        worker = self._workers.get(session_id, 0)
        self._keep(DeviceUsed(label, session_id, began, seconds, worker))

    # Before the terminal hands over the events of the report.
    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_logreport")
    def pytest_runtest_note_worker(self, report: pytest.TestReport) -> None:
        """Note which worker uses the sessions of a report's events."""
        for event in vars(report).get(EVENTS, ()):
            session_id = str(event.get("session", {}).get("session_id", ""))
            self._workers[session_id] = _worker(report)

    def pytest_runtest_logstart(
        self, nodeid: str, location: tuple[str, int | None, str]
    ) -> None:
        attempts = self._tests.setdefault(nodeid, _Attempts())
        self._begin(nodeid, location, attempts.begun)

    def _begin(
        self, nodeid: str, location: tuple[str, int | None, str], retry: int
    ) -> None:
        attempts = self._tests[nodeid]
        attempts.begun = retry + 1
        attempts.open[retry] = _Open(time.time(), retry)
        began = AttemptStarted(
            nodeid, retry, 0, time.time(), _location(location), location[2]
        )
        self._keep(began)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid = report.nodeid
        attempts = self._tests.setdefault(nodeid, _Attempts())
        retry = attempts.retry_of(report)
        # A test may be announced once, however often it is repeated, and not at all if its worker crashed.
        if retry not in attempts.open:
            self._begin(nodeid, report.location, max(retry, attempts.begun))
            retry = max(attempts.open)
        # An attempt that another plugin repeats need not have a report of its teardown.
        for earlier in [each for each in attempts.open if each < retry]:
            self._end_attempt(nodeid, earlier)

        # A copy: a plugin that repeats a test before it reports it may use the same report again.
        attempts.open[retry].reports.append(copy(report))
        # It is large, and pytest's terminal keeps the report until the end of the run.
        vars(report).pop(_STEPS, None)

        if report.when not in {"setup", "call"}:
            self._end_attempt(nodeid, retry)

    def _end_attempt(self, nodeid: str, retry: int) -> None:
        attempts = self._tests[nodeid].open
        if attempts[retry].reports:
            self._keep(self._ended(nodeid, attempts.pop(retry)))

    def _ended(self, nodeid: str, attempt: _Open) -> Attempt:
        reports = attempt.reports
        last = reports[-1]

        for report in reports:
            # Reports of other kinds, such as those of subtests, are made by their plugins alone.
            if _has_failed(report) and _FAILING_LINE not in vars(report):
                _add_source(report, self._config)

        phases = [report for report in reports if type(report) is pytest.TestReport]
        start = min((_start(report) for report in phases), default=attempt.start)
        status, is_expected = _status(reports)
        self._has_failed = self._has_failed or not is_expected
        # As text, since a suite may record values that cannot be hashed, such as lists.
        properties = dict.fromkeys(
            (name, str(value)) for name, value in last.user_properties
        )

        return Attempt(
            nodeid,
            attempt.retry,
            _worker(last),
            start,
            max(0.0, max((_stop(report) for report in phases), default=start) - start),
            _location(last.location),
            last.location[2],
            status,
            is_expected=is_expected,
            project=" + ".join(vars(last).get(_PLATFORMS, ())),
            tags=tuple(vars(last).get(_TAGS, ())),
            annotations=(*_verdicts(reports), *self._annotations(properties)),
            failures=tuple(
                _failure(report) for report in reports if _has_failed(report)
            ),
            steps=tuple(_steps(phases)),
            attachments=tuple(_attachments(vars(last).get(_FILES), start)),
            output=_output(last),
        )

    def _annotations(
        self, properties: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, str]]:
        for name, text in properties:
            # Pages of the run's own service end with it; the files of a failed test have a copy.
            is_dead = name == SESSION_URL and self._is_local
            if name in _ANNOTATIONS and text and not is_dead:
                yield _ANNOTATIONS[name], text

    # Before the report is saved.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note whether the run was interrupted."""
        self._is_interrupted = ended_by_interrupt(session)

    def finish(self) -> str | None:
        """Write the blobs; return a note if that was not possible, else None."""
        for session_id, (label, began) in self._devices.items():
            self._end_device(label, session_id, began, time.time())

        self._devices.clear()

        # The reports of these tests may never arrive: readers complete what has no end.
        self._tests.clear()

        status = Status.FAILED if self._has_failed else Status.PASSED
        if self._is_interrupted:
            status = Status.INTERRUPTED
        self._keep(RunEnded(status, time.time()))

        try:
            self._directory.finish()
        except (OSError, InvalidLinesError) as error:
            return self._directory.problem(error)

        return None

    def _keep(self, line: Line) -> None:
        """Write a line. A directory that cannot be written is noted once, and the tests go on."""
        if self._is_broken:
            return

        try:
            self._directory.add(_masked(line, self._redactor))
        except OSError as error:
            self._is_broken = True
            self._terminal.note(self._directory.problem(error))


def run_of_ci(environ: Mapping[str, str]) -> str | None:
    """Return what a CI service calls this run, the same in all its shards; None outside of CI.

    >>> run_of_ci({"GITHUB_RUN_ID": "17", "GITHUB_RUN_ATTEMPT": "2"})
    '17-2'
    """
    for names in _RUN_VARIABLES:
        values = [environ[name] for name in names if environ.get(name)]
        if values:
            return "-".join(values)

    return None


def _masked(line: Line, redactor: Redactor) -> Line:
    """Return a line with all secrets masked, wherever they are."""

    def mask(value: Any) -> Any:
        if type(value) is str:
            return redactor.text(value)
        if issubclass(type(value), tuple):
            return tuple(mask(part) for part in value)

        if hasattr(value, "__dataclass_fields__"):
            changes = {
                name: mask(getattr(value, name)) for name in value.__dataclass_fields__
            }
            return replace(value, **changes)

        return value

    return cast("Line", mask(line))


def _location(location: tuple[str, int | None, str]) -> Location:
    path, line, _ = location
    return Location(path.replace(os.sep, "/"), (line or 0) + 1)


def _start(report: pytest.TestReport) -> float:
    return float(getattr(report, "start", 0.0)) or time.time() - report.duration


def _stop(report: pytest.TestReport) -> float:
    return float(getattr(report, "stop", 0.0)) or time.time()


def _has_failed(report: pytest.TestReport) -> bool:
    """Return whether a phase failed, even if that does not fail the run."""
    return report.failed or is_repeated(report) or QUARANTINED in vars(report)


def _status(reports: list[pytest.TestReport]) -> tuple[Status, bool]:
    """Return how an attempt ended, and whether it was to end so."""
    for report in reports:
        # pytest has no other sign of a test that was to fail and passed.
        if report.failed and "XPASS(strict)" in str(report.longrepr):
            return Status.PASSED, False

    # First: a test that skips itself or fails as expected may fail in its teardown, which fails the run.
    if any(report.failed or is_repeated(report) for report in reports):
        return Status.FAILED, False
    if any(hasattr(report, "wasxfail") and report.skipped for report in reports):
        return Status.FAILED, True
    if any(report.skipped for report in reports):
        return Status.SKIPPED, True

    return Status.PASSED, True


def _worker(report: pytest.TestReport) -> int:
    """Return the number of a pytest-xdist worker, 0 without workers."""
    digits = "".join(filter(str.isdigit, str(getattr(report, "worker_id", ""))))
    return int(digits or 0)


def _verdicts(reports: list[pytest.TestReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        if verdict := vars(report).get(VERDICT):
            yield "verdict", str(verdict)


def _failure(report: pytest.TestReport) -> AttemptFailure:
    if retried := vars(report).get(RETRIED):
        return AttemptFailure(_plain(str(retried)))

    message = error_text(report).strip()
    # What a wait waited for, and what is nearest to a locator: the error itself has none of it.
    explanation = vars(report).get(EXPLANATION, ())
    message = _plain("\n".join([message or "no error text", *explanation]))

    line: tuple[str, int] | None = vars(report).get(_FAILING_LINE)
    if line is None:
        crash = getattr(report.longrepr, "reprcrash", None)
        return AttemptFailure(message, _location(report.location) if crash else None)

    return AttemptFailure(message, Location(*line), vars(report).get(_SNIPPET, ""))


def _plain(error: str) -> str:
    """Return the text of an error for the page: it may quote texts of the app, which could mislead readers."""
    return escaped(without_colors(error))


def _steps(reports: list[pytest.TestReport]) -> Iterator[Step]:
    for report in reports:
        title = _PHASES.get(str(report.when))
        if title:
            category = "test.step" if report.when == "call" else "hook"
            yield Step(
                title,
                category,
                _start(report),
                report.duration,
                _plain(first_line(report)) if _has_failed(report) else "",
                steps=tuple(map(step_from_plain, vars(report).get(_STEPS, ()))),
            )


def _attachments(directory: str | None, start: float) -> Iterator[Attachment]:
    """Yield the files in the directory of the attempt's artifacts, without those that an earlier run left there."""
    if directory is None:
        return

    for path in written_since(Path(directory), start):
        kind = _media_type(path.name)
        yield Attachment(_attachment_name(path, kind), kind, str(path))


def _media_type(name: str) -> str:
    """Return the media type of a file by its name."""
    try:
        guessed, _ = mimetypes.guess_type(name)
    # A table of the system's, such as /etc/mime.types, is unreadable.
    except (OSError, ValueError):
        guessed = mimetypes.types_map.get(Path(name).suffix)

    return guessed or "application/octet-stream"


def _attachment_name(path: Path, kind: str) -> str:
    if kind.startswith("image/"):
        return "screenshot"
    if kind.startswith("video/"):
        return "video"
    return _NAMES.get(path.name, path.name)


def _output(report: pytest.TestReport) -> str:
    text = "".join(
        f"{title}\n{content}\n"
        for title, content in report.sections
        if title.startswith("Captured")
    )
    return text[-MAX_OUTPUT:]

"""Takes evidence of a failed test at the moment of failure, and writes it: files, ``failure.json``, ``failure.md``."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from linecache import getlines
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.controllers.appium.evidence import ALL_SECONDS
from pytest_device.plugin.output.artifacts import (
    attempt_of,
    directory_of,
    file_name,
    files_in,
    ignore_in_git,
    not_saved,
)
from pytest_device.plugin.output.failure import is_of_a_client
from pytest_device.plugin.output.recording import (
    EVIDENCE_SINCE,
    RECORDING,
    collecting_evidence,
    device_recorder,
    recorder_of,
)
from pytest_device.plugin.output.trace import attach_evidence, trace_of
from pytest_device.plugin.output.video import VIDEOS
from pytest_device.plugin.state import ACCESSES, DRIVERS
from pytest_device.redact import shown
from pytest_device.trace.failure_report import (
    MAX_LOG_LINES,
    DeviceScreen,
    FailureReport,
    ReportedDevice,
    ReportedLine,
    Source,
    Waited,
    actions_of_suite,
    failed_locator,
    last_actions,
    to_json,
    to_markdown,
)
from pytest_device.trace.recorder import actions_of, failure_of
from pytest_device.trace.screen import Screen
from pytest_device.trace.screen_parsers import ScreenError, from_page_source
from pytest_device.trace.screen_text import screen_text
from pytest_device.trace.stack import chain_of
from pytest_device.trace.tree import without_typed_secrets
from pytest_device.trace.values import Action, Frame, Locator, filled_in

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.sessions.models import Session
    from pytest_device.sessions.reporter import Reporter
    from pytest_device.settings import Settings
    from pytest_device.verdict import Verdict

FAILURE_FILE: Final = "failure.json"
FAILURE_TEXT: Final = "failure.md"
CONSOLE: Final = "console.txt"
"""The console lines of a local device."""
MAX_CHECKS: Final = 5
"""Checks of a phase that are read when they fail, without ending the test: each may take as long as a failure."""
_TEXTS: Final = frozenset({".xml", ".json", ".txt", ".html", ".log"})
_LINES_AROUND: Final = 10
_MAX_FILE_LENGTH: Final = 16 * 1024 * 1024
"""Characters of a text that is saved."""
_MIN_POLLS: Final = 3
"""How often a look-up is repeated by a wait, and hardly by anything else."""
_WHOLE_SECOND: Final = timedelta(seconds=1)
"""Phones tell their time in whole seconds: log lines of up to a second before the last action are shown, too."""
_HIDDEN: Final = frozenset({"remote_config", "launchArgs", "openUrl"})
"""Connection details, which give access to the device, and launch arguments, any part of which may be a credential.

The document's session has no launch arguments, but a service may return what it was sent.
"""

_logger: Final = logging.getLogger("pytest_device")

LocalRecord = Callable[[str, Callable[[str], object]], Iterator[tuple[str, bytes]]]
"""Reads what a local service shows about a session, by the URL of its page."""


@dataclass(frozen=True, slots=True)
class _Clock:
    """A device's time, None if it is unknown, and the time on the recorder's clock when it was read."""

    now: datetime | None
    at: float

    def time_of(self, at: float) -> datetime | None:
        """Return the device's time at a time on the recorder's clock."""
        if self.now is None:
            return None

        age = timedelta(milliseconds=self.at - at)
        if not self.now.microsecond:
            age += _WHOLE_SECOND

        try:
            return self.now - age
        except OverflowError:  # the device's clock was never set
            return None


@dataclass(slots=True)
class Evidence:
    """What was taken from the devices of a failed test, masked."""

    directory: Path
    actions: Sequence[Action] = ()
    now: float = 0.0
    """The time of the failure on the recorder's clock."""
    screens: list[DeviceScreen] = field(default_factory=list[DeviceScreen])
    log: list[ReportedLine] = field(default_factory=list[ReportedLine])
    frames: Sequence[Frame] = ()
    """The lines of the suite that failed, the innermost first."""
    error: BaseException | None = None
    """The error of the test, or of a check that failed without ending it."""
    files: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    def miss(self, line: str) -> None:
        """Note what can't be collected: it never fails a test that has failed already."""
        _logger.warning(line)
        self.missing.append(line)


@dataclass(slots=True)
class _Checks:
    """What was taken when checks failed that do not end the test, in the current phase."""

    taken: list[Evidence] = field(default_factory=list[Evidence])
    left_out: int = 0
    raised: BaseException | None = None
    """What the test then raised itself: the plugin whose checks they are may report an error of its own in its place."""


_CHECKS: Final = pytest.StashKey[_Checks]()
_BEFORE_TEAR_DOWN: Final = pytest.StashKey[Evidence]()
"""What was taken before the ``tearDown`` of unittest, which is a part of the test for pytest."""
_FAILURES: Final = pytest.StashKey[dict[Path, int]]()
"""The number of failures that were taken of a test, by the directory of each attempt: one with subtests or checks may have several."""
_NO_FAILURES: Final = (
    pytest.skip.Exception,
    pytest.xfail.Exception,
    pytest.exit.Exception,
)
"""unittest reports them as errors; its own ways to skip or to expect a failure have methods of their own."""


class EvidenceTaker:
    """Takes the evidence of failed tests, within 45 seconds for each."""

    def __init__(
        self,
        config: pytest.Config,
        settings: "Settings",
        reporter: "Reporter",
        local_record: LocalRecord | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take none yet; ``local_record`` is None if the service is not this run's own."""
        self._settings = settings
        self._reporter = reporter
        self._recorder = recorder_of(config)
        self._local_record = local_record
        self._clock = clock

    def take(
        self, item: pytest.Item, sessions: "Mapping[str, Session]"
    ) -> Evidence | None:
        """Read the devices that a failed test still has, and save their files; None without devices.

        If they cannot be written, a note gives the reason, so that this error does not replace the test's own.
        """
        checks = item.stash.get(_CHECKS, _Checks())
        evidence = item.stash.get(_BEFORE_TEAR_DOWN, None)
        if evidence is not None:
            del item.stash[_BEFORE_TEAR_DOWN], item.stash[EVIDENCE_SINCE]
        elif checks.taken and not checks.raised:
            evidence = checks.taken[0]
        elif sessions:
            evidence = self._read(item, sessions)
        if evidence is None:
            return None

        evidence.files += [
            _relative(path, evidence) for path in item.stash.get(VIDEOS, ())
        ]
        _name_directory(item, directory_of(item, self._settings))
        return evidence

    def _read(
        self, item: pytest.Item, sessions: "Mapping[str, Session]"
    ) -> Evidence | None:
        evidence = self._new_evidence(item, self._next_directory(item))

        try:
            # First, so that the note is the same as for the receipt.
            evidence.directory.parent.mkdir(parents=True, exist_ok=True)
            ignore_in_git(self._settings, item.config)
            with collecting_evidence(self._recorder):
                self._save_devices(item, sessions, evidence)
        except OSError as error:
            self._reporter.note(not_saved(evidence.directory.parent, error))
            return None

        return evidence

    def _next_directory(self, item: pytest.Item) -> Path:
        """Return the directory for the next failure of an attempt: that of the test, then one below it for each subtest."""
        directory = directory_of(item, self._settings)
        failures = item.stash.setdefault(_FAILURES, {})
        number = failures[directory] = failures.get(directory, 0) + 1
        return directory / f"failure-{number}" if number > 1 else directory

    def take_of_check(
        self, item: pytest.Item, sessions: "Mapping[str, Session]", message: str
    ) -> None:
        """Read the devices when a check fails that does not end its test; of many in a phase, of the first few only."""
        checks = item.stash.setdefault(_CHECKS, _Checks())
        if not sessions:
            return
        if len(checks.taken) == MAX_CHECKS:
            checks.left_out += 1
            return

        error = _handled(message) or AssertionError(message)
        frames = self._frames_of_check(error)
        failing = self._recorder.failing_action(error, frames)
        self._recorder.error(error, frames)

        directory = directory_of(item, self._settings)
        if directory not in item.stash.get(_FAILURES, {}):
            _remove_earlier(directory)

        since = self._recorder.now()
        with collecting_evidence(self._recorder):
            evidence = self._read(item, sessions)

        recording = item.stash.get(RECORDING, None)
        if recording:
            attach_evidence(self._recorder, failing, recording, since)
        if evidence:
            evidence.error = error
            evidence.frames = frames
            checks.taken.append(evidence)

    def _frames_of_check(self, error: BaseException) -> Sequence[Frame]:
        """Return the lines that led to a failed check, the innermost first: those of its error, then those around."""
        stack = self._recorder.stack
        inner = stack.of(error.__traceback__)
        outer, _ = stack.now()
        # Where the check is a block, its line, beside the one in the block.
        if inner and outer and inner[-1].function == outer[0].function:
            outer = outer[1:]

        return [*inner, *outer]

    def note_raised(self, item: pytest.Item, error: BaseException) -> None:
        """Note the error that a test raises itself: checks that failed before are not the moment of its failure."""
        item.stash.setdefault(_CHECKS, _Checks()).raised = error

    def of_check(self, item: pytest.Item) -> Evidence | None:
        """Return what was taken of the first check that failed in the current phase, None if none did."""
        checks = item.stash.get(_CHECKS, _Checks())
        if not checks.taken:
            return None

        _name_directory(item, checks.taken[0].directory)
        return checks.taken[0]

    def forget_checks(self, item: pytest.Item) -> None:
        """Remove what was taken of the checks of a phase that does not fail: their failure was expected."""
        checks = item.stash.get(_CHECKS, _Checks())
        for evidence in reversed(checks.taken):
            for name in evidence.files:
                path = evidence.directory / name
                with suppress(OSError):
                    path.unlink()
                    # Other files of the test keep their directory.
                    path.parent.rmdir()

            with suppress(OSError):
                evidence.directory.rmdir()

        item.stash[_CHECKS] = _Checks()

    @contextmanager
    def before_tear_down(
        self, item: pytest.Item, sessions: "Callable[[], Mapping[str, Session]]"
    ) -> Generator[None]:
        """Read the devices of a method of unittest when it fails in the block, before its ``tearDown``.

        Most suites quit their driver there. unittest reports an error to its result, which is the item, as soon as it
        occurs; pytest asks for a report only after ``tearDown``.
        """
        if _BEFORE_TEAR_DOWN in item.stash:  # of an attempt whose failure was expected
            del item.stash[_BEFORE_TEAR_DOWN], item.stash[EVIDENCE_SINCE]

        is_expected = item.get_closest_marker("xfail") is not None
        reporters = [name for name in ("addError", "addFailure") if hasattr(item, name)]
        if is_expected or not reporters:
            yield
            return

        def take_first(report: Callable[..., object]) -> Callable[..., object]:
            def reported(testcase: object, error: tuple[Any, ...]) -> object:
                is_failure = not isinstance(error[1], _NO_FAILURES)
                if is_failure and _BEFORE_TEAR_DOWN not in item.stash:
                    self._take_before_tear_down(item, sessions())
                return report(testcase, error)

            return reported

        for name in reporters:
            setattr(item, name, take_first(getattr(item, name)))
        try:
            yield
        finally:
            for name in reporters:
                delattr(item, name)

    def _take_before_tear_down(
        self, item: pytest.Item, sessions: "Mapping[str, Session]"
    ) -> None:
        if not sessions:
            return

        since = self._recorder.now()
        evidence = self._read(item, sessions)
        if evidence is not None:
            item.stash[EVIDENCE_SINCE] = since
            item.stash[_BEFORE_TEAR_DOWN] = evidence

    def save_logs(self, item: pytest.Item, sessions: "Mapping[str, Session]") -> None:
        """Save the logs of the devices of a test that did not fail; what can't be saved is a note."""
        evidence = Evidence(directory_of(item, self._settings))
        until = self._clock() + ALL_SECONDS

        try:
            for name, session in sessions.items():
                folder = evidence.directory / file_name(name)
                for file, content in self._logs(item, name, session, evidence, until):
                    folder.mkdir(parents=True, exist_ok=True)
                    self._write(folder / file, content, evidence)

            if evidence.files:
                ignore_in_git(self._settings, item.config)
        except OSError as error:
            self._reporter.note(not_saved(evidence.directory.parent, error))

    def _logs(
        self,
        item: pytest.Item,
        name: str,
        session: "Session",
        evidence: Evidence,
        until: float,
    ) -> Iterator[tuple[str, bytes]]:
        driver = _driver_of(item, name)
        if driver is not None:
            from pytest_device.controllers.appium.evidence import logs_of

            left = max(0.0, until - self._clock())
            yield from logs_of(driver, seconds=left, missing=evidence.miss)

            return

        # What a local device shows besides its console belongs to a failure.
        for file, content in self._local_pieces(session, evidence):
            if file == CONSOLE:
                yield file, content

    def begin_teardown(self, item: pytest.Item) -> None:
        """Note that the teardown of a test begins: checks that fail from now on belong to it."""
        item.stash[_CHECKS] = _Checks()

    def _new_evidence(self, item: pytest.Item, directory: Path) -> Evidence:
        recording = item.stash.get(RECORDING, None)
        # A copy, since reading the devices adds actions.
        actions = list(recording.actions) if recording else []
        return Evidence(directory, actions, self._recorder.now())

    def _save_devices(
        self, item: pytest.Item, sessions: "Mapping[str, Session]", evidence: Evidence
    ) -> None:
        until = self._clock() + ALL_SECONDS
        for name, session in sessions.items():
            self._save_device(item, name, session, evidence, until)

    def save_without_devices(
        self, item: pytest.Item, files: Mapping[str, str], page: str | None
    ) -> Evidence | None:
        """Save files of a test that got no device, with what a local service shows about the session of ``page``.

        Return None if there are none, or if they cannot be written.
        """
        evidence = Evidence(directory_of(item, self._settings))
        record: dict[str, bytes] = {}
        if self._local_record and page:
            record = dict(self._local_record(page, evidence.miss))

        try:
            _remove_earlier(evidence.directory)
            if not (files or record):
                return None

            evidence.directory.mkdir(parents=True, exist_ok=True)
            ignore_in_git(self._settings, item.config)

            for name, content in record.items():
                self._write(evidence.directory / name, content, evidence)
        except OSError as error:
            self._reporter.note(not_saved(evidence.directory.parent, error))
            return None

        self.add_files(evidence, files)
        _name_directory(item, evidence.directory)
        return evidence

    def add_files(self, evidence: Evidence, files: Mapping[str, str]) -> None:
        """Save more files of a test, by name."""
        try:
            for name, text in files.items():
                content = text.encode(errors="replace")
                self._write(evidence.directory / name, content, evidence)
        except OSError as error:
            self._reporter.note(not_saved(evidence.directory.parent, error))

    def write_report(
        self,
        item: pytest.Item,
        sessions: "Mapping[str, Session]",
        evidence: Evidence,
        raised: BaseException,
        traceback: TracebackType | None,
        when: str,
        cause: BaseException | None,
        verdict: "Verdict | None",
    ) -> Sequence[str]:
        """Write ``failure.json`` and ``failure.md``; return what the error itself does not say, a line each.

        ``cause`` is the error that explains the failure if it is not the test's own. Each check that failed before
        without ending the test has these files, too.
        """
        checks = item.stash.get(_CHECKS, _Checks())
        item.stash[_CHECKS] = _Checks()
        if checks.left_out:
            evidence.miss(
                f"{checks.left_out} more checks failed: the devices were read for the first {MAX_CHECKS} only"
            )

        further = [check for check in checks.taken if check is not evidence]
        evidence.files += [
            _relative(check.directory / FAILURE_TEXT, evidence) for check in further
        ]
        if not evidence.error:
            evidence.error = checks.raised or raised
            if evidence.error is not raised:
                traceback = evidence.error.__traceback__
            evidence.frames = self._recorder.stack.of(traceback)

        lines: Sequence[str] = ()
        # In this order: with the first one goes what an earlier run left.
        for failure in sorted([*further, evidence], key=lambda one: one.now):
            error = failure.error or raised
            if failure is evidence:
                lines = self._write_failure(
                    item,
                    sessions,
                    failure,
                    error,
                    when,
                    cause or raised,
                    verdict,
                )
            else:
                self._write_failure(item, sessions, failure, error, when, error, None)

        return [*lines, *(_line_of_check(check, evidence) for check in further)]

    def _write_failure(
        self,
        item: pytest.Item,
        sessions: "Mapping[str, Session]",
        evidence: Evidence,
        raised: BaseException,
        when: str,
        cause: BaseException,
        verdict: "Verdict | None",
    ) -> Sequence[str]:
        """Write the files of one failure."""
        failure = failure_of(cause)
        files = list(evidence.files)
        if trace := trace_of(item):
            # It is written when the attempt is over.
            files.append(_relative(trace, evidence))

        raising = _raising(evidence, raised)
        waited = _waited(evidence, raised, raising)
        locator, failed_on = None, ""
        if any(map(is_of_a_client, chain_of(raised))):
            locator, failed_on = _locator(evidence, raising, waited)

        report = FailureReport(
            test=item.nodeid,
            attempt=attempt_of(item),
            when=when,
            error_type=failure.name,
            error_message=failure.message,
            verdict=str(verdict or "test"),
            source=self._source(evidence.frames),
            actions=last_actions(evidence.actions, evidence.now),
            waited=waited,
            locator=locator,
            failed_on=failed_on,
            devices=[
                _reported(name, session, has_page=self._local_record is None)
                for name, session in sessions.items()
            ],
            screens=evidence.screens,
            log=evidence.log[-MAX_LOG_LINES:],
            files=sorted(files),
            missing=evidence.missing,
        )
        masked = self._recorder.masker.value(report)

        try:
            _remove_earlier(evidence.directory, files)
            # "replace": what an app shows may have half a character, which no encoding has.
            text = json.dumps(to_json(masked), indent=2, ensure_ascii=False)
            (evidence.directory / FAILURE_FILE).write_text(
                f"{text}\n", "utf-8", "replace"
            )
            (evidence.directory / FAILURE_TEXT).write_text(
                to_markdown(masked), "utf-8", "replace"
            )
        except OSError as error:
            self._reporter.note(not_saved(evidence.directory.parent, error))

        lines = list(masked.lines())
        missing = masked.missing_line()
        if missing:
            lines.append(missing)
        return lines

    def _save_device(
        self,
        item: pytest.Item,
        name: str,
        session: "Session",
        evidence: Evidence,
        until: float,
    ) -> None:
        """Save the files of one device."""
        folder = evidence.directory / file_name(name)
        folder.mkdir(parents=True, exist_ok=True)

        for file, piece in self._pieces(item, name, session, evidence, until):
            if isinstance(piece, Screen):
                self._add_screen(name, piece, folder, evidence)
            else:
                content = piece
                if file == "source.xml":
                    content = self._read_source(name, piece, folder, evidence)

                self._write(folder / file, content, evidence)

    def _pieces(
        self,
        item: pytest.Item,
        name: str,
        session: "Session",
        evidence: Evidence,
        until: float,
    ) -> Iterator[tuple[str, bytes | Screen]]:
        yield "session.json", _session_json(session)

        left = max(0.0, until - self._clock())
        driver = _driver_of(item, name)
        if driver is not None:
            yield from self._driver_pieces(name, driver, left, evidence)

        access = item.stash[ACCESSES].get(name) if ACCESSES in item.stash else None
        if access is not None:
            from pytest_device.controllers.evidence import evidence_on

            yield from evidence_on(
                session,
                access.environment,
                recorder=device_recorder(item.config, name, session),
                seconds=left,
                missing=evidence.miss,
            )

        for file, content in self._local_pieces(session, evidence):
            if file == CONSOLE:
                # An Appium driver has the same lines as logs.
                if driver is not None:
                    continue

                self._add_console(item, name, session, content.decode(), evidence)

            yield file, content

    def _driver_pieces(
        self, name: str, driver: "WebDriver", seconds: float, evidence: Evidence
    ) -> Iterator[tuple[str, bytes]]:
        from pytest_device.controllers.appium.evidence import evidence_of

        clock = self._clock_of(None)
        for file, content in evidence_of(
            driver, seconds=seconds, missing=evidence.miss
        ):
            # It comes before the logs, whose lines are chosen by the device's clock.
            if file == "app.json":
                clock = self._clock_of(json.loads(content).get("time"))
            elif file.endswith(".txt"):
                evidence.log += _since_last_action(
                    name,
                    file,
                    content.decode(),
                    clock,
                    evidence,
                )

            yield file, content

    def _local_pieces(
        self, session: "Session", evidence: Evidence
    ) -> Iterator[tuple[str, bytes]]:
        """Yield what the run's own service shows about a session; no console without lines."""
        if self._local_record and session.url:
            for file, content in self._local_record(session.url, evidence.miss):
                if content or file != CONSOLE:
                    yield file, content

    def _add_console(
        self,
        item: pytest.Item,
        name: str,
        session: "Session",
        text: str,
        evidence: Evidence,
    ) -> None:
        """Add the lines of a local device's console to the trace, and the last ones to the failure."""
        clock = self._clock_of(None)
        evidence.log += _since_last_action(name, CONSOLE, text, clock, evidence)

        began = evidence.actions[0].start if evidence.actions else evidence.now
        # The session may be older than the test.
        lines = _since(text, clock.time_of(began))
        recorder = device_recorder(item.config, name, session)
        recorder.log("console", ((_level(line), line) for line in lines))

    def _clock_of(self, device_time: object) -> _Clock:
        """Return the clock of a device from the time that it reports; that of a local device is this machine's."""
        now = datetime.now(UTC) if self._local_record else _time(str(device_time))
        return _Clock(now, self._recorder.now())

    def _read_source(
        self, name: str, content: bytes, folder: Path, evidence: Evidence
    ) -> bytes:
        """Add the elements of a page source; return it without the contents of password fields."""
        source = content.decode(errors="replace")
        try:
            self._add_screen(name, from_page_source(source), folder, evidence)
        except ScreenError as error:
            evidence.miss(f"no elements of the screen: {error}")

        return without_typed_secrets(source).encode(errors="replace")

    def _add_screen(
        self, name: str, screen: Screen, folder: Path, evidence: Evidence
    ) -> None:
        masked = self._recorder.masker.value(screen)

        evidence.screens.append(DeviceScreen(name, masked))
        text = f"{screen_text(masked)}\n".encode(errors="replace")
        self._write(folder / "screen.txt", text, evidence)

    def _write(self, path: Path, content: bytes, evidence: Evidence) -> None:
        if path.suffix in _TEXTS:
            text = content.decode(errors="replace")
            masked = self._recorder.masker.text(text, max_length=_MAX_FILE_LENGTH)
            content = masked.encode(errors="replace")

        path.write_bytes(content)
        evidence.files.append(path.relative_to(evidence.directory).as_posix())

    def _source(self, frames: Sequence[Frame]) -> Source | None:
        """Return the failing line of the suite, with the calls that led to it; None without frames."""
        if not frames:
            return None

        stack = self._recorder.stack
        failing = frames[0]
        first = max(1, failing.line - _LINES_AROUND)
        path = stack.files[failing.file]
        lines = getlines(path)[first - 1 : failing.line + _LINES_AROUND]

        return Source(
            file=failing.file,
            line=failing.line,
            function=failing.function,
            first=first,
            lines=[text.rstrip("\n") for text in lines],
            calls=[
                f"{frame.file}:{frame.line} in {frame.function}"
                for frame in reversed(frames)
            ],
        )


def _remove_earlier(directory: Path, files: Collection[str] = ()) -> None:
    """Remove what an earlier run saved of a failure of the same test, unless this one has written it anew.

    An old video or session page would pass for one of this failure. Files of the test itself are not listed.
    """
    for further in directory.glob("failure-*"):
        _remove_earlier(further)

    try:
        earlier = json.loads((directory / FAILURE_FILE).read_text("utf-8"))
        listed = {str(name) for name in earlier["files"]}
    # There is none, or it is another program's.
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return

    removed = (listed | {FAILURE_FILE, FAILURE_TEXT}) - {*files}
    for path in files_in(directory):
        if path.relative_to(directory).as_posix() in removed:
            path.unlink(missing_ok=True)


def _relative(path: Path, evidence: Evidence) -> str:
    """Return a file of the test as a path relative to the directory of one of its failures."""
    return Path(os.path.relpath(path, evidence.directory)).as_posix()


def _name_directory(item: pytest.Item, directory: Path) -> None:
    """Add the directory of a test's artifacts to the properties of its reports."""
    pair = ("device_artifacts", str(directory))
    if pair not in item.user_properties:
        item.user_properties.append(pair)


def _driver_of(item: pytest.Item, name: str) -> "WebDriver | None":
    return item.stash[DRIVERS].get(name) if DRIVERS in item.stash else None


def _session_json(session: "Session") -> bytes:
    facts = session.model_dump(mode="json", by_alias=True, exclude=set(_HIDDEN))
    if session.application_archive_url:
        facts["applicationArchiveUrl"] = shown(session.application_archive_url)

    return (json.dumps(facts, indent=2) + "\n").encode()


def _reported(name: str, session: "Session", *, has_page: bool) -> ReportedDevice:
    return ReportedDevice(
        name=name,
        platform=str(session.platform),
        type=str(session.type),
        model=session.device_name or "",
        session=str(session.id),
        page=session.url or "" if has_page else "",
    )


def _handled(message: str) -> BaseException | None:
    """Return the error that a check handles now, None if its message is about another one or none."""
    error = sys.exception()
    if error is None:
        return None

    first_line = failure_of(error).message.strip().partition("\n")[0]
    return error if first_line and first_line in message else None


def _line_of_check(check: Evidence, evidence: Evidence) -> str:
    """Return a line about a check beside the main failure: where it is, and what shows it."""
    at = f" at {check.frames[0].file}:{check.frames[0].line}" if check.frames else ""
    return f"check{at}: {_relative(check.directory / FAILURE_TEXT, evidence)}"


def _raising(evidence: Evidence, error: BaseException) -> list[Action]:
    """Return the commands and waits that raised an error or led to it, the latest first."""
    actions = list(actions_of(error))
    # By name, since Selenium is loaded only by tests that use it.
    names = [type(link).__name__ for link in chain_of(error)]
    if not actions and "TimeoutException" in names:
        # Without its traceback, the error says nothing of its wait.
        actions = [action for action in evidence.actions if action.wait][-1:]

    return actions


def _waited(
    evidence: Evidence, error: BaseException, raising: Sequence[Action]
) -> Waited | None:
    """Return the polling wait that ended with an error or led to it, None if there was none."""
    for action in raising:
        if action.wait is None:
            continue

        # The devices may have been read before it was known to end with this error.
        ended = evidence.now if action.end is None else min(action.end, evidence.now)
        return Waited(
            condition=action.wait.condition,
            timeout_seconds=action.wait.timeout_seconds,
            seconds=round((ended - action.start) / 1000, 3),
            locator=_locator(evidence, [action])[0],
            message=action.wait.message,
        )

    return _polled(evidence, error)


def _polled(evidence: Evidence, error: BaseException) -> Waited | None:
    """Return what a loop of the suite or of a library repeated at last, None if it was no wait."""
    names = " ".join(type(link).__name__ for link in chain_of(error))

    for action in reversed(actions_of_suite(evidence.actions)):
        if action.is_acting:
            return None

        is_wait = "Timeout" in names or _has_pauses(action, evidence)
        if action.times >= _MIN_POLLS and is_wait:
            ended = evidence.now if action.end is None else action.end
            seconds = round((ended - action.start) / 1000, 3)
            return Waited(
                condition=filled_in(action.title, action.params),
                timeout_seconds=_timeout_of(error, seconds),
                seconds=seconds,
                locator=action.locator,
                polls=action.times,
            )

    return None


def _has_pauses(repeated: Action, evidence: Evidence) -> bool:
    """Return whether the suite mostly paused while it repeated an action: a loop over elements does not."""
    end = repeated.end or evidence.now
    busy = sum(
        action.end - action.start
        for action in evidence.actions
        if action.kind == "command"
        and action.end is not None
        and repeated.start <= action.start < end
    )

    return busy <= (end - repeated.start) / 2


def _timeout_of(error: BaseException, seconds: float) -> float | None:
    """Return the timeout of the function that gave up after ``seconds``, None if it has no variable of that name.

    From its local variables and attributes: the libraries and loops that poll have nothing else in common. A value that
    does not fit the time is another timeout, or in another unit.
    """
    for link in chain_of(error):
        frames = [frame for frame, _line in walk_tb(link.__traceback__)]
        for frame in reversed(frames):
            variables = frame.f_locals
            attributes = getattr(variables.get("self"), "__dict__", {})
            for name, value in [*variables.items(), *attributes.items()]:
                if (
                    "timeout" in name.lower()
                    and type(value) in {int, float}
                    and value / 2 <= seconds <= value * 1.5 + 1
                ):
                    return float(value)

    return None


def _locator(
    evidence: Evidence, raising: Sequence[Action], waited: Waited | None = None
) -> tuple[Locator | None, str]:
    """Return the locator that failed, and the name of the device that was searched for it."""
    if not raising:
        locator, device = failed_locator(evidence.actions)
        return (waited.locator if waited else None) or locator, device

    action = raising[0]
    if action.locator:
        return action.locator, action.device.name if action.device else ""

    polls = [poll for poll in evidence.actions if poll.parent == action.key]
    return failed_locator(polls)


def _since_last_action(
    device: str, file: str, text: str, clock: _Clock, evidence: Evidence
) -> Iterator[ReportedLine]:
    """Yield the lines of a log since the last action that may have changed the screen.

    The times are the device's: how far its clock is from this one's is known from ``clock``.
    """
    since: datetime | None = None
    for action in reversed(evidence.actions):
        if action.is_acting:
            since = clock.time_of(action.start)
            break

    for line in _since(text, since):
        yield ReportedLine(device, Path(file).stem, line)


def _since(text: str, since: datetime | None) -> Iterator[str]:
    """Yield the lines of a log from a time on; a line without a time belongs to the one before."""
    is_recent = since is None
    for line in text.splitlines():
        at = _time(line.partition(" ")[0])
        if at is not None and since is not None:
            is_recent = at >= since
        if is_recent:
            yield line


def _level(line: str) -> str:
    """Return the level of a console line, its second word."""
    _time_of_line, _, rest = line.partition(" ")
    level, _, _message = rest.partition(" ")
    return level


def _time(text: str) -> datetime | None:
    """Return the time that a text is, in this machine's zone if it names none; None for any other text.

    A log may begin a line with any date, such as the year 1 of an unset one, which another zone may not have.
    """
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo else at.astimezone()
    except (ValueError, OverflowError):
        return None

"""Connects tests with the recorder of their devices: which test, which attempt, which folder, which option."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

import pytest

from pytest_device.errors import NotAttemptedError
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.places import path_from
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output import artifacts
from pytest_device.plugin.output.failure import add_section
from pytest_device.plugin.output.recording import (
    EVIDENCE_SINCE,
    RECORDING,
    collecting_evidence,
    recorder_of,
)
from pytest_device.plugin.output.terminal import EXPLANATION, error_of
from pytest_device.plugin.selection import requests_device
from pytest_device.plugin.state import FAILED, requirements_of
from pytest_device.spec import SessionType
from pytest_device.trace.playwright import (
    ARCHIVE,
    PlaywrightTrace,
    TestInfo,
    archive,
    left_over,
)
from pytest_device.trace.recorder import CURRENT, Recorder, failure_of, note_action
from pytest_device.trace.recording import Recording
from pytest_device.trace.screen_text import screen_text
from pytest_device.trace.values import (
    DEVICE_WAIT,
    Action,
    Attachment,
    Frame,
    Value,
)

if TYPE_CHECKING:
    from pytest_device.sessions.reporter import Reporter

_TRACE: Final = pytest.StashKey["_SafeTrace"]()
_OWN_DRIVER: Final = "no commands: those of an Appium driver that the suite made itself are not recorded, those of device_driver are"
_MAX_TREE_LINES: Final = 2_000
_PLUGIN_MODULES: Final = ("pytest_device", "_pytest", "pytest_")
"""Beginnings of the modules of plugins, whose fixtures are no steps of a test."""


@contextmanager
def waiting_for_device(config: pytest.Config) -> Generator[None]:
    """Record the wait for a device in the block as an action without a length, with the error if there is none.

    The trace's clock stands still meanwhile: otherwise the film strip would be a stamp at the edge.
    """
    recorder = recorder_of(config)
    if not recorder.is_active:
        yield
        return

    before = recorder.now()
    try:
        yield
    except NotAttemptedError:
        # It waited for nothing, and so do all tests after it.
        raise
    except Exception as error:
        _add_wait(recorder, before, error)
        raise

    _add_wait(recorder, before)


def _add_wait(
    recorder: Recorder, before: float, error: BaseException | None = None
) -> None:
    waited = recorder.now() - before
    recorder.skip(waited / 1000)

    with recorder.step(
        "Wait for device, {seconds} s",
        method=DEVICE_WAIT,
        params={"seconds": round(waited / 1000, 1)},
        stack=(),
    ) as opened:
        if opened and error:
            opened.error = failure_of(error)

    if opened and error:
        note_action(error, opened.action)


def trace_of(item: pytest.Item) -> Path | None:
    """Return where the trace of the current attempt will be; None if it has none, or if it cannot be written."""
    trace = item.stash.get(_TRACE, None)
    return trace.path if trace else None


def attach_evidence(
    recorder: Recorder, failing: Action, recording: Recording, since: float
) -> None:
    """Attach to a failing action what the devices showed from a time on, and show what its own did, else the last used."""
    recorder.attach(failing, *_attachments(recording, since))

    used = [action.device for action in recording.actions if action.device]
    device = failing.device or (used[-1] if used else None)
    if device is None:
        return

    picture = recording.pictures.get(device.key)
    if picture and picture.time >= since:
        recorder.add(replace(picture, action=failing.key))

    tree = recording.trees.get(device.key)
    if tree and tree.time >= since:
        recorder.add(replace(tree, action=failing.key))


class _SafeTrace:
    """A trace that ends with a note if it cannot be written, so that no test fails by it."""

    def __init__(
        self, trace: PlaywrightTrace, reporter: "Reporter", root: Path
    ) -> None:
        self.trace = trace
        self.path: Path | None = trace.path
        self._reporter = reporter
        self._root = root

    def add(self, value: Value, /) -> None:
        if self.path is None:
            return

        try:
            self.trace.add(value)
        except OSError as error:
            self.fail(error)

    def end(self, *, keep: bool) -> None:
        """Make the archive, or remove what was written."""
        if self.path is None or not keep:
            self.trace.discard()
            return

        try:
            self.trace.finish()
        except OSError as error:
            self.fail(error)

    def fail(self, error: OSError) -> None:
        self.path = None
        self._reporter.note(artifacts.not_saved(self._root, error))
        with suppress(OSError):
            self.trace.discard()


class DeviceTraces:
    """Registered as a plugin while a process runs tests with devices: one recording for each attempt at a test."""

    def __init__(self, config: pytest.Config, reporter: "Reporter") -> None:
        self._config = config
        self._reporter = reporter
        self._settings = settings_of(config)
        self._recorder = recorder_of(config)
        self._root = artifacts.root_of(self._settings, config)
        self._open: list[_SafeTrace] = []
        self._error: tuple[BaseException, Sequence[Frame]] | None = None
        """What the attempt failed with whose report is being made."""

    def finish_left_over(self) -> None:
        """Make the archives of traces that a killed run left behind."""
        try:
            for lines in left_over(self._root):
                archive(lines, lines.with_name(ARCHIVE))
        except OSError as error:
            self._reporter.note(artifacts.not_saved(self._root, error))

    # Outside of pytest's own, which sets up the fixtures, and of our own, which gets a device.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Begin an attempt."""
        has_device = bool(requirements_of(item)) or requests_device(item)
        if self._settings.trace != "off" and has_device:
            self._begin(item)

        with self._recorder.step("Set up", method="hook", stack=()):
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Record the test function."""
        path, line, _ = item.location
        frames = [Frame(path, (line or 0) + 1, item.name)]
        with self._recorder.step("Test", method="test", stack=frames):
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None]:
        """Record the teardown."""
        with self._recorder.step("Tear down", method="hook", stack=()):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Record the setup of a fixture of the suite."""
        is_of_plugin = str(fixturedef.func.__module__).startswith(_PLUGIN_MODULES)
        if is_of_plugin or not self._recorder.is_active:
            return (yield)

        frames: list[Frame] = []
        # A fixture may be any callable: not all have code.
        if hasattr(fixturedef.func, "__code__"):
            code = fixturedef.func.__code__
            name = self._recorder.stack.name_of(code.co_filename)
            frames = [Frame(name, code.co_firstlineno, fixturedef.argname)]

        with self._recorder.step(
            "Fixture {name}",
            method="fixture",
            params={"name": fixturedef.argname},
            stack=frames,
        ):
            return (yield)

    # Around everything that reports an attempt, and reads the devices of a failed one.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the error of a failed test with what its devices show; end an attempt with its last report."""
        recording = item.stash.get(RECORDING, None)
        if recording is None:
            return (yield)

        since = item.stash.get(EVIDENCE_SINCE, self._recorder.now())
        if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
            report = yield
            if report.failed:
                self._failed_by_hook(report, item, since)
        else:
            report = yield from self._failed(call.excinfo, item, since)

        if report.when == "call":
            self._add_output(report)
        if report.failed:
            self._name_trace(item, report)
        if report.when == "teardown":
            self._end(item)

        return report

    # After pytest's own, which tears down the fixtures of an interrupted test: its commands belong to the trace.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Make the archive of a test that was interrupted; remove the directory if it is empty."""
        for trace in self._open:
            trace.end(keep=True)
        self._open.clear()
        with suppress(OSError):
            self._root.rmdir()

    def _begin(self, item: pytest.Item) -> None:
        # A plugin that repeats a test may ask for no report of the teardown.
        if RECORDING in item.stash:
            if self._error:
                self._recorder.error(*self._error)
            self._end(item)

        # Also without a trace: failure.md and the report of the run are made of it.
        recording = item.stash[RECORDING] = Recording()
        self._recorder.follow(recording)
        CURRENT.recorder = self._recorder

        devices: list[tuple[str, str]] = []
        for name, requirement in requirements_of(item).items():
            request = requirement.request
            text = f"{name} {request.platform} {request.type}".strip()
            devices.append(("device", text))

        try:
            # First, so that the note is the same as for other artifacts.
            self._root.mkdir(parents=True, exist_ok=True)
            trace = PlaywrightTrace(
                artifacts.directory_of(item, self._settings),
                TestInfo(
                    item.nodeid,
                    [*devices, ("attempt", str(artifacts.attempt_of(item)))],
                ),
                now=self._recorder.now(),
                source_of=self._source,
            )
        except OSError as error:
            self._reporter.note(artifacts.not_saved(self._root, error))
            return

        safe = item.stash[_TRACE] = _SafeTrace(trace, self._reporter, self._root)
        self._open.append(safe)
        self._recorder.follow(safe)

    def _failed(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        item: pytest.Item,
        since: float,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record an error; what is read from the devices from ``since`` on belongs to the action that failed."""
        recording = item.stash[RECORDING]
        error = excinfo.value
        frames = self._frames(excinfo.tb)
        # The wait that the error ended gets it, too.
        self._recorder.end_waits(error)
        failing = self._recorder.failing_action(error, frames)
        explanation: Sequence[str] = ()
        self._error = error, frames
        try:
            with collecting_evidence(self._recorder):
                report = yield

            explanation = vars(report).get(EXPLANATION, ())
        finally:
            self._error = None
            # Else a plugin has run the test again before its report, and this is another attempt.
            if item.stash.get(RECORDING, None) is recording:
                self._recorder.error(error, frames, explanation)

        if item.stash[RECORDING] is not recording:
            if report.failed:
                self._failed_by_hook(report, item, since)
            return report

        attach_evidence(self._recorder, failing, recording, since)
        return report

    def _failed_by_hook(
        self, report: pytest.TestReport, item: pytest.Item, since: float
    ) -> None:
        """Record the error of a report that a hook of the suite or a plugin made."""
        error = error_of(report)
        failing = self._recorder.failing_action(error, ())
        self._recorder.error(error, (), vars(report).get(EXPLANATION, ()))
        attach_evidence(self._recorder, failing, item.stash[RECORDING], since)

    def _frames(self, traceback: TracebackType | None) -> Sequence[Frame]:
        return self._recorder.stack.of(traceback)

    def _add_output(self, report: pytest.TestReport) -> None:
        for text, is_error in ((report.capstdout, False), (report.capstderr, True)):
            if text:
                self._recorder.output(text, is_error=is_error)

    def _name_trace(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Name the trace of a failed test, and the command that opens it."""
        trace = item.stash.get(_TRACE, None)
        actions = item.stash[RECORDING].actions
        if trace is None or trace.path is None or not _has_device(actions):
            return

        start = item.config.invocation_params.dir
        path = str(path_from(start, trace.path))
        text = (
            f"{path}\nopen it: pytest-device trace open {SYSTEM.shell.argument(path)}"
        )
        if self._has_own_driver(item):
            text += f"\n{_OWN_DRIVER}"

        add_section(report, "trace", text)

        if ("device_trace", path) not in report.user_properties:
            report.user_properties.append(("device_trace", path))
            item.user_properties.append(("device_trace", path))

    def _has_own_driver(self, item: pytest.Item) -> bool:
        """Return whether a test got an Appium device, but no command of it was recorded."""
        requirements = requirements_of(item).values()
        if not any(
            requirement.request.type == SessionType.APPIUM
            for requirement in requirements
        ):
            return False

        actions = item.stash[RECORDING].actions
        got_device = any(
            action.method == DEVICE_WAIT and action.error is None for action in actions
        )
        return got_device and not any(action.device for action in actions)

    def _end(self, item: pytest.Item) -> None:
        """End an attempt, after its last report."""
        recording = item.stash[RECORDING]
        del item.stash[RECORDING]
        CURRENT.recorder = None
        trace = item.stash.get(_TRACE, None)
        if trace is None:
            self._recorder.unfollow(recording)
            return

        self._recorder.unfollow(recording, trace)
        del item.stash[_TRACE]
        self._open.remove(trace)
        only_failed = self._settings.trace == "retain-on-failure"
        keep = _has_device(recording.actions) and (
            not only_failed or item.stash.get(FAILED, False)
        )
        if keep:
            artifacts.ignore_in_git(self._settings, self._config)

        trace.end(keep=keep)
        if not keep:
            # Other files of the attempt keep its directory.
            with suppress(OSError):
                trace.trace.lines.parent.rmdir()

    def _source(self, name: str) -> str:
        """Return the masked text of a file of the suite, empty if it cannot be read."""
        return self._recorder.source_of(name)


def _has_device(actions: Iterable[Action]) -> bool:
    """Return whether a test got a device, or waited for one in vain."""
    return any(action.device or action.method == DEVICE_WAIT for action in actions)


def _attachments(recording: Recording, since: float) -> Generator[Attachment]:
    """Yield what the devices showed when the test failed; with several devices, each with its name."""
    for picture in recording.pictures.values():
        if picture.time >= since:
            suffix = picture.content_type.partition("/")[2]
            name = f"{picture.device.name}-" if picture.device.name else ""
            yield Attachment(
                f"{name}screen.{suffix}", picture.content_type, picture.content
            )

    for tree in recording.trees.values():
        if tree.time >= since:
            text = screen_text(tree.screen, max_lines=_MAX_TREE_LINES)
            name = f"{tree.device.name}-" if tree.device.name else ""
            yield Attachment(
                f"{name}tree.txt", "text/plain", text.encode(errors="replace")
            )

"""Records what a test and its devices do: numbers and masks the values, and hands them to the sinks."""

import json
import time
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pytest_device.escape import without_colors
from pytest_device.redact import MASK, Redactor
from pytest_device.secret_registry import SECRETS
from pytest_device.trace.masking import Masker
from pytest_device.trace.screen import Screen
from pytest_device.trace.stack import SuiteStack, WaitCall, chain_of
from pytest_device.trace.values import (
    Action,
    Attachment,
    Box,
    Device,
    Failure,
    Frame,
    Group,
    Level,
    LogLine,
    Output,
    Picture,
    Point,
    Sink,
    TestError,
    Tree,
    Value,
)

T = TypeVar("T")
V = TypeVar("V", bound=Value)

_MILLISECONDS: Final = 1000.0
_MAX_RESULT: Final = 2_000
"""Characters of a result; longer ones are cut off."""
_TIMEOUT: Final = "TimeoutException"
_ACTION: Final = "_device_action"
"""Attribute of an error: the action that raised it."""
_ADVERTISEMENT: Final = "; For documentation on this error"
"""What Selenium appends to many messages."""

_LEVELS: Final[Mapping[str, Level]] = {
    "E": "error",
    "F": "error",
    "S": "error",
    "W": "warning",
    "D": "debug",
}
"""Levels by the initial of a controller's word, such as those of logcat (``F`` for fatal) and Selenium (``SEVERE``)."""

TypedText: TypeAlias = Literal["secrets", "all"]
"""Which typed texts are masked: those typed into password fields, or all."""


class Recorder:
    """Records the values of one test after another; without sinks, it records nothing.

    Arguments:
        root: The directory of the tests.
        redactor: Masks what the run knows to be secret.
        typed_text: Which typed texts are masked.
        clock: Returns seconds.
    """

    def __init__(
        self,
        root: Path,
        redactor: Redactor,
        *,
        typed_text: TypedText = "secrets",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.masker = Masker(redactor, root)
        self.stack = SuiteStack(root)
        self.typed_text = typed_text
        self._clock = clock
        self._epoch = time.time() - clock()
        """Added to a time of the clock, it is the time of day: a suite may freeze that one."""
        self._skipped = 0.0
        """Seconds that the clock has stood still."""
        self._skips: list[tuple[float, float]] = []
        """The skips during the current test: the time before each, and its seconds."""
        self._lock = RLock()
        """Tests may use devices in threads."""
        self._count = 0
        self._sinks: list[Sink] = []
        self._open: list[Action] = []
        """Steps that have begun, the innermost last."""
        self._waits: dict[str, _OpenWait] = {}
        """The wait that is going on, by the key of its device."""
        self._last_failed: Action | None = None
        self.silences = Silences(clock)
        self.collects_evidence = False
        """Whether the commands are those that read the evidence of a failed test."""

    @property
    def is_active(self) -> bool:
        """Whether anybody wants the values."""
        return bool(self._sinks)

    def now(self) -> float:
        """Return the time in milliseconds; it stands still while a test waits for its devices."""
        return (self._clock() - self._skipped) * _MILLISECONDS

    def skip(self, seconds: float) -> None:
        """Leave a past time out of the clock: the wait for a device would squeeze all that follows."""
        self._skips.append((self.now() - seconds * _MILLISECONDS, seconds))
        self._skipped += seconds

    def time_of_day(self, milliseconds: float) -> float:
        """Return when a time of the current test was, in seconds since the epoch."""
        # What the clock has left out since then does not lie between the epoch and this time.
        later = sum(
            seconds for before, seconds in self._skips if before >= milliseconds
        )
        return self._epoch + milliseconds / _MILLISECONDS + self._skipped - later

    def follow(self, sink: Sink) -> None:
        """Hand all further values to a sink."""
        self._sinks.append(sink)

    def unfollow(self, *sinks: Sink) -> None:
        """Hand nothing more to these sinks; what belongs to the test that they followed is forgotten."""
        self._sinks = [sink for sink in self._sinks if sink not in sinks]
        if self._sinks:
            return

        self._open = []
        self._waits = {}
        self._last_failed = None
        self._skips = []
        self.collects_evidence = False

    def add(self, value: V) -> V:
        """Mask a value, hand it to the sinks and return it: the only way from a recorder to a file."""
        with self._lock:
            if not self._sinks:
                return value

            masked = self.masker.value(value)
            self._hand_over(masked)
            return masked

    def add_end(self, action: Action, error: Failure | None, result: Any) -> Action:
        """Add the end of an action that was returned by ``add``: all else in it is masked already."""
        with self._lock:
            ended = replace(
                action,
                end=self.now(),
                error=self.masker.value(error) if error else None,
                result=self.masker.value(result),
            )
            self._hand_over(ended)
            return ended

    def _hand_over(self, masked: Value) -> None:
        for sink in tuple(self._sinks):
            sink.add(masked)

    def new_key(self, prefix: str) -> str:
        with self._lock:
            self._count += 1
            return f"{prefix}@{self._count}"

    @property
    def parent(self) -> str:
        """The key of the innermost open step, empty if there is none."""
        return self._open[-1].key if self._open else ""

    def frames_now(self) -> tuple[Sequence[Frame], WaitCall | None]:
        """Return the lines of the suite that make a call now, and its wait; in a thread, at least where the step began."""
        frames, wait = self.stack.now()
        if not frames and self._open and self.stack.is_in_a_thread():
            return self._open[-1].stack, wait

        return frames, wait

    @contextmanager
    def step(
        self,
        title: str,
        *,
        method: str = "step",
        group: Group = "",
        params: Mapping[str, Any] | None = None,
        stack: Sequence[Frame] | None = None,
    ) -> "Generator[OpenAction | None]":
        """Record a step of a test around the block; yield None if nobody wants it."""
        if not self._sinks:
            yield None
            return

        frames = self.frames_now()[0] if stack is None else stack
        action = Action(
            self.new_key("step"),
            self.parent,
            self.now(),
            "step",
            "Test",
            method,
            title,
            params or {},
            frames,
            group=group,
        )
        opened = OpenAction(self, self.add(action))
        self._open.append(action)
        try:
            yield opened
        except BaseException as error:
            # Their times belong within the step.
            self.end_waits(error)
            opened.error = opened.error or self.explained(error)
            raise
        finally:
            self._close_step(opened)

    def _close_step(self, opened: "OpenAction") -> None:
        if opened.action.key not in {step.key for step in self._open}:
            return  # of a test that is over

        self.end_waits()
        self._open = [step for step in self._open if step.key != opened.action.key]
        opened.end()

    def error(
        self,
        error: BaseException,
        stack: Sequence[Frame],
        explanation: Sequence[str] = (),
    ) -> None:
        """Record the error of the test, with lines that it does not have itself."""
        explained = self.explained(error)
        message = "\n".join([explained.message, *explanation])
        self.add(TestError(self.now(), replace(explained, message=message), stack))

    def explained(self, error: BaseException) -> Failure:
        """Return an error as a value; a timeout with what was waited for: Selenium's has no message."""
        failure = failure_of(error)
        action = action_of(error)
        is_unexplained = failure.name == _TIMEOUT and not failure.message
        return action.error if is_unexplained and action and action.error else failure

    def failing_action(self, error: BaseException, stack: Sequence[Frame]) -> Action:
        """Return the action that failed the test: the command or wait that raised the error.

        If there is none, it is a new action, such as an assertion.
        """
        raising = action_of(error)
        if raising:
            return raising

        failure = failure_of(error)
        # The suite may have raised an error of its own, with the text of that of a command.
        last = self._last_failed
        if last and last.error and _is_same(last.error, failure):
            return last

        now = self.now()
        action = Action(
            self.new_key("step"), self.parent, now, "step", "Test", "fail",
            f"Fail with {failure.name}", stack=stack,
        )  # fmt: skip
        self.add(action)
        action = replace(action, end=now, error=failure)
        self.add(action)

        return action

    def attach(self, action: Action, *attachments: Attachment) -> None:
        """Add files to an action that has ended."""
        if attachments:
            self.add(replace(action, attachments=[*action.attachments, *attachments]))

    def output(self, text: str, *, is_error: bool = False) -> None:
        """Record what the test wrote."""
        self.add(Output(self.now(), text, is_error))

    def source_of(self, name: str) -> str:
        """Return the masked text of a file that a frame names, empty if it cannot be read."""
        # Only files of frames that were recorded: a name alone leads to no file.
        path = self.stack.files.get(name)
        if path is None:
            return ""

        try:
            return self.masker.text(Path(path).read_text("utf-8", "replace"))
        except OSError:
            return ""

    def note_failed(self, action: Action) -> None:
        """Remember an action that failed: it may be what fails the test."""
        self._last_failed = action

    def wait_parent(self, device: Device, call: WaitCall | None) -> str:
        """Return the key of the wait that a command belongs to, else of the innermost step."""
        with self._lock:
            current = self._waits.get(device.key)
            # A wait is over as soon as its device gets a command that is not one of its polls.
            if current and (call is None or current.call.key != call.key):
                self._end_wait(device.key)
                current = None

            if call is None:
                return self.parent
            if current is None:
                current = self._begin_wait(device, call)

            return current.action.key

    def _begin_wait(self, device: Device, call: WaitCall) -> "_OpenWait":
        wait = call.wait
        now = self.now()
        action = Action(
            self.new_key("wait"), self.parent, now, "wait", "Device", "waitFor",
            "Wait for {condition}",
            {
                "condition": str(wait.locator or wait.condition),
                "expected": wait.condition,
                "timeout_seconds": wait.timeout_seconds,
            },
            self.frames_now()[0], device, locator=wait.locator, wait=wait,
        )  # fmt: skip
        begun = _OpenWait(call, action, now)
        self._waits[device.key] = begun
        self.add(action)

        return begun

    def note_polled(self, device: Device) -> None:
        """Note that a command of the current wait has ended."""
        current = self._waits.get(device.key)
        if current:
            current.last_poll = self.now()

    def end_waits(self, error: BaseException | None = None) -> None:
        """End all waits; a timeout that led to an error is the error of the wait that raised it."""
        with self._lock:
            for link in chain_of(error) if error else ():
                self._end_raising(link)

            for key in list(self._waits):
                self._end_wait(key)

    def _end_raising(self, error: BaseException) -> None:
        """End the wait that raised a timeout."""
        if type(error).__name__ != _TIMEOUT:
            return

        calls = {call.key for call in self.stack.waits_in(error.__traceback__)}
        # Its condition may use several devices.
        raising = [key for key, wait in self._waits.items() if wait.call.key in calls]
        if raising:
            polled_last = max(raising, key=lambda key: self._waits[key].last_poll)
            self._end_wait(polled_last, error)

    def _end_wait(self, key: str, error: BaseException | None = None) -> None:
        ended = self._waits.pop(key)
        if error is None:
            # What followed is noticed later: a wait that succeeded ended with its last poll.
            self.add(replace(ended.action, end=ended.last_poll))
            return

        failure = failure_of(error)
        wait = ended.action.wait
        if wait and not failure.message:
            condition = f"{wait.condition} {wait.locator or ''}".rstrip()
            message = f"not within {wait.timeout_seconds:g} s: {condition}"
            failure = replace(failure, message=message)

        action = self.add(replace(ended.action, end=self.now(), error=failure))
        self._last_failed = action
        note_action(error, action)


class Silences:
    """The longest time in which each device got no command, so far; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        """When the last command of a device ended, by its key."""
        self._longest: dict[str, float] = {}

    def of(self, key: str) -> float | None:
        """Return the longest time in seconds, None for a device that got no command."""
        if key not in self._since:
            return None

        return max(self._longest.get(key, 0.0), self._clock() - self._since[key])

    def end(self, key: str) -> None:
        """Note that a command begins."""
        self._longest[key] = self.of(key) or 0.0

    def begin(self, key: str) -> None:
        """Note that a command has ended."""
        self._since[key] = self._clock()


class CurrentRecorder:
    """The recorder of the test that runs in this process now."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


CURRENT: Final = CurrentRecorder()
"""Set by the plugin while a test is recorded: a step that a suite names has no access to pytest."""


@contextmanager
def device_step(title: str) -> Generator[None]:
    """Show the block as a step in the trace of the test; without a trace, it does nothing.

    >>> with device_step("pay"):
    ...     total = 2 + 3
    """
    if CURRENT.recorder is None:
        yield
        return

    with CURRENT.recorder.step(title):
        yield


@dataclass(slots=True)
class _OpenWait:
    """A wait that is going on, its action, and when its last command ended."""

    call: WaitCall
    action: Action
    last_poll: float


@dataclass(slots=True)
class OpenAction:
    """An action that has begun; what is set before it ends is recorded with its end."""

    recorder: Recorder
    action: Action
    error: Failure | None = None
    result: Any = None

    def end(self) -> Action:
        """Record the end of the action.

        A piece of evidence that a device does not have is no failure of the test: its error is the result.
        """
        if self.error and self.recorder.collects_evidence:
            self.result = self.error.message
            self.error = None

        self.action = self.recorder.add_end(self.action, self.error, self.result)
        if self.error and self.action.kind == "command":
            self.recorder.note_failed(self.action)

        return self.action


@dataclass(frozen=True, slots=True)
class Command:
    """A command as its controller's recorder describes it, before masking."""

    class_name: str
    method: str
    title: str
    params: Mapping[str, Any]
    group: Group = ""
    is_acting: bool = False
    locator: Any = None
    typed: Sequence[str] = ()
    """Texts that it types and nobody may see: into a password field, into an unknown one, or anywhere if all are masked."""
    passwords: Sequence[str] = ()
    """Those of them that are typed into a password field: they are masked in all output of the run, not only in what is
    recorded. A text for an unknown field is rarely a secret, and an assertion about it would be unreadable."""


class DeviceRecorder:
    """Records the commands of one device."""

    def __init__(self, recorder: Recorder, device: Device) -> None:
        self.recorder = recorder
        self.device = device
        self.takes_pictures = False
        """Whether each acting command is followed by a picture."""
        self.last = ""
        """The key of the last action."""

    @property
    def is_active(self) -> bool:
        return self.recorder.is_active

    def begin(self, command: Command) -> OpenAction:
        """Record the beginning of a command; typed secrets are masked from here on."""
        if not self.recorder.collects_evidence:
            self.recorder.silences.end(self.device.key)
        self.recorder.masker.learn(*command.typed)
        SECRETS.learn(*command.passwords)
        frames, wait = self.recorder.frames_now()
        parent = self.recorder.wait_parent(self.device, wait)
        # The viewer hides the step of the evidence, but not what is in it.
        is_evidence = self.recorder.collects_evidence
        group: Group = "configuration" if is_evidence else command.group
        action = Action(
            self.recorder.new_key("call"), parent, self.recorder.now(), "command",
            command.class_name, command.method, command.title, command.params, frames,
            self.device, group, command.is_acting, command.locator,
        )  # fmt: skip

        return OpenAction(self.recorder, self.recorder.add(action))

    def end(self, opened: OpenAction) -> Action:
        """Record the end of a command."""
        action = opened.end()
        if not self.recorder.collects_evidence:
            self.recorder.silences.begin(self.device.key)
        self.last = action.key
        self.recorder.note_polled(self.device)
        return action

    def record(self, command: Command, send: Callable[[], T]) -> T:
        """Send a command and record it with its result."""
        opened = self.begin(command)
        raised: BaseException | None = None
        try:
            result = send()
            opened.result = bounded(result)
        except BaseException as error:
            opened.error = failure_of(error)
            raised = error
            raise
        else:
            return result
        finally:
            action = self.end(opened)
            if raised:
                note_action(raised, action)

    def picture(self, content: bytes, action: str = "") -> None:
        """Record a screenshot in PNG; anything else is ignored."""
        from pytest_device.trace.pictures import prepared

        picture = prepared(content)
        if picture is None:
            return

        self.recorder.add(
            Picture(
                self.device, self.recorder.now(), picture.content, picture.content_type,
                picture.width, picture.height, action,
            )
        )  # fmt: skip

    def mark(self, action: Action, box: Box) -> None:
        """Record where an action was: in the middle of an element."""
        point = Point(box.x + box.width / 2, box.y + box.height / 2)
        self.recorder.add(replace(action, point=point, box=box))

    def log(self, source: str, lines: Iterable[tuple[str, str]]) -> None:
        """Record lines of a device's log, each with its level."""
        now = self.recorder.now()
        for level, text in lines:
            self.recorder.add(LogLine(self.device, now, level_of(level), text, source))

    def screen(self, screen: Screen, action: str = "") -> None:
        """Record the elements of a screen."""
        self.recorder.add(Tree(self.device, self.recorder.now(), screen, action))

    def page_source(self, source: str, action: str = "") -> None:
        """Record the elements of an Appium page source; one that cannot be read is left out."""
        from pytest_device.trace.screen_parsers import ScreenError, from_page_source

        with suppress(ScreenError):
            self.screen(from_page_source(source), action)


def level_of(word: str) -> Level:
    """Return the level of a log line from a controller's word for it, such as ``WARN`` or ``E``.

    >>> [level_of(word) for word in ("SEVERE", "WARN", "D", "INFO", "")]
    ['error', 'warning', 'debug', 'info', 'info']
    """
    return _LEVELS.get(word[:1].upper(), "info")


def bounded(result: object) -> object:
    """Return a result as it is recorded: the beginning of its JSON if that is long.

    Cut before it is masked: the redactor also masks the beginning of a secret before an ellipsis.
    """
    text = json.dumps(result, default=str, ensure_ascii=False)
    return result if len(text) <= _MAX_RESULT else f"{text[:_MAX_RESULT]}…"


def failure_of(error: BaseException) -> Failure:
    """Return an exception as a value; its message is that of the client without the server's stack trace."""
    # Selenium's errors have the server's stack trace in their text, but not in this attribute.
    message = getattr(error, "msg", None)
    if not isinstance(message, str):
        message = str(error)

    shown = without_colors(message.partition(_ADVERTISEMENT)[0])
    return Failure(type(error).__name__, shown)


def note_action(error: BaseException, action: Action) -> None:
    """Note on an error which action raised it: several devices may fail alike at once, and some errors are handled."""
    # Not setattr: the class may refuse it, as a frozen dataclass does.
    vars(error)[_ACTION] = action


def action_of(error: BaseException) -> Action | None:
    """Return the command or wait that raised an error, None if none did."""
    return vars(error).get(_ACTION)


def actions_of(error: BaseException) -> Iterator[Action]:
    """Yield the commands and waits that raised an error and those that led to it, the latest first."""
    return filter(None, map(action_of, chain_of(error)))


def _is_same(of_action: Failure, of_test: Failure) -> bool:
    """Return whether a test failed by the error of an action, whose message the suite may have added to."""
    if of_action == of_test:
        return True

    first_line = of_action.message.partition("\n")[0]
    return first_line != "" and first_line in of_test.message


def masked_typed(value: Any, typed: Collection[str]) -> Any:
    """Return parameters with the typed texts replaced, also if they are too short for masking elsewhere.

    >>> masked_typed({"text": "42", "count": 42, "keys": ["4", "2"]}, {"42", "4", "2"})
    {'text': '***', 'count': 42, 'keys': ['***', '***']}
    """
    match value:
        case str():
            return MASK if value in typed else value
        case dict():
            return {name: masked_typed(item, typed) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [masked_typed(item, typed) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value

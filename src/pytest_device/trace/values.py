"""What a test and its devices did, as frozen values. All texts in them are masked already."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from pytest_device.trace.screen import Screen

Group: TypeAlias = Literal["", "getter", "configuration"]
"""``getter`` and ``configuration`` are noise: Playwright's viewer hides them unless asked."""

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

DEVICE_WAIT: Final = "waitForDevice"
"""Method of the action in which a test waits for its devices."""
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_MAX_POLLED: Final = 8
"""Look-ups of which one round of a wait consists at most."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the suite that made a call; ``file`` is relative to the root of the tests."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A position on a device's screen, in the units of its tree."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Box:
    """The bounds of an element, in the units of its tree."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Failure:
    """An error: its kind, such as ``no such element`` or ``AssertionError``, and its message."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Locator:
    """How the suite looks for an element, such as ``accessibility id`` and ``sign-in``."""

    using: str
    value: str

    def __str__(self) -> str:
        return f"{self.using} {self.value!r}"


@dataclass(frozen=True, slots=True)
class Wait:
    """A polling wait, such as Selenium's: what it waits for, and for how many seconds at most.

    ``condition`` is the name of the condition, such as ``presence_of_element_located``.
    """

    condition: str
    timeout_seconds: float
    locator: Locator | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a test. ``key`` is unique in a process, ``name`` that of its marker."""

    key: str
    name: str
    platform: str
    controller: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of an action."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Action:
    """A command of a device, a wait, or a step of a test.

    Recorded when it begins, with ``end`` None, and again, under the same ``key``, when it ends and
    when something is added to it. Times are milliseconds of the recorder's clock.
    """

    key: str
    parent: str
    start: float
    kind: Literal["command", "wait", "step"]
    class_name: str
    method: str
    title: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stack: Sequence[Frame] = ()
    """The lines of the suite that made the call, the innermost first."""
    device: Device | None = None
    group: Group = ""
    is_acting: bool = False
    """Whether it may change what the device shows."""
    locator: Locator | None = None
    """What it looks for, or the element that it acts on."""
    wait: Wait | None = None
    end: float | None = None
    point: Point | None = None
    box: Box | None = None
    result: Any = None
    error: Failure | None = None
    attachments: Sequence[Attachment] = ()
    times: int = 1
    """How often it was made in a row."""

    @property
    def full_title(self) -> str:
        """The title with the parameters that it names, and how often it was repeated within what time."""
        title = filled_in(self.title, self.params)
        if self.times == 1 or self.end is None:
            return title

        seconds = (self.end - self.start) / 1000
        return f"{title} × {self.times} in {seconds:.1f} s"


def filled_in(title: str, params: Mapping[str, Any]) -> str:
    """Return a title with the parameters that it names, each of them once: a value may look like a name.

    >>> filled_in("Type {text} into {element}", {"text": "{element}", "element": "id 'name'"})
    "Type {element} into id 'name'"
    """

    def value_of(name: re.Match[str]) -> str:
        return str(params.get(name[1], name[0]))

    return _PLACEHOLDER.sub(value_of, title)


def folded(actions: Sequence[Action]) -> list[Action]:
    """Return the actions, those that a polling wait repeats as one each, with the end and the error of the last time.

    What is repeated has the same call stack, and nothing else is done with the device in between.
    """
    wholes = {action.parent for action in actions}
    shown: list[Action] = []
    for action in actions:
        # The parts of a repeated whole would lose it.
        index = None if action.key in wholes else _index_of_same(action, shown)
        if index is None:
            shown.append(action)
        else:
            first = shown[index]
            shown[index] = replace(
                action, key=first.key, start=first.start, times=first.times + 1
            )

    return shown


def _index_of_same(action: Action, shown: Sequence[Action]) -> int | None:
    """Return the index of what an action repeats, None if it is new."""
    for index in reversed(range(max(0, len(shown) - _MAX_POLLED), len(shown))):
        earlier = shown[index]
        if earlier.device != action.device:
            continue
        if _what(earlier) == _what(action):
            return index
        if earlier.is_acting or action.is_acting:
            return None

    return None


def _what(action: Action) -> tuple[object, ...]:
    """Return what an action does, and from where; a step of the suite is never the same as another."""
    own = action.key if action.kind == "step" else ""
    return (
        own, action.parent, action.method, action.title, action.params, action.locator,
        tuple(action.stack),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot. ``action`` is the key of the action that it shows, empty if it shows none."""

    device: Device
    time: float
    content: bytes = field(repr=False)
    content_type: str
    width: int
    height: int
    action: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """What a device showed. ``action`` is the key of the action that it shows, empty if it shows none."""

    device: Device
    time: float
    screen: Screen
    action: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a device's log. ``time`` is when it was read; the device's own time is in the text."""

    device: Device
    time: float
    level: Level
    text: str
    source: str
    """The log, such as ``logcat``."""


@dataclass(frozen=True, slots=True)
class Output:
    """Text that the test wrote."""

    time: float
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class TestError:
    """The error of a test, with the lines of the suite that led to it, the innermost first."""

    time: float
    failure: Failure
    stack: Sequence[Frame] = ()


Value: TypeAlias = Action | Picture | Tree | LogLine | Output | TestError


class Sink(Protocol):
    """Receives each value once it is masked, in the order in which they happen."""

    def add(self, value: Value, /) -> None: ...

"""What failed, as one value: the model of ``failure.json``, and of ``failure.md`` from the same values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pytest_device.escape import escaped
from pytest_device.trace.locators import Locators, tap_point
from pytest_device.trace.nearest import Match, nearest, sentence
from pytest_device.trace.playwright import ARCHIVE
from pytest_device.trace.screen import Element, Screen
from pytest_device.trace.screen_text import screen_text
from pytest_device.trace.values import Action, Locator, folded

VERSION: Final = 1
"""Version of ``failure.json``, incremented if a field is removed or changes its meaning; readers ignore unknown fields."""
MAX_ACTIONS: Final = 10
MAX_ELEMENTS: Final = 500
MAX_LOG_LINES: Final = 100
_MAX_MESSAGE_LINES: Final = 40
_OF_THE_TEST: Final = "test"
"""The verdict on a test that failed by itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """The line of the suite that failed, with the lines around it; ``first`` is the number of the first."""

    file: str
    line: int
    function: str
    first: int
    lines: Sequence[str]
    calls: Sequence[str] = ()
    """The calls that led to it, the outermost first, as ``file:line in function``."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action before the failure. ``seconds_before`` is how long before the failure it began."""

    title: str
    device: str = ""
    locator: Locator | None = None
    at: str = ""
    seconds_before: float = 0.0
    seconds: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Waited:
    """A polling wait that ended without what it waited for.

    ``condition`` is the name of a condition or, for a loop of the suite or of a library, the look-up that it repeated
    ``polls`` times; what that loop waited for is unknown, and often also its timeout.
    """

    condition: str
    timeout_seconds: float | None
    seconds: float
    locator: Locator | None = None
    message: str = ""
    polls: int = 0

    def __str__(self) -> str:
        limit = ""
        if self.timeout_seconds is not None:
            limit = f" (timeout {self.timeout_seconds:g} s)"

        waited = f"waited {self.seconds:.1f} s{limit}"
        if self.polls:
            return f"{waited}, polling: {self.condition} × {self.polls}"

        target = f" of {self.locator}" if self.locator else ""
        message = f": {self.message}" if self.message else ""
        return f"{waited} for {self.condition}{target}{message}"


@dataclass(frozen=True, slots=True)
class ReportedDevice:
    """One device of the test; ``page`` is its session page, empty if that ends with the run."""

    name: str
    platform: str
    type: str
    model: str = ""
    session: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class DeviceScreen:
    """What one device showed at the moment of failure."""

    device: str
    screen: Screen


@dataclass(frozen=True, slots=True)
class ReportedLine:
    """A line of a device's log; ``source`` is the log, such as ``logcat``."""

    device: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class FailureReport:
    """What failed in one attempt of a test, taken while it had its devices."""

    test: str
    attempt: int
    when: str
    """The phase of the test: ``setup``, ``call`` or ``teardown``."""
    error_type: str
    error_message: str
    verdict: str
    """``test``, ``infrastructure``, ``app`` or ``config``."""
    source: Source | None = None
    actions: Sequence[Step] = ()
    waited: Waited | None = None
    locator: Locator | None = None
    """The locator that failed."""
    failed_on: str = ""
    """The name of the device on which it failed; empty for a single device."""
    devices: Sequence[ReportedDevice] = ()
    screens: Sequence[DeviceScreen] = ()
    log: Sequence[ReportedLine] = ()
    files: Sequence[str] = ()
    """Paths relative to the report's directory."""
    missing: Sequence[str] = ()
    """What could not be collected, and why: a line each."""

    @property
    def screen(self) -> Screen | None:
        """The screen of the device on which the test failed, None if there is none."""
        for shown in self.screens:
            # A single screen may be that of another device, whose own could not be read.
            if shown.device == self.failed_on:
                return shown.screen

        return None

    def matches(self) -> tuple[Match, ...]:
        """Return the elements closest to the locator that failed."""
        if self.locator is None or self.screen is None:
            return ()

        return nearest(self.locator, self.screen)

    def lines(self) -> tuple[str, ...]:
        """Return what the error does not say, a line each: what a wait waited for, and what is nearest."""
        waited = str(self.waited) if self.waited else ""
        nearest_line = self.nearest_line()
        if nearest_line and self.failed_on and len(self.devices) > 1:
            nearest_line = f"{self.failed_on}: {nearest_line}"

        return tuple(filter(None, (waited, nearest_line)))

    def missing_line(self) -> str:
        """Return the first piece that is missing; empty if the verdict is about the device, which says it already."""
        if not self.missing or self.verdict != _OF_THE_TEST:
            return ""

        others = len(self.missing) - 1
        return self.missing[0] + (f" (and {others} more)" if others else "")

    def nearest_line(self) -> str:
        """Return one line about the nearest element; empty if no locator failed or there is no screen."""
        if self.locator is None or self.screen is None:
            return ""

        return sentence(self.locator, self.screen, self.matches())


def last_actions(actions: Sequence[Action], now: float) -> tuple[Step, ...]:
    """Return the last actions before the failure; ``now`` is its time on the recorder's clock."""
    return tuple(
        _step(action, now) for action in actions_of_suite(actions)[-MAX_ACTIONS:]
    )


def actions_of_suite(actions: Sequence[Action]) -> list[Action]:
    """Return the actions that the suite made.

    A polling wait is one action, with the error of its last command, and what a loop repeats is one: its commands would
    leave no room for others.
    """
    waits = {action.key: action for action in actions if action.kind == "wait"}
    for action in actions:
        # The last one with an error replaces those of earlier polls.
        if action.parent in waits and action.error:
            waits[action.parent] = replace(waits[action.parent], error=action.error)

    return folded(
        [
            waits.get(action.key, action)
            for action in actions
            if _is_of_the_suite(action) and action.parent not in waits
        ]
    )


def _is_of_the_suite(action: Action) -> bool:
    """Return whether the suite made an action: fixtures and phases of a test are steps, too."""
    return action.group != "configuration" and (
        action.kind != "step" or action.method == "step"
    )


def failed_locator(actions: Sequence[Action]) -> tuple[Locator | None, str]:
    """Return the locator of the last action that failed, and the name of its device."""
    for action in reversed(actions):
        if action.error and action.locator:
            return action.locator, action.device.name if action.device else ""

    return None, ""


def to_json(report: FailureReport) -> dict[str, Any]:
    """Return ``failure.json``."""
    return {
        "version": VERSION,
        "test": report.test,
        "attempt": report.attempt,
        "when": report.when,
        "error": {"type": report.error_type, "message": report.error_message},
        "verdict": report.verdict,
        "source": asdict(report.source) if report.source else None,
        "waited": asdict(report.waited) if report.waited else None,
        "nearest": _nearest_json(report),
        "actions": [asdict(step) for step in report.actions],
        "device": [asdict(device) for device in report.devices],
        "tree": [_tree_json(shown) for shown in report.screens],
        "log": [asdict(line) for line in report.log],
        "files": list(report.files),
        "missing": list(report.missing),
    }


def to_markdown(report: FailureReport) -> str:
    """Return ``failure.md``: the same values for readers, the most telling first."""
    parts = [
        f"# {report.test}",
        _code(_bounded(_error_text(report))),
        "\n".join(map(_item, _summary(report))),
    ]

    sections = [
        ("Source", _source_text(report.source)),
        ("Nearest elements", _nearest_text(report)),
        ("Last actions", _actions_text(report.actions)),
        *[(_screen_title(shown), _screen_text(shown)) for shown in report.screens],
        ("Log since the last action", _log_text(report.log)),
        ("Files", _files_text(report.files)),
        ("Not collected", "\n".join(map(_item, report.missing))),
    ]
    parts += [f"## {title}\n\n{text}" for title, text in sections if text]

    # Texts of the app, too: a terminal would obey them, and they could change the order in which others are read.
    return escaped("\n\n".join(parts)) + "\n"


def _step(action: Action, now: float) -> Step:
    at = ""
    if action.stack:
        frame = action.stack[0]
        at = f"{frame.file}:{frame.line}"

    seconds = None
    if action.end is not None:
        seconds = round((action.end - action.start) / 1000, 3)

    error = ""
    if action.error:
        # Some errors have no message.
        error = action.error.message.partition("\n")[0] or action.error.name

    return Step(
        title=action.full_title,
        device=action.device.name if action.device else "",
        locator=action.locator,
        at=at,
        seconds_before=round((now - action.start) / 1000, 3),
        seconds=seconds,
        error=error,
    )


def _nearest_json(report: FailureReport) -> dict[str, Any] | None:
    if report.locator is None or report.screen is None:
        return None

    return {
        "locator": asdict(report.locator),
        "device": report.failed_on,
        "summary": report.nearest_line(),
        "elements": [
            {
                "score": match.score,
                **_element_json(match.element),
                "locators": [asdict(locator) for locator in match.locators],
            }
            for match in report.matches()
        ],
    }


def _tree_json(shown: DeviceScreen) -> dict[str, Any]:
    screen = shown.screen
    locators = Locators(screen)
    elements: list[dict[str, Any]] = []

    for element in screen.elements[:MAX_ELEMENTS]:
        values = _element_json(element)
        values["locators"] = [asdict(locator) for locator in locators.of(element)]

        point = tap_point(screen, element)
        if point:
            values["tap"] = point

        elements.append(values)

    is_truncated = screen.is_truncated or len(screen.elements) > MAX_ELEMENTS
    return {
        "device": shown.device,
        "dialect": str(screen.dialect),
        "elements": elements,
        "is_truncated": is_truncated,
    }


def _element_json(element: Element) -> dict[str, Any]:
    """Return the fields of an element that have a value: most have few."""
    values = asdict(element)
    shown: dict[str, Any] = {
        name: value
        for name, value in values.items()
        if isinstance(value, str) and value
    }
    shown["depth"] = element.depth
    shown["bounds"] = values["bounds"]

    states = list(element.states())
    if states:
        shown["states"] = states

    return shown


def _summary(report: FailureReport) -> list[str]:
    lines = [f"verdict: {report.verdict}, in {report.when}, attempt {report.attempt}"]
    lines += report.lines()

    for device in report.devices:
        label = f"{device.name}: " if device.name else ""
        model = f" on {device.model}" if device.model else ""
        page = f", {device.page}" if device.page else ""
        lines.append(f"device: {label}{device.platform} {device.type}{model}{page}")

    return lines


def _source_text(source: Source | None) -> str:
    if source is None:
        return ""

    width = len(str(source.first + len(source.lines)))
    numbered = [
        f"{'>' if number == source.line else ' '} {number:>{width}}  {line}".rstrip()
        for number, line in enumerate(source.lines, source.first)
    ]
    head = f"`{source.file}:{source.line}` in `{source.function}`"
    parts = [head, _code("\n".join(numbered))]
    if source.calls:
        parts.append("\n".join(f"- {call}" for call in source.calls))

    return "\n\n".join(parts)


def _nearest_text(report: FailureReport) -> str:
    lines: list[str] = []
    for number, match in enumerate(report.matches(), 1):
        element = match.element
        texts = ", ".join(map(repr, element.texts()))
        bounds = f" {element.bounds}" if element.bounds else ""
        states = f" ({', '.join(element.states())})" if any(element.states()) else ""
        locator = f": `{match.locators[0]}`" if match.locators else ""
        lines.append(f"{number}. {element.type} {texts}{bounds}{states}{locator}")

    return "\n".join(lines)


def _actions_text(steps: Sequence[Step]) -> str:
    lines: list[str] = []
    for step in steps:
        device = f"{step.device}: " if step.device else ""
        at = f" ({step.at})" if step.at else ""
        error = f" ✗ {step.error}" if step.error else ""
        text = f"-{step.seconds_before:.1f} s {device}{step.title}{at}{error}"
        lines.append(_item(text))

    return "\n".join(lines)


def _screen_title(shown: DeviceScreen) -> str:
    return f"Screen of {shown.device}" if shown.device else "Screen"


def _screen_text(shown: DeviceScreen) -> str:
    return _code(screen_text(shown.screen)) if shown.screen.elements else ""


def _log_text(lines: Sequence[ReportedLine]) -> str:
    if not lines:
        return ""

    return _code(
        "\n".join(
            " ".join(filter(None, (line.device, line.source, line.text)))
            for line in lines
        )
    )


def _files_text(files: Sequence[str]) -> str:
    lines: list[str] = []
    for name in files:
        command = f": `pytest-device trace open {name}`" if name == ARCHIVE else ""
        # In angle brackets, an address may have spaces and parentheses.
        lines.append(f"- [{name}](<{name}>){command}")

    return "\n".join(lines)


def _error_text(report: FailureReport) -> str:
    """Return type and message of the error; a timeout of Selenium has no message."""
    if not report.error_message:
        return report.error_type

    return f"{report.error_type}: {report.error_message}"


def _bounded(text: str) -> str:
    lines = text.splitlines()
    left_out = len(lines) - _MAX_MESSAGE_LINES
    if left_out <= 0:
        return text

    return "\n".join([*lines[:_MAX_MESSAGE_LINES], f"… {left_out} more lines"])


def _item(text: str) -> str:
    """Return a text as an item of a list, in one line: what was typed may have several."""
    return "- " + text.replace("\n", r"\n")


def _code(text: str) -> str:
    """Return a text as a code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"

    return f"{fence}\n{text}\n{fence}"

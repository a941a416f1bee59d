"""Reads traces that this package wrote, from an archive or from the lines of a killed run."""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from zipfile import BadZipFile, ZipFile

from pytest_device.errors import ConfigError
from pytest_device.regular_files import is_own_file
from pytest_device.trace.playwright import ARCHIVE, archive, left_over
from pytest_device.trace.values import filled_in

MAX_LINES_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of one file of a trace that is read."""
_UNREADABLE: Final = (
    BadZipFile,
    zlib.error,
    EOFError,
    # What the lines of a trace of another tool lead to; a password or an unknown compression is a RuntimeError.
    AttributeError,
    LookupError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of a file that is no trace of this package, or incomplete."""


@dataclass(slots=True)
class ReadAction:
    """An action as a trace has it; times are milliseconds of its clock."""

    key: str
    number: int
    parent: str
    start: float
    title: str
    method: str
    page: str
    group: str
    stack: Sequence[Mapping[str, Any]]
    end: float | None = None
    error: str = ""
    tree: Sequence[Mapping[str, Any]] = ()


class ConsoleLine(NamedTuple):
    """A line of a device's log."""

    time: float
    level: str
    text: str


@dataclass(slots=True)
class ReadTrace:
    """What a text shows of a trace."""

    path: Path
    title: str
    start: float
    began: datetime
    """When it began, in this machine's zone."""
    annotations: Sequence[str]
    actions: list[ReadAction] = field(default_factory=list[ReadAction])
    errors: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    console: list[ConsoleLine] = field(default_factory=list[ConsoleLine])

    @property
    def state(self) -> str:
        """``failed``, ``passed``, or ``interrupted`` if the run ended before the test did."""
        if self.errors:
            return "failed"

        for action in self.actions:
            # Ctrl-C ends the actions, too: it has no message, so that its name is the error.
            if action.end is None or action.error == KeyboardInterrupt.__name__:
                return "interrupted"

        return "passed"

    @property
    def failing(self) -> ReadAction | None:
        """The action that failed the test: the last one with an error and a tree, else the last one with an error."""
        failed = [action for action in self.actions if action.error]
        # The phases of the test have the same error, and end last.
        commands = [
            action for action in failed if action.method not in {"test", "hook"}
        ]
        with_tree = [action for action in commands if action.tree]
        candidates = with_tree or commands or failed

        return candidates[-1] if candidates else None


def traces_in(path: Path) -> list[Path]:
    """Return the traces at a path, the newest first: an archive, or those below a directory.

    Makes the archives of those that a killed run left behind.

    Raises:
        ConfigError: There is nothing at the path, or it cannot be read.
    """
    if not path.exists():
        raise ConfigError(
            f"{path} does not exist: pass a {ARCHIVE}, or the directory of artifacts (--device-artifacts-dir)"
        )

    if path.is_file():
        return [path]

    try:
        for lines in left_over(path):
            archive(lines, lines.with_name(ARCHIVE))

        traces = [trace for trace in path.glob(f"**/{ARCHIVE}") if is_own_file(trace)]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None

    return sorted(traces, key=lambda trace: trace.stat().st_mtime, reverse=True)


def newest_in(path: Path) -> Path:
    """Return the newest trace at a path; raise ConfigError if there is none."""
    traces = traces_in(path)
    if not traces:
        raise ConfigError(
            f"{path} has no traces: a run with devices keeps those of failed tests there, unless --device-trace=off"
        )

    return traces[0]


def read(path: Path) -> ReadTrace:
    """Read a trace; raises ConfigError if the file is no trace, or cut off."""
    try:
        with ZipFile(path) as zipped:
            # Those of the test, "test.trace", before those of devices, "0-trace.trace": its steps contain theirs.
            names = sorted(zipped.namelist(), reverse=True)
            events = {
                name: list(_events(zipped, name))
                for name in names
                if name.endswith(".trace")
            }

            return _trace(path, events, zipped)
    except _UNREADABLE as error:
        raise ConfigError(
            f"{path} is not a trace, or is cut off ({error}): copy the file again, or run the test again"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def _events(zipped: ZipFile, name: str) -> Iterator[Mapping[str, Any]]:
    if zipped.getinfo(name).file_size > MAX_LINES_BYTES:
        raise ValueError(f"{name} is too long")

    for line in zipped.read(name).splitlines():
        event: Any = json.loads(line)
        if isinstance(event, dict):
            yield cast("Mapping[str, Any]", event)


def _trace(
    path: Path, events: Mapping[str, Sequence[Mapping[str, Any]]], zipped: ZipFile
) -> ReadTrace:
    test = events["test.trace"]
    context: Mapping[str, Any] = test[0] if test else {}
    trace = ReadTrace(
        path,
        str(context.get("title", "")),
        float(context["monotonicTime"]),
        datetime.fromtimestamp(float(context["wallTime"]) / 1000, UTC).astimezone(),
        _descriptions(context.get("annotations")),
    )

    actions: dict[str, ReadAction] = {}
    for events_of_file in events.values():
        for event in events_of_file:
            _add(trace, actions, event, zipped)

    trace.actions = sorted(actions.values(), key=lambda action: action.start)
    for number, action in enumerate(trace.actions, 1):
        action.number = number

    return trace


def _descriptions(annotations: Any) -> list[str]:
    notes: list[Mapping[str, Any]] = annotations or []
    return [f"{note.get('type')}: {note.get('description')}" for note in notes]


def _add(
    trace: ReadTrace,
    actions: dict[str, ReadAction],
    event: Mapping[str, Any],
    zipped: ZipFile,
) -> None:
    action = actions.get(str(event.get("callId")))
    match event.get("type"):
        case "before":
            action = _action(event)
            actions[action.key] = action
        case "after" if action:
            action.end = float(event["endTime"])
            error: Mapping[str, Any] = event.get("error") or {}
            action.error = str(error.get("message") or error.get("name") or "")
        case "aria-snapshot" if action and event.get("phase") == "after":
            action.tree = json.loads(zipped.read(str(event["file"])))
        case "error":
            trace.errors.append(event)
        case "console":
            level = str(event["messageType"])
            line = ConsoleLine(float(event["time"]), level, str(event["text"]))
            trace.console.append(line)
        case _:
            pass


def _action(event: Mapping[str, Any]) -> ReadAction:
    title = str(event.get("title") or event.get("method"))

    return ReadAction(
        str(event["callId"]),
        0,
        str(event.get("parentId", "")),
        float(event["startTime"]),
        filled_in(title, event.get("params") or {}),
        str(event.get("method", "")),
        str(event.get("pageId", "")),
        str(event.get("group", "")),
        event.get("stack") or (),
    )

"""What a run reports of its tests, as values: one `Attempt` for each time that a test was tried.

They are written line by line as the run goes on, so that a killed run leaves what it reported. Times are seconds since
the epoch: the lines of several machines are merged, which share no other clock.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias, assert_never

from pytest_device.regular_files import open_inside

VERSION: Final = 1
"""Version of the lines below, incremented with each change that would make an older reader misread them."""


class Status(StrEnum):
    """How an attempt ended; the values are those of the blob report."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    """The run ended before the test did."""


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a source file, counted from 1; the path is relative to the root directory of the run."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Step:
    """A part of an attempt, such as its set-up, with its own parts, such as fixtures and commands.

    ``location`` is the line of the suite that it belongs to.
    """

    title: str
    category: str
    start: float
    seconds: float
    error: str = ""
    location: Location | None = None
    steps: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of an attempt; its path in the lines is relative to their directory."""

    name: str
    content_type: str
    path: str


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """An error of an attempt, with the lines of source around it."""

    message: str
    location: Location | None = None
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first line: which run, and where its paths begin."""

    run: str
    shard: str
    root: str
    start: float
    tool: str
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A test begins; a run that is killed in the meantime leaves no more than this."""

    test_id: str
    retry: int
    worker: int
    start: float
    location: Location
    title: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a test has ended.

    ``project`` is the platform, empty without a device. ``is_expected`` says whether the status is that which the test
    is meant to have: an expected failure (xfail) fails as expected.
    """

    test_id: str
    retry: int
    worker: int
    start: float
    seconds: float
    location: Location
    title: str
    status: Status
    is_expected: bool = True
    project: str = ""
    tags: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    failures: tuple[AttemptFailure, ...] = ()
    steps: tuple[Step, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    output: str = ""


@dataclass(frozen=True, slots=True)
class DeviceUsed:
    """A device session has ended: it ran for this time."""

    label: str
    session_id: str
    start: float
    seconds: float
    worker: int = 0


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last line; ``status`` is ``passed``, ``failed`` or ``interrupted``."""

    status: Status
    end: float


Line: TypeAlias = RunStarted | AttemptStarted | Attempt | DeviceUsed | RunEnded


class InvalidLinesError(ValueError):
    """A file does not have the lines of a run."""


def write(line: Line, file: TextIO) -> None:
    """Append a line to a file, complete before the next test begins. Raises OSError."""
    values = {"kind": type(line).__name__, **asdict(line)}
    file.write(json.dumps(values, separators=(",", ":")) + "\n")
    # A killed process loses what its buffer has.
    file.flush()


def read(path: Path) -> Iterator[Line]:
    """Yield the lines of a file.

    Raises:
        InvalidLinesError: A line is not one of a run's report, or a newer release wrote it.
        OSError: The file cannot be read.
    """
    with (
        open_inside(path.name, path.parent) as content,
        TextIOWrapper(content, encoding="utf-8", errors="replace") as file,
    ):
        for number, text in enumerate(file, 1):
            # The run was killed while it wrote the last line.
            if not text.endswith("\n"):
                return

            try:
                line = _parsed(json.loads(text))
            except ValueError as error:
                raise InvalidLinesError(f"{path}, line {number}: {error}") from None
            # A line of another tool may be any JSON value, of any depth.
            except (AttributeError, LookupError, TypeError, RecursionError):
                raise InvalidLinesError(
                    f"{path}, line {number} is not of a run's report"
                ) from None

            if number == 1 and not isinstance(line, RunStarted):
                raise InvalidLinesError(f"{path} does not begin with a run")

            yield line


@dataclass(slots=True)
class Recorded:
    """All lines of a run; a test that had no end when the run was killed is interrupted."""

    started: RunStarted
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    devices: list[DeviceUsed] = field(default_factory=list[DeviceUsed])
    ended: RunEnded | None = None

    @property
    def end(self) -> float:
        """When the run ended; without its last line, when the last test or session did."""
        if self.ended:
            return self.ended.end

        ends = [attempt.start + attempt.seconds for attempt in self.attempts]
        ends += [device.start + device.seconds for device in self.devices]
        return max(ends, default=self.started.start)


def recorded(path: Path) -> Recorded:
    """Return what a run recorded.

    Raises:
        InvalidLinesError: The file does not have the lines of one run.
        OSError: The file cannot be read.
    """
    lines = read(path)
    started = next(lines, None)
    if not isinstance(started, RunStarted):
        raise InvalidLinesError(f"{path} is empty")

    run = Recorded(started)
    open_attempts: dict[tuple[str, int], AttemptStarted] = {}

    for line in lines:
        match line:
            case AttemptStarted():
                open_attempts[line.test_id, line.retry] = line
            case Attempt():
                open_attempts.pop((line.test_id, line.retry), None)
                run.attempts.append(line)
            case DeviceUsed():
                run.devices.append(line)
            case RunEnded():
                run.ended = line
            case RunStarted():
                raise InvalidLinesError(f"{path} has two runs")
            case _:
                assert_never(line)

    end = run.end
    run.attempts += [_interrupted(line, end) for line in open_attempts.values()]
    return run


def _interrupted(line: AttemptStarted, end: float) -> Attempt:
    failure = AttemptFailure("The run ended before this test did.", line.location)

    return Attempt(
        line.test_id,
        line.retry,
        line.worker,
        line.start,
        max(0.0, end - line.start),
        line.location,
        line.title,
        Status.INTERRUPTED,
        is_expected=False,
        failures=(failure,),
    )


def _parsed(values: dict[str, Any]) -> Line:
    match values.pop("kind"):
        case "RunStarted":
            # Before its other values, which may be new ones.
            version = values["version"]
            if version > VERSION:
                raise ValueError(
                    f"a newer pytest-device wrote it (version {version}, {VERSION} is supported)"
                )

            return RunStarted(**values)
        case "AttemptStarted":
            values["location"] = Location(**values["location"])
            return AttemptStarted(**values)
        case "Attempt":
            return _attempt(values)
        case "DeviceUsed":
            return DeviceUsed(**values)
        case "RunEnded":
            return RunEnded(Status(values["status"]), values["end"])
        case kind:
            raise ValueError(f"unknown kind of line: {kind!r}")


def step_from_plain(values: Mapping[str, Any]) -> Step:
    """Return the step that ``asdict`` converted to plain values; raises TypeError or KeyError for others."""
    parsed: dict[str, Any] = {
        **values,
        "location": _location(values["location"]),
        "steps": tuple(map(step_from_plain, values["steps"])),
    }

    return Step(**parsed)


def _location(values: Mapping[str, Any] | None) -> Location | None:
    return Location(**values) if values else None


def _attempt(values: dict[str, Any]) -> Attempt:
    failures = tuple(
        AttemptFailure(
            failure["message"],
            _location(failure["location"]),
            failure["snippet"],
        )
        for failure in values["failures"]
    )

    parsed: dict[str, Any] = {
        **values,
        "status": Status(values["status"]),
        "location": Location(**values["location"]),
        "tags": tuple(values["tags"]),
        "annotations": tuple((kind, text) for kind, text in values["annotations"]),
        "failures": failures,
        "steps": tuple(map(step_from_plain, values["steps"])),
        "attachments": tuple(Attachment(**file) for file in values["attachments"]),
    }

    return Attempt(**parsed)

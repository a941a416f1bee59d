"""Finds traces that this package wrote, makes the archives of killed runs, and says how their tests ended."""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from zipfile import BadZipFile, ZipFile

from pytest_device.errors import ConfigError
from pytest_device.regular_files import is_own_file
from pytest_device.trace.playwright import ARCHIVE, archive, left_over

MAX_LINES_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of one file of a trace that is read."""
_LINES_OF_TEST: Final = "test.trace"
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


class ReadTrace(NamedTuple):
    """What a list shows of a trace; ``began`` is in this machine's zone.

    ``state`` is ``failed``, ``passed``, or ``interrupted`` if the run ended before the test did.
    """

    title: str
    began: datetime
    state: str


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
            return _trace(list(_events(zipped)))
    except _UNREADABLE as error:
        raise ConfigError(
            f"{path} is not a trace, or is cut off ({error}): copy the file again, or run the test again"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def _events(zipped: ZipFile) -> Iterator[Mapping[str, Any]]:
    if zipped.getinfo(_LINES_OF_TEST).file_size > MAX_LINES_BYTES:
        raise ValueError(f"{_LINES_OF_TEST} is too long")

    for line in zipped.read(_LINES_OF_TEST).splitlines():
        event: Any = json.loads(line)
        if isinstance(event, dict):
            yield cast("Mapping[str, Any]", event)


def _trace(events: Sequence[Mapping[str, Any]]) -> ReadTrace:
    context = events[0]
    began = datetime.fromtimestamp(float(context["wallTime"]) / 1000, UTC)

    return ReadTrace(str(context.get("title", "")), began.astimezone(), _state(events))


def _state(events: Sequence[Mapping[str, Any]]) -> str:
    unended: set[object] = set()
    is_interrupted = False
    for event in events:
        match event.get("type"):
            case "error":
                return "failed"
            case "before":
                unended.add(event["callId"])
            case "after":
                unended.discard(event["callId"])
                error: Mapping[str, Any] = event.get("error") or {}
                # Ctrl-C ends the actions, too.
                is_interrupted |= error.get("name") == KeyboardInterrupt.__name__
            case _:
                pass

    return "interrupted" if unended or is_interrupted else "passed"

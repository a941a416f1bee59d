"""Reads the durations of tests from files of earlier runs: ``--device-durations``, and ``.test_durations`` for shards."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from pytest_device.errors import ConfigError

_PATTERNS: Final = (".test_durations", "device-run*.json")
"""Names of the files that are read in a directory."""
_MAX_SECONDS: Final = 86_400.0
"""A day: no test takes longer."""
_NO_LENGTH: Final = frozenset({"skipped", "error", "interrupted"})
"""Outcomes of tests that did not run to their end."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations of tests in seconds, several for a test that is in several files."""

    by_node_id: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def seconds(self, nodeid: str) -> float | None:
        """Return the mean duration of a test, None if it is in no file."""
        values = self.by_node_id.get(nodeid)
        return sum(values) / len(values) if values else None


def read_durations(path: Path, source: str) -> Durations:
    """Read a file, or the files of a directory.

    ``source`` is where the path was set, for messages. Raises ConfigError with the file, the invalid value and the fix.
    """
    files = _files_in(path) if path.is_dir() else [path]
    if not files:
        reason = InvalidFileError(f"there is no {' or '.join(_PATTERNS)} in it")
        raise _unreadable(path, source, reason)

    durations = Durations()
    for file in files:
        try:
            read_file(file, durations)
        except (OSError, InvalidFileError) as error:
            raise _unreadable(file, source, error) from None

    return durations


class InvalidFileError(Exception):
    """A file is invalid; the text is the reason."""


def _unreadable(file: Path, source: str, error: Exception) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ConfigError(
        f"{source}: cannot read durations from {file}: {reason}. Fix: set it to a .test_durations of pytest-split, "
        "a device-run.json, or a directory of such files"
    )


def _files_in(directory: Path) -> Sequence[Path]:
    return sorted(
        file
        for pattern in _PATTERNS
        for file in directory.glob(pattern)
        if file.is_file()
    )


def read_file(file: Path, durations: Durations) -> None:
    """Add the durations of a file. Raises OSError or InvalidFileError."""
    try:
        # Editors on Windows write a byte order mark.
        values: object = json.loads(file.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidFileError(f"it is not UTF-8 text: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"it is not JSON: {error}") from None

    if not isinstance(values, dict):
        raise InvalidFileError(f"it contains {_shown(values)}, not an object")

    parsed = cast("dict[str, Any]", values)
    # A file of pytest-split has node IDs as keys, which contain a path.
    pairs = _in_device_run(parsed) if "tests" in parsed else parsed.items()
    for test, seconds in pairs:
        durations.by_node_id.setdefault(test, []).append(_seconds(test, seconds))


def _in_device_run(values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield node IDs and seconds of a ``device-run.json``: those of each test's last attempt."""
    from pytest_device.report.merged import check_data

    try:
        tests = check_data(values)["tests"]
        last = [(test["test"], test["attempts"][-1]) for test in tests]
        lengths = [
            (str(nodeid), attempt["seconds"])
            for nodeid, attempt in last
            if attempt["outcome"] not in _NO_LENGTH
        ]
    except ValueError as error:
        raise InvalidFileError(str(error)) from None
    except (LookupError, TypeError) as error:
        raise InvalidFileError(
            f"it is not a device-run.json: {type(error).__name__}: {error}"
        ) from None

    yield from lengths


def _seconds(test: str, value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # NaN fails both comparisons.
    if is_number and 0 <= cast("float", value) <= _MAX_SECONDS:
        return float(cast("float", value))

    raise InvalidFileError(
        f"{test} has {_shown(value)}, which is not a number of seconds from 0 to {_MAX_SECONDS:.0f}"
    )


def _shown(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"

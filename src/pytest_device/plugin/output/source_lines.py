"""Finds the line of the suite that failed, in an error as pytest represents it."""

import linecache
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.trace.stack import is_installed

_AROUND: Final = 3


def failing_lines(report: pytest.TestReport) -> Iterator[tuple[str, int]]:
    """Yield file and line of each frame of an error, the innermost first; relative paths begin where pytest started."""
    # That of a skipped test is a tuple, that of a crashed worker a text.
    error: Any = report.longrepr
    traceback = getattr(error, "reprtraceback", None)
    for entry in reversed(getattr(traceback, "reprentries", ())):
        if position := getattr(entry, "reprfileloc", None):
            yield position.path, position.lineno

    if crash := getattr(error, "reprcrash", None):
        yield crash.path, crash.lineno


def is_users_file(path: Path) -> bool:
    """Return whether a file is the user's own: not installed, and not generated code, which has no file."""
    return path.is_file() and not is_installed(path)


def snippet(path: Path, line: int) -> str:
    """Return the lines around a line of a file, numbered, the line itself marked."""
    first = max(1, line - _AROUND)
    width = len(str(line + _AROUND))

    numbered: list[str] = []
    for number in range(first, line + _AROUND + 1):
        text = linecache.getline(str(path), number)
        if text:
            mark = ">" if number == line else " "
            numbered.append(f"{mark} {number:>{width}} | {text.rstrip()}")

    return "\n".join(numbered)

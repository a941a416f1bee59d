"""The directory of reports: the lines of runs that are going on, the blobs of finished ones.

    RUN[-SHARD].jsonl             the lines of a run that is going on, or was killed
    RUN[-SHARD].zip               the blob of its tests
    RUN[-SHARD]-device-001.zip    a blob per device session: its bar in the timeline
    previous/                     the files of the run before

A new run moves the files of earlier runs to ``previous/``, which holds those of one run. Shards of a run have its name.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from filelock import FileLock, Timeout

from pytest_device.report.attempts import (
    InvalidLinesError,
    Line,
    Recorder,
    RunStarted,
    recorded,
)
from pytest_device.report.blob import write_bars, write_blob

PREVIOUS: Final = "previous"
LINES: Final = ".jsonl"
_OURS: Final = (LINES, ".zip", ".lock")
_MAX_NAME: Final = 80


class ReportDirectoryError(Exception):
    """The directory can't be used, for the reason in the message."""


class ReportDirectory:
    """Where one run, or one shard of it, writes its report. Created with the first line."""

    def __init__(self, path: Path, run: str, shard: str = "") -> None:
        self.path = path
        self.run = _safe(run) or f"run-{os.getpid()}"
        self._stem = f"{self.run}-{shard}" if shard else self.run
        self._file: TextIO | None = None
        self._lock: FileLock | None = None

    def add(self, line: Line) -> None:
        """Append a line. Raises OSError, or ReportDirectoryError if another run writes here."""
        if isinstance(line, RunStarted):
            self._open()
        if self._file is not None:
            Recorder(self._file).add(line)

    def _open(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / ".gitignore").write_text("*\n", encoding="utf-8")
        lock = FileLock(self.path / f"{self._stem}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ReportDirectoryError(
                "another run with the same name writes there"
            ) from None

        self._lock = lock
        complete_killed(self.path)
        self._move_others()
        self._file = (self.path / f"{self._stem}{LINES}").open("w", encoding="utf-8")

    def _move_others(self) -> None:
        """Move the files of earlier runs to ``previous/``, but those of runs that are going on."""
        others = [path for path in _files(self.path) if not self._is_of_run(path)]
        others = [path for path in others if not _is_in_use(self.path, path)]
        if not others:
            return

        previous = self.path / PREVIOUS
        previous.mkdir(exist_ok=True)
        for path in _files(previous):
            path.unlink()
        for path in others:
            path.replace(previous / path.name)

    def _is_of_run(self, path: Path) -> bool:
        stem = path.name.partition(".")[0]
        return stem == self.run or stem.startswith(f"{self.run}-")

    def finish(self) -> None:
        """Write the blobs, and remove the lines. Raises OSError or InvalidLinesError."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        complete(self.path / f"{self._stem}{LINES}")
        if self._lock is not None:
            self._lock.release()
            (self.path / f"{self._stem}.lock").unlink(missing_ok=True)

    def problem(self, error: Exception) -> str:
        """Return the note for users about an error of this directory."""
        reason = getattr(error, "strerror", None) or error
        return (
            f"cannot write the report in {self.path} ({reason}): "
            "make it writable, or choose another directory with --device-report"
        )


def complete(lines: Path) -> Path:
    """Write the blobs of a run from its lines, then remove these; return the blob of its tests.

    Raises InvalidLinesError, or OSError.
    """
    run = recorded(lines)
    directory, stem = lines.parent, lines.name.removesuffix(LINES)
    partial = directory / f"{stem}.partial"
    write_blob(run, partial)
    write_bars(run, directory, stem)
    blob = directory / f"{stem}.zip"
    partial.replace(blob)
    lines.unlink()
    return blob


def complete_killed(directory: Path) -> list[str]:
    """Write the blobs of runs that were killed; return a sentence for each that can't be read."""
    problems: list[str] = []
    for lines in sorted(directory.glob(f"*{LINES}")):
        if _is_in_use(directory, lines):
            continue
        try:
            complete(lines)
        except (InvalidLinesError, OSError) as error:
            problems.append(f"left out: {error}")
    return problems


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.suffix in _OURS:
            yield path


def _is_in_use(directory: Path, path: Path) -> bool:
    """Return whether the run of a file is going on: it holds its lock."""
    stems = {path.name.partition(".")[0]}
    stems.add(re.sub(r"-device-\d+$", "", path.name.partition(".")[0]))
    for stem in stems:
        lock_path = directory / f"{stem}.lock"
        if not lock_path.exists():
            continue
        try:
            with FileLock(lock_path, timeout=0):
                pass
        except Timeout:
            return True
        lock_path.unlink(missing_ok=True)  # of a killed run
    return False


def _safe(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:_MAX_NAME]

"""The directory of reports: the lines of runs that are going on, the blobs and data of finished ones.

    RUN[-SHARD].jsonl             the lines of a run that is going on, or was killed
    RUN[-SHARD].device-files/     the files of its tests
    RUN[-SHARD].device-lock       locked as long as the run is going on
    RUN[-SHARD].zip               the blob of its tests
    RUN[-SHARD]-device-001.zip    a blob per device session: its bar in the timeline
    device-run[-SHARD].json       its tests, sessions and minutes as data
    previous/                     the files of the run before

A new run moves the files of earlier runs to ``previous/``, which holds those of one run. Shards of a run have its name;
so have further processes of it, whose files are numbered: ``RUN-2.zip``, ``device-run-2.json``.
"""

import os
import re
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

from filelock import BaseFileLock, FileLock, Timeout

from pytest_device.regular_files import open_inside
from pytest_device.report.attempts import (
    Attachment,
    Attempt,
    InvalidLinesError,
    Line,
    RunStarted,
    recorded,
    write,
)
from pytest_device.report.blob import MAX_METADATA, is_own_blob, write_bars, write_blob

PREVIOUS: Final = "previous"
LINES: Final = ".jsonl"
LOCK: Final = ".device-lock"
"""Ending of the file that a run locks as long as it writes.

No other tool uses it: the directory may be that of a suite, with a ``poetry.lock``.
"""
FILES: Final = ".device-files"
"""Ending of the directory with the files of a run that is going on."""
DATA: Final = "device-run"
"""Beginning of the names of files with a run as data."""
_DATA_BEGINS: Final = b'{\n  "version": '
"""How the text of such a file begins."""
_MAX_NAME: Final = 80
"""Characters of a run's name: file systems allow 255 for a file, whose name has more parts."""
_PARTS: Final = re.compile(r"(-\d+-of-\d+)?(-\d+)?(-device-\d+)?")
"""What follows the name of the run in the names of its files: shard, number of the process, number of the session."""


class ReportDirectory:
    """Where one run, or one shard of it, writes its report; created with the first line.

    Arguments:
        path: The directory.
        run: The run's name, the same in all its shards; empty for one of its own.
        shard: The shard as file names have it, such as ``1-of-3``; empty without shards.
    """

    def __init__(self, path: Path, run: str, shard: str = "") -> None:
        self.path = path
        self.run = _safe(run) or f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.shard = shard
        self.note = ""
        """What users should know about the files of this run; empty until the first line."""
        self._suffix = shard
        """What the names of this process's data end with."""
        self._stem = _joined(self.run, shard)
        """The name of this process's files, without their ending."""
        self._file: TextIO | None = None
        self._stored = 0
        """How many files of tests this directory has of this run."""
        self._lock: FileLock | None = None

    def add(self, line: Line) -> None:
        """Append a line. Raises OSError."""
        if isinstance(line, RunStarted):
            self._open()

        if self._file is None:
            return

        if isinstance(line, Attempt):
            stored = tuple(self._store(line.attachments))
            line = replace(line, attachments=stored)

        write(line, self._file)

    def _store(self, attachments: Iterable[Attachment]) -> Iterator[Attachment]:
        """Yield attachments as files of this directory: nobody who completes the report of a killed run opens others."""
        for attachment in attachments:
            self._stored += 1
            suffix = Path(attachment.path).suffix
            name = f"{self._stem}{FILES}/{self._stored}{suffix}"
            (self.path / name).parent.mkdir(exist_ok=True)
            # Removed since: the report is about the test, not about its files.
            with suppress(FileNotFoundError):
                _link_or_copy(Path(attachment.path), self.path / name)
                yield replace(attachment, path=name)

    def data_file(self, name: str) -> Path:
        """Return the path for a file such as ``device-run.json``, which no other run or shard uses."""
        stem, _, kind = name.partition(".")
        return self.path / f"{_joined(stem, self._suffix)}.{kind}"

    def make(self) -> None:
        """Create the directory, which stays out of git. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        # Not in a directory of the suite, whose other files git would ignore, too.
        is_empty = next(self.path.iterdir(), None) is None
        if is_empty:
            (self.path / ".gitignore").write_text("*\n", encoding="utf-8")

    def _open(self) -> None:
        self.make()
        # Before any file is moved: the report of a killed run belongs to it, too.
        complete_killed(self.path)
        is_first = not any(map(self._is_of_run, _reports(self.path)))
        was_locked = self._take_name()

        is_shared = self._is_shared()
        if is_shared:
            # The plain names may be those of the other run.
            self._suffix = self._stem

        if is_shared or was_locked:
            self.note = (
                f"another run is writing to {self.path}, too: the report of this one is "
                f"{self._stem}.zip and {self.data_file(f'{DATA}.json').name}"
            )

        self._move_others(data=is_first and not is_shared)
        self._file = (self.path / f"{self._stem}{LINES}").open("w", encoding="utf-8")

    def _take_name(self) -> bool:
        """Lock the first name that no process of this run has used; return whether an earlier name is in use."""
        number = 1
        was_locked = False

        while True:
            # The first process of a run has no number.
            self._suffix = _joined(self.shard, str(number) if number > 1 else "")
            self._stem = _joined(self.run, self._suffix)
            if not (self.path / f"{self._stem}.zip").exists():
                lock = FileLock(self.path / f"{self._stem}{LOCK}")
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    was_locked = True
                else:
                    self._lock = lock
                    return was_locked

            number += 1

    def _is_shared(self) -> bool:
        """Return whether another run is going on in the directory."""
        others = [
            path for path in self.path.glob(f"*{LOCK}") if not self._is_of_run(path)
        ]
        return any(_is_in_use(self.path, path) for path in others)

    def _move_others(self, *, data: bool) -> None:
        """Move the files of earlier runs to ``previous/``, except those of runs that are going on."""
        others = [
            path
            for path in _reports(self.path)
            if not (self._is_of_run(path) or _is_in_use(self.path, path))
        ]
        # The data of shards, whose names do not have the run, is moved by the first of them.
        if data:
            others += _data(self.path)

        if not others:
            return

        previous = self.path / PREVIOUS
        previous.mkdir(exist_ok=True)

        for path in (*_reports(previous), *_data(previous)):
            path.unlink()

        for path in others:
            path.replace(previous / path.name)

    def _is_of_run(self, path: Path) -> bool:
        stem = path.name.partition(".")[0]
        if not stem.startswith(self.run):
            return False

        # Another run may be called "nightly-web" if this one is "nightly".
        return _PARTS.fullmatch(stem, len(self.run)) is not None

    def finish(self) -> None:
        """Write the blobs, and remove the lines. Raises OSError or InvalidLinesError."""
        if self._file is None:
            return

        self._file.close()
        self._file = None
        complete(self.path / f"{self._stem}{LINES}")

        # Not before: other runs move files whose run holds no lock.
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            _remove(self._lock)

    def problem(self, error: Exception) -> str:
        """Return the note for users about an error of this directory."""
        reason = getattr(error, "strerror", None) or error
        return (
            f"cannot write the report in {self.path} ({reason}): "
            "make it writable, or choose another directory with --device-report"
        )


def complete(lines: Path) -> Path:
    """Write the blobs of a run from its lines, then remove these; return the blob of its tests.

    Raises:
        InvalidLinesError: The file does not have the lines of one run.
        OSError: The lines cannot be read, or the blobs cannot be written.
    """
    run = recorded(lines)
    directory = lines.parent
    stem = lines.name.removesuffix(LINES)

    # Whoever is killed before the last step leaves the lines, of which the next run makes all of it again.
    partial = directory / f"{stem}.partial"
    write_blob(run, partial)
    write_bars(run, directory, stem)
    blob = directory / f"{stem}.zip"
    partial.replace(blob)
    lines.unlink()
    shutil.rmtree(directory / f"{stem}{FILES}", ignore_errors=True)

    return blob


def complete_killed(directory: Path) -> list[str]:
    """Write the blobs of runs that were killed; return a sentence for each that can't be read."""
    problems: list[str] = []
    for lines in sorted(directory.glob(f"*{LINES}")):
        try:
            with _claimed(directory, lines.name.removesuffix(LINES)) as is_over:
                # Another process may have completed it meanwhile.
                if is_over and lines.exists():
                    complete(lines)
        except (InvalidLinesError, OSError) as error:
            problems.append(f"left out: {error}")

    return problems


def _reports(directory: Path) -> Iterator[Path]:
    """Yield the blobs and lines that this package has written: the directory may have other files."""
    for path in sorted(directory.glob("*.zip")):
        if is_own_blob(path):
            yield path

    for path in sorted(directory.glob(f"*{LINES}")):
        if _is_of_this_package(path):
            yield path


def _is_of_this_package(lines: Path) -> bool:
    try:
        with open_inside(lines.name, lines.parent) as file:
            return RunStarted.__name__.encode() in file.readline(MAX_METADATA)
    except OSError:
        return False


def _data(directory: Path) -> Iterator[Path]:
    """Yield the data of runs: the directory may have other files whose names begin so."""
    for path in sorted(directory.glob(f"{DATA}*.json")):
        if _is_data(path):
            yield path


def _is_data(path: Path) -> bool:
    try:
        with open_inside(path.name, path.parent) as file:
            return file.read(len(_DATA_BEGINS)) == _DATA_BEGINS
    except OSError:
        return False


def _link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where that is not possible. Raises OSError."""
    # Of a run whose report could not be completed: its file may have a second name, too.
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _joined(*parts: str) -> str:
    return "-".join(filter(None, parts))


def _is_in_use(directory: Path, path: Path) -> bool:
    """Return whether the run of a file is going on: it holds its lock."""
    stem_of_file = path.name.partition(".")[0]
    # The blob of a device's bar has no lock of its own.
    stem_of_run = re.sub(r"-device-\d+$", "", stem_of_file)
    for stem in {stem_of_file, stem_of_run}:
        if not (directory / f"{stem}{LOCK}").exists():
            continue

        with _claimed(directory, stem) as is_over:
            if not is_over:
                return True

    return False


@contextmanager
def _claimed(directory: Path, stem: str) -> Generator[bool]:
    """Hold the lock of a run that has ended or was killed; yield False if the run is going on."""
    lock = FileLock(directory / f"{stem}{LOCK}")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return

    try:
        yield True
    finally:
        _remove(lock)


def _remove(lock: BaseFileLock) -> None:
    """Release a lock and remove its file."""
    # First the file: once the lock is free, the file may be that of another run.
    # Windows removes no open file; there, the release does.
    with suppress(PermissionError):
        Path(lock.lock_file).unlink(missing_ok=True)

    lock.release()


def _safe(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:_MAX_NAME]

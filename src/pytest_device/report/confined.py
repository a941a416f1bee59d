"""Keeps the page of a report from showing other files than the tests': its blobs may come from anybody."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import copyfile
from typing import Any, Final, cast
from zipfile import ZIP_DEFLATED, ZipFile

from pytest_device.report.blob import LINES_MEMBER, UNREADABLE

_LINES: Final = ".jsonl"
_RESOURCES: Final = "resources/"
_SEPARATORS: Final = re.compile(r"[/\\]")
_FRAME: Final = re.compile(r"\s+at (?:.* \()?(?P<file>.+?):\d+(?::\d+)?\)?")
"""A line of a stack as Node.js formats it."""
_SUSPICIOUS: Final = (b"..", b'"stack"', b'"pathSeparator"', b"\\u00")
"""Parts of lines that may have to be changed, the last for escaped ones: to read each line would take too long."""


def root_of(blobs: Sequence[Path], *, home: Path, current: Path) -> Path:
    """Return the root directory of the tests that blobs name, where it is on this machine; else the current one.

    Playwright quotes lines of files below it. So it must be in the same repository as the report or the current
    directory, with that below it: a report may be from anywhere, and name any directory above itself. It never has the
    home directory below it.
    """
    for blob in blobs:
        root = _recorded_root(blob)
        # That of another machine, where the report may have been copied from, is of no use here.
        if root is None or not root.is_dir() or home.is_relative_to(root):
            continue

        here = (current.resolve(), blob.resolve().parent)
        if any(root in _up_to_repository(directory) for directory in here):
            return root

    return current


def _up_to_repository(directory: Path) -> Sequence[Path]:
    """Return a directory and those above it up to the root of its Git repository; empty outside of repositories."""
    directories = [directory, *directory.parents]
    for index, path in enumerate(directories):
        # A file in worktrees and submodules.
        if (path / ".git").exists():
            return directories[: index + 1]

    return []


def _recorded_root(blob: Path) -> Path | None:
    """Return the root directory of the run that wrote a blob."""
    try:
        with ZipFile(blob) as archive, archive.open(LINES_MEMBER) as lines:
            for text in lines:
                line = json.loads(text)
                if line["method"] == "onConfigure":
                    root = Path(line["params"]["config"]["rootDir"])
                    # Without `..`, which could lead out of what it seems to be below.
                    return root.resolve() if root.is_absolute() else None
    except (*UNREADABLE, TypeError):
        return None

    return None


def copy_confined(blob: Path, target: Path, root: Path) -> None:
    """Copy a blob without what leads out of the root directory of its tests.

    Playwright quotes the files that steps, errors and stacks name, and unpacks all members beside its configuration.
    Raises one of ``UNREADABLE`` or RecursionError for a damaged blob.
    """
    with ZipFile(blob) as archive:
        names = archive.namelist()
        kept = [name for name in names if name.endswith(_LINES)]
        resources = [name for name in names if name.startswith(_RESOURCES)]
        is_whole = len(kept) + len(resources) == len(names)

        if is_whole and not any(_is_changed(archive, name, root) for name in kept):
            copyfile(blob, target)
            return

        with ZipFile(target, "w", ZIP_DEFLATED) as copy:
            for name in kept:
                with archive.open(name) as lines, copy.open(name, "w") as written:
                    written.writelines(_confined_lines(lines, root))

            for name in resources:
                copy.writestr(archive.getinfo(name), archive.read(name))


def _is_changed(archive: ZipFile, name: str, root: Path) -> bool:
    with archive.open(name) as lines:
        return any(_confined_line(line, root) != line for line in lines)


def _confined_lines(lines: Iterable[bytes], root: Path) -> Iterable[bytes]:
    return (_confined_line(line, root) for line in lines)


def _confined_line(line: bytes, root: Path) -> bytes:
    if not any(part in line for part in _SUSPICIOUS):
        return line

    value = json.loads(line)
    confined = _confined(value, root)

    return line if confined == value else json.dumps(confined).encode() + b"\n"


def _confined(value: Any, root: Path) -> Any:
    if isinstance(value, list):
        return [_confined(part, root) for part in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value

    confined: dict[str, Any] = {}
    for name, part in cast("dict[str, Any]", value).items():
        match name, part:
            case "file", str():
                confined[name] = _without_parents(part)
            case "stack", str():
                confined[name] = _confined_stack(part, root)
            case "pathSeparator", _:
                confined[name] = part if part in {"/", "\\"} else "/"
            case _:
                confined[name] = _confined(part, root)

    return confined


def _without_parents(file: str) -> str:
    """Return a path below the root directory: the same one, unless it leads out with `..`."""
    parts = _SEPARATORS.split(file)
    if ".." not in parts:
        return file

    return "/".join(part for part in parts if part != "..")


def _confined_stack(stack: str, root: Path) -> str:
    """Return a stack without its frames in files outside of a directory."""
    return "\n".join(
        line for line in stack.split("\n") if not _is_frame_outside(line, root)
    )


def _is_frame_outside(line: str, root: Path) -> bool:
    frame = _FRAME.fullmatch(line)
    if frame is None:
        return False

    file = Path(os.path.normpath(root / frame["file"]))
    return not file.is_relative_to(root)

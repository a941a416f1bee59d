"""Writes the values of one attempt at a test as a trace for Playwright's trace viewer, version 8 of its format.

Lines and resources are streamed to a directory, so that a killed run leaves them; ``finish`` makes
the zip archive. The format has no promise for third parties: a test opens traces in the viewer.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from pytest_device.regular_files import is_own_file
from pytest_device.trace.screen import Bounds, Element
from pytest_device.trace.values import (
    Action,
    Attachment,
    Box,
    Device,
    Frame,
    LogLine,
    Output,
    Picture,
    TestError,
    Tree,
    Value,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

VERSION: Final = 8
"""Viewers from 1.53 on read it."""
ARCHIVE: Final = "trace.zip"
LINES: Final = "trace.partial"
"""Beginning of the name of the directory of a trace that is being written: each has one of its own."""
_TEST: Final = "test.trace"
"""The first file of a trace that is written, and that is removed."""
LOCK: Final = "lock"
"""File in that directory that is locked while it is written."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of one trace before compression; of what follows, only steps and errors are kept."""
MAX_EVENTS: Final = 50_000

_RESOURCES: Final = "resources"
_COLUMN: Final = 2
"""Column of each frame: Python's frames have lines only, and viewers before 1.55 raise an error for a smaller one."""
_SUFFIXES: Final[Mapping[str, str]] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/json": "json",
    "application/xml": "xml",
}
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), default=str)
_COMPRESSED: Final = {".png", ".jpeg"}
_MAX_DEPTH: Final = 100
"""Elements that are nested deeper are shown at this depth: JSON is written and read by recursion."""


@dataclass(frozen=True, slots=True)
class TestInfo:
    """The test of a trace; ``annotations`` are shown with it, such as ``("device", "android")``."""

    title: str
    annotations: Sequence[tuple[str, str]] = ()


class PlaywrightTrace:
    """Writes one trace.

    Arguments:
        directory: Where the trace is written.
        test: The test of the trace.
        now: The time of the recorder's clock, in milliseconds.
        source_of: Returns the masked text of a file that a frame names; empty if it cannot be read.

    Raises:
        OSError: The directory cannot be written.
    """

    def __init__(
        self,
        directory: Path,
        test: TestInfo,
        *,
        now: float,
        source_of: Callable[[str], str],
    ) -> None:
        self.path = directory / ARCHIVE
        directory.mkdir(parents=True, exist_ok=True)
        self.lines = Path(tempfile.mkdtemp(prefix=f"{LINES}-", dir=directory))
        self._lock = _locked(self.lines)
        (self.lines / _RESOURCES).mkdir()
        self._source_of = source_of
        self._offset = time.time() * 1000 - now
        """Added to a time of the recorder, it is the time of day in milliseconds."""
        self._files: dict[str, BinaryIO] = {}
        self._devices: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        """Pixels of the last picture of each device."""
        self._scales: dict[str, tuple[float, float]] = {}
        """Pixels of a unit of each device's last tree."""
        self._last: dict[tuple[str, str], str] = {}
        """The resource of each device's last picture and tree, by the kind of its event."""
        self._sources: set[str] = set()
        """Names of the files that frames name."""
        self._resources: set[str] = set()
        """Names of the resources that have been written."""
        self._open: set[str] = set()
        """Keys of actions that have begun and not ended."""
        self._bytes = 0
        self._events = 0
        self._is_full = False
        self._start = now
        self._title = test.title
        annotations = [
            {"type": kind, "description": text} for kind, text in test.annotations
        ]
        context = self._context("testRunner", "", "", test.title)
        self._write(_TEST, {**context, "options": {}, "annotations": annotations})

    def add(self, value: Value, /) -> None:
        """Write a value."""
        if not self._has_room(value):
            return

        match value:
            case Action():
                self._action(value)
            case Picture():
                self._picture(value)
            case Tree():
                self._tree(value)
            case LogLine():
                self._log_line(value)
            case Output() | TestError():
                self._write(_TEST, self._of_test(value))

    def _of_test(self, value: Output | TestError) -> dict[str, Any]:
        if isinstance(value, TestError):
            message = f"{value.failure.name}: {value.failure.message}"
            stack = self._stack(value.stack)
            return {"type": "error", "message": message, "stack": stack}

        kind = "stderr" if value.is_error else "stdout"
        return {"type": kind, "timestamp": value.time, "text": value.text}

    def close(self) -> None:
        """Close the files; their lines stay."""
        self._close_files()
        self._lock.release()

    def _close_files(self) -> None:
        for file in self._files.values():
            file.close()

        self._files.clear()

    def finish(self) -> Path:
        """Add the sources, make the archive, remove the lines, and return the archive's path."""
        # At the end, when all that the test has typed is known: its source may have a password.
        for name in sorted(self._sources):
            source = self._source_of(name)
            if source:
                sha1 = _sha1(name.encode(errors="replace"))
                path = self.lines / _RESOURCES / f"src@{sha1}.txt"
                path.write_text(source, "utf-8", "replace")

        self._close_files()
        path = _zipped(self.lines, self.path)
        self.discard()
        return path

    def discard(self) -> None:
        """Remove the lines."""
        self._close_files()
        # Without its first file, nobody takes the rest for a trace.
        with suppress(OSError):
            (self.lines / _TEST).unlink()

        self._lock.release()
        shutil.rmtree(self.lines, ignore_errors=True)

    def _has_room(self, value: Value) -> bool:
        """Return whether a value is written: if the trace is full, only what says how the test ended."""
        match value:
            case TestError() | Action(kind="step"):
                return True
            # The end of what the trace has the beginning of: without it, the test would seem interrupted.
            case Action() if value.key in self._open:
                return True
            case _:
                pass

        is_full = self._bytes > MAX_BYTES or self._events > MAX_EVENTS
        if is_full and not self._is_full:
            text = f"The trace ends here: it has {self._events} events, {self._bytes} bytes.\n"
            event = {"type": "stderr", "timestamp": self._start, "text": text}
            self._write(_TEST, event)

        self._is_full = is_full
        return not is_full

    def _context(
        self, origin: str, browser: str, platform: str, title: str
    ) -> dict[str, Any]:
        return {
            "type": "context-options",
            "version": VERSION,
            "origin": origin,
            "wallTime": self._start + self._offset,
            "monotonicTime": self._start,
            "title": title,
            "sdkLanguage": "python",
            "contextId": "",
            "browserName": browser,
            "platform": platform,
        }

    def _number_of(self, device: Device) -> int:
        """Return the number of a device's context; begin it if it is new."""
        # A context of its own gives each device a film strip of its own.
        if device.key not in self._devices:
            number = len(self._devices)
            self._devices[device.key] = number
            label = " ".join(filter(None, (device.name, device.label)))
            context = self._context(
                "library", device.controller, device.platform, self._title
            )
            context["options"] = {"isMobile": True, "deviceName": label}
            self._write(f"{number}-trace.trace", context)

        return self._devices[device.key]

    def _file_of(self, device: Device | None) -> str:
        if device is None:
            return _TEST

        return f"{self._number_of(device)}-trace.trace"

    def _action(self, action: Action) -> None:
        name = self._file_of(action.device)
        if action.end is None:
            self._open.add(action.key)
            self._write(name, self._before(action))
            return

        self._open.discard(action.key)
        after: dict[str, Any] = {
            "type": "after",
            "callId": action.key,
            "endTime": action.end,
        }

        if action.error:
            after["error"] = {
                "name": action.error.name,
                "message": action.error.message,
            }

        if action.result is not None:
            after["result"] = {"value": action.result}

        if action.attachments:
            after["attachments"] = [
                self._attachment(attachment) for attachment in action.attachments
            ]

        self._write(name, after)

        if action.point:
            self._write(name, self._input(action))

    def _before(self, action: Action) -> dict[str, Any]:
        event: dict[str, Any] = {
            "type": "before",
            "callId": action.key,
            "startTime": action.start,
            "class": action.class_name,
            "method": action.method,
            "title": action.title,
            "params": dict(action.params),
            "stack": self._stack(action.stack),
        }

        if action.kind == "step":
            event["stepId"] = action.key
        if action.parent:
            event["parentId"] = action.parent
        if action.device:
            event["pageId"] = _page(action.device)
        if action.group:
            event["group"] = action.group

        return event

    def _input(self, action: Action) -> dict[str, Any]:
        key = action.device.key if action.device else ""
        scale = self._scales.get(key, (1.0, 1.0))
        event: dict[str, Any] = {"type": "input", "callId": action.key}
        if action.point:
            x = action.point.x * scale[0]
            y = action.point.y * scale[1]
            event["point"] = {"x": x, "y": y}

        if action.box:
            event["box"] = _plain_box(action.box, scale)

        return event

    def _attachment(self, attachment: Attachment) -> dict[str, Any]:
        return {
            "name": attachment.name,
            "contentType": attachment.content_type,
            "sha1": self._resource(attachment.content, attachment.content_type),
        }

    def _picture(self, picture: Picture) -> None:
        name = self._file_of(picture.device)
        resource = self._resource(picture.content, picture.content_type)
        self._sizes[picture.device.key] = (picture.width, picture.height)
        frame: dict[str, Any] = {
            "type": "screencast-frame",
            "pageId": _page(picture.device),
            "sha1": resource,
            "timestamp": picture.time,
            "width": picture.width,
            "height": picture.height,
        }
        self._write(name, frame)

        self._write_shown("screenshot", picture, resource)

    def _tree(self, tree: Tree) -> None:
        size = self._sizes.get(tree.device.key)
        elements = tree.screen.elements
        # The viewer shows the elements on a picture only.
        if not elements or size is None:
            return

        scale = _scale(elements, size)
        self._scales[tree.device.key] = scale
        nodes = _aria(elements, scale)
        content = json.dumps(nodes, ensure_ascii=False).encode(errors="replace")
        self._write_shown(
            "aria-snapshot", tree, self._resource(content, "application/json")
        )

    def _write_shown(self, kind: str, value: Picture | Tree, resource: str) -> None:
        """Write what a device showed after an action; what it showed last is what it showed before."""
        last = self._last.get((value.device.key, kind), resource)
        self._last[value.device.key, kind] = resource
        if not value.action:
            return

        for phase, shown in (("action", last), ("after", resource)):
            event: dict[str, Any] = {
                "type": kind,
                "callId": value.action,
                "phase": phase,
                "file": f"{_RESOURCES}/{shown}",
                "timestamp": value.time,
            }
            self._write(self._file_of(value.device), event)

    def _log_line(self, line: LogLine) -> None:
        event: dict[str, Any] = {
            "type": "console",
            "pageId": _page(line.device),
            "time": line.time,
            "messageType": "log" if line.level == "info" else line.level,
            "text": line.text,
            "args": [],
            "location": {"url": line.source, "lineNumber": 0, "columnNumber": 0},
        }
        self._write(self._file_of(line.device), event)

    def _stack(self, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        self._sources.update(frame.file for frame in frames)
        return [
            {
                "file": frame.file,
                "line": frame.line,
                "column": _COLUMN,
                "function": frame.function,
            }
            for frame in frames
        ]

    def _resource(self, content: bytes, content_type: str) -> str:
        """Write a resource and return its name, the hash of its content: many pictures of a test are the same."""
        name = f"{_sha1(content)}.{_SUFFIXES.get(content_type, 'txt')}"
        if name not in self._resources:
            self._resources.add(name)
            self._bytes += len(content)
            (self.lines / _RESOURCES / name).write_bytes(content)

        return name

    def _write(self, name: str, event: Mapping[str, Any]) -> None:
        file = self._files.get(name)
        if file is None:
            # Without a buffer, so that a killed run leaves each line.
            file = (self.lines / name).open("ab", buffering=0)
            self._files[name] = file

        line = _ENCODER.encode(event).encode() + b"\n"
        self._bytes += len(line)
        self._events += 1

        # Without a buffer, a full disk takes a part of a line and raises no error.
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def archive(lines: Path, target: Path) -> Path:
    """Make the archive of a directory of lines and remove the directory; an incomplete last line is left out."""
    path = _zipped(lines, target)
    shutil.rmtree(lines, ignore_errors=True)
    return path


def _zipped(lines: Path, target: Path) -> Path:
    partial = target.with_name(f"{target.name}.{lines.name}")
    partial.unlink(missing_ok=True)
    with ZipFile(partial, "x", ZIP_DEFLATED, compresslevel=1) as zipped:
        for path in sorted(lines.rglob("*")):
            if not is_own_file(path) or path.name == LOCK:
                continue

            name = path.relative_to(lines).as_posix()
            content = path.read_bytes()
            if path.suffix == ".trace":
                # A killed run may leave a part of its last line.
                content = content[: content.rfind(b"\n") + 1]

            method = ZIP_STORED if path.suffix in _COMPRESSED else ZIP_DEFLATED
            # The same time in all: a suite may have frozen the clock at one that zips refuse.
            zipped.writestr(ZipInfo(name), content, method)

    partial.replace(target)
    return target


def _locked(lines: Path) -> "BaseFileLock":
    """Return the lock of a directory of lines, which nobody else gets as long as this process lives."""
    from filelock import FileLock

    lock = FileLock(lines / LOCK)
    lock.acquire()
    return lock


def left_over(directory: Path) -> Iterator[Path]:
    """Yield the directories of lines below a directory that nobody writes to: their run was killed."""
    from filelock import FileLock, Timeout

    # Unlike a glob, it passes over directories that other runs remove meanwhile.
    found = [
        Path(above, name)
        for above, names, _ in os.walk(directory)
        for name in names
        if name.startswith(LINES)
    ]
    for lines in sorted(found):
        # One that has just begun, or is being removed: its lock would be a new file.
        if lines.is_symlink() or not (lines / _TEST).exists():
            continue

        lock = FileLock(lines / LOCK)
        try:
            with lock.acquire(blocking=False):
                if (lines / _TEST).exists():
                    yield lines
                else:
                    shutil.rmtree(lines, ignore_errors=True)
        except (Timeout, FileNotFoundError):
            # Of a run that is going on, and perhaps has just finished this one.
            continue


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _page(device: Device) -> str:
    return f"page@{device.name or 'device'}-{device.key[-8:]}"


def _aria(
    elements: Iterable[Element], scale: tuple[float, float]
) -> list[dict[str, Any]]:
    """Return the elements as the viewer reads them: each with those that it contains."""
    roots: list[dict[str, Any]] = []
    above: list[tuple[int, list[dict[str, Any]]]] = []
    """The depth of each element that contains the next one, with what it contains."""
    for element in elements:
        while above and above[-1][0] >= element.depth:
            above.pop()

        del above[_MAX_DEPTH - 1 :]
        siblings = above[-1][1] if above else roots
        node = _aria_node(element, scale)
        siblings.append(node)
        above.append((element.depth, node["children"]))

    return roots


def _aria_node(element: Element, scale: tuple[float, float]) -> dict[str, Any]:
    role = element.type.rpartition(".")[2].removeprefix("XCUIElementType")
    name = element.accessibility_id or element.test_id or element.label or element.id
    node: dict[str, Any] = {"role": role, "name": name}
    text = element.text or element.label
    if text and text != name:
        node["text"] = text
    if element.bounds:
        # In pixels of the picture, which may be reduced.
        node["box"] = _plain_box(element.bounds, scale)
    if element.is_focused:
        node["active"] = True

    node["children"] = []
    return node


def _plain_box(box: Box | Bounds, scale: tuple[float, float]) -> dict[str, float]:
    return {
        "x": box.x * scale[0],
        "y": box.y * scale[1],
        "width": box.width * scale[0],
        "height": box.height * scale[1],
    }


def _scale(elements: Sequence[Element], size: tuple[int, int]) -> tuple[float, float]:
    """Return the pixels of a unit of a tree: its bounds may be pixels, points or fractions of the screen."""
    width, height = size
    extent = _extent(elements)
    if extent == 0:
        return 1.0, 1.0
    # Fractions of the screen, as those of argent.
    if extent <= 1:
        return float(width), float(height)

    return width / extent, width / extent


def _extent(elements: Iterable[Element]) -> float:
    """Return the width of a screen in the units of its tree: that of its first element with bounds."""
    for element in elements:
        if element.bounds and element.bounds.width > 0:
            return element.bounds.x + element.bounds.width
    return 0.0

"""Playwright's blob report, version 2: `playwright merge-reports` makes pages, JUnit files and annotations of it.

A blob is a zip of ``report.jsonl``, one JSON object a line, and ``resources/``. Playwright promises no format to others:
a test merges blobs with the newest release and with the oldest that reads them, 1.58.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha1
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pytest_device.regular_files import open_inside
from pytest_device.report.attempts import (
    Attachment,
    Attempt,
    AttemptFailure,
    DeviceUsed,
    Location,
    Recorded,
    Status,
    Step,
)

BLOB_VERSION: Final = 2
WRITTEN_FOR: Final = "1.65.1"
"""The release of Playwright that the lines name: older ones read them, too."""
WITHOUT_DEVICE: Final = "no device"
"""The project of tests without a device."""
MAX_SESSION_BARS: Final = 100
"""With more sessions, there is one bar per worker: each bar costs a file, and nobody reads a thousand of them."""
TOOL: Final = "pytest-device"
"""What the metadata of our blobs begins with."""
LINES_MEMBER: Final = "report.jsonl"
"""Name of the lines in a blob."""
UNREADABLE: Final = (
    BadZipFile,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    ValueError,
    zlib.error,
)
"""Errors of a file that is no blob, or a damaged or encrypted one."""
MAX_METADATA: Final = 100_000
"""Bytes of a blob's first line that are read."""
_COMPRESSED: Final = frozenset(
    {".zip", ".png", ".jpg", ".jpeg", ".webm", ".mp4", ".webp"}
)
"""Files that compressing again would not make smaller."""

_Message: TypeAlias = tuple[str, dict[str, Any]]
"""A method of Playwright's reporters, and its parameters."""


def write_blob(run: Recorded, path: Path) -> None:
    """Write a run's tests as a blob, with the attachments that are files of its directory. Raises OSError."""
    with _new(path) as blob:
        members: dict[str, str] = {}
        attempts: list[Attempt] = []
        for attempt in run.attempts:
            attachments = tuple(_add(blob, attempt.attachments, path.parent, members))
            attempts.append(replace(attempt, attachments=attachments))

        # Line by line: a run with many steps has more text than should be in memory at once.
        with blob.open(_member(LINES_MEMBER), "w") as file:
            for message in _lines(run, attempts):
                file.write(_line(message))


def write_bars(run: Recorded, directory: Path, stem: str) -> list[Path]:
    """Write a blob without tests per device session, which is its bar in the timeline. Raises OSError."""
    bars = run.devices
    if len(bars) > MAX_SESSION_BARS:
        bars = _by_worker(bars)

    paths: list[Path] = []
    for number, device in enumerate(bars, 1):
        path = directory / f"{stem}-device-{number:03d}.zip"
        name = f"{device.label} {device.session_id[:8]}".rstrip()
        # The label of the bar: Playwright shows a blob's tags there.
        tag = "@" + re.sub(r"[^\w.-]+", "-", name)
        messages: list[_Message] = [
            _metadata(run),
            _config(run, tags=[tag]),
            ("onBegin", {}),
            _end(Status.PASSED, device.start, device.seconds),
        ]

        with _new(path) as blob:
            blob.writestr(_member(LINES_MEMBER), b"".join(map(_line, messages)))

        paths.append(path)

    return paths


def is_own_blob(path: Path) -> bool:
    """Return whether this package has written a file; False if it cannot be read."""
    try:
        agent = metadata_of(path).get("userAgent")
    except UNREADABLE:
        return False

    return str(agent).startswith(f"{TOOL}/")


def metadata_of(path: Path) -> Mapping[str, Any]:
    """Return the parameters of a blob's first line. Raises one of UNREADABLE."""
    with (
        open_inside(path.name, path.parent) as file,
        ZipFile(file) as blob,
        blob.open(LINES_MEMBER) as lines,
    ):
        line: Any = json.loads(lines.readline(MAX_METADATA))

    match line:
        case {"method": "onBlobReportMetadata", "params": params}:
            pass
        case _:
            raise ValueError("it does not begin with metadata")

    if not isinstance(params, dict):
        raise ValueError("its metadata has no parameters")  # noqa: TRY004  # as for other damaged files

    return cast("Mapping[str, Any]", params)


def _line(message: _Message) -> bytes:
    method, params = message
    line = {"method": method, "params": params}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _lines(run: Recorded, attempts: list[Attempt]) -> Iterator[_Message]:
    yield _metadata(run)
    yield _config(run)

    projects: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        projects.setdefault(attempt.project or WITHOUT_DEVICE, []).append(attempt)

    for name, attempts_of_project in projects.items():
        yield _project(name, attempts_of_project)

    yield "onBegin", {}

    for attempt in attempts:
        yield from _events(attempt)

    status = run.ended.status if run.ended else Status.INTERRUPTED
    yield _end(status, run.started.start, max(0.0, run.end - run.started.start))


def _metadata(run: Recorded) -> _Message:
    return "onBlobReportMetadata", {
        "version": BLOB_VERSION,
        # By this, the blobs of a suite's own Playwright tests in the directory are told from ours.
        "userAgent": run.started.tool,
        "name": None,
        "shard": _shard(run),
        "pathSeparator": "/",
    }


def _shard(run: Recorded) -> dict[str, int] | None:
    number, _, total = run.started.shard.partition("/")
    if not total:
        return None

    return {"current": int(number), "total": int(total)}


def _config(run: Recorded, tags: Iterable[str] = ()) -> _Message:
    workers = len({attempt.worker for attempt in run.attempts}) or 1
    config: dict[str, Any] = {
        "configFile": None,
        "globalTimeout": 0,
        "maxFailures": 0,
        "metadata": {},
        "rootDir": run.started.root,
        "shard": _shard(run),
        "version": WRITTEN_FOR,
        "workers": workers,
        "globalSetup": None,
        "globalTeardown": None,
        "tags": list(tags),
        "webServer": None,
        "failOnFlakyTests": False,
    }

    return "onConfigure", {"config": config}


def _project(name: str, attempts: list[Attempt]) -> _Message:
    suites: dict[str, dict[str, Attempt]] = {}
    for attempt in attempts:
        suites.setdefault(attempt.location.file, {})[attempt.test_id] = attempt

    retries = max((attempt.retry for attempt in attempts), default=0)
    project: dict[str, Any] = {
        "metadata": {},
        "name": name,
        "outputDir": "",
        "repeatEach": 1,
        "retries": retries,
        "testDir": "",
        "testIgnore": [],
        "testMatch": [],
        "timeout": 0,
        "suites": [
            {
                "title": file,
                "location": {"file": file, "line": 0, "column": 0},
                "entries": [_entry(test, retries) for test in tests.values()],
            }
            for file, tests in suites.items()
        ],
        "grep": [],
        "grepInvert": [],
        "dependencies": [],
        "snapshotDir": "",
        "teardown": None,
        "ignoreSnapshots": None,
        "use": {},
    }

    return "onProject", {"project": project}


def _entry(attempt: Attempt, retries: int) -> dict[str, Any]:
    return {
        "testId": _test_id(attempt),
        "title": attempt.title,
        "location": _location(attempt.location),
        "retries": retries,
        "tags": [f"@{tag}" for tag in attempt.tags],
        "repeatEachIndex": 0,
        "annotations": [],
    }


def _test_id(attempt: Attempt) -> str:
    """Return an ID that is the same in each shard and safe in a URL, where the page shows it."""
    name = f"{attempt.project} {attempt.test_id}"
    return sha1(name.encode(errors="replace"), usedforsecurity=False).hexdigest()


def _events(attempt: Attempt) -> Iterator[_Message]:
    test_id = _test_id(attempt)
    result_id = f"{test_id[:20]}.{attempt.retry}"
    of_result = {"testId": test_id, "resultId": result_id}

    yield (
        "onTestBegin",
        {
            "testId": test_id,
            "result": {
                "id": result_id,
                "retry": attempt.retry,
                "workerIndex": attempt.worker,
                "parallelIndex": attempt.worker,
                "startTime": _milliseconds(attempt.start),
            },
        },
    )

    for number, step in enumerate(attempt.steps):
        yield from _step_events(step, f"{result_id}.{number}", None, of_result)

    if attempt.output:
        yield (
            "onStdIO",
            {
                "type": "stdout",
                **of_result,
                "data": attempt.output,
                "isBase64": False,
            },
        )

    if attempt.attachments:
        files = [
            {"name": file.name, "contentType": file.content_type, "path": file.path}
            for file in attempt.attachments
        ]
        yield "onAttach", {**of_result, "attachments": files}

    annotations = [
        {"type": kind, "description": text} for kind, text in attempt.annotations
    ]
    yield (
        "onTestEnd",
        {
            "test": {
                "testId": test_id,
                "expectedStatus": _expected(attempt),
                "timeout": 0,
                "annotations": annotations,
            },
            "result": {
                "id": result_id,
                "duration": _milliseconds(attempt.seconds),
                "status": attempt.status.value,
                "errors": [_error(failure, attempt) for failure in attempt.failures],
                "annotations": annotations,
            },
        },
    )


def _step_events(
    step: Step, step_id: str, parent: str | None, of_result: dict[str, str]
) -> Iterator[_Message]:
    """Yield the events of a step and, between its beginning and its end, those of its parts."""
    begun: dict[str, Any] = {
        "id": step_id,
        "parentStepId": parent,
        "title": step.title,
        "category": step.category,
        "startTime": _milliseconds(step.start),
    }

    if step.location:
        begun["location"] = _location(step.location)

    yield "onStepBegin", {**of_result, "step": begun}

    for number, part in enumerate(step.steps):
        yield from _step_events(part, f"{step_id}.{number}", step_id, of_result)

    ended: dict[str, Any] = {"id": step_id, "duration": _milliseconds(step.seconds)}
    if step.error:
        ended["error"] = {"message": step.error}

    yield "onStepEnd", {**of_result, "step": ended}


def _expected(attempt: Attempt) -> str:
    """Return the status that the test is meant to have: Playwright counts a test with another one as failed."""
    if attempt.is_expected:
        return attempt.status.value

    return "failed" if attempt.status is Status.PASSED else "passed"


def _error(failure: AttemptFailure, attempt: Attempt) -> dict[str, Any]:
    error: dict[str, Any] = {"message": failure.message}
    if failure.location:
        line = f"{failure.location.file}:{failure.location.line}:1"
        error["location"] = _location(failure.location)
        # Playwright reads a stack as Node.js formats it.
        error["stack"] = f"{failure.message}\n    at {attempt.title} ({line})"

    if failure.snippet:
        error["snippet"] = failure.snippet

    return error


def _end(status: Status, start: float, seconds: float) -> _Message:
    result = {
        "status": status.value,
        "startTime": _milliseconds(start),
        "duration": _milliseconds(seconds),
    }
    return "onEnd", {"result": result}


def _location(location: Location) -> dict[str, Any]:
    # Of a test and a step, Python knows the line only.
    return {"file": location.file, "line": location.line, "column": 1}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _add(
    blob: ZipFile,
    files: Iterable[Attachment],
    directory: Path,
    members: dict[str, str],
) -> Iterator[Attachment]:
    """Add files of a directory to a blob, each content once, and yield them with their paths in it.

    ``members`` are the names of those that it already has, by the hash of their content.
    """
    for file in files:
        try:
            with open_inside(file.path, directory) as source:
                content = source.read()
        except OSError:
            # Removed since, or of another directory, which a report from elsewhere may name.
            continue

        digest = sha1(content, usedforsecurity=False).hexdigest()
        if digest not in members:
            suffix = Path(file.path).suffix.lower()
            members[digest] = f"resources/{digest}{suffix}"
            compression = ZIP_STORED if suffix in _COMPRESSED else ZIP_DEFLATED
            blob.writestr(_member(members[digest], compression), content)

        yield replace(file, path=members[digest])


def _new(path: Path) -> ZipFile:
    """Return an empty blob, in the place of what was there: never in that of a link's target."""
    path.unlink(missing_ok=True)
    return ZipFile(path, "x", ZIP_DEFLATED)


def _member(name: str, compression: int = ZIP_DEFLATED) -> ZipInfo:
    """Return a file in a blob, with the same time in all: a suite may have frozen the clock at one that zips refuse."""
    member = ZipInfo(name)
    member.compress_type = compression
    return member


def _by_worker(devices: Iterable[DeviceUsed]) -> list[DeviceUsed]:
    """Return one bar per worker, from its first session's start to the last one's end."""
    bars: dict[int, DeviceUsed] = {}

    for device in devices:
        earlier = bars.get(device.worker, device)
        start = min(earlier.start, device.start)
        end = max(earlier.start + earlier.seconds, device.start + device.seconds)
        label = f"worker {device.worker}"
        bars[device.worker] = DeviceUsed(label, "", start, end - start, device.worker)

    return list(bars.values())

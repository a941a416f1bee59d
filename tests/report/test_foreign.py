"""A report or a trace from elsewhere leads to no file but the regular ones of its own directory."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import pytest

from pytest_device.report.attempts import (
    Attachment,
    Attempt,
    Location,
    RunStarted,
    Status,
    write,
)
from pytest_device.report.directory import complete_killed
from pytest_device.report.foreign import copy_as_text
from pytest_device.trace.playwright import ARCHIVE, LINES
from tests.cli.running import call

SECRET: Final = "MARKER-OF-A-SECRET"
FIFOS = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="Windows has no named pipes in directories"
)
STARTED: Final = RunStarted("killed", "", "/suite", 1.0, "pytest-device/0")
TEST: Final = Attempt(
    "t::a", 0, 0, 1.0, 1.0, Location("t.py", 1), "test_a", Status.FAILED
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "home/secret.txt"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The directory of a report from elsewhere."""
    path = tmp_path / "report"
    path.mkdir()
    return path


def write_lines(path: Path, *attachments: str) -> None:
    """Write what a killed run leaves: one test with these attachments."""
    files = tuple(Attachment(name, "text/plain", name) for name in attachments)
    with path.open("w") as file:
        write(STARTED, file)
        write(replace(TEST, attachments=files), file)


def contents(path: Path) -> bytes:
    """Return the contents of all files at a path, also of those in archives."""
    found = b""
    for file in sorted(path.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue

        found += file.read_bytes()
        if file.suffix == ".zip":
            with ZipFile(file) as archive:
                found += b"".join(map(archive.read, archive.namelist()))
    return found


def linked(report: Path, secret: Path) -> str:
    (report / "link.txt").symlink_to(secret)
    return "link.txt"


def in_linked_directory(report: Path, secret: Path) -> str:
    (report / "directory").symlink_to(secret.parent)
    return "directory/secret.txt"


def pipe(report: Path, _secret: Path) -> str:
    os.mkfifo(report / "pipe.txt")
    return "pipe.txt"


@FIFOS
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(lambda _report, secret: str(secret), id="absolute"),
        pytest.param(lambda _report, _secret: "../home/secret.txt", id="parent"),
        pytest.param(lambda report, _secret: f"{report}/../home/secret.txt", id="both"),
        pytest.param(lambda _report, secret: secret.as_uri(), id="url"),
        linked,
        in_linked_directory,
        pipe,
        pytest.param(lambda _report, _secret: "/dev/zero", id="device"),
        pytest.param(lambda _report, _secret: ".", id="directory"),
        pytest.param(lambda _report, _secret: "a\0b", id="zero byte"),
        pytest.param(lambda _report, _secret: "a" * 5000, id="too long"),
    ],
)
def test_an_attachment_is_a_regular_file_of_the_reports_directory(
    report: Path, secret: Path, attack: Callable[[Path, Path], str]
) -> None:
    (report / "own.txt").write_text("its own")
    write_lines(report / "killed.jsonl", attack(report, secret), "own.txt")

    assert complete_killed(report) == []

    with ZipFile(report / "killed.zip") as blob:
        (resource,) = set(blob.namelist()) - {"report.jsonl"}
        assert blob.read(resource) == b"its own"
    assert SECRET.encode() not in contents(report)


@FIFOS
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("run.jsonl", "link"),
        ("run.jsonl", "pipe"),
        ("run.zip", "link"),
        ("run.zip", "pipe"),
        ("run.device-lock", "link"),
    ],
)
def test_a_link_or_a_pipe_is_no_part_of_a_report(
    report: Path, secret: Path, name: str, kind: str
) -> None:
    write_lines(secret)
    if name.endswith("lock"):
        write_lines(report / "run.jsonl")
    if kind == "link":
        (report / name).symlink_to(secret)
    else:
        os.mkfifo(report / name)
    before = secret.read_text()

    done = call("report", "--format=json", str(report))

    assert done.returncode == 2
    left_out, no_report = done.stderr.splitlines()
    assert left_out.startswith("left out: ")
    assert f"no report in {report}" in no_report
    assert secret.read_text() == before


def test_the_blobs_of_a_killed_run_are_written_to_its_directory_alone(
    report: Path, secret: Path
) -> None:
    write_lines(report / "run.jsonl")
    for name in ("run.partial", "run.zip", "run-device-001.zip"):
        (report / name).symlink_to(secret)

    assert complete_killed(report) == []

    assert secret.read_text() == SECRET
    assert (report / "run.zip").is_file()
    assert not (report / "run.zip").is_symlink()


@FIFOS
def test_a_page_that_is_a_pipe_is_not_that_of_an_earlier_report(
    report: Path,
) -> None:
    (report / "page").mkdir()
    os.mkfifo(report / "page/index.html")

    done = call("report", str(report))

    assert done.returncode == 2
    assert "page has other files" in done.stderr


def copied(tmp_path: Path, *lines: dict[str, Any], **members: str) -> ZipFile:
    """Return the copy of a blob with these lines and members."""
    with ZipFile(tmp_path / "blob.zip", "w") as archive:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        archive.writestr("report.jsonl", text)
        for name, content in members.items():
            archive.writestr(name, content)
    copy_as_text(tmp_path / "blob.zip", tmp_path / "copy.zip")
    return ZipFile(tmp_path / "copy.zip")


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("tests/test_it.py", "tests/test_it.py"),
        ("/home/me/.netrc", "home/me/.netrc"),
        ("../../.netrc", ".netrc"),
        ("a/..\\..\\.netrc", "a/.netrc"),
        ("C:\\Users\\me", "C_/Users/me"),
        ("C:me", "C_me"),
        ("file:///etc/passwd", "file_/etc/passwd"),
        ("\\\\server\\share", "server/share"),
        (0, "0"),
        # Node.js opens an object that looks like a URL.
        ({"protocol": "file:", "pathname": "/a"}, "{'protocol'_ 'file_'"),
    ],
)
def test_a_location_is_a_path_below_the_directory_of_the_merge(
    tmp_path: Path, named: object, expected: str
) -> None:
    location = {"location": {"file": named, "line": 2, "column": 1}}
    line = {"params": {"result": {"errors": [{**location, "stack": "at (x:1:1)"}]}}}

    with copied(tmp_path, line) as copy:
        (error,) = json.loads(copy.read("report.jsonl"))["params"]["result"]["errors"]

    assert error["location"]["file"].startswith(expected)
    assert ".." not in error["location"]["file"]
    assert error["stack"] == "at (x:1:1)"


@pytest.mark.parametrize("location", [{}, {"location": None}, {"location": ""}])
def test_a_stack_without_a_location_is_text(
    tmp_path: Path, location: dict[str, object]
) -> None:
    stack = "Error: it\n    at f (file:///home/me/.netrc:2:1)"
    error = {"error": {"message": "it", "stack": stack, **location}}

    with copied(tmp_path, {"method": "onError", "params": error}) as copy:
        read = json.loads(copy.read("report.jsonl"))["params"]["error"]

    assert read == {"message": stack, **location}


@pytest.mark.parametrize(
    ("recorded", "expected"), [("/", "/"), ("\\", "\\"), ("%", "/"), (None, "/")]
)
def test_no_other_character_separates_the_parts_of_a_path(
    tmp_path: Path, recorded: str | None, expected: str
) -> None:
    with copied(tmp_path, {"params": {"pathSeparator": recorded}}) as copy:
        line = json.loads(copy.read("report.jsonl"))

    assert line["params"]["pathSeparator"] == expected


@pytest.mark.parametrize(
    "member",
    [
        "merge.config.cjs",
        "../escaped.jsonl",
        "/tmp/escaped.jsonl",
        "resources/../../escaped",
        "resources/..",
        "resources\\..\\..\\escaped",
        "resources/a/b",
    ],
)
def test_only_lines_and_resources_are_copied(tmp_path: Path, member: str) -> None:
    members = {"resources/a.png": "picture", member: "attack()"}

    with copied(tmp_path, {"params": {}}, **members) as copy:
        assert copy.namelist() == ["report.jsonl", "resources/a.png"]


def trace_lines(directory: Path) -> Path:
    """Write what a killed run leaves of a trace."""
    lines = directory / LINES
    lines.mkdir(parents=True)
    context = {"title": "t.py::a", "monotonicTime": 0, "wallTime": 0}
    (lines / "test.trace").write_text(json.dumps(context) + "\n")
    return lines


@FIFOS
def test_traces_are_regular_files_of_their_directory(
    report: Path, secret: Path
) -> None:
    lines = trace_lines(report / "own")
    (lines / "linked.txt").symlink_to(secret)
    os.mkfifo(lines / "pipe.txt")
    (report / f"own/{ARCHIVE}.{LINES}").symlink_to(secret)
    elsewhere = trace_lines(secret.parent / "elsewhere")
    (elsewhere / "secret.txt").write_text(SECRET)
    for name in ("linked", "piped", "lines"):
        (report / name).mkdir()
    (report / f"linked/{ARCHIVE}").symlink_to(secret)
    os.mkfifo(report / f"piped/{ARCHIVE}")
    (report / f"lines/{LINES}").symlink_to(elsewhere)

    done = call("trace", "list", str(report))

    assert done.returncode == 0
    listed = done.stdout
    assert listed.count(ARCHIVE) == 1
    assert str(report / f"own/{ARCHIVE}") in listed
    assert SECRET.encode() not in contents(report)
    assert secret.read_text() == SECRET
    assert (elsewhere / "secret.txt").exists()

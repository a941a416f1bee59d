"""A report shows no other files than the tests', whoever wrote its blobs."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pytest_device.report.confined import copy_confined, root_of

OUTSIDE = "../secret.txt"


def write(blob: Path, *lines: dict[str, Any], **members: str) -> Path:
    with ZipFile(blob, "w") as archive:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        archive.writestr("report.jsonl", text)
        for name, content in members.items():
            archive.writestr(name, content)
    return blob


def copied(tmp_path: Path, *lines: dict[str, Any], **members: str) -> ZipFile:
    """Return the copy of a blob with these lines, for tests in ``tmp_path / "suite"``."""
    blob = write(tmp_path / "blob.zip", *lines, **members)
    copy_confined(blob, tmp_path / "copy.zip", tmp_path / "suite")
    return ZipFile(tmp_path / "copy.zip")


def at(file: str) -> dict[str, Any]:
    return {"location": {"file": file, "line": 2, "column": 1}}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({"params": {"step": at(OUTSIDE)}}, id="step"),
        pytest.param({"params": {"result": {"errors": [at(OUTSIDE)]}}}, id="error"),
        pytest.param({"params": {"step": at("a/..\\..\\secret.txt")}}, id="backslash"),
    ],
)
def test_a_location_never_leads_out_of_the_tests_directory(
    tmp_path: Path, line: dict[str, Any]
) -> None:
    with copied(tmp_path, line) as copy:
        text = copy.read("report.jsonl").decode()

    assert ".." not in text
    assert "secret.txt" in text


def test_an_escaped_location_is_recognized(tmp_path: Path) -> None:
    blob = tmp_path / "blob.zip"
    line = json.dumps(at(OUTSIDE)).replace("..", "\\u002e\\u002e")
    with ZipFile(blob, "w") as archive:
        archive.writestr("report.jsonl", line)

    copy_confined(blob, tmp_path / "copy.zip", tmp_path / "suite")

    with ZipFile(tmp_path / "copy.zip") as copy:
        (read,) = map(json.loads, copy.read("report.jsonl").splitlines())
    assert read["location"]["file"] == "secret.txt"


def test_a_stack_has_the_frames_of_the_tests_alone(tmp_path: Path) -> None:
    own = f"    at test (tests/test_it.py:3:1)\n    at {tmp_path}/suite/a.ts:3:1"
    foreign = f"    at f ({tmp_path}/secret.txt:2:1)\n    at ../secret.txt:2:1"
    error = {"errors": [{"stack": f"wrong\n{foreign}\n{own}"}]}

    with copied(tmp_path, error) as copy:
        line = json.loads(copy.read("report.jsonl"))

    assert line["errors"][0]["stack"] == f"wrong\n{own}"


def test_no_other_character_separates_the_parts_of_a_path(tmp_path: Path) -> None:
    # Playwright makes "/" of it.
    metadata = {"params": {"pathSeparator": "%"}}
    with copied(tmp_path, metadata, at("test_it.py")) as copy:
        first, _ = map(json.loads, copy.read("report.jsonl").splitlines())

    assert first["params"]["pathSeparator"] == "/"


def test_only_lines_and_resources_are_copied(tmp_path: Path) -> None:
    members = {"resources/a.png": "picture", "merge.config.cjs": "attack()"}
    with copied(tmp_path, at("test_it.py"), **members) as copy:
        assert copy.namelist() == ["report.jsonl", "resources/a.png"]
        assert json.loads(copy.read("report.jsonl")) == at("test_it.py")


def test_an_unsuspicious_blob_is_copied_as_it_is(tmp_path: Path) -> None:
    with copied(tmp_path, {"params": {"title": "wait…", **at("a/test_it.py")}}):
        pass

    same = (tmp_path / "blob.zip").read_bytes() == (tmp_path / "copy.zip").read_bytes()
    assert same


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (lambda tmp_path: tmp_path / "home/work/suite", "home/work/suite"),
        (lambda tmp_path: tmp_path / "home/work/suite/tests", None),
        (lambda tmp_path: tmp_path / "home/work", None),  # has other repositories
        (lambda tmp_path: tmp_path / "home", None),
        (lambda tmp_path: tmp_path / "home/work/../work/suite", "home/work/suite"),
        (lambda _tmp_path: Path(os.sep), None),
        (lambda tmp_path: tmp_path / "elsewhere", None),
        (lambda _tmp_path: Path("relative"), None),
        (lambda _tmp_path: ["no", "path"], None),
    ],
)
def test_the_root_is_that_of_the_report_and_no_directory_with_everything(
    tmp_path: Path, recorded: Callable[[Path], object], expected: str | None
) -> None:
    reports = tmp_path / "home/work/suite/device-report"
    for directory in (
        reports,
        tmp_path / "home/work/suite/.git",
        tmp_path / "elsewhere",
    ):
        directory.mkdir(parents=True)
    root = recorded(tmp_path)
    named = str(root) if isinstance(root, Path) else root
    configured = {
        "method": "onConfigure",
        "params": {"config": {"rootDir": named}},
    }
    blob = write(reports / "run.zip", configured)

    found = root_of([blob], home=tmp_path / "home", current=tmp_path / "current")

    assert found == tmp_path / (expected or "current")


def test_a_blob_without_a_root_is_no_error(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"method": "onConfigure"}, {"params": {}}]
    for line in lines:
        blob = write(tmp_path / "run.zip", line)
        here = tmp_path / "here"
        assert root_of([blob], home=tmp_path, current=here) == here

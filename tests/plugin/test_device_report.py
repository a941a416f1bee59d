"""The report of a run: what a test, a retry, a killed run and a shard leave in the report directory."""

import json
import mimetypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any, Final
from zipfile import ZipFile

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER, ON_WORKERS
from tests.waiting import eventually

SUITE = """
import pytest
from pytest_device import device_step

@pytest.mark.device(platform="android")
@pytest.mark.smoke
def test_passes(record_property):
    print("printed by the test")
    record_property("values", ["of", {"any": "type"}])

@pytest.mark.device(platform="ios")
def test_fails():
    count = 1
    with device_step("Look for the count"):
        assert count == 2, "the test's own error"

@pytest.mark.xfail
def test_fails_as_expected(): assert 0

@pytest.mark.skip(reason="not today")
def test_is_skipped(): pass

def test_without_device(): pass
"""
INI = "[pytest]\nmarkers = smoke: a quick test\n"


def blobs(directory: Path) -> list[Path]:
    return [
        path for path in sorted(directory.glob("*.zip")) if "-device-" not in path.name
    ]


def messages(blob: Path) -> list[tuple[str, dict[str, Any]]]:
    with ZipFile(blob) as archive:
        lines = archive.read("report.jsonl").decode().splitlines()
    return [(line["method"], line["params"]) for line in map(json.loads, lines)]


def of_method(blob: Path, method: str) -> Iterator[dict[str, Any]]:
    return (params for name, params in messages(blob) if name == method)


def attempts_of(path: Path) -> list[tuple[str, str, str | None]]:
    """Return outcome, status in the blob, and error of each attempt at the one test of a run called ``it``."""
    text = (path / "device-report/device-run.json").read_text()
    (test,) = json.loads(text)["tests"]
    (blob,) = blobs(path / "device-report")
    retries = [params["result"]["retry"] for params in of_method(blob, "onTestBegin")]
    assert retries == list(range(len(retries)))
    assert [each["attempt"] for each in test["attempts"]] == [
        retry + 1 for retry in retries
    ]

    return [
        (attempt["outcome"], ended["result"]["status"], attempt["error"])
        for attempt, ended in zip(
            test["attempts"], of_method(blob, "onTestEnd"), strict=True
        )
    ]


def results(blob: Path) -> dict[str, tuple[str, str, str]]:
    """Return project, status and expected status of each test, by title."""
    titles = {
        entry["testId"]: (entry["title"], params["project"]["name"])
        for params in of_method(blob, "onProject")
        for suite in params["project"]["suites"]
        for entry in suite["entries"]
    }
    return {
        titles[params["test"]["testId"]][0]: (
            titles[params["test"]["testId"]][1],
            params["result"]["status"],
            params["test"]["expectedStatus"],
        )
        for params in of_method(blob, "onTestEnd")
    }


EXPECTED = {
    "test_passes": ("android", "passed", "passed"),
    "test_fails": ("ios", "failed", "passed"),
    "test_fails_as_expected": ("no device", "failed", "failed"),
    "test_is_skipped": ("no device", "skipped", "skipped"),
    "test_without_device": ("no device", "passed", "passed"),
}


@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_run_with_devices_leaves_a_report_of_all_its_tests(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)

    pytester.runpytest(*options)

    directory = pytester.path / "device-report"
    (blob,) = blobs(directory)
    assert results(blob) == EXPECTED
    assert not list(directory.glob("*.jsonl"))
    assert (directory / ".gitignore").read_text() == "*\n"
    ends = list(of_method(blob, "onEnd"))
    assert [end["result"]["status"] for end in ends] == ["failed"]
    bars = sorted(directory.glob("*-device-*.zip"))
    tags = {
        tag
        for bar in bars
        for params in of_method(bar, "onConfigure")
        for tag in params["config"]["tags"]
    }
    ids = {str(session["id"])[:8] for session in service.sessions()}
    assert {tag.rpartition("-")[2] for tag in tags} == ids


@pytest.mark.usefixtures("service")
def test_a_failure_has_its_message_its_lines_of_source_and_its_files(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)

    pytester.runpytest()

    (blob,) = blobs(pytester.path / "device-report")
    (error,) = [
        error
        for params in of_method(blob, "onTestEnd")
        for error in params["result"]["errors"]
        if params["test"]["expectedStatus"] == "passed"
    ]
    assert "the test's own error" in error["message"]
    assert error["location"]["line"] == 14
    assert (
        '> 14 |         assert count == 2, "the test\'s own error"' in error["snippet"]
    )
    files = [
        file for params in of_method(blob, "onAttach") for file in params["attachments"]
    ]
    assert "session.json" in {file["name"] for file in files}
    with ZipFile(blob) as archive:
        assert all(archive.read(file["path"]) for file in files)
    tags = {
        entry["title"]: entry["tags"]
        for params in of_method(blob, "onProject")
        for suite in params["project"]["suites"]
        for entry in suite["entries"]
    }
    assert tags["test_passes"] == ["@smoke"]
    output = "".join(params["data"] for params in of_method(blob, "onStdIO"))
    assert "printed by the test" in output


UNITTEST: Final = """
import unittest
import pytest

@pytest.mark.device(platform="android")
class TestIt(unittest.TestCase):
    def test_compares(self):
        self.assertEqual(1, 2)
"""


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_failure_is_at_a_line_of_the_suite_not_in_the_library_that_raised_it(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    path = pytester.makepyfile(UNITTEST)

    pytester.runpytest(*options).assert_outcomes(failed=1)

    (blob,) = blobs(pytester.path / "device-report")
    (ended,) = of_method(blob, "onTestEnd")
    (error,) = ended["result"]["errors"]
    assert error["location"] == {"file": path.name, "line": 7, "column": 1}
    assert ">  7 |         self.assertEqual(1, 2)" in error["snippet"]


def test_no_secret_of_a_run_is_in_its_report(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.device(platform="android")
        def test_fails():
            print("the token is {service.token}")
            assert "{service.token}" == ""
    """)

    pytester.runpytest()

    directory = pytester.path / "device-report"
    for path in directory.rglob("*.zip"):
        with ZipFile(path) as archive:
            for name in archive.namelist():
                assert service.token.encode() not in archive.read(name), (path, name)


def test_a_run_without_devices_leaves_no_report(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile("def test_plain(): pass")

    pytester.runpytest().assert_outcomes(passed=1)

    assert not (pytester.path / "device-report").exists()
    assert not service.sessions()


def test_the_report_can_be_turned_off(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)

    pytester.runpytest("--device-report=off")

    assert len(service.sessions()) == 2
    assert not (pytester.path / "device-report").exists()
    assert not (pytester.path / "off").exists()


def test_a_new_run_moves_the_report_of_the_one_before_and_keeps_that_of_its_shards(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    directory = pytester.path / "device-report"

    for run, shard in (("old", "1/1"), ("new", "1/2"), ("new", "2/2")):
        monkeypatch.setenv("BUILD_TAG", run)
        pytester.runpytest(f"--device-shard={shard}")

    assert [path.name for path in blobs(directory)] == [
        "new-1-of-2.zip",
        "new-2-of-2.zip",
    ]
    assert [path.name for path in blobs(directory / "previous")] == ["old-1-of-1.zip"]
    assert list(data_of(directory / "previous")) == ["device-run-1-of-1.json"]
    data = data_of(directory)
    assert list(data) == ["device-run-1-of-2.json", "device-run-2-of-2.json"]
    assert sorted(name for names in data.values() for name in names) == sorted(EXPECTED)
    both = {
        **results(directory / "new-1-of-2.zip"),
        **results(directory / "new-2-of-2.zip"),
    }
    assert both == EXPECTED == results(directory / "previous/old-1-of-1.zip")
    assert len(service.sessions()) == 4


def test_a_killed_run_leaves_lines_that_the_next_run_completes(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("""
        import pathlib, time, pytest

        @pytest.mark.device(platform="android")
        def test_fails(device_session): assert 0

        @pytest.mark.device(platform="android")
        def test_is_killed():
            pathlib.Path("running").touch()
            time.sleep(60)
    """)
    monkeypatch.setenv("BUILD_TAG", "killed")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest"], cwd=pytester.path, stdout=subprocess.DEVNULL
    ) as process:
        assert eventually((pytester.path / "running").exists)
        os.kill(process.pid, signal.SIGKILL)
    directory = pytester.path / "device-report"
    assert not blobs(directory)
    # Its files are in the report, so that no other is ever opened.
    rmtree(pytester.path / "device-artifacts")

    pytester.makepyfile(
        'import pytest\n@pytest.mark.device(platform="ios")\ndef test_next(): pass'
    )
    monkeypatch.setenv("BUILD_TAG", "next")
    pytester.runpytest().assert_outcomes(passed=1)

    (blob,) = blobs(directory / "previous")
    assert {title: status for title, (_, status, _) in results(blob).items()} == {
        "test_fails": "failed",
        "test_is_killed": "interrupted",
    }
    files = [
        file for params in of_method(blob, "onAttach") for file in params["attachments"]
    ]
    assert "session.json" in {file["name"] for file in files}
    with ZipFile(blob) as archive:
        assert all(archive.read(file["path"]) for file in files)
    assert not list(directory.glob("*.device-files"))
    assert [path.name for path in blobs(directory)] == ["next.zip"]
    assert eventually(lambda: set(service.statuses()) == {"stopped"})


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_an_unwritable_report_is_noted_once_and_tests_keep_their_results(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-report=left", *options)

    result.assert_outcomes(passed=2, failed=1, skipped=1, xfailed=1)
    (note,) = [line for line in result.outlines if "cannot write the report" in line]
    assert note.startswith(f"cannot write the report in {pytester.path / 'left'} (")
    assert "--device-report" in note
    assert service.statuses() == ["stopped", "stopped"]


NESTED = """
import os, subprocess, sys, pytest

@pytest.mark.device(platform="android")
def test_outer():
    os.environ["BUILD_TAG"] = "same"
    inner = [sys.executable, "-m", "pytest", "test_inner.py"]
    print(subprocess.run(inner, capture_output=True, text=True, timeout=60).stdout)
"""
INNER = """
import pytest

@pytest.mark.device(platform="ios")
def test_inner(): pass
"""


def data_of(directory: Path) -> dict[str, list[str]]:
    """Return the names of the tests in each file of data."""
    return {
        path.name: [
            test["test"].rpartition("::")[2]
            for test in json.loads(path.read_text())["tests"]
        ]
        for path in sorted(directory.glob("device-run*.json"))
    }


@pytest.mark.nightly
def test_two_runs_of_one_name_at_once_have_a_report_each(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILD_TAG", "same")
    pytester.makepyfile(test_outer=NESTED, test_inner=INNER)

    result = pytester.runpytest("-s", "test_outer.py")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["another run is writing to *: the report of this one is same-2.zip and *"]
    )
    directory = pytester.path / "device-report"
    assert [list(results(blob)) for blob in blobs(directory)] == [
        ["test_inner"],
        ["test_outer"],
    ]
    assert data_of(directory) == {
        "device-run-2.json": ["test_inner"],
        "device-run.json": ["test_outer"],
    }
    assert service.statuses() == ["stopped", "stopped"]


def test_a_run_that_starts_while_another_one_is_going_on_leaves_its_files_alone(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        test_outer=NESTED.replace("same", "inner"),
        test_inner=INNER,
    )

    # A name that begins with that of the other run is no name of one of its files.
    monkeypatch.setenv("BUILD_TAG", "inner-web")
    result = pytester.runpytest("-s", "test_outer.py")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*the report of this one is inner.zip and device-run-inner.json"]
    )
    directory = pytester.path / "device-report"
    assert data_of(directory) == {
        "device-run-inner.json": ["test_inner"],
        "device-run.json": ["test_outer"],
    }
    assert not (directory / "previous").exists()
    assert service.statuses() == ["stopped", "stopped"]


OTHER_LINES = {
    "object": "{}\n",
    "number": "1\n",
    "text": '"text"\n',
    "deep": "[" * 100_000 + "\n",
}


def test_files_of_others_in_the_directory_stay(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(INNER)
    (pytester.path / ".gitignore").write_text("build\n")
    for name, content in OTHER_LINES.items():
        (pytester.path / f"{name}.jsonl").write_text(content)
    own = (
        *(f"{name}.lock" for name in OTHER_LINES),
        "poetry.lock",
        "device-runner.json",
        "device-run-own.json",
    )
    for name in own:
        (pytester.path / name).write_text("[]")
    metadata = {"method": "onBlobReportMetadata", "params": {"userAgent": "other/1"}}
    with ZipFile(pytester.path / "own.zip", "w") as archive:
        archive.writestr("report.jsonl", json.dumps(metadata) + "\n")
    with ZipFile(pytester.path / "odd.zip", "w") as archive:
        archive.writestr("report.jsonl", json.dumps({**metadata, "params": 1}) + "\n")

    for run in ("first", "second"):
        monkeypatch.setenv("BUILD_TAG", run)
        pytester.runpytest("--device-report=.").assert_outcomes(passed=1)

    assert (pytester.path / ".gitignore").read_text() == "build\n"
    for name, content in OTHER_LINES.items():
        assert (pytester.path / f"{name}.jsonl").read_text() == content
    for name in own:
        assert (pytester.path / name).read_text() == "[]"
    assert (pytester.path / "own.zip").exists()
    assert [path.name for path in blobs(pytester.path / "previous")] == ["first.zip"]
    assert len(service.sessions()) == 2


ENDS_BADLY = """
import pytest

@pytest.fixture
def account():
    yield
    raise RuntimeError("the account cannot be removed")

@pytest.mark.device(platform="android")
def test_skips_itself(device_session, account): pytest.skip("no camera")

def test_fails_as_expected(account): pytest.xfail("a known error")
"""


@pytest.mark.usefixtures("service")
def test_a_test_that_skips_itself_and_fails_in_its_teardown_is_an_error_in_each_report(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    pytester.makepyfile(test_it=ENDS_BADLY)

    result = pytester.runpytest("--device-ci=github")

    result.assert_outcomes(errors=2, skipped=1, xfailed=1)
    directory = pytester.path / "device-report"
    data = json.loads((directory / "device-run.json").read_text())
    assert [test["outcome"] for test in data["tests"]] == ["error", "error"]
    (blob,) = blobs(directory)
    assert [end[1:] for end in results(blob).values()] == [("failed", "passed")] * 2
    assert summary.read_text().startswith("### Device tests: 2 errors\n")
    result.stdout.fnmatch_lines(
        ["::error *test_skips_itself::*the account cannot be removed*"]
    )


STEPS = """
import pytest
from pytest_device import device_step

@pytest.fixture
def account(): return "ann"

@pytest.mark.device(platform="android")
def test_pays(account, device_session):
    with device_step("Pay"):
        with device_step("Choose a card"):
            assert account == "ben"
"""


def steps(blob: Path) -> dict[str, dict[str, Any]]:
    """Return each step by its title, with the title of its parent and its error."""
    begun = [params["step"] for params in of_method(blob, "onStepBegin")]
    titles = {step["id"]: step["title"] for step in begun}
    errors = {
        params["step"]["id"]: params["step"].get("error", {}).get("message", "")
        for params in of_method(blob, "onStepEnd")
    }
    return {
        re.sub(r"[\d.]+ s$", "N s", step["title"]): {
            **step,
            "parent": titles.get(step["parentStepId"]),
            "error": errors[step["id"]],
        }
        for step in begun
    }


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_fixtures_and_steps_of_a_test_are_steps_of_its_report(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(STEPS)

    pytester.runpytest(*options).assert_outcomes(failed=1)

    (blob,) = blobs(pytester.path / "device-report")
    shown = steps(blob)
    assert {title: step["parent"] for title, step in shown.items()} == {
        "Set up": None,
        "Fixture account": "Set up",
        "Wait for device, N s": "Set up",
        "Test": None,
        "Pay": "Test",
        "Choose a card": "Pay",
        "Tear down": None,
    }
    assert shown["Fixture account"]["location"]["line"] == 4
    assert shown["Choose a card"]["location"]["line"] == 10
    assert shown["Choose a card"]["error"].startswith("AssertionError: assert 'ann'")
    assert not shown["Tear down"]["error"]
    for step in shown.values():
        if parent := step["parent"]:
            assert step["startTime"] >= shown[parent]["startTime"]


HALF: Final = """
import pytest
from pytest_device import device_step

@pytest.mark.device(platform="android")
def test_it(device_session):
    with pytest.raises(LookupError), device_step("Look for \\ud83d\\u202e"):
        raise LookupError("not found: \\ud83d\\u202e")
    assert [1, 2] == [1, 3], "the app shows \\ud83d\\u202e"
"""


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("option", ["-n1", "--color=yes"])
def test_texts_may_have_colors_half_a_character_and_change_the_reading_order(
    pytester: pytest.Pytester, option: str
) -> None:
    pytester.makepyfile(HALF)

    pytester.runpytest(option).assert_outcomes(failed=1)

    (blob,) = blobs(pytester.path / "device-report")
    (ended,) = of_method(blob, "onTestEnd")
    (failure,) = ended["result"]["errors"]
    assert r"the app shows \ud83d\u202e" in failure["message"]
    assert "At index 1 diff: 2 != 3\n" in failure["message"]
    error = steps(blob)[r"Look for \ud83d\u202e"]["error"]
    assert error == r"LookupError: not found: \ud83d\u202e"

    (text,) = pytester.path.glob("device-artifacts/*/failure.md")
    assert "s Look for" in text.read_text()
    assert "\u202e" not in text.read_text()
    assert "At index 1 diff: 2 != 3\n" in text.read_text()


@pytest.mark.usefixtures("service")
def test_the_trace_of_a_passed_test_is_attached_if_it_is_kept(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(INNER)

    pytester.runpytest("--device-trace=on").assert_outcomes(passed=1)

    (blob,) = blobs(pytester.path / "device-report")
    (file,) = [
        file for params in of_method(blob, "onAttach") for file in params["attachments"]
    ]
    assert (file["name"], file["contentType"]) == ("trace", "application/zip")


@pytest.mark.usefixtures("service")
def test_an_unreadable_table_of_media_types_does_not_end_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pytester.path / "mime.types"
    table.write_bytes(b"# \xa9 in Latin-1\n")
    monkeypatch.setattr(mimetypes, "knownfiles", [str(table)])
    monkeypatch.setattr(mimetypes, "_db", None)
    monkeypatch.setattr(mimetypes, "inited", False)
    pytester.makepyfile(INNER)

    pytester.runpytest("--device-trace=on").assert_outcomes(passed=1)

    (blob,) = blobs(pytester.path / "device-report")
    (file,) = [
        file for params in of_method(blob, "onAttach") for file in params["attachments"]
    ]
    assert file["contentType"] == "application/zip"


DELAYED = """
import time
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    time.sleep(1)
    return report
"""


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_bar_begins_with_its_session_even_if_that_is_reported_later(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makeconftest(DELAYED)
    pytester.makepyfile("""
        import pathlib, time, pytest

        @pytest.mark.device(platform="android")
        def test_runs(device_session):
            pathlib.Path("during").write_text(str(time.time()))
    """)

    pytester.runpytest(*options).assert_outcomes(passed=1)

    (bar,) = (pytester.path / "device-report").glob("*-device-*.zip")
    (end,) = of_method(bar, "onEnd")
    during = float((pytester.path / "during").read_text())
    assert during - end["result"]["startTime"] / 1000 >= 1
    assert len(service.sessions()) == 1


@pytest.mark.usefixtures("service")
def test_a_run_with_many_sessions_has_a_bar_per_worker(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_device.report.blob.MAX_SESSION_BARS", 3)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("number", range(6))
        def test_runs(device_session, number): pass
    """)

    pytester.runpytest_inprocess("-n2", "--dist=load").assert_outcomes(passed=6)

    tags = [
        tag
        for bar in sorted((pytester.path / "device-report").glob("*-device-*.zip"))
        for params in of_method(bar, "onConfigure")
        for tag in params["config"]["tags"]
    ]
    assert sorted(tags) == ["@worker-0", "@worker-1"]

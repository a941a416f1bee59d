"""The report of a run: what a test, a retry, a killed run and a shard leave in the report directory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pytest_device.testing import FaultyService
from tests.waiting import eventually

SUITE = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.smoke
def test_passes(): print("printed by the test")

@pytest.mark.device(platform="ios")
def test_fails():
    count = 1
    assert count == 2, "the test's own error"

@pytest.mark.xfail
def test_fails_as_expected(): assert 0

@pytest.mark.skip(reason="not today")
def test_is_skipped(): pass

def test_without_device(): pass
"""
INI = "[pytest]\nmarkers = smoke: a quick test\n"


@pytest.fixture(autouse=True)
def _outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_TAG"):
        monkeypatch.delenv(name, raising=False)


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


@pytest.mark.parametrize("options", [[], ["-n2"]], ids=["alone", "distributed"])
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
    assert error["location"]["line"] == 10
    assert '> 10 |     assert count == 2, "the test\'s own error"' in error["snippet"]
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
    assert tags["test_passes"] == ["@device", "@smoke"]
    output = "".join(params["data"] for params in of_method(blob, "onStdIO"))
    assert "printed by the test" in output


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
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    directory = pytester.path / "device-report"

    for run, shard in (("old", "1/1"), ("new", "1/2"), ("new", "2/2")):
        pytester.runpytest(f"--device-report-run={run}", f"--device-shard={shard}")

    assert [path.name for path in blobs(directory)] == [
        "new-1-of-2.zip",
        "new-2-of-2.zip",
    ]
    assert [path.name for path in blobs(directory / "previous")] == ["old-1-of-1.zip"]
    both = {
        **results(directory / "new-1-of-2.zip"),
        **results(directory / "new-2-of-2.zip"),
    }
    assert both == EXPECTED == results(directory / "previous/old-1-of-1.zip")
    assert len(service.sessions()) == 4


def test_a_killed_run_leaves_lines_that_the_next_run_completes(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile("""
        import pathlib, time, pytest

        @pytest.mark.device(platform="android")
        def test_passes(): pass

        @pytest.mark.device(platform="android")
        def test_is_killed():
            pathlib.Path("running").touch()
            time.sleep(60)
    """)
    command = [sys.executable, "-m", "pytest", "--device-report-run=killed"]
    with subprocess.Popen(
        command, cwd=pytester.path, stdout=subprocess.DEVNULL
    ) as process:
        eventually((pytester.path / "running").exists, 30)
        os.kill(process.pid, signal.SIGKILL)
    directory = pytester.path / "device-report"
    assert not blobs(directory)

    pytester.makepyfile(
        'import pytest\n@pytest.mark.device(platform="ios")\ndef test_next(): pass'
    )
    pytester.runpytest("--device-report-run=next").assert_outcomes(passed=1)

    (blob,) = blobs(directory / "previous")
    assert {title: status for title, (_, status, _) in results(blob).items()} == {
        "test_passes": "passed",
        "test_is_killed": "interrupted",
    }
    assert [path.name for path in blobs(directory)] == ["next.zip"]
    eventually(lambda: set(service.statuses()) == {"stopped"}, 30)


@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["alone", "distributed"])
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


def test_two_runs_of_one_name_do_not_share_a_report(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        test_outer="""
            import subprocess, sys, pytest

            @pytest.mark.device(platform="android")
            def test_outer():
                inner = [sys.executable, "-m", "pytest", "--device-report-run=same", "test_inner.py"]
                print(subprocess.run(inner, capture_output=True, text=True, timeout=60).stdout)
        """,
        test_inner=(
            'import pytest\n@pytest.mark.device(platform="ios")\ndef test_inner(): pass'
        ),
    )

    result = pytester.runpytest("--device-report-run=same", "-s", "test_outer.py")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["cannot write the report in *another run with the same name*"]
    )
    (blob,) = blobs(pytester.path / "device-report")
    assert list(results(blob)) == ["test_outer"]
    assert service.statuses() == ["stopped", "stopped"]

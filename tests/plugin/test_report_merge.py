"""Reports of killed, long and divided runs, merged by Playwright: what the gate has no time for."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.service.programs.toolchain import Node
from pytest_device.testing import FaultyService
from tests.cli.running import run
from tests.plugin.test_device_report import EXPECTED, INI, SUITE

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

OLDEST: Final = "1.58.2"
"""The oldest release of Playwright that reads the blobs."""


@pytest.fixture
def caches(cache_dir: Path) -> dict[str, str]:
    """The variables with which a command uses the programs of the user's own cache."""
    return {"XDG_CACHE_HOME": str(cache_dir.parent), "PATH": os.environ["PATH"]}


def merged(directory: Path, caches: Mapping[str, str], *options: str) -> dict[str, Any]:
    """Merge the reports in a directory; return Playwright's report as data."""
    done = run(
        *("report", "--no-browser", "--format=html,junit,json,perfetto"),
        *(f"--output={directory / 'merged'}", *options),
        cwd=directory,
        **caches,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report: dict[str, Any] = json.loads((directory / "merged/report.json").read_text())
    return report


def results(report: Mapping[str, Any]) -> dict[str, tuple[str, str, list[str]]]:
    """Return project, status and the status of each attempt, by the title of a test."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    suites = list(report["suites"])
    for suite in suites:
        suites += suite.get("suites", ())
        for spec in suite["specs"]:
            for test in spec["tests"]:
                attempts = [result["status"] for result in test["results"]]
                found[spec["title"]] = test["projectName"], test["status"], attempts
    return found


@pytest.mark.usefixtures("service")
def test_the_oldest_supported_playwright_merges_a_report(
    pytester: pytest.Pytester, node: Node, tmp_path: Path
) -> None:
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    pytester.runpytest("-n2")
    (tmp_path / "package.json").write_text("{}")
    install = ["install", "--ignore-scripts", "--no-audit", f"playwright@{OLDEST}"]
    subprocess.run([*node.npm, *install], cwd=tmp_path, check=True, capture_output=True)

    config = tmp_path / "merge.config.cjs"
    config.write_text(
        f"module.exports = {{ testDir: {json.dumps(str(pytester.path))} }};"
    )
    page = tmp_path / "page"
    done = subprocess.run(
        [
            node.executable,
            tmp_path / "node_modules/playwright/cli.js",
            *("merge-reports", "--config", config),
            *("--reporter", "html,junit,json,github", pytester.path / "device-report"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PLAYWRIGHT_HTML_OUTPUT_DIR": str(page),
            "PLAYWRIGHT_HTML_OPEN": "never",
            "PLAYWRIGHT_JUNIT_OUTPUT_FILE": str(tmp_path / "junit.xml"),
            "PLAYWRIGHT_JSON_OUTPUT_FILE": str(tmp_path / "report.json"),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {
        title: (project, attempts)
        for title, (project, _, attempts) in results(report).items()
    } == {
        title: (project, [status]) for title, (project, status, _) in EXPECTED.items()
    }
    assert (page / "index.html").stat().st_size
    assert (page / "trace/index.html").exists()
    assert "the test's own error" in (tmp_path / "junit.xml").read_text()


TESTS: Final = 20
KILLED: Final = f"""
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("number", range({TESTS}))
def test_passes(device_session, number): pass
"""
KILLS_ITSELF: Final = """
import os, signal

REPORTS = []

def pytest_runtest_logreport(report):
    REPORTS.append(report)
    if len(REPORTS) == int(os.environ["KILLED_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("options", [[], ["-n2"]], ids=["alone", "distributed"])
@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_run_that_is_killed_at_any_time_has_a_report(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    caches: dict[str, str],
    tenth: int,
    options: list[str],
) -> None:
    reports = 3 * TESTS * tenth // 10 + 2
    monkeypatch.setenv("KILLED_AT", str(reports))
    monkeypatch.setenv("DEVICE_SHARE", "module")
    pytester.makepyfile(KILLED)
    pytester.makeconftest(KILLS_ITSELF)

    killed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=pytester.path,
        capture_output=True,
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL
    assert service.sessions()
    attempts = Counter(
        status
        for _, _, statuses in results(merged(pytester.path, caches)).values()
        for status in statuses
    )
    # Two workers may have a test each that has begun; their reports arrive in any order.
    assert attempts["passed"] in range(reports // 3 - 1, reports // 3 + 1)
    assert attempts["interrupted"] in range(1, 4)
    assert set(attempts) == {"passed", "interrupted"}


LONG: Final = """
import pytest

@pytest.mark.device(platform="{platform}")
@pytest.mark.parametrize("number", range(1_000))
def test_runs(device_session, number):
    assert number % 50
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_2000_tests_have_a_page(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    caches: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    workers: int,
) -> None:
    monkeypatch.setenv("DEVICE_SHARE", "module")
    for platform in ("android", "ios"):
        pytester.makepyfile(**{f"test_{platform}": LONG.format(platform=platform)})
    seconds: dict[str, float] = {}
    for report in ("off", "device-report"):
        seconds[report] = timed(
            *("-m", "pytest", "-q", f"-n{workers}", f"--device-report={report}"),
            cwd=pytester.path,
        )
    directory = pytester.path / "device-report"
    began = time.monotonic()
    stats = merged(pytester.path, caches)["stats"]
    merging = time.monotonic() - began

    assert (stats["expected"], stats["unexpected"]) == (1_960, 40)
    assert service.sessions()
    page = pytester.path / "merged/page"
    with capsys.disabled():
        sys.stdout.write(
            f"\n2,000 tests, {workers} workers: {seconds['off']:.1f} s of CPU time without a report, "
            f"{seconds['device-report']:.1f} s with one; {merging:.1f} s to merge; "
            f"{size(directory):,} bytes in the report, {size(page):,} in the page, "
            f"{(page / 'index.html').stat().st_size:,} in its first file\n"
        )


def timed(*arguments: str, cwd: Path) -> float:
    """Run Python; return the CPU time of the process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1, done.stdout
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def facts(directory: Path, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what does not depend on how a run was divided."""
    data = json.loads((directory / "merged/report.device-run.json").read_text())
    return {
        "results": results(report),
        "stats": {name: report["stats"][name] for name in ("expected", "unexpected")},
        "tests": sorted(
            (test["test"], test["outcome"], test["verdict"], test["owner"])
            for test in data["tests"]
        ),
        "errors": sorted(cause["error"] for cause in data["causes"]),
        "created": sum(run["receipt"]["created"] for run in data["runs"]),
    }


@pytest.mark.usefixtures("service")
def test_shards_and_workers_make_the_report_of_one_run(
    pytester: pytest.Pytester, caches: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILD_TAG", "7")
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    pytester.runpytest("--device-report=one")
    for number, options in ((1, []), (2, ["-n2"]), (3, [])):
        pytester.runpytest(
            "--device-report=divided",
            f"--device-shard={number}/3",
            *options,
        )

    one = facts(pytester.path, merged(pytester.path, caches, "one"))
    divided = facts(pytester.path, merged(pytester.path, caches, "divided"))

    assert set(one["results"]) == set(EXPECTED)
    assert divided == one

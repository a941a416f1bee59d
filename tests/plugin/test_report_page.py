"""The page that Playwright makes of a run's report, in a real browser; and its other formats."""

import json
import os
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pytest
from selenium.webdriver import Chrome

from pytest_device.regular_files import is_own_file
from pytest_device.report.run_report import VERSION
from pytest_device.service.programs.toolchain import Node
from pytest_device.testing import FaultyService
from pytest_device.trace.viewer import served
from tests.cli.running import run
from tests.fakes.http_server import running
from tests.plugin.test_device_report import EXPECTED, INI, SUITE
from tests.service.pages import browser
from tests.waiting import eventually

TEXT = "return document.body.innerText"
FOREIGN = """
return performance.getEntriesByType('resource')
  .map((entry) => entry.name)
  .filter((name) => !/^(file|data|blob):/.test(name))
"""


REQUESTED = """
return performance.getEntriesByType('resource')
  .map((entry) => entry.name)
  .filter((name) => !/^(data|blob):/.test(name))
"""
STEP = "//*[contains(@class, 'tree-item-title')][contains(., '{}')]"


def shows(chrome: Chrome, text: str) -> bool:
    return text in chrome.execute_script(TEXT)


@contextmanager
def served_page(page: Path) -> Iterator[str]:
    """Serve the page as the command does."""
    with served(page) as (url, server), running(server):
        yield url


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with browser() as chrome:
        yield chrome


@pytest.fixture
def caches(cache_dir: Path) -> dict[str, str]:
    """The variables with which a command uses the programs of the user's own cache."""
    return {"XDG_CACHE_HOME": str(cache_dir.parent), "PATH": os.environ["PATH"]}


def test_shards_are_merged_into_one_page_and_a_broken_report_is_left_out(
    pytester: pytest.Pytester,
    service: FaultyService,
    chrome: Chrome,
    caches: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BUILD_TAG", "7")
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    for number in (1, 2):
        directory = f"--device-report=machine-{number}"
        pytester.runpytest(directory, f"--device-shard={number}/2")
    (pytester.path / "machine-2/broken.zip").write_bytes(b"PK")
    whole = json.loads((pytester.path / "machine-2/device-run-2-of-2.json").read_text())
    damaged = pytester.path / "machine-2/device-run-damaged.json"
    damaged.write_text(json.dumps({**whole, "tests": None}))
    newer = {"method": "onBlobReportMetadata", "params": {"version": 99}}
    with ZipFile(pytester.path / "machine-2/newer.zip", "w") as archive:
        archive.writestr("report.jsonl", json.dumps(newer) + "\n")

    done = run(
        *("report", "--no-browser", "--format=html,junit,json,github"),
        *("--output=merged", "machine-1", "machine-2"),
        cwd=pytester.path,
        **caches,
    )

    assert done.returncode == 0, done.stderr
    left_out = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(left_out) == 3
    assert left_out[0].startswith("left out: machine-2/broken.zip is not a report")
    assert left_out[1].startswith("left out: machine-2/newer.zip has version 99")
    assert left_out[2].startswith("left out: machine-2/device-run-damaged.json: it is")
    (annotation,) = [
        line for line in done.stdout.splitlines() if line.startswith("::error ")
    ]
    assert "the test's own error" in annotation
    assert "line=14," in annotation
    merged = pytester.path / "merged"
    stats = json.loads((merged / "report.json").read_text())["stats"]
    assert (stats["expected"], stats["unexpected"], stats["skipped"]) == (3, 1, 1)
    data = json.loads((merged / "report.device-run.json").read_text())
    assert {one["test"].rpartition("::")[2] for one in data["tests"]} == set(EXPECTED)
    assert [run["shard"] for run in data["runs"]] == ["1-of-2", "2-of-2"]
    assert data["minutes"]["paid"] == pytest.approx(
        sum(run["minutes"]["paid"] for run in data["runs"]), abs=0.002
    )
    cases = ET.parse(merged / "report.junit.xml").iter("testcase")
    assert {case.get("name") for case in cases} == set(EXPECTED)

    chrome.get(f"file://{merged}/page/index.html")
    assert eventually(lambda: "test_without_device" in chrome.execute_script(TEXT))
    text = chrome.execute_script(TEXT)
    # The page lists skipped tests only on request.
    assert all(title in text for title in set(EXPECTED) - {"test_is_skipped"})
    assert all(label in text for label in ("android", "ios", "no device", "smoke"))
    chrome.get(f"file://{merged}/page/index.html#?q=test_fails%20s:failed")
    chrome.find_element("link text", "test_fails").click()
    assert eventually(lambda: "the test's own error" in chrome.execute_script(TEXT))
    shown = chrome.execute_script(TEXT)
    assert "session page" in shown
    assert "session.json" in shown
    assert "assert count == 2" in shown
    for title, part in (("Set up", "Wait for device"), ("Test", "Look for the count")):
        chrome.find_element("xpath", STEP.format(title)).click()
        assert eventually(partial(shows, chrome, part))
    chrome.get(f"file://{merged}/page/index.html#?speedboard")
    ids = [str(session["id"])[:8] for session in service.sessions()]
    assert eventually(
        lambda: all(part in chrome.execute_script(TEXT) for part in ids), 20
    )
    assert chrome.execute_script(FOREIGN) == []

    with served_page(merged / "page") as url:
        chrome.get(f"{url}#?q=test_fails%20s:failed")
        assert eventually(lambda: "View Trace" in chrome.execute_script(TEXT))
        chrome.find_element("partial link text", "View Trace").click()
        shown_action = "Fail with AssertionError"
        assert eventually(lambda: shown_action in chrome.execute_script(TEXT))
        requested: list[str] = chrome.execute_script(REQUESTED)
        assert requested
        assert {urlsplit(one).netloc for one in requested} == {urlsplit(url).netloc}


def write_blob(path: Path) -> None:
    """Write the shortest report that the command accepts."""
    metadata = {"method": "onBlobReportMetadata", "params": {"version": 2}}
    with ZipFile(path, "w") as archive:
        archive.writestr("report.jsonl", json.dumps(metadata) + "\n")


def test_without_playwright_the_command_that_needs_only_node_is_named(
    tmp_path: Path, node: Node
) -> None:
    write_blob(tmp_path / "run.zip")

    done = run(
        *("report", "--format=html,junit", str(tmp_path)),
        PATH=f"{node.executable.parent}:{os.environ['PATH']}",
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        npm_config_registry="http://127.0.0.1:9",
        npm_config_cache=str(tmp_path / "npm"),  # the user's own has the package
        npm_config_fetch_retries="0",
    )

    assert done.returncode == 2
    assert "could not be installed" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        ": npx playwright merge-reports --reporter=html,junit DIR"
    )


def of_test(method: str, **params: object) -> dict[str, object]:
    ids = {"testId": "a", "resultId": "r"}
    return {"method": method, "params": {**ids, **params}}


def foreign_lines(secrets: Path) -> Iterator[dict[str, object]]:
    """Yield the lines of a report whose author wants the files of whoever opens it, each with the name of the attack."""
    relative = f"../../../../../../../..{secrets}"

    def at(file: object) -> dict[str, object]:
        return {"location": {"file": file, "line": 2, "column": 1}}

    def url(name: str) -> dict[str, str]:
        path = f"{secrets}/{name}"
        url = {"protocol": "file:", "hostname": "", "pathname": path}
        return {**url, "href": f"file://{path}"}

    entry = {"testId": "a", "title": "test_a", "retries": 0, "tags": []}
    suite = {"title": "t.py", **at("t.py"), "entries": [{**entry, **at("t.py")}]}
    lists = ("dependencies", "grep", "grepInvert", "testIgnore", "testMatch")
    project = {
        **dict.fromkeys(lists, ()),
        **dict.fromkeys(("outputDir", "snapshotDir", "testDir"), ""),
        "name": "p",
        "suites": [suite],
        "retries": 0,
        "use": {},
    }
    yield {
        "method": "onBlobReportMetadata",
        "params": {"version": 2, "pathSeparator": "%"},
    }
    config = {"rootDir": str(secrets), "metadata": {}, "workers": 1, "version": "1.65"}
    yield {"method": "onConfigure", "params": {"config": config}}
    yield {"method": "onProject", "params": {"project": project}}
    yield {"method": "onBegin", "params": {}}
    result = {"id": "r", "retry": 0, "workerIndex": 0, "parallelIndex": 0}
    begun = {**result, "startTime": 0}
    yield {"method": "onTestBegin", "params": {"testId": "a", "result": begun}}

    steps = {
        "step": f"{secrets}/step",
        "step-below": "step-below",
        "step-parent": f"{relative}/step-parent",
        "step-separator": f"{relative}/step-separator".replace("/", "%"),
    }
    for number, file in enumerate(steps.values()):
        step = {"id": number, "title": "s", "category": "test.step", "startTime": 0}
        yield of_test("onStepBegin", step={**step, **at(file)})
        yield of_test("onStepEnd", step={"id": number, "duration": 1})

    paths = {
        "attachment": f"{secrets}/attachment",
        "attachment-parent": f"{relative}/attachment-parent",
        "attachment-separator": f"{relative}/attachment-separator".replace("/", "%"),
    }
    attached = [
        {"name": name, "contentType": "text/plain", "path": path}
        for name, path in paths.items()
    ]
    yield of_test("onAttach", attachments=attached)

    stacks = {
        "stack-url": f"file://{secrets}/stack-url",
        "stack": f"{secrets}/stack",
        "stack-parent": f"{relative}/stack-parent",
        "stack-below": "stack-below",
    }
    errors: list[dict[str, object]] = [
        {"message": "m", "stack": f"m\n    at f ({file}:2:1)"}
        for file in stacks.values()
    ]
    errors += [
        {"message": "m", **at(f"{secrets}/error")},
        {"message": "m", **at(f"{relative}/error-parent")},
        {"message": "m", **at("error-below")},
        {"message": "m", **at(url("error-url"))},
        {"message": "m", "snippet": "> 2 | its own lines", **at("t.py")},
    ]
    ended = {**result, "duration": 1, "status": "failed", "errors": errors}
    test = {"testId": "a", "expectedStatus": "passed", "timeout": 0, "annotations": []}
    yield {"method": "onTestEnd", "params": {"test": test, "result": ended}}
    yield {
        "method": "onError",
        "params": {"error": {"message": "m", **at(f"{secrets}/global")}},
    }
    end = {"status": "failed", "startTime": 0, "duration": 1}
    yield {"method": "onEnd", "params": {"result": end}}


ATTACKS = (
    *("attachment", "attachment-parent", "attachment-separator"),
    *("step", "step-below", "step-parent", "step-separator"),
    *("stack", "stack-url", "stack-parent", "stack-below"),
    *("error", "error-parent", "error-below", "error-url", "global", "linked"),
)


def texts_of(merged: Path) -> str:
    """Return all that a report shows, also what its page has packed."""
    contents = [path.read_bytes() for path in merged.rglob("*") if is_own_file(path)]
    (packed,) = re.findall(
        rb"data:application/zip;base64,([\w+/=]+)", b"".join(contents)
    )
    with ZipFile(BytesIO(b64decode(packed))) as archive:
        contents += map(archive.read, archive.namelist())
    return b"\n".join(contents).decode(errors="replace")


def test_no_file_of_this_machine_is_shown_by_a_report_from_elsewhere(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ATTACKS:
        (secrets / name).write_text(f"one\nMARKER {name}\nthree\n")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    lines = "".join(f"{json.dumps(line)}\n" for line in foreign_lines(secrets))
    with ZipFile(foreign / "run.zip", "w") as archive:
        archive.writestr("report.jsonl", lines)
        archive.writestr("../../escaped", "written")
        archive.writestr("resources/../../escaped", "written")
    for name in ("report.junit.xml", "report.json", "report.device-run.json"):
        (foreign / name).symlink_to(secrets / "linked")
    data: dict[str, object] = dict.fromkeys(("run", "shard", "cost", "budget_minutes"))
    data |= {"version": VERSION, "receipt": {}, "minutes": {"paid_bound": "exactly"}}
    data |= {"tests": [], "sessions": [], "causes": []}
    (foreign / "device-run.json").write_text(json.dumps(data))
    os.mkfifo(foreign / "device-run-piped.json")
    (foreign / "device-run-linked.json").symlink_to(secrets / "linked")

    done = run(
        *("report", "--no-browser", "--format=html,junit,github,perfetto,json"),
        str(foreign),
        cwd=secrets,
        TMPDIR=str(tmp_path),
        **caches,
    )

    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr + texts_of(foreign)
    assert re.findall("MARKER.{,30}", shown) == []
    assert "its own lines" in shown
    assert done.stderr.count("left out") == 2
    assert "MARKER" in (secrets / "linked").read_text()
    assert is_own_file(foreign / "report.device-run.json")
    assert not list(tmp_path.rglob("escaped"))


def test_bad_arguments_are_one_clear_line(
    tmp_path: Path, caches: dict[str, str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "login.py").touch()
    earlier = tmp_path / "earlier" / "page"
    earlier.mkdir(parents=True)
    (earlier / "index.html").write_text("<title>Playwright Test Report</title>")
    (tmp_path / "full").mkdir()
    write_blob(tmp_path / "full" / "run.zip")
    (tmp_path / "file").touch()

    unknown = run("report", "--format=pdf", "empty", cwd=tmp_path, **caches)
    missing = run("report", "nowhere", cwd=tmp_path, **caches)
    empty = run("report", "empty", "--output=earlier", cwd=tmp_path, **caches)
    page = run("report", "empty", "--output=.", cwd=tmp_path, **caches)
    file = run("report", "full", "--output=file", cwd=tmp_path, **caches)

    assert {done.returncode for done in (unknown, missing, empty, page, file)} == {2}
    assert "unknown format 'pdf'; the formats are html, junit" in unknown.stderr
    assert "nowhere is not a directory" in missing.stderr
    assert "no report in empty: a run with devices writes one" in empty.stderr
    assert "page has other files, which the page would replace" in page.stderr
    assert "/file cannot be a directory (File exists): choose another" in file.stderr
    assert [done.stderr.count("\n") for done in (unknown, missing, empty)] == [1, 1, 1]

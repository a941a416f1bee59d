"""A red suite on both platforms and all controllers: its traces in the real viewer, as text, and searched for secrets."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from shutil import copytree
from typing import Any, Final
from zipfile import ZipFile, is_zipfile

import pytest

from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import CHROMIUM, PLAYWRIGHT, Node, Toolbox
from pytest_device.trace.viewer import VIEWER, served
from tests.cli.running import call
from tests.fakes.http_server import running
from tests.plugin.test_device_report import blobs, of_method
from tests.waiting import eventually

HERE: Final = Path(__file__).parent
BUILDS: Final = HERE.parent.parent / "examples/builds"
TESTS: Final = (
    "test_waits_on_android",
    "test_asserts_on_ios",
    "test_two_devices",
    "test_agent_device",
    "test_argent",
    "test_films",
)
LOGS: Final = "console.warn('a note is saved');"
"""Fewer than in any tokenizer for text in English and code."""


@dataclass(frozen=True)
class Red:
    """A finished run of the suite: its directory, output and traces by test."""

    directory: Path
    output: str
    traces: Mapping[str, Path]


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Red:
    directory = tmp_path_factory.mktemp("red") / "suite"
    copytree(HERE / "suite", directory)
    builds = directory / "builds"
    copytree(BUILDS, builds)
    (page,) = builds.glob("*/app/index.html")
    text = page.read_text("utf-8")
    page.write_text(text.replace("part('text').value = '';", LOGS), "utf-8")
    options = [
        "--device-local",
        f"--device-builds-dir={builds}",
        "-p",
        "no:cacheprovider",
    ]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-o",
            "python_files=red.py",
            *options,
            "--device-trace=on",
            "--device-video=retain-on-failure",
            "--junitxml=report.xml",
        ],
        cwd=directory,
        env={
            **os.environ,
            "PYTEST_ADDOPTS": "",
            "MY_TOKEN": "f3a9c1d27b58e6",
            "NOTES_APP": str(page.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "7 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    artifacts = directory / "device-artifacts"
    return Red(
        directory,
        ran.stdout,
        {
            name: next(artifacts.glob(f"red.py-{name}-*/trace.zip"))
            for name in (*TESTS, "test_driver_of_its_own")
        },
    )


@pytest.mark.parametrize(
    ("test", "dialect", "label"),
    [
        ("test_agent_device", "agent-device", "Add"),
        ("test_argent", "argent", "Add"),
    ],
)
def test_other_controllers_leave_picture_tree_and_pages(
    red: Red, test: str, dialect: str, label: str
) -> None:
    folder = red.traces[test].parent
    failure = json.loads((folder / "failure.json").read_text())

    (tree,) = failure["tree"]
    assert tree["dialect"] == dialect
    assert label in {element.get("label") for element in tree["elements"]}
    picture = (folder / "screenshot.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert label in (folder / "screen.txt").read_text()
    assert "<style>" in (folder / "session.html").read_text()
    assert "session ready" in (folder / "timeline.json").read_text()
    assert (folder / "controller.log").read_text()


def test_a_selector_of_agent_device_has_a_nearest_element(red: Red) -> None:
    folder = red.traces["test_agent_device"].parent
    failure = json.loads((folder / "failure.json").read_text())

    assert failure["nearest"]["summary"] == (
        "label 'Adds': no match; nearest selector 'label=\"Add\"'"
    )


@pytest.fixture(scope="module")
def playwright(cache_dir: Path) -> Path:
    """The project with the viewer, installed as the command installs it."""
    guard = Guard(environ=os.environ, log=print)
    try:
        toolbox = Toolbox(guard, os.environ, cache_dir)
        return asyncio.run(toolbox.get(PLAYWRIGHT, print)).project
    finally:
        guard.close()


def opened(
    traces: Mapping[str, Path],
    project: Path,
    node: Node,
    cache_dir: Path,
    **environ: str,
) -> dict[str, Any]:
    """Return what the viewer of a project shows of each trace."""
    viewer = project / "node_modules/playwright-core" / VIEWER
    with ExitStack() as stack:
        urls: list[str] = []
        for trace in traces.values():
            url, server = stack.enter_context(served(viewer, trace))
            stack.enter_context(running(server))
            urls.append(url)
        chromium = CHROMIUM.directory(cache_dir) / CHROMIUM.script
        ran = subprocess.run(
            [node.executable, HERE / "view.mjs", project, chromium, *urls],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    return dict(zip(traces, map(json.loads, ran.stdout.splitlines()), strict=True))


@pytest.fixture(scope="module")
def shown(red: Red, playwright: Path, node: Node, cache_dir: Path) -> dict[str, Any]:
    traces = {name: red.traces[name] for name in TESTS}
    return opened(traces, playwright, node, cache_dir)


def test_a_browser_plays_a_video_of_the_local_device(
    red: Red, playwright: Path, node: Node, cache_dir: Path
) -> None:
    (video,) = red.directory.glob("device-artifacts/red.py-test_films-*/video.*")
    chromium = CHROMIUM.directory(cache_dir) / CHROMIUM.script

    ran = subprocess.run(
        [node.executable, HERE / "play.mjs", playwright, chromium, video.as_uri()],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    played = json.loads(ran.stdout)
    assert video.suffix == ".webm"
    assert played["duration"] > 0
    assert played["height"] > played["width"] > 100
    assert played["colors"] > 10
    assert played["rewound"] == 0


def output(*arguments: str | Path) -> str:
    """Return what a command about traces prints."""
    ran = call("trace", *map(str, arguments))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def titles(actions: list[str]) -> list[str]:
    return [action.partition("\n")[0] for action in actions]


@pytest.mark.parametrize("name", TESTS)
def test_the_viewer_shows_a_picture_and_a_tree_beside_the_failing_action(
    shown: dict[str, Any], name: str
) -> None:
    trace = shown[name]

    assert trace["problems"] == []
    assert trace["width"] > 100
    assert trace["tree"].startswith("- ")
    assert re.search(r"screen\.(png|jpeg)", trace["Attachments"])
    assert "tree.txt" in trace["Attachments"]
    assert trace["failed"]
    assert f"def {name}(" in trace["Source"] or "red.py" in trace["Source"]


@pytest.mark.parametrize(
    ("name", "failing", "error", "actions"),
    [
        (
            "test_waits_on_android",
            "Find accessibility id 'sign-out'",
            "not within 1 s: presence_of_element_located accessibility id 'sign-out'",
            [
                "Fixture signed_in",
                "Type *** into accessibility id 'password'",
                "Type ada into accessibility id 'username'",
                "leave",
                "Wait for accessibility id 'sign-out'",
            ],
        ),
        (
            "test_asserts_on_ios",
            "Fail with AssertionError",
            "assert 'Welcome back' == 'Goodbye'",
            ["Tap accessibility id 'sign-in'"],
        ),
        (
            "test_two_devices",
            "Find accessibility id 'leave'",
            "An element could not be located",
            [
                "Tap accessibility id 'invite'",
                "Type 123456 into accessibility id 'code'",
            ],
        ),
        (
            "test_agent_device",
            'Tap label="Adds"',
            'Selector did not match: label="Adds"',
            ['Type buy milk into label="Text"', 'Tap label="Add"', "Type ***"],
        ),
        (
            "test_argent",
            "Fail with AssertionError",
            "assert 'Notes: 9' in",
            ["Tap at 0.5, 0.15", "Type ***"],
        ),
    ],
)
def test_the_viewer_shows_the_actions_and_the_error(
    shown: dict[str, Any], name: str, failing: str, error: str, actions: list[str]
) -> None:
    trace = shown[name]

    assert error in trace["Errors"]
    assert failing in titles(trace["failed"])
    assert set(actions) <= set(titles(trace["actions"]))
    assert any(
        re.match(r"Wait for device, [\d.]+ s", title) for title in trace["actions"]
    )


def test_the_viewer_shows_what_is_nearest_and_hides_how_evidence_was_taken(
    shown: dict[str, Any],
) -> None:
    trace = shown["test_agent_device"]
    assert "label 'Adds': no match; nearest selector" in trace["Errors"]

    for trace in shown.values():
        assert not [title for title in trace["actions"] if "getDeviceTime" in title]


def test_each_device_has_a_film_strip(shown: dict[str, Any]) -> None:
    assert {name: trace["strips"] for name, trace in shown.items()} == {
        **dict.fromkeys(TESTS, 1),
        "test_two_devices": 2,
    }


def test_the_viewer_shows_output(shown: dict[str, Any]) -> None:
    assert "a line of output" in shown["test_waits_on_android"]["Console"]


@pytest.mark.parametrize("name", ["test_agent_device", "test_argent", "test_films"])
def test_the_viewer_shows_what_the_app_logged(shown: dict[str, Any], name: str) -> None:
    assert "a note is saved" in shown[name]["Console"]


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of a file, and of all that is zipped in it, whatever its name."""
    pending = [(str(path), path.read_bytes())]
    while pending:
        name, content = pending.pop()
        yield name, content
        if is_zipfile(BytesIO(content)):
            with ZipFile(BytesIO(content)) as zipped:
                pending += [
                    (f"{name}/{part}", zipped.read(part)) for part in zipped.namelist()
                ]


def test_no_file_of_a_red_run_has_a_secret(red: Red) -> None:
    """Not what was typed into password fields; in artifacts no session, no address, no path of this machine either."""
    details = [
        json.loads(path.read_text("utf-8"))
        for path in red.directory.glob("device-artifacts/*/**/session.json")
    ]
    of_traces = {
        f"{Path.home()}/",
        str(red.directory.parent),
        *(session["id"] for session in details),
        *(str(session["url"]).partition("/sessions")[0] for session in details),
    }
    assert len(of_traces) > 4
    left = [
        path
        for name in ("device-artifacts", "device-report", "report.xml")
        for path in [red.directory / name, *(red.directory / name).rglob("*")]
        if path.is_file()
    ]

    texts = {name: text for path in left for name, text in contents(path)}

    assert "red.py" in red.output
    assert len([name for name in texts if name.endswith("test.trace")]) > len(TESTS)
    texts["the terminal"] = red.output.encode()
    assert [name for name, text in texts.items() if b"correct horse" in text] == []
    for secret in of_traces:
        inside = {name for name, text in texts.items() if secret.encode() in text}
        assert not [name for name in inside if "trace.zip/" in name], secret


def test_a_tap_is_shown_where_it_was(red: Red) -> None:
    with ZipFile(red.traces["test_asserts_on_ios"]) as zipped:
        lines = zipped.read("0-trace.trace").splitlines()
    events = [json.loads(line) for line in lines]
    (tap,) = [event for event in events if event["type"] == "input"]
    (tree, *_) = [event for event in events if event["type"] == "aria-snapshot"]

    with ZipFile(red.traces["test_asserts_on_ios"]) as zipped:
        shown = json.loads(zipped.read(tree["file"]))
    boxes = [node.get("box") for node in shown[0]["children"][0]["children"]]
    assert boxes.count(tap["box"]) == 1
    middle = tap["box"]["x"] + tap["box"]["width"] / 2
    assert tap["point"]["x"] == pytest.approx(middle)


def test_commands_of_devices_are_steps_of_the_report(red: Red) -> None:
    (blob,) = blobs(red.directory / "device-report")
    begun = [params["step"] for params in of_method(blob, "onStepBegin")]
    ended = {
        params["step"]["id"]: params["step"] for params in of_method(blob, "onStepEnd")
    }
    by_id = {step["id"]: step for step in begun}
    (failed,) = [step for step in begun if step["title"] == 'Tap label="Adds"']

    assert "Selector did not match" in ended[failed["id"]]["error"]["message"]
    assert failed["category"] == "pw:api"
    assert failed["location"]["file"] == "red.py"
    while failed["parentStepId"]:
        failed = by_id[failed["parentStepId"]]
    assert failed["title"] == "Test"


def test_the_terminal_names_the_trace_and_the_command_that_opens_it(red: Red) -> None:
    for name in TESTS:
        path = red.traces[name].relative_to(red.directory)
        assert f"{path}\nopen it: pytest-device trace open {path}\n" in red.output


def test_a_driver_of_the_suite_is_named_as_the_reason_for_a_trace_without_commands(
    red: Red,
) -> None:
    assert red.output.count("those of an Appium driver that the suite made itself") == 1


def test_the_list_names_each_trace(red: Red) -> None:
    listed = output("list", red.directory)

    assert all(f"red.py::{name}\n" in listed for name in TESTS)


@pytest.mark.nightly
def test_the_text_reader_of_playwright_reads_a_trace(
    red: Red, playwright: Path, node: Node, tmp_path: Path
) -> None:
    program = playwright / PLAYWRIGHT.script

    def trace(*words: str | Path) -> str:
        command = [node.executable, program, "trace", *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    trace("open", red.traces["test_agent_device"])
    assert 'Tap label="Adds"' in trace("actions")
    assert "Selector did not match" in trace("errors")
    assert "tree.txt" in trace("attachments")


def test_open_serves_the_viewer_to_this_machine(
    red: Red, installed_programs: None, tmp_path: Path
) -> None:
    del installed_programs
    command = [sys.executable, "-c", "from pytest_device.cli import main; main()"]
    arguments = ["trace", "open", "--no-browser", str(red.traces["test_argent"])]
    log = tmp_path / "log"
    with (
        log.open("w") as file,
        subprocess.Popen([*command, *arguments], stdout=file) as opening,
    ):
        try:
            eventually(lambda: "Ctrl-C" in log.read_text(), 60)
            url = re.findall(r"http://127\.0\.0\.1:\d+/\S+", log.read_text())[0]
            assert b"Playwright" in _get(url)
            base = url.partition("/index.html")[0]
            assert _get(f"{base}/trace.zip").startswith(b"PK")
            assert _get(f"{base}/../../package.json") == b""
        finally:
            opening.terminate()


def _get(url: str) -> bytes:
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(url) as reply:
            return bytes(reply.read())
    except HTTPError:
        return b""


@pytest.fixture(scope="module")
def oldest_viewer(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The oldest viewer that reads this version of the format, from the registry."""
    directory = tmp_path_factory.mktemp("oldest")
    (directory / "package.json").write_text("{}")
    command = [
        *node.npm,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "playwright-core@1.53.0",
    ]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return directory


@pytest.mark.nightly
def test_the_oldest_viewer_opens_a_trace(
    red: Red, oldest_viewer: Path, node: Node, cache_dir: Path
) -> None:
    traces = {"test_agent_device": red.traces["test_agent_device"]}
    (old,) = opened(
        traces, oldest_viewer, node, cache_dir, VIEWER_HAS_TREES="no"
    ).values()

    assert old["problems"] == []
    assert 'Tap label="Adds"' in titles(old["actions"])
    assert "Selector did not match" in old["Errors"]
    assert old["strips"] == 1


def test_a_viewer_that_cannot_be_installed_is_one_clear_line(
    red: Red,
    node_on_path: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del node_on_path
    # An installed viewer would be served until Ctrl-C.
    monkeypatch.setitem(sys.modules, "playwright", None)
    monkeypatch.chdir(tmp_path)

    ran = call(
        "trace",
        "open",
        str(red.traces["test_argent"]),
        XDG_CACHE_HOME=str(tmp_path),
        npm_config_registry="http://127.0.0.1:9",
        npm_config_cache=str(tmp_path / "npm"),  # the user's own has the package
        npm_config_fetch_retries="0",
    )

    assert ran.returncode == 2
    assert "Playwright 1.65.1 could not be installed" in ran.stderr
    assert "Fix: check the network" in ran.stderr

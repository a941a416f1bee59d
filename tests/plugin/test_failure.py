"""What a run leaves of its failed tests: real devices of a local service, one run for all tests of this module."""

import html
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.fakes.http_server import serving_files
from tests.plugin.test_device_report import blobs, of_method

APP = """<!doctype html><meta name="viewport" content="width=device-width"><title>Shop</title>
<h1 aria-label="title">Shop</h1>
<input aria-label="username"><input type="password" aria-label="password" oninput="console.log('typing')">
<button aria-label="sign-in" onclick="console.log('signing in\\n0001-01-01 is a date, too')">Sign in</button>
<button id="help" disabled>Help me</button>
"""
TYPED = "correct-horse-battery"
"""What the suite types into the password field."""
LITERAL = "staple-of-batteries"
"""What a test of the suite types, and has in its source."""
CORE = "planted-core-of-a-secret"
SUITE = f"""
import os, pytest, time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from selenium.common.exceptions import NoSuchElementException, TimeoutException
from selenium.webdriver.support import expected_conditions as EC
from selenium.webdriver.support.wait import WebDriverWait

ID = "accessibility id"
PASSWORD = os.environ["PASSWORD"]
android = dict(platform="android", type="appium", application_archive_url=os.environ["PAGE"] + "app.zip")
ios = dict(android, platform="ios")

@pytest.fixture
def signed_in(device_driver):
    device_driver.find_element(ID, "pasword")

@pytest.fixture
def cleaned(device_driver):
    yield
    device_driver.find_element(ID, "sign-inn").click()

def poll(driver, timeout):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if driver.find_element(ID, "sign-in").text == "Sign out":
            return
        time.sleep(0.05)
    raise TimeoutError("still signed in")

@pytest.mark.device(**android)
class TestAndroid:
    def test_shows_a_password(self, device_driver):
        password = "{LITERAL}"
        device_driver.find_element(ID, "password").send_keys(password)
        assert password == device_driver.find_element(ID, "username").text

    def test_finds_nothing(self, device_driver):
        url = "https://reader:{CORE}@archives.invalid/"
        device_driver.find_element(ID, "password").send_keys(PASSWORD)
        device_driver.find_element(ID, "sign-in").click()
        device_driver.find_element(ID, "sign-out").click()

    def test_waits(self, device_driver):
        device_driver.find_element(ID, "username").click()
        WebDriverWait(device_driver, 0.6).until(EC.presence_of_element_located((ID, "sign-out")))

    def test_waits_for_one_that_is_disabled(self, device_driver):
        WebDriverWait(device_driver, 0.6).until(EC.element_to_be_clickable(("id", "help")), "no help")

    def test_waits_with_a_function(self, device_driver):
        WebDriverWait(device_driver, 0.6).until(lambda driver: driver.find_element("id", "halp"))

    def test_polls_in_a_helper(self, device_driver):
        device_driver.find_element(ID, "username").click()
        poll(device_driver, timeout=0.6)

    def test_polls_in_a_loop(self, device_driver):
        for _ in range(12):
            if device_driver.find_elements(ID, "sign-out"):
                break
            time.sleep(0.1)
        assert device_driver.find_elements(ID, "sign-out")

    def test_reads_all_elements(self, device_driver):
        buttons = device_driver.find_elements("class name", "android.widget.Button")
        assert [button.text for button in buttons * 3] == []

    def test_compares(self, device_driver):
        assert device_driver.find_element(ID, "sign-in").text == "Sign out"

    def test_is_set_up(self, signed_in):
        pass

    def test_fails_before_teardown(self, device_driver, cleaned):
        device_driver.find_element(ID, "usernam")

    def test_wraps_an_error(self, device_driver):
        try:
            WebDriverWait(device_driver, 0.6).until(EC.presence_of_element_located((ID, "sign-out")))
        except TimeoutException as error:
            raise AssertionError("nobody is signed in") from error

    def test_passes(self, device_driver):
        assert device_driver.find_element(ID, "sign-in").text == "Sign in"

@pytest.mark.device("alice", **android)
@pytest.mark.device("bob", **ios)
def test_has_two_devices(device_drivers):
    device_drivers["alice"].find_element(ID, "sign-in").click()
    device_drivers["bob"].find_element("-ios predicate string", "label == 'sign-out'")

@pytest.mark.device("alice", **android)
@pytest.mark.device("bob", **ios)
def test_searches_two_devices(device_drivers):
    with ThreadPoolExecutor(1) as threads:
        for name in ("alice", "bob", "bob"):
            found = threads.submit(device_drivers[name].find_element, ID, "sign-in")
        found.result()

    try:
        WebDriverWait(device_drivers["bob"], 0.6).until(lambda driver: driver.find_element(ID, "sing-in"))
    finally:
        with suppress(NoSuchElementException):
            device_drivers["alice"].find_element(ID, "sign-out")
"""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    directory: Path
    output: str

    def folder(self, test: str) -> Path:
        """Return the directory of the only attempt at a test."""
        (folder,) = (self.directory / "left").glob(f"*{test}-????????")
        return folder

    def failure(self, test: str) -> dict[str, Any]:
        failure: dict[str, Any] = json.loads(
            (self.folder(test) / "failure.json").read_text()
        )
        return failure

    def text(self, test: str) -> str:
        return (self.folder(test) / "failure.md").read_text()

    def section(self, test: str) -> str:
        """Return what the terminal shows of a test."""
        _, _, rest = self.output.partition(f" {test} _")
        return rest.partition("\n____")[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The app, as a page and as an archive."""
    directory = tmp_path_factory.mktemp("app")
    (directory / "index.html").write_text(APP)
    with zipfile.ZipFile(directory / "app.zip", "w") as archive:
        archive.writestr("index.html", APP)

    with serving_files(directory) as url:
        yield f"{url}/"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, page: str, cache_dir: Path) -> Run:
    directory = tmp_path_factory.mktemp("suite")
    (directory / "test_it.py").write_text(SUITE)
    (directory / "pytest.ini").write_text("[pytest]\n")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("--device-local", "--device-artifacts-dir=left"),
            *("--junitxml=report.xml", "--html=html/report.html"),
        ],
        cwd=directory,
        env={
            **os.environ,
            "PAGE": page,
            "PASSWORD": TYPED,
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(directory / "summary.md"),
            "XDG_CACHE_HOME": str(cache_dir.parent),
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return Run(directory, ended.stdout + ended.stderr)


def test_a_locator_that_finds_nothing_is_reported_with_the_nearest_element(
    run: Run,
) -> None:
    failure = run.failure("finds_nothing")

    assert failure["version"] == 1
    assert failure["error"]["type"] == "NoSuchElementException"
    assert failure["nearest"]["locator"] == {
        "using": "accessibility id",
        "value": "sign-out",
    }
    (nearest, *_) = failure["nearest"]["elements"]
    assert nearest["accessibility_id"] == "sign-in"
    assert nearest["locators"][0] == {"using": "accessibility id", "value": "sign-in"}
    assert nearest["bounds"]["width"] > 0
    line = "accessibility id 'sign-out': no match; nearest 'sign-in'"
    assert failure["nearest"]["summary"] == line
    assert f"- {line}" in run.text("finds_nothing")


def test_the_terminal_has_a_line_for_the_nearest_element_and_one_for_the_directory(
    run: Run,
) -> None:
    lines = run.section("TestAndroid.test_finds_nothing").splitlines()

    assert "accessibility id 'sign-out': no match; nearest 'sign-in'" in lines
    folder = run.folder("finds_nothing").relative_to(run.directory)
    assert f"artifacts: {folder}" in lines


def test_the_failing_line_is_shown_with_ten_around_it(run: Run) -> None:
    source = run.failure("finds_nothing")["source"]

    assert (source["file"], source["function"]) == ("test_it.py", "test_finds_nothing")
    assert "sign-out" in source["lines"][source["line"] - source["first"]]
    assert len(source["lines"]) == 21
    assert any(line.startswith("> ") for line in run.text("finds_nothing").splitlines())


def test_the_actions_before_the_failure_are_named_with_their_lines(run: Run) -> None:
    actions = run.failure("finds_nothing")["actions"]

    titles = [action["title"] for action in actions]
    assert titles == [
        "Find accessibility id 'password'",
        "Type *** into accessibility id 'password'",
        "Find accessibility id 'sign-in'",
        "Tap accessibility id 'sign-in'",
        "Find accessibility id 'sign-out'",
    ]
    assert actions[-1]["error"]
    assert actions[-1]["at"].startswith("test_it.py:")
    assert actions[0]["seconds_before"] > actions[-1]["seconds_before"] > 0


def test_log_lines_since_the_last_action_are_shown(run: Run) -> None:
    log = run.failure("finds_nothing")["log"]

    assert any("signing in" in line["text"] for line in log)
    assert "0001-01-01 is a date, too" in {line["text"] for line in log}
    assert not [line for line in log if "typing" in line["text"]]


@pytest.mark.parametrize(
    ("test", "condition", "locator", "message"),
    [
        (
            "waits",
            "presence_of_element_located",
            {"using": "accessibility id", "value": "sign-out"},
            "",
        ),
        (
            "waits_for_one_that_is_disabled",
            "element_to_be_clickable",
            {"using": "id", "value": "help"},
            "no help",
        ),
        (
            "waits_with_a_function",
            "lambda",
            {"using": "id", "value": "halp"},
            "",
        ),
    ],
)
def test_a_wait_that_ended_in_vain_says_for_what_and_how_long(
    run: Run, test: str, condition: str, locator: dict[str, str], message: str
) -> None:
    waited = run.failure(test)["waited"]

    assert (waited["condition"], waited["locator"]) == (condition, locator)
    assert (waited["timeout_seconds"], waited["message"]) == (0.6, message)
    assert waited["seconds"] >= 0.6
    line = f"waited {waited['seconds']:.1f} s (timeout 0.6 s) for {condition} of "
    assert line in run.section(f"TestAndroid.test_{test}")


@pytest.mark.parametrize(
    ("test", "condition", "timeout", "value"),
    [
        ("polls_in_a_helper", "Get text of accessibility id 'sign-in'", 0.6, "sign-in"),
        ("polls_in_a_loop", "Find all accessibility id 'sign-out'", None, "sign-out"),
    ],
)
def test_a_loop_that_polled_in_vain_is_a_wait_with_its_own_timeout(
    run: Run, test: str, condition: str, timeout: float | None, value: str
) -> None:
    failure = run.failure(test)

    waited = failure["waited"]
    assert (waited["condition"], waited["timeout_seconds"]) == (condition, timeout)
    assert waited["locator"] == {"using": "accessibility id", "value": value}
    assert waited["polls"] >= 3
    limit = f" (timeout {timeout} s)" if timeout else ""
    line = f"waited {waited['seconds']:.1f} s{limit}, polling: {condition} × {waited['polls']}"
    assert line in run.section(f"TestAndroid.test_{test}")
    titles = [action["title"].partition(" × ")[0] for action in failure["actions"]]
    assert titles.count(condition) == 1 + (test == "polls_in_a_loop")


def test_a_loop_over_elements_is_no_wait(run: Run) -> None:
    failure = run.failure("reads_all_elements")

    assert failure["waited"] is None
    assert " × " in failure["actions"][-1]["title"]


def test_a_wait_is_one_action_with_the_error_of_its_last_command(run: Run) -> None:
    actions = run.failure("waits")["actions"]

    (wait,) = [action for action in actions if action["title"].startswith("Wait for")]
    assert "sign-out" in wait["error"]
    assert not any("Find" in a["title"] and "sign-out" in a["title"] for a in actions)


def test_an_element_that_is_there_is_said_to_be_there(run: Run) -> None:
    summary = run.failure("waits_for_one_that_is_disabled")["nearest"]["summary"]

    assert summary == "id 'help': on the screen now (disabled)"


def test_an_error_that_is_not_about_an_element_has_no_nearest_one(run: Run) -> None:
    failure = run.failure("compares")

    assert failure["error"]["type"] == "AssertionError"
    assert (failure["nearest"], failure["waited"]) == (None, None)
    assert failure["tree"][0]["elements"]


def test_a_failed_setup_is_taken_before_the_driver_quits(run: Run) -> None:
    failure = run.failure("is_set_up")

    assert failure["when"] == "setup"
    assert failure["source"]["function"] == "signed_in"
    assert failure["nearest"]["summary"].endswith("no match; nearest 'password'")
    assert "screenshot.png" in failure["files"]


def test_the_evidence_of_a_failed_call_outlasts_a_failing_teardown(run: Run) -> None:
    failure = run.failure("fails_before_teardown")

    assert failure["when"] == "call"
    assert failure["nearest"]["locator"]["value"] == "usernam"


def test_an_error_that_a_wait_led_to_says_what_the_wait_waited_for(run: Run) -> None:
    failure = run.failure("wraps_an_error")

    assert failure["error"]["type"] == "AssertionError"
    assert failure["waited"]["condition"] == "presence_of_element_located"
    assert failure["nearest"]["locator"]["value"] == "sign-out"


def test_a_failure_names_the_lines_of_the_suite_alone(run: Run) -> None:
    for path in (run.directory / "left").rglob("failure.json"):
        source = json.loads(path.read_text())["source"]
        assert {call.partition(":")[0] for call in source["calls"]} == {"test_it.py"}


def test_the_report_and_the_job_summary_say_what_a_wait_and_a_locator_missed(
    run: Run,
) -> None:
    (blob,) = blobs(run.directory / "device-report")
    messages = [
        error["message"]
        for params in of_method(blob, "onTestEnd")
        for error in params["result"]["errors"]
    ]
    (message,) = [text for text in messages if "accessibility id 'pasword'" in text]
    assert "NoSuchElementException" in message.splitlines()[0]
    assert message.endswith("no match; nearest 'password'")
    assert any("\nwaited " in text for text in messages)
    assert "session page" not in {
        note["type"]
        for params in of_method(blob, "onTestEnd")
        for note in params["test"]["annotations"]
    }

    summary = html.unescape((run.directory / "summary.md").read_text())
    assert "accessibility id 'pasword': no match; nearest 'password'" in summary


def test_a_passed_test_leaves_nothing(run: Run) -> None:
    assert list((run.directory / "left").glob("*test_passes-*")) == []


def test_several_devices_have_their_own_files_and_the_failing_one_is_named(
    run: Run,
) -> None:
    failure = run.failure("has_two_devices")

    assert [device["name"] for device in failure["device"]] == ["alice", "bob"]
    assert [tree["dialect"] for tree in failure["tree"]] == ["android", "ios"]
    assert failure["nearest"]["device"] == "bob"
    (nearest, *_) = failure["nearest"]["elements"]
    assert (nearest["type"], nearest["label"]) == ("XCUIElementTypeButton", "sign-in")
    assert {"alice/screenshot.png", "bob/screenshot.png"} <= set(failure["files"])


def test_an_error_is_about_the_device_and_the_command_that_raised_it(run: Run) -> None:
    failure = run.failure("searches_two_devices")

    # Not about the last command that failed, whose error the test handles.
    assert failure["waited"]["locator"]["value"] == "sing-in"
    assert failure["nearest"]["device"] == "bob"
    assert failure["nearest"]["locator"]["value"] == "sing-in"
    (nearest, *_) = failure["nearest"]["elements"]
    assert nearest["type"] == "XCUIElementTypeButton"
    line = "bob: accessibility id 'sing-in': no match; nearest 'sign-in'"
    assert line in run.section("test_searches_two_devices").splitlines()


def test_actions_in_threads_have_the_line_of_the_test_and_the_device(run: Run) -> None:
    actions = run.failure("searches_two_devices")["actions"]
    in_threads = [action for action in actions if "sign-in'" in action["title"]]

    assert [action["device"] for action in in_threads] == ["alice", "bob"]
    assert all(action["at"].startswith("test_it.py:") for action in in_threads)


def test_the_pages_of_a_local_session_are_kept(run: Run) -> None:
    folder = run.folder("finds_nothing")

    assert "<style>" in (folder / "session.html").read_text()
    assert "<script" not in (folder / "session.html").read_text()
    timeline = json.loads((folder / "timeline.json").read_text())["data"]["timeline"]
    assert any("session ready" in entry["text"] for entry in timeline)
    assert (folder / "controller.log").read_text()


def test_every_file_that_a_failure_names_is_there_and_the_others_are_not_its_own(
    run: Run,
) -> None:
    for path in (run.directory / "left").rglob("failure.json"):
        failure = json.loads(path.read_text())
        there = {
            file.relative_to(path.parent).as_posix()
            for file in path.parent.rglob("*")
            if file.is_file()
        }
        own = {"failure.json", "failure.md"}
        assert set(failure["files"]) == there - own
        assert failure["missing"] == []
        assert failure["verdict"] == "test"


def test_no_file_contains_a_secret_a_typed_password_or_a_path_of_this_machine(
    run: Run,
) -> None:
    home = str(run.directory)
    files = [path for path in (run.directory / "left").rglob("*") if path.is_file()]
    files += [path for path in run.directory.rglob("*.zip") if path not in files]
    files += [run.directory / "report.xml", run.directory / "html/report.html"]
    files += [run.directory / "summary.md"]
    contents = {str(path): path.read_bytes() for path in files}
    for path in files:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                contents |= {
                    f"{path}/{name}": archive.read(name) for name in archive.namelist()
                }

    assert len(contents) > 100
    contents["the terminal"] = run.output.encode()
    for needle in (TYPED, LITERAL, CORE):
        assert [
            name for name, text in contents.items() if needle.encode() in text
        ] == []
    left = [name for name in contents if name.startswith(f"{home}/left")]
    assert [name for name in left if home.encode() in contents[name]] == []


def test_junit_has_the_devices_and_the_directory_of_files_as_properties(
    run: Run,
) -> None:
    cases = {
        case.get("name"): case
        for case in ET.parse(run.directory / "report.xml").iter("testcase")
    }

    properties = {
        prop.get("name"): prop.get("value")
        for prop in cases["test_has_two_devices"].iter("property")
    }
    assert properties["device_platform"] == "android, ios"
    assert properties["device_attempt"] == "1"
    assert float(properties["device_minutes"] or "") > 0
    assert properties["device_artifacts"] == str(run.folder("has_two_devices"))


def test_pytest_html_shows_the_picture_and_links_to_the_files(run: Run) -> None:
    report = (run.directory / "html" / "report.html").read_text()

    folder = run.folder("finds_nothing").name
    assert f"../left/{folder}/failure.md" in report
    assert f"../left/{folder}/trace.zip" in report
    pictures = list((run.directory / "html" / "assets").glob("*.png"))
    assert (run.folder("finds_nothing") / "screenshot.png").read_bytes() in [
        picture.read_bytes() for picture in pictures
    ]

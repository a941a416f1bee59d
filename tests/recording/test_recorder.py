"""What the recorder hands over, and what becomes of it in a trace: order, waits, the clock, limits, and leftovers."""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device.plugin.output.recording import collecting_evidence
from pytest_device.redact import Redactor
from pytest_device.trace import playwright
from pytest_device.trace.agent_device import command_of
from pytest_device.trace.playwright import (
    ARCHIVE,
    PlaywrightTrace,
    archive,
    left_over,
)
from pytest_device.trace.recorder import Command, DeviceRecorder, Recorder
from pytest_device.trace.recording import Recording
from pytest_device.trace.values import Device, Frame
from pytest_device.trace.viewer import VIEWER, installed_viewers, served
from tests.fakes.clock import FakeClock
from tests.fakes.http_server import running

TAP = Command("Device", "tap", "Tap {element}", {"element": "id 'pay'"}, is_acting=True)
PHONE = Device("device-1", "", "android", "appium")
TABLET = Device("device-2", "tablet", "android", "appium")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def recorder(tmp_path: Path, clock: FakeClock) -> Recorder:
    return Recorder(tmp_path, Redactor(), clock=clock)


@pytest.fixture
def trace(tmp_path: Path, recorder: Recorder) -> PlaywrightTrace:
    return following(tmp_path / "a-test", recorder)


def following(directory: Path, recorder: Recorder) -> PlaywrightTrace:
    trace = PlaywrightTrace(
        directory,
        playwright.TestInfo("a test"),
        now=recorder.now(),
        source_of=lambda _name: "",
    )
    recorder.follow(trace)
    return trace


def events(path: Path, name: str) -> list[Mapping[str, Any]]:
    """Return the events of a finished trace."""
    with ZipFile(path) as zipped:
        return [json.loads(line) for line in zipped.read(name).splitlines()]


def tap(recorder: Recorder, send: Callable[[], object] = dict[str, str]) -> None:
    DeviceRecorder(recorder, PHONE).record(TAP, send)


def test_a_command_is_below_the_step_around_it(
    recorder: Recorder, trace: PlaywrightTrace
) -> None:
    with recorder.step("pay"):
        tap(recorder)

    path = trace.finish()
    (step,) = [one for one in events(path, "test.trace") if one["type"] == "before"]
    (call,) = [one for one in events(path, "0-trace.trace") if one["type"] == "before"]
    assert call["parentId"] == step["stepId"]


def test_a_trace_has_every_element_of_a_deep_screen(
    recorder: Recorder, trace: PlaywrightTrace
) -> None:
    size = (100).to_bytes(4) + (200).to_bytes(4)
    node = '<node class="a.Deep" bounds="[0,0][100,200]">'
    device = DeviceRecorder(recorder, PHONE)
    tap(recorder)
    device.picture(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + size, device.last)

    device.page_source(f"<hierarchy>{node * 900}{'</node>' * 900}</hierarchy>")

    with ZipFile(trace.finish()) as zipped:
        trees = [name for name in zipped.namelist() if name.endswith(".json")]
        assert sum(zipped.read(name).count(b"Deep") for name in trees) == 900


def test_a_failed_command_is_the_action_that_failed_the_test(
    recorder: Recorder,
) -> None:
    recording = Recording()
    recorder.follow(recording)

    def fails() -> None:
        raise LookupError("no such element")

    errors: list[LookupError] = []
    for device in (PHONE, TABLET):
        with pytest.raises(LookupError) as caught:
            DeviceRecorder(recorder, device).record(TAP, fails)
        errors.append(caught.value)

    # Alike, and the test fails by the first one.
    failing = [recorder.failing_action(error, []) for error in errors]
    assert [action.key for action in failing] == [
        action.key for action in recording.actions
    ]
    assert [action.device for action in failing] == [PHONE, TABLET]
    own = LookupError("the app has no such element")
    assert recorder.failing_action(own, []).device == TABLET
    other = recorder.failing_action(AssertionError("1 == 2"), [])
    assert other.method == "fail"


def test_the_error_of_a_command_that_reads_evidence_is_none_of_the_test(
    recorder: Recorder,
) -> None:
    recording = Recording()
    recorder.follow(recording)
    recorder.collects_evidence = True

    def fails() -> None:
        raise LookupError("no screenshot")

    with pytest.raises(LookupError):
        tap(recorder, fails)

    assert recording.actions[-1].error is None
    failing = recorder.failing_action(LookupError("no screenshot"), [])
    assert failing.method == "fail"


@pytest.mark.parametrize("waits_again", [False, True])
def test_a_timeout_is_the_error_of_the_wait_that_raised_it(
    recorder: Recorder, clock: FakeClock, *, waits_again: bool
) -> None:
    recording = Recording()
    recorder.follow(recording)

    def wait_for(device: Device, *, is_there: bool) -> None:
        def condition(_driver: WebDriver) -> bool:
            clock.now += 1
            DeviceRecorder(recorder, device).record(TAP, dict[str, str])
            return is_there

        # The condition uses no driver.
        driver: Any = None
        WebDriverWait(driver, 0, poll_frequency=0.001).until(condition)

    def pair() -> None:
        with recorder.step("pair"):
            # The recorder takes it for going on until this device gets another command.
            wait_for(TABLET, is_there=True)
            try:
                wait_for(PHONE, is_there=False)
            finally:
                if waits_again:
                    wait_for(TABLET, is_there=True)

    with pytest.raises(TimeoutException) as caught:
        pair()

    waits = [action for action in recording.actions if action.kind == "wait"]
    failed = [wait for wait in waits if wait.error]
    assert [wait.device for wait in failed] == [PHONE]
    assert recorder.failing_action(caught.value, []) == failed[0]


def in_an_executor(recorder: Recorder) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(DeviceRecorder(recorder, PHONE).record, TAP, dict).result()


def in_tasks(recorder: Recorder) -> None:
    async def press(device: Device) -> None:
        record = partial(DeviceRecorder(recorder, device).record, TAP)
        await asyncio.to_thread(record, dict)
        await asyncio.to_thread(DeviceRecorder(recorder, device).record, TAP, dict)

    async def both() -> None:
        await asyncio.gather(press(PHONE), press(TABLET))

    asyncio.run(both())


def in_the_executor_of_a_loop(recorder: Recorder) -> None:
    async def waits() -> None:
        record = DeviceRecorder(recorder, PHONE).record
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, record, TAP, dict)

    asyncio.run(waits())


def in_tasks_that_do_not_say_what_they_started(recorder: Recorder) -> None:
    async def press(device: Device) -> None:
        record = DeviceRecorder(recorder, device).record
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, record, TAP, dict)

    async def both() -> None:
        await asyncio.gather(press(PHONE), press(TABLET))

    asyncio.run(both())


@pytest.mark.parametrize(
    ("run", "functions"),
    [
        (in_an_executor, {"in_an_executor"}),
        (in_tasks, {"press"}),
        (in_the_executor_of_a_loop, {"waits"}),
        # That of the task that runs just then, else where the test begins.
        (in_tasks_that_do_not_say_what_they_started, {"press", "test_it"}),
    ],
)
def test_a_command_in_a_thread_has_the_line_that_started_it(
    recorder: Recorder, run: Callable[[Recorder], None], functions: set[str]
) -> None:
    recording = Recording()
    recorder.follow(recording)

    with recorder.step("Test", stack=[Frame("test_it.py", 1, "test_it")]):
        run(recorder)

    commands = [action for action in recording.actions if action.kind == "command"]
    assert commands
    assert all(command.device for command in commands)
    assert {command.stack[0].function for command in commands} <= functions


def test_the_longest_time_without_a_command_is_known_of_each_device(
    recorder: Recorder, clock: FakeClock
) -> None:
    def wait(*_: object) -> dict[str, str]:
        clock.now += 1000
        return {}

    assert recorder.silences.of(PHONE.key) is None

    tap(recorder, wait)
    clock.now += 120
    tap(recorder, wait)
    clock.now += 30
    assert recorder.silences.of(PHONE.key) == 120

    with collecting_evidence(recorder):
        tap(recorder)
    clock.now += 100
    assert recorder.silences.of(PHONE.key) == 130
    assert recorder.silences.of("device-2") is None


def test_the_clock_stands_still_while_a_test_waits_for_its_device(
    recorder: Recorder, clock: FakeClock
) -> None:
    before = recorder.now()
    clock.now += 60

    recorder.skip(60)

    assert recorder.now() == before


def test_nobody_is_told_of_a_test_that_has_ended(recorder: Recorder) -> None:
    recording = Recording()
    recorder.follow(recording)
    recorder.unfollow(recording)

    tap(recorder)

    assert not recorder.is_active
    assert not list(recording.actions)


def test_an_attempt_that_begins_while_another_ones_evidence_is_read_has_none_of_it(
    recorder: Recorder,
) -> None:
    first, second = Recording(), Recording()
    recorder.follow(first)

    with collecting_evidence(recorder):
        recorder.unfollow(first)
        recorder.follow(second)
        with pytest.raises(LookupError):
            tap(recorder, [].pop)

    (action,) = second.actions
    assert (action.method, action.parent) == ("tap", "")
    assert action.error is not None


def test_of_a_trace_that_is_full_only_steps_and_errors_follow(
    recorder: Recorder, trace: PlaywrightTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Reached by the beginning of the third command.
    monkeypatch.setattr(playwright, "MAX_EVENTS", 8)
    for _ in range(20):
        tap(recorder)
    with recorder.step("the end"):
        pass
    recorder.error(AssertionError("1 == 2"), [])

    path = trace.finish()
    of_device = events(path, "0-trace.trace")
    assert len(of_device) < 15
    kinds = [one["type"] for one in of_device]
    assert kinds.count("before") == kinds.count("after")
    of_test = events(path, "test.trace")
    said = [one["text"] for one in of_test if one["type"] == "stderr"]
    assert len(said) == 1
    assert said[0].startswith("The trace ends here: ")
    assert "the end" in [one.get("title") for one in of_test]
    assert of_test[-1]["message"] == "AssertionError: 1 == 2"


@pytest.mark.parametrize(
    ("name", "positionals", "is_acting"),
    [
        ("alert", ("accept",), True),
        ("alert", ("get",), False),
        ("alert", (), False),
        ("press", ('label="Add"',), True),
        ("wait", ("text", "Add"), False),
    ],
)
def test_a_command_of_agent_device_acts_if_it_may_change_the_screen(
    name: str, positionals: tuple[str, ...], *, is_acting: bool
) -> None:
    flags = {"args": ["--demo"], "retries": 0, "relaunch": False, "device": None}

    command = command_of(
        name, positionals, flags, masks_all=False, attributes_of=lambda _target: {}
    )

    assert command.is_acting is is_acting
    assert command.params.items() >= {"retries": 0}.items()
    assert command.params["args"] == ["--demo"]
    assert not command.params.keys() & {"relaunch", "device"}


def test_each_line_is_on_the_disk_at_once(
    recorder: Recorder, trace: PlaywrightTrace
) -> None:
    tap(recorder)

    written = (trace.lines / "0-trace.trace").read_text().splitlines()

    assert [json.loads(line)["type"] for line in written] == [
        "context-options",
        "before",
        "after",
    ]
    trace.discard()


def test_a_trace_that_is_being_written_is_no_leftover(
    tmp_path: Path, recorder: Recorder, trace: PlaywrightTrace
) -> None:
    tap(recorder)
    assert not list(left_over(tmp_path))

    trace.close()  # as the system does for a process that is killed

    assert list(left_over(tmp_path)) == [trace.lines]


@pytest.mark.parametrize(
    ("version", "is_used"), [("1.52.0", False), ("1.53.1", True), ("2.0.0", True)]
)
def test_an_installed_viewer_that_cannot_read_traces_is_not_used(
    tmp_path: Path, version: str, *, is_used: bool
) -> None:
    package = tmp_path / "node_modules/playwright-core"
    viewer = package / VIEWER
    viewer.mkdir(parents=True)
    (viewer / "index.html").touch()
    (package / "package.json").write_text(json.dumps({"version": version}))

    assert (viewer in installed_viewers(tmp_path / "suite")) is is_used


@pytest.mark.parametrize("name", ["index.html", "%00", "../secret.txt", "missing"])
def test_a_viewer_serves_the_files_of_its_directory_only(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret.txt").touch()
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("the page")

    with served(page) as (url, server), running(server):
        reply = httpx.get(url.replace("index.html", name.replace("/", "%2F")))

    assert reply.status_code == (200 if name == "index.html" else 404)


def test_a_line_that_was_cut_off_is_left_out(
    recorder: Recorder, trace: PlaywrightTrace
) -> None:
    tap(recorder)
    trace.close()
    with (trace.lines / "0-trace.trace").open("a") as file:
        file.write('{"type":"bef')

    path = archive(trace.lines, trace.path)

    assert events(path, "0-trace.trace")[-1]["type"] == "after"
    assert not trace.lines.exists()
    assert path.name == ARCHIVE


@pytest.mark.timing
def test_runs_of_one_test_at_once_take_no_lines_from_each_other(tmp_path: Path) -> None:
    def run(number: int) -> int:
        recorder = Recorder(tmp_path, Redactor(), clock=FakeClock())
        for again in range(50):
            trace = following(tmp_path / "a-test", recorder)
            recorder.output(f"{number}", is_error=False)
            recorder.unfollow(trace)
            if again % 2:
                trace.discard()
            else:
                trace.finish()

        return number

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [0, 1, 2, 3]

    assert [path.name for path in (tmp_path / "a-test").iterdir()] == ["trace.zip"]

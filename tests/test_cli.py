"""``pytest-device``: what its commands do and tell, and how they end."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from pytest_device.cli import main
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.ledger import ASKED, KEPT, STOPPED, Entry
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.runs import OwnRun
from pytest_device.testing import FaultyService, faulty_service
from tests.sessions.owning import entry_of, request_at

COMMAND = [sys.executable, "-c", "import sys; from pytest_device.cli import main; sys.exit(main())"]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def serving(state_dir: Path) -> Generator[subprocess.Popen[str]]:
    command = [*COMMAND, "serve", "--port", "0", "--state-dir", str(state_dir)]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield service
    finally:
        service.terminate()
        service.communicate(timeout=60)


def told(service: subprocess.Popen[str]) -> str:
    """Return what the service prints until it has said how to use it."""
    lines: list[str] = []
    for line in service.stdout or ():
        lines.append(line)
        if line.strip() == "pytest":
            break
    return "".join(lines)


def environment(text: str) -> dict[str, str]:
    """Run the printed exports in a shell, as a person would."""
    exports = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("export"))
    shown = subprocess.run(["sh", "-c", f"{exports}\nenv"], capture_output=True, text=True, check=True, env={}).stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def test_what_it_prints_points_a_client_at_it(serving: subprocess.Popen[str]) -> None:
    env = environment(told(serving))

    request = SessionRequest.from_arguments(app_id=env["DEVICE_APP_ID"], platform="ios", type="argent")
    with DeviceClient(env["DEVICE_URL"], env["DEVICE_TOKEN"]) as client:
        session = client.create(request)
        assert client.stop(session.id).status in {"stopped", "errored"}


def test_the_token_is_in_a_private_file_and_not_on_the_screen(serving: subprocess.Popen[str], state_dir: Path) -> None:
    text = told(serving)
    token = (state_dir / "token").read_text()

    assert token not in text
    assert stat.S_IMODE((state_dir / "token").stat().st_mode) == 0o600
    assert token not in " ".join(map(str, serving.args if isinstance(serving.args, list) else []))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_status_0_and_takes_its_token_along(
    serving: subprocess.Popen[str], state_dir: Path, number: signal.Signals
) -> None:
    told(serving)

    serving.send_signal(number)

    assert serving.wait(60) == 0
    assert not (state_dir / "token").exists()


def test_each_start_has_a_token_of_its_own(serving: subprocess.Popen[str], state_dir: Path) -> None:
    told(serving)
    first = (state_dir / "token").read_text()
    serving.send_signal(signal.SIGINT)
    serving.wait(60)
    command = [*COMMAND, "serve", "--port", "0", "--state-dir", str(state_dir)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as again:
        told(again)
        second = (state_dir / "token").read_text()
        again.send_signal(signal.SIGINT)

    assert first != second


def test_a_second_service_for_the_same_directory_is_refused(serving: subprocess.Popen[str], state_dir: Path) -> None:
    told(serving)

    second = run("serve", "--port", "0", "--state-dir", str(state_dir))

    assert second.returncode == 2
    assert "another" in second.stderr
    assert (state_dir / "token").exists()


def test_a_port_in_use_is_told_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port), "--state-dir", str(tmp_path))

    assert result.returncode == 2
    assert re.search(rf"port {port} .*in use.*another port", result.stderr)


@pytest.mark.parametrize(("option", "value"), [("--app-id", "42"), ("--port", "70000")])
def test_a_wrong_option_is_told_with_its_value(tmp_path: Path, option: str, value: str) -> None:
    result = run("serve", "--state-dir", str(tmp_path), option, value)

    assert result.returncode == 2
    assert value in result.stderr


def test_it_listens_on_this_machine_only(serving: subprocess.Popen[str]) -> None:
    url = environment(told(serving))["DEVICE_URL"]

    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(url, headers={"Host": "devices.example"}, trust_env=False).status_code == 421


@pytest.mark.parametrize("arguments", [[], ["dance"]])
def test_without_a_command_it_tells_which_there_are(arguments: list[str]) -> None:
    result = run(*arguments)

    assert result.returncode == 2
    assert "serve" in result.stderr or "COMMAND" in result.stderr


def run(*arguments: str, code: str = COMMAND[2], **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environ},
    )


def call(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which is quicker."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environ.items():
            patch.setenv(name, value)
        try:
            status = main(arguments)
        except SystemExit as exit_:
            status = int(str(exit_.code))
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


WITHOUT_EXTRA = (
    "import sys; sys.modules |= dict.fromkeys(('starlette', 'uvicorn', 'psutil')); "
    "from pytest_device.cli import main; sys.exit(main())"
)


@pytest.fixture(scope="module")
def running_service() -> Generator[FaultyService]:
    with faulty_service() as service:
        yield service


class Ledgers:
    """A state directory with runs in it, and sessions at a service."""

    def __init__(self, service: FaultyService, state_dir: Path) -> None:
        self.service, self.state_dir = service, state_dir
        self.live: list[OwnRun] = []

    def entry(self, **values: Any) -> Entry:
        """Return a session that runs, with its entry."""
        with DeviceClient(self.service.url, self.service.token) as client:
            session = client.create(request_at(self.service))
        return entry_of(str(session.id), self.service, page=session.url, **values)

    def run(self, *entries: Entry, alive: bool = False) -> OwnRun:
        run = OwnRun.join(self.state_dir, uuid4().hex, "main")
        for entry in entries:
            run.ledger.write(entry)
        if alive:
            self.live.append(run)
        else:
            run.leave()
        return run

    def listed(self) -> list[dict[str, Any]]:
        found = call("sessions", "--json", "--state-dir", str(self.state_dir))
        sessions: list[dict[str, Any]] = json.loads(found.stdout)["sessions"]
        return sessions

    def stop(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {"DEVICE_URL": self.service.url, "DEVICE_TOKEN": self.service.token, **environ}
        return call("stop", "--state-dir", str(self.state_dir), *arguments, **given)


@pytest.fixture
def ledgers(running_service: FaultyService, tmp_path: Path) -> Generator[Ledgers]:
    running_service.reset()
    ledgers = Ledgers(running_service, tmp_path)
    yield ledgers
    for live in ledgers.live:
        live.leave()


def test_sessions_lists_what_the_ledger_knows_for_people(ledgers: Ledgers) -> None:
    kept, live = ledgers.entry(state=KEPT), ledgers.entry(name="my test")
    ledgers.run(kept)
    ledgers.run(live, alive=True)

    shown = call("sessions", DEVICE_STATE_DIR=str(ledgers.state_dir), DEVICE_TOKEN="")

    assert shown.returncode == 0
    assert f"{kept.session_id}  kept, its run is over: android appium 'a test'" in shown.stdout
    assert f"{live.session_id}  live, its run is alive: android appium 'my test'" in shown.stdout
    assert f"lasts 15 minutes at most, at {ledgers.service.url}, page {kept.page}" in shown.stdout
    assert f"asked for at {kept.asked_at}" in shown.stdout


def test_sessions_lists_what_the_ledger_knows_for_programs(ledgers: Ledgers) -> None:
    run = ledgers.run(entry := ledgers.entry())

    assert ledgers.listed() == [
        {
            "session_id": entry.session_id,
            "label": "android appium",
            "name": "a test",
            "state": "live",
            "service": ledgers.service.url,
            "page": entry.page,
            "asked_at": entry.asked_at,
            "minutes": 15,
            "run": run.name,
            "run_alive": False,
        }
    ]


def test_sessions_tells_of_a_session_without_an_id(ledgers: Ledgers) -> None:
    ledgers.run(entry_of("", ledgers.service, state=ASKED, name="lost one"))

    shown = call("sessions", "--state-dir", str(ledgers.state_dir)).stdout

    assert shown.startswith("id unknown  asked, its run is over: android appium 'lost one'")


def test_sessions_says_that_there_is_none(tmp_path: Path) -> None:
    shown = call("sessions", "--state-dir", str(tmp_path))

    assert (shown.returncode, shown.stdout) == (0, f"no session is known in {tmp_path}\n")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_sessions_does_not_read_a_damaged_file_as_nothing(ledgers: Ledgers, options: tuple[str, ...]) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    shown = call("sessions", *options, "--state-dir", str(ledgers.state_dir))

    assert shown.returncode == 1
    assert str(broken) in shown.stdout


def test_a_state_directory_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    shown = call("sessions", "--state-dir", str(tmp_path))

    assert shown.returncode == 2
    assert shown.stderr.startswith("pytest-device: the ledger cannot be used: ")


def test_stop_stops_what_is_left_and_kept_and_spares_live_runs(ledgers: Ledgers) -> None:
    left, kept, owned = ledgers.entry(), ledgers.entry(state=KEPT), ledgers.entry()
    ledgers.run(left, kept)
    ledgers.run(owned, alive=True)

    result = ledgers.stop()

    assert result.returncode == 0, result.stderr
    assert f"stopped: android appium {left.session_id} (stopped)" in result.stdout
    assert f"stopped: android appium {kept.session_id} (stopped)" in result.stdout
    assert "1 session of live runs left to them: --all stops these, too" in result.stdout
    assert ledgers.service.statuses().count("stopped") == 2
    assert [session["session_id"] for session in ledgers.listed()] == [owned.session_id]


def test_stop_says_that_it_knows_this_machine_only(ledgers: Ledgers) -> None:
    result = ledgers.stop()

    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        f"nothing to stop in {ledgers.state_dir}",
        "sessions that other machines asked for are not known here: the service has no list",
    ]


def test_stop_all_stops_what_live_runs_own_and_leaves_them_alive(ledgers: Ledgers) -> None:
    run = ledgers.run(entry := ledgers.entry(), alive=True)

    result = ledgers.stop("--all")

    assert result.returncode == 0, result.stderr
    assert entry.session_id in result.stdout
    assert ledgers.service.statuses() == ["stopped"]
    assert ledgers.listed() == []
    assert (run.directory / f"{run.owner}.lock").exists()


def test_stop_stops_exactly_the_sessions_it_is_given(ledgers: Ledgers) -> None:
    owned, other, kept = ledgers.entry(), ledgers.entry(), ledgers.entry(state=KEPT)
    ledgers.run(owned, other, alive=True)
    ledgers.run(kept)

    result = ledgers.stop(owned.session_id.upper(), kept.session_id)

    assert result.returncode == 0, result.stderr
    assert ledgers.service.statuses().count("stopped") == 2
    assert [session["session_id"] for session in ledgers.listed()] == [other.session_id]


def test_stop_stops_a_session_that_this_machine_does_not_know(ledgers: Ledgers) -> None:
    entry = ledgers.entry()

    result = ledgers.stop(entry.session_id)

    assert (result.returncode, result.stdout) == (0, f"stopped: session {entry.session_id} (stopped)\n")


def test_stop_does_not_take_a_session_that_nobody_knows_for_stopped(ledgers: Ledgers) -> None:
    mistyped = str(uuid4())

    result = ledgers.stop(mistyped)

    assert result.returncode == 1
    assert f"neither the ledger nor the service knows a session {mistyped}" in result.stderr


def test_stop_sends_the_token_to_no_other_service(ledgers: Ledgers) -> None:
    with faulty_service() as other:
        ledgers.run(entry := ledgers.entry(service=other.url))

        result = ledgers.stop()

        assert other.requests() == []
    assert result.returncode == 1
    assert f"left alone: android appium {entry.session_id} is at {other.url}" in result.stderr
    assert [session["session_id"] for session in ledgers.listed()] == [entry.session_id]


def test_stop_fails_for_what_cannot_be_stopped_and_goes_on_knowing_it(ledgers: Ledgers) -> None:
    ledgers.run(entry := ledgers.entry(), ledgers.entry())
    ledgers.service.add_fault("stop", "reply", status=403, body=json.dumps({"echo": ledgers.service.token}))

    result = ledgers.stop()

    assert result.returncode == 1
    assert "not stopped: android appium" in result.stderr
    assert ledgers.service.token not in result.stderr + result.stdout
    assert len(ledgers.listed()) == 1
    assert entry.page.rpartition("/")[0] in result.stderr


def test_stop_gives_up_after_the_time_it_is_given(ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry())
    ledgers.service.add_fault("stop", "reply", status=503, body="{}", times=None)

    result = ledgers.stop("--timeout-seconds", "0.1")

    assert result.returncode == 1
    assert "not stopped: " in result.stderr
    assert len(ledgers.listed()) == 1


def test_stop_tells_of_a_create_call_whose_answer_is_not_there(ledgers: Ledgers) -> None:
    lost = entry_of("", ledgers.service, state=ASKED, asked_at="2999-01-01T00:00:00+00:00")
    ledgers.run(lost, lost._replace(intent=uuid4().hex, asked_at="2001-01-01T00:00:00+00:00"))

    result = ledgers.stop()

    assert result.returncode == 1
    assert result.stderr.count("cannot be stopped: android appium named 'a test'") == 1
    assert [session["asked_at"] for session in ledgers.listed()] == [lost.asked_at]


def test_stop_counts_what_had_been_stopped_and_leaves_the_count_of_live_runs_to_them(ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry(state=STOPPED))
    ledgers.run(ledgers.entry(state=STOPPED), alive=True)

    result = ledgers.stop("--all")

    assert result.returncode == 0
    assert "2 sessions had been stopped already" in result.stdout
    assert [session["run_alive"] for session in ledgers.listed()] == [True]


def test_stop_fails_for_a_damaged_file(ledgers: Ledgers) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    result = ledgers.stop()

    assert result.returncode == 1
    assert f"damaged ledger file {broken}" in result.stderr
    assert ledgers.service.statuses() == ["stopped"]


@pytest.mark.parametrize(
    ("arguments", "environ", "told"),
    [
        ((), {"DEVICE_URL": ""}, "--url or DEVICE_URL"),
        ((), {"DEVICE_TOKEN": ""}, "DEVICE_TOKEN"),
        (("--url", "http://devices.example"), {}, "http://devices.example"),
        (("not-an-id",), {}, "not-an-id"),
        (("--all", str(uuid4())), {}, "not allowed with"),
        (("--timeout-seconds", "-1"), {}, "-1"),
        (("--timeout-seconds", "inf"), {}, "inf"),
    ],
)
def test_stop_tells_what_it_cannot_work_with(
    ledgers: Ledgers, arguments: tuple[str, ...], environ: dict[str, str], told: str
) -> None:
    result = ledgers.stop(*arguments, **environ)

    assert result.returncode == 2
    assert told in result.stderr


def test_sessions_are_listed_and_stopped_without_the_local_extra(ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry())
    environ = {"DEVICE_URL": ledgers.service.url, "DEVICE_TOKEN": ledgers.service.token}

    for command in ("sessions", "stop"):
        result = run(command, "--state-dir", str(ledgers.state_dir), code=WITHOUT_EXTRA, **environ)
        assert (result.returncode, result.stderr) == (0, "")

    assert ledgers.service.statuses() == ["stopped"]

"""The service as a process: its start, its lifeline, its end."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from pytest_device.service.runners.base import Record
from pytest_device.service.server import _run_until_stopped, serve_requests
from pytest_device.service.web import listen
from pytest_device.spec import SESSIONS_PATH
from pytest_device.testing import faulty_service
from tests.fakes.devices import FakeRunner
from tests.fakes.local_service import APP_ID, TOKEN, InProcessService, data
from tests.service.process import (
    COMMAND,
    PATIENCE_SECONDS,
    ServiceProcess,
    config,
    next_event,
    refusal,
    running,
    started,
)
from tests.waiting import eventually

pytestmark = pytest.mark.every_python


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def service(directory: Path) -> Iterator[ServiceProcess]:
    with running(config(directory)) as service:
        yield service


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, object]:
    """Return the configuration of a service that a test may end."""
    return config(tmp_path)


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    assert eventually(true, PATIENCE_SECONDS), (
        f"in {PATIENCE_SECONDS} s not seen: {what}"
    )


def is_gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def written_status(directory: Path, session_id: str) -> str:
    """Return a status as it is written, without asking the service."""
    with closing(sqlite3.connect(directory / "state" / "sessions.db")) as database:
        (status,) = database.execute(
            "SELECT status FROM session WHERE id = ?", [session_id]
        ).fetchone()
    return str(status)


def test_a_service_that_is_ready_answers_at_its_url(service: ServiceProcess) -> None:
    assert service.url.startswith("http://127.0.0.1:")
    assert data(service.create())["url"].startswith(f"{service.url}/sessions/")


@pytest.mark.parametrize(
    ("session_type", "field", "check"),
    [
        ("agent-device", "agentDeviceRemoteSessionUrl", "health"),
        ("argent", "toolsUrl", "tools"),
        ("appium", "appiumUrl", "status"),
    ],
)
def test_the_controllers_of_simulated_sessions_are_at_the_services_own_address(
    service: ServiceProcess, session_type: str, field: str, check: str
) -> None:
    session_id = data(service.create(type=session_type))["id"]

    address = data(service.get(session_id))["remoteConfig"][field]

    assert address.startswith(f"{service.url}/")
    assert service.http.get(f"{address}/{check}").status_code == 200


def test_ready_reports_the_project(settings: dict[str, object]) -> None:
    with started(json.dumps(settings)) as process:
        event = next_event(process)

    assert (event["event"], event["app_id"]) == ("ready", APP_ID)


def test_limits_apply_without_requests(
    service: ServiceProcess, directory: Path
) -> None:
    session_id = data(service.create(maxDurationMinutes=0))["id"]

    until(
        lambda: written_status(directory, session_id) == "stopped", "the automatic stop"
    )


def test_an_endless_request_times_out(service: ServiceProcess) -> None:
    head = f"POST {SESSIONS_PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    partial_requests = [
        b"",
        b"GET / HT",
        head.encode(),
        f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode(),
    ]
    address = service.url.removeprefix("http://").split(":")
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                socket.create_connection((address[0], int(address[1])), 60)
            )
            for _ in partial_requests
        ]
        since = time.monotonic()
        for client, sent in zip(clients, partial_requests, strict=True):
            client.sendall(sent)

        rests = [client.recv(1000) for client in clients]

    assert set(rests) <= {b""}
    assert 9 < time.monotonic() - since < 45


def test_a_runs_service_sees_no_secrets_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", "open-sesame")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open-sesame")
    before = set(psutil.Process().children())

    with faulty_service():
        (service,) = set(psutil.Process().children()) - before
        seen = service.environ()

    assert "PATH" in seen
    assert "open-sesame" not in seen.values()


def test_sessions_above_the_limit_are_refused_until_one_ends(
    settings: dict[str, object],
) -> None:
    with running(settings | {"max_sessions": 2}) as service:
        first, _ = [data(service.create())["id"] for _ in range(2)]
        refused = service.create()
        service.http.post(f"{SESSIONS_PATH}/{first}/stop")

        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "5"
        assert (
            "2 sessions are running, as many as this service allows (max_sessions)"
            in refused.text
        )
        assert service.create().status_code == 200


def test_only_this_user_can_read_the_log_and_it_has_no_token(
    service: ServiceProcess, directory: Path
) -> None:
    session_id = data(service.create(type="argent", name=f"a name with {TOKEN}"))["id"]
    log = directory / "service.log"

    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert (
        f"session {session_id}: new, argent on android, 'a name with ***'"
        in log.read_text()
    )
    assert TOKEN not in log.read_text()


def test_only_this_user_can_read_the_state(
    service: ServiceProcess, directory: Path
) -> None:
    service.create()
    state = directory / "state"

    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()} == {0o600}


@pytest.mark.parametrize("effect", ["lose-request", "lose-answer"])
def test_a_lost_response_closes_the_connection(
    service: ServiceProcess, effect: str
) -> None:
    service.fault("create", effect)

    with pytest.raises(
        httpx.RemoteProtocolError, match="disconnected without sending a response"
    ):
        service.create()


@pytest.mark.parametrize("effect", ["reset-request", "reset-answer"])
def test_a_reset_fault_resets_the_connection(
    service: ServiceProcess, effect: str
) -> None:
    service.fault("create", effect)

    with pytest.raises(httpx.ReadError, match="reset"):
        service.create()


def test_a_truncated_response_is_shorter_than_its_length(
    service: ServiceProcess,
) -> None:
    service.fault("create", "truncate")

    with pytest.raises(
        httpx.RemoteProtocolError, match=r"without sending complete message body"
    ):
        service.create()


def test_the_service_survives_lost_connections(
    service: ServiceProcess, directory: Path
) -> None:
    service.fault("create", "lose-answer")
    with suppress(httpx.HTTPError):
        service.create()

    assert service.create().status_code == 200
    assert "ERROR" not in (directory / "service.log").read_text()


def test_a_second_service_cannot_use_the_same_state(
    service: ServiceProcess, directory: Path
) -> None:
    assert service.process.poll() is None
    text = refusal(json.dumps(config(directory)))

    assert f"another service is using {directory / 'state'}" in text


def test_a_port_in_use_is_an_error_that_names_it(
    service: ServiceProcess, tmp_path: Path
) -> None:
    port = httpx.URL(service.url).port
    text = refusal(json.dumps(config(tmp_path, port=port)))

    assert text.startswith(f"port {port} of 127.0.0.1 is in use: ")


def test_a_foreign_host_is_an_error_that_names_it(tmp_path: Path) -> None:
    assert "of 192.0.2.1" in refusal(json.dumps(config(tmp_path, host="192.0.2.1")))


def test_an_impossible_state_directory_is_an_error_that_names_it(
    settings: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file")

    assert f"state_dir {tmp_path / 'state'} cannot be used (" in refusal(
        json.dumps(settings)
    )


def test_an_unwritable_log_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = tmp_path / "missing" / "service.log"

    assert f"log_path {log} cannot be written (" in refusal(
        json.dumps(config(tmp_path, log_path=str(log)))
    )


def test_damaged_state_is_an_error_that_names_the_file(
    settings: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "sessions.db").write_bytes(
        b"no database at all, whatever its name may say" * 30
    )

    assert "sessions.db cannot be used" in refusal(json.dumps(settings))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "the first line on standard input must be the configuration as JSON"),
        ("{", "the first line on standard input must be the configuration as JSON"),
        ("[]", "the configuration must be a JSON object"),
        ("{}", "the configuration lacks app_id, state_dir, token"),
    ],
)
def test_a_missing_configuration_is_an_error(line: str, said: str) -> None:
    assert refusal(line) == said


def test_end_of_input_ends_the_service_and_its_sessions(
    settings: dict[str, object], tmp_path: Path
) -> None:
    with running(settings) as service:
        session_id = data(service.create())["id"]

        assert service.end() == 0
    assert written_status(tmp_path, session_id) == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_service_and_its_sessions(
    settings: dict[str, object], tmp_path: Path, number: signal.Signals
) -> None:
    with running(settings) as service:
        session_id = data(service.create())["id"]
        service.process.send_signal(number)

        assert service.process.wait(PATIENCE_SECONDS) == 0
    assert written_status(tmp_path, session_id) == "stopped"


def test_requests_in_progress_do_not_prevent_the_service_from_ending(
    settings: dict[str, object], tmp_path: Path
) -> None:
    with running(settings) as service:
        session_id = data(service.create())["id"]
        service.fault("get", "delay", seconds=3600)
        address = ("127.0.0.1", int(httpx.URL(service.url).port or 0))
        with socket.create_connection(address) as connection:
            path = f"{SESSIONS_PATH}/{session_id}"
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            until(
                lambda: len(service.http.get("/testing/requests").json()["data"]) == 2,
                "the slow request",
            )

            assert service.end() == 0
    assert written_status(tmp_path, session_id) == "stopped"


PARENT = """
import subprocess, sys
service = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)
print(service.pid, file=sys.stderr, flush=True)
service.wait()
"""


@pytest.mark.parametrize(
    "lifeline", ["closed with its parent", "held open by another process"]
)
def test_a_service_ends_if_its_parent_is_killed(
    settings: dict[str, object], tmp_path: Path, lifeline: str
) -> None:
    reads, writes = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *COMMAND],
        stdin=reads,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        os.close(reads)
        assert parent.stderr
        pid = int(parent.stderr.readline())
        os.write(writes, json.dumps(settings).encode() + b"\n")
        url = next_event(parent)["url"]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        created = httpx.post(
            url + SESSIONS_PATH,
            headers=headers,
            json={"appId": APP_ID, "platform": "ios"},
        )
        parent.kill()
        if lifeline == "closed with its parent":
            os.close(writes)
        until(lambda: is_gone(pid), "the end of the service")
    if lifeline == "held open by another process":
        os.close(writes)
    assert written_status(tmp_path, data(created)["id"]) == "stopped"


def test_sessions_of_a_killed_service_are_errored_in_the_next(
    settings: dict[str, object],
) -> None:
    with running(settings) as service:
        session_id = data(service.create())["id"]
        service.process.kill()
        service.process.wait(PATIENCE_SECONDS)
    with running(settings) as service:
        session = data(service.get(session_id))

    assert (session["status"], session["remoteConfig"]) == ("errored", None)


FOREGROUND = """
import signal, sys
from pathlib import Path
from pytest_device.service.server import ServiceConfig, serve
state_dir, app_id = sys.argv[1:]
config = ServiceConfig("made-up-token", app_id, Path(state_dir), Path(state_dir), runner="simulated")
before = signal.getsignal(signal.SIGINT)
serve(config, lambda event: print(event.url, flush=True))
print("ended, SIGINT as before:", signal.getsignal(signal.SIGINT) is before, flush=True)
"""


def test_a_service_in_the_foreground_ends_on_ctrl_c_but_not_on_an_ignored_signal(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", FOREGROUND, str(tmp_path / "state"), APP_ID]
    with subprocess.Popen(
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        process.send_signal(signal.SIGHUP)
        assert httpx.get(f"{url}/openapi.json").status_code == 200

        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert (said, process.returncode) == ("ended, SIGINT as before: True\n", 0)


def test_work_before_the_service_is_ready_is_cancelled_at_its_end() -> None:
    undone: list[str] = []

    async def install() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            undone.append("installed half")

    async def scene() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_soon(stop.set)
        await _run_until_stopped(stop, install())

        assert undone == ["installed half"]

    asyncio.run(scene())


def test_responses_are_sent_without_delay() -> None:
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_error_before_the_service_is_ready_is_reported() -> None:
    async def install() -> None:
        raise LookupError("no Node")

    with pytest.raises(LookupError, match="no Node"):
        asyncio.run(_run_until_stopped(asyncio.Event(), install()))


class BrokenRunner(FakeRunner):
    """A runner with an error of its own."""

    def record(self, session_id: str) -> Record:
        raise LookupError(session_id)


def test_a_service_that_cannot_enforce_its_limits_ends() -> None:
    with (
        closing(InProcessService(runner=BrokenRunner(), testing=False)) as service,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        sessions = service.sessions
        sessions.create({"appId": APP_ID, "platform": "ios"}, default_minutes=1)
        until_stopped = serve_requests(
            service.app, listener, sessions, asyncio.Event(), lambda: None
        )
        with pytest.raises(ExceptionGroup) as raised:
            asyncio.run(until_stopped)

    assert raised.group_contains(LookupError)

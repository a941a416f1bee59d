"""Controllers of sessions at the running service: reached through its own address, ended with their sessions."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest

from pytest_device.service.programs.toolchain import Node
from tests import other_user
from tests.service.process import ServiceProcess, config, running
from tests.service.real_session import (
    LIMIT_SECONDS,
    Create,
    Session,
    created,
    creating,
    kill_leftovers,
)
from tests.waiting import eventually

APP: Final = Path(__file__).parent / "devices/app"
BUILD: Final = "c41a7e96-2d83-4b0f-9e15-8a6f3d7c0b24"
NOTES: Final = "com.example.notes"


def settings(directory: Path) -> dict[str, Any]:
    """Return the configuration of a service with one build and nothing installed before it is ready."""
    build = directory / "builds" / BUILD
    build.mkdir(parents=True)
    (build / "app").symlink_to(APP)
    (build / "build.json").write_text(
        json.dumps({"archive": "app", "applicationId": NOTES, "scheme": "notes"})
    )
    return config(
        directory, runner="real", types=[], builds_dir=str(directory / "builds")
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("service")
    yield directory
    kill_leftovers(directory)


@pytest.fixture(scope="module")
def service(directory: Path) -> Iterator[ServiceProcess]:
    with running(settings(directory)) as service:
        yield service
        service.end()


@pytest.fixture
def create(service: ServiceProcess, directory: Path) -> Iterator[Create]:
    """Create sessions on the browser, which are stopped after the test."""
    with creating(service, directory) as create:
        yield create


@pytest.fixture(scope="module")
def shared(
    service: ServiceProcess, directory: Path
) -> Iterator[Callable[[str], Session]]:
    """Provide sessions on the browser by type, each for all tests that leave it as it is: a session takes seconds."""
    sessions: dict[str, Session] = {}

    def get(session_type: str) -> Session:
        if session_type not in sessions:
            session = created(service, directory, type=session_type, buildId=BUILD)
            sessions[session_type] = session
        return sessions[session_type]

    yield get

    for session in sessions.values():
        session.stop()
    for session in sessions.values():
        assert eventually(session.is_gone, LIMIT_SECONDS)


def test_agent_device_drives_only_the_app_of_its_session(create: Create) -> None:
    one, other = (create(type="agent-device", buildId=BUILD) for _ in range(2))
    assert set(one.ready()) == {
        "agentDeviceRemoteSessionUrl",
        "agentDeviceRemoteSessionToken",
        "webPreviewUrl",
    }
    for session in (one, other):
        session.rpc("open", NOTES)

    one.rpc("press", 'label="Add"')

    assert "pressed" in one.labels()
    assert "Add" in other.labels()
    one.rpc("settings", "clear-app-state", NOTES)
    assert one.labels() == []


def test_argent_drives_the_app_of_its_session(
    shared: Callable[[str], Session],
) -> None:
    session = shared("argent")
    assert set(session.ready()) == {"toolsUrl", "toolsAuthToken", "webPreviewUrl"}

    # It gives a browser less than a second to answer, which a busy machine may need more than once.
    assert eventually(lambda: session.tool("list-devices")["devices"], LIMIT_SECONDS)
    (device,) = session.tool("list-devices")["devices"]

    assert "Add" in json.dumps(session.tool("describe", udid=device["id"]))


NODE_THAT_RECORDS: Final = """#!/bin/sh
[ "$1" = -p ] && printf '["24.0.0", "%s"]' "$0" && exit
export NODE_OPTIONS="$NODE_OPTIONS --require {recorder}"
exec "{node}" "$@"
"""
RECORDER: Final = """
const dns = require('node:dns');
const {{ appendFileSync }} = require('node:fs');
const {{ lookup }} = dns;
appendFileSync('{record}', `started ${{process.argv[1]}}\\n`);
dns.lookup = (name, ...rest) => {{
  appendFileSync('{record}', `asked for ${{name}}\\n`);
  return lookup(name, ...rest);
}};
"""


def test_the_programs_of_a_session_ask_for_no_newer_version_of_themselves(
    tmp_path: Path, node: Node
) -> None:
    record, recorder = tmp_path / "record", tmp_path / "recorder.cjs"
    recorder.write_text(RECORDER.format(record=record))
    program = tmp_path / "bin/node"
    program.parent.mkdir()
    text = NODE_THAT_RECORDS.format(recorder=recorder, node=node.executable)
    program.write_text(text)
    program.chmod(0o755)
    (tmp_path / "lib").symlink_to(node.executable.parents[1] / "lib")
    path = f"{program.parent}:{os.environ['PATH']}"

    with (
        running(settings(tmp_path), env={**os.environ, "PATH": path}) as service,
        creating(service, tmp_path) as create,
    ):
        types = ("appium", "agent-device", "argent")
        sessions = [create(type=name, buildId=BUILD) for name in types]
        for session in sessions:
            session.ready()

    lines = record.read_text().splitlines()
    for script in ("appium/index.js", "/daemon.js", "/tool-server.cjs"):
        assert any(line.endswith(script) for line in lines), lines
    asked = {line for line in lines if line.startswith("asked for ")}
    assert asked <= {"asked for localhost"}


def test_a_session_without_a_controller_has_only_a_preview(
    shared: Callable[[str], Session],
) -> None:
    preview = shared("web-preview-only").ready()

    assert set(preview) == {"webPreviewUrl"}
    assert httpx.get(preview["webPreviewUrl"]).status_code == 200


@pytest.mark.parametrize(
    ("session_type", "name", "said", "picture"),
    [
        (
            "agent-device",
            "daemon.js",
            "agent-device exited unexpectedly: killed by SIGKILL",
            "image/jpeg",
        ),
        pytest.param(
            "argent",
            "cli.js",
            "argent exited unexpectedly: killed by SIGKILL",
            "image/jpeg",
            marks=pytest.mark.nightly,
        ),
        (
            "web-preview-only",
            "--user-data-dir",
            "the browser exited unexpectedly: killed by SIGKILL",
            "application/json",  # an error: nobody saw the screen before
        ),
    ],
)
def test_a_killed_program_ends_the_others_of_its_session_which_keeps_its_last_picture(
    create: Create, session_type: str, name: str, said: str, picture: str
) -> None:
    session = create(type=session_type)
    session.ready()

    # Of a program and those it has started, the first.
    min(session.processes(name), key=psutil.Process.create_time).kill()

    assert said in session.errored()
    shown = session.service.http.get(f"/sessions/{session.id}/picture")
    assert shown.headers["Content-Type"] == picture
    assert eventually(session.is_gone, LIMIT_SECONDS)


def test_the_log_of_the_service_has_no_token_and_no_key(
    shared: Callable[[str], Session], directory: Path
) -> None:
    session = shared("argent")
    remote = session.ready()
    session.tool("list-devices")

    log = (directory / "service.log").read_text()
    assert session.id in log
    assert remote["toolsAuthToken"] not in log
    assert remote["toolsUrl"].rpartition("/")[2] not in log


def test_a_session_that_reaches_its_limit_leaves_nothing(create: Create) -> None:
    session = create(type="agent-device")
    address = session.ready()["agentDeviceRemoteSessionUrl"]

    session.service.http.post(
        f"/testing/sessions/{session.id}/expire"
    ).raise_for_status()

    assert session.facts["status"] == "stopped"
    assert httpx.get(f"{address}/health").status_code == 404
    assert eventually(session.is_gone, LIMIT_SECONDS)


@pytest.mark.parametrize(
    ("number", "types"),
    [
        (signal.SIGTERM, ["argent", "web-preview-only"]),
        (signal.SIGKILL, ["appium", "agent-device", "argent", "web-preview-only"]),
    ],
)
def test_a_service_that_is_terminated_or_killed_leaves_nothing(
    number: signal.Signals, types: Sequence[str], tmp_path: Path
) -> None:
    with running(settings(tmp_path)) as service:
        sessions = [
            created(service, tmp_path, type=session_type) for session_type in types
        ]
        for session in sessions:
            session.ready()
            assert session.processes()
        service.process.send_signal(number)
        service.process.wait(LIMIT_SECONDS)

    if number == signal.SIGTERM:  # it waits for the end of its programs itself
        assert [session.is_gone() for session in sessions] == [True] * len(sessions)
    for session in sessions:
        assert eventually(session.is_gone, LIMIT_SECONDS)


KNOCK: Final = """
for port in json.loads(sys.stdin.read()):
    for method, path, body in (
        ("GET", "/json/version", ""), ("GET", "/json/list", ""), ("PUT", "/json/new", ""), ("GET", "/status", ""),
        ("POST", "/session", '{"capabilities": {"alwaysMatch": {"platformName": "Android"}}}'),
        ("GET", "/sessions", ""), ("GET", "/tools", ""), ("POST", "/tools/list-devices", "{}"),
        ("POST", "/rpc", '{"jsonrpc": "2.0", "id": 1, "method": "agent_device.command", "params": {}}'),
        ("POST", "/api/command", '{"action": "tab_list"}'), ("GET", "/api/tabs", ""),
        ("GET", "/", "upgrade"),
    ):
        head = f"{method} {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n"
        if body == "upgrade":
            head += "Connection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n"
            head += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n"
        else:
            head += f"Content-Type: text/plain\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as knocking:
            knocking.sendall(head.encode())
            print(port, method, path, *knocking.recv(4096).decode(errors="replace").split(" ")[1:2])
"""


def knocked(ports: Sequence[int]) -> list[str]:
    """Send requests to ports as another user; return those that were not refused."""
    answers = other_user.run(KNOCK, json.dumps(ports))
    assert len(answers.splitlines()) == 12 * len(ports)
    return [
        line
        for line in answers.splitlines()
        if not re.search(r" 4\d\d$|/[\w-]*$", line)
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has network namespaces")
@pytest.mark.parametrize(
    ("session_type", "use"),
    [
        ("appium", Session.driver),
        (
            "agent-device",
            lambda session: session.rpc("open", f"{session.service.url}/openapi.json"),
        ),
        ("argent", lambda session: session.tool("list-devices")),
        ("web-preview-only", Session.ready),
    ],
)
def test_another_user_of_the_machine_cannot_access_a_session(
    shared: Callable[[str], Session],
    session_type: str,
    use: Callable[[Session], object],
) -> None:
    session = shared(session_type)
    use(session)

    ports = session.ports()

    assert httpx.URL(session.service.url).port in ports
    assert knocked(ports) == []


@pytest.fixture
def screen(shared: Callable[[str], Session]) -> Session:
    """Provide a session of agent-device with the app just started."""
    agent = shared("agent-device")
    agent.rpc("open", NOTES, relaunch=True)
    assert "Add" in agent.labels()
    return agent


def ref_of(screen: Session, label: str) -> str:
    nodes = screen.rpc("snapshot")["nodes"]
    return f"@{next(node['ref'] for node in nodes if node.get('label') == label)}"


@pytest.mark.parametrize("flags", [{}, {"settle": True}])
def test_an_agent_presses_a_reference(screen: Session, flags: Any) -> None:
    screen.rpc("press", ref_of(screen, "Add"), **flags)

    assert "pressed" in screen.labels()


def test_an_agent_presses_what_it_finds(screen: Session) -> None:
    screen.rpc("find", "Add", "click")

    assert "pressed" in screen.labels()


def test_a_view_outside_the_window_is_not_pressed(screen: Session) -> None:
    """No tap would reach it: on a phone the daemon refuses it too."""
    screen.rpc("open", "notes:///?below")

    with pytest.raises(AssertionError, match="not found or has no bounds"):
        screen.rpc("press", ref_of(screen, "Below"))


def test_steps_of_a_batch_open_apps_and_press_references(screen: Session) -> None:
    ref = ref_of(screen, "Add")
    steps = [("open", [NOTES]), ("snapshot", []), ("press", [ref])]

    screen.rpc(
        "batch",
        batchSteps=[
            {"command": command, "positionals": positionals, "flags": {}}
            for command, positionals in steps
        ],
    )

    assert "pressed" in screen.labels()


def test_a_script_for_a_phone_is_replayed(screen: Session) -> None:
    ref = ref_of(screen, "Add")
    script = f"context platform=android\nopen {NOTES}\nsnapshot -i\npress {ref}\n"
    source = {"entry": "a.ad", "files": {"a.ad": script}}

    done = screen.rpc("replay", "a.ad", replayScriptSource=source)

    assert done["replayed"] == 3
    assert "pressed" in screen.labels()


def test_an_app_that_is_not_installed_is_named_in_a_batch(screen: Session) -> None:
    step = {"command": "open", "positionals": ["org.example.other"], "flags": {}}

    with pytest.raises(AssertionError, match=r"step 1 \(open\): org.example.other is"):
        screen.rpc("batch", batchSteps=[step])

"""``pytest-device serve``: what it prints, how it ends."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from pytest_device.errors import NotFoundError
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.request import SessionRequest
from tests.cli.running import COMMAND, run
from tests.waiting import eventually


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@contextmanager
def served(state_dir: Path, **environ: str) -> Generator[subprocess.Popen[str]]:
    service = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--state-dir", str(state_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        yield service
    finally:
        service.terminate()
        service.communicate(timeout=60)


@pytest.fixture
def serving(state_dir: Path) -> Generator[subprocess.Popen[str]]:
    with served(state_dir) as service:
        yield service


def announced(service: subprocess.Popen[str]) -> str:
    """Return the service's output up to its instructions."""
    lines: list[str] = []
    for line in service.stdout or ():
        lines.append(line)
        if line.strip() == "pytest":
            break
    return "".join(lines)


def environment(text: str) -> dict[str, str]:
    """Run the printed exports in a shell, as a user would."""
    exports = "\n".join(
        line for line in text.splitlines() if line.lstrip().startswith("export")
    )
    shown = subprocess.run(
        ["sh", "-c", f"{exports}\nenv"],
        capture_output=True,
        text=True,
        check=True,
        env={},
    ).stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def test_its_output_configures_a_client(serving: subprocess.Popen[str]) -> None:
    env = environment(announced(serving))

    request = SessionRequest.from_arguments(
        app_id=env["DEVICE_APP_ID"], platform="ios", type="argent"
    )
    with DeviceClient(env["DEVICE_URL"], env["DEVICE_TOKEN"]) as client:
        session = client.create(request)
        assert client.stop(session.id).status in {"stopped", "errored"}


def test_it_prints_a_line_for_each_state_of_a_session(
    serving: subprocess.Popen[str],
) -> None:
    env = environment(announced(serving))
    named = {"platform": "ios", "type": "web-preview-only", "name": "one\x1b[31m"}
    request = SessionRequest.from_arguments(
        app_id=env["DEVICE_APP_ID"], device_identifier="Pixel 99", **named
    )
    with DeviceClient(env["DEVICE_URL"], env["DEVICE_TOKEN"]) as client:
        session = client.create(request)
        assert eventually(lambda: client.get(session.id).status == "errored")
    _blank, *lines = islice(serving.stdout or (), 3)
    short = str(session.id)[:8]

    assert re.fullmatch(
        rf"\d\d:\d\d:\d\d session {short} starting: ios web-preview-only, one\\x1b\[31m\n",
        lines[0],
    )
    assert re.fullmatch(
        rf"\d\d:\d\d:\d\d session {short} failed: deviceIdentifier 'Pixel 99' .*\n",
        lines[1],
    )


def test_the_token_is_in_a_private_file_and_not_on_the_screen(
    serving: subprocess.Popen[str], state_dir: Path
) -> None:
    text = announced(serving)
    token = (state_dir / "token").read_text()

    assert token not in text
    assert stat.S_IMODE((state_dir / "token").stat().st_mode) == 0o600
    assert token not in " ".join(
        map(str, serving.args if isinstance(serving.args, list) else [])
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_exits_with_status_0_and_removes_its_token(
    serving: subprocess.Popen[str], state_dir: Path, number: signal.Signals
) -> None:
    announced(serving)

    serving.send_signal(number)

    assert serving.wait(60) == 0
    assert not (state_dir / "token").exists()


def test_each_start_has_a_new_token(
    serving: subprocess.Popen[str], state_dir: Path
) -> None:
    announced(serving)
    first = (state_dir / "token").read_text()
    serving.send_signal(signal.SIGINT)
    serving.wait(60)
    command = [*COMMAND, "serve", "--port", "0", "--state-dir", str(state_dir)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as again:
        announced(again)
        second = (state_dir / "token").read_text()
        again.send_signal(signal.SIGINT)

    assert first != second


def test_a_second_service_for_the_same_directory_is_refused(
    serving: subprocess.Popen[str], state_dir: Path
) -> None:
    announced(serving)

    second = run("serve", "--port", "0", "--state-dir", str(state_dir))

    assert second.returncode == 2
    assert "another" in second.stderr
    assert (state_dir / "token").exists()


def test_a_port_in_use_is_reported_with_the_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port), "--state-dir", str(tmp_path))

    assert result.returncode == 2
    assert re.fullmatch(rf".*port {port} .*in use.*another port.*\n", result.stderr)


def test_with_json_it_prints_one_line_when_it_is_ready(state_dir: Path) -> None:
    command = [
        *COMMAND,
        "serve",
        "--json",
        "--port",
        "0",
        "--state-dir",
        str(state_dir),
    ]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        line = service.stdout.readline() if service.stdout else ""
        ready = json.loads(line)
        token = Path(ready["token_path"]).read_text()
        with DeviceClient(ready["url"], token) as client, pytest.raises(NotFoundError):
            client.get(uuid4())
        service.send_signal(signal.SIGINT)
        rest = service.communicate(timeout=60)[0]

    assert ready.keys() == {"url", "app_id", "token_path", "state_dir"}
    assert ready["state_dir"] == str(state_dir)
    assert token not in line
    assert rest == ""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            ("--app-id", "42"),
            ("--port", "70000"),
            ("--port", "-1"),
            ("--port", "http"),
        ),
        *(("--builds-dir", "/no/such/directory"), ("--builds-dir", __file__)),
        *(
            ("--host", "0.0.0.0"),
            ("--host", "::"),
            ("--host", ""),
            ("--host", "devices.example"),
        ),
    ],
)
def test_a_wrong_option_is_reported_with_its_value_before_anything_starts(
    state_dir: Path, option: str, value: str
) -> None:
    result = run("serve", "--state-dir", str(state_dir), option, value)

    assert result.returncode == 2
    assert repr(value) in result.stderr
    assert not state_dir.exists()


SWITCHES = [
    "DEVICE_LOCAL_REAL",
    "DEVICE_LOCAL_REQUIRE_ISOLATION",
    "DEVICE_LOCAL_SELENIUM_MANAGER",
]


@pytest.mark.parametrize("variable", SWITCHES)
def test_a_wrong_switch_in_the_environment_concerns_no_other_command(
    state_dir: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "maybe")

    result = run("serve", "--state-dir", str(state_dir))
    help_result = run("--help")

    assert result.returncode == 2
    assert f"{variable}='maybe' must be true or false\n" in result.stderr
    assert not state_dir.exists()
    assert (help_result.returncode, help_result.stderr) == (0, "")


@pytest.mark.parametrize(
    "word", ["0", pytest.param("false", marks=pytest.mark.nightly)]
)
def test_a_switch_in_the_environment_can_be_off(state_dir: Path, word: str) -> None:
    with served(state_dir, DEVICE_LOCAL_REAL=word) as service:
        env = environment(announced(service))
        request = SessionRequest.from_arguments(
            app_id=env["DEVICE_APP_ID"],
            platform="ios",
            type="web-preview-only",
            device_identifier="chromium",
        )

        with DeviceClient(env["DEVICE_URL"], env["DEVICE_TOKEN"]) as client:
            assert client.stop(client.create(request).id).status == "stopped"


def test_for_a_non_loopback_address_it_names_the_valid_ones() -> None:
    assert "127.0.0.1, ::1 or localhost" in run("serve", "--host", "0.0.0.0").stderr


def test_it_listens_on_this_machine_only(serving: subprocess.Popen[str]) -> None:
    url = environment(announced(serving))["DEVICE_URL"]

    assert url.startswith("http://127.0.0.1:")
    assert (
        httpx.get(url, headers={"Host": "devices.example"}, trust_env=False).status_code
        == 421
    )

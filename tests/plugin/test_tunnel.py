"""Services that devices on other machines reach through a tunnel."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_device.tunnel
from pytest_device.plugin.provider import reach
from pytest_device.testing import FaultyService
from tests.fakes.programs import FakeProgram
from tests.waiting import eventually

TUNNEL = """
import os, pathlib, socket, sys, threading

port = int(sys.argv[1])
pathlib.Path(sys.argv[2]).open("a").write(f"{os.getpid()}\\n")
listener = socket.create_server(("127.0.0.1", 0))
print("see https://tunnel.invalid/docs.", flush=True)
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
sys.stdout.buffer.write(f"│**{url}**│ Ctrl-C to end: ".encode())
sys.stdout.flush()

def passes(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)

while True:
    client, _ = listener.accept()
    service = socket.create_connection(("127.0.0.1", port))
    for pair in ((client, service), (service, client)):
        threading.Thread(target=passes, args=pair, daemon=True).start()
"""
SUITE = """
import httpx
import pytest

pytestmark = pytest.mark.device(platform="android", type="web-preview-only")


def test_all_services_are_public(
    device_session, device_update_service, device_push_endpoint, device_identity_provider
):
    issuer = device_identity_provider.issuer
    assert not issuer.startswith(device_identity_provider.local_url)
    found = httpx.get(f"{issuer}/.well-known/openid-configuration").json()
    assert found["issuer"] == issuer
    assert device_identity_provider.sign_in("user")

    assert httpx.get(device_update_service.url).status_code == 400
    assert httpx.post(f"{device_push_endpoint.base_url}nowhere").status_code == 404
    bases = [issuer, device_update_service.url, device_push_endpoint.base_url]
    assert len({httpx.URL(base).port for base in bases}) == 1
"""


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """The file to which tunnels write their process IDs."""
    return tmp_path / "pids"


def command(pids: Path) -> str:
    script = pids.with_name("tunnel.py")
    script.write_text(TUNNEL)
    return f"{sys.executable} {script} {{port}} {pids}"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ended(pids: Path) -> bool:
    return not any(map(is_running, map(int, pids.read_text().split())))


def test_devices_reach_all_services_through_one_tunnel_that_ends_with_the_run(
    pytester: pytest.Pytester, service: FaultyService, pids: Path
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest(f"--device-tunnel={command(pids)}")

    result.assert_outcomes(passed=1)
    assert len(pids.read_text().split()) == 1
    assert eventually(lambda: ended(pids))
    assert service.statuses() == ["stopped"]


def test_workers_share_the_providers_tunnel_if_they_share_the_provider(
    pytester: pytest.Pytester, service: FaultyService, pids: Path
) -> None:
    del service
    pytester.makepyfile(test_it=SUITE)
    options = ["-n1", "--device-identity-scope=run"]

    result = pytester.runpytest_subprocess(f"--device-tunnel={command(pids)}", *options)

    result.stdout.fnmatch_lines(
        ["*assert len({httpx.URL(base).port for base in bases}) == 1*"]
    )
    assert len(pids.read_text().split()) == 2  # the coordinator's and the worker's
    assert eventually(lambda: ended(pids))


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('no')", "*ended with status 0. It printed: no. No device was created*"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("raise SystemExit(3)", "*ended with status 3. It printed: nothing.*"),
                ("input()", "*ended with status 1.*EOF*"),
            )
        ),
    ],
)
def test_a_tunnel_that_ends_at_once_costs_no_device(
    pytester: pytest.Pytester,
    service: FaultyService,
    tmp_path: Path,
    program: str,
    problem: str,
) -> None:
    script = tmp_path / "broken.py"
    script.write_text(program)

    assert_refused(pytester, service, script, problem)


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        ("ready", "*printed no URL within * s. It printed: ready.*"),
        ("OTHER/", "*leads nowhere: http://127.0.0.1:*: status 4*"),
        pytest.param(
            "http://127.0.0.1:9",
            "*leads nowhere: http://127.0.0.1:9: *Connection refused*",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_tunnel_that_leads_nowhere_costs_no_device(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    printed: str,
    problem: str,
) -> None:
    # Long enough for the script to start, on a busy machine, too.
    monkeypatch.setattr(pytest_device.tunnel, "START_SECONDS", 4.0)
    script = tmp_path / "broken.py"
    url = printed.replace("OTHER", service.url)
    # Without a line break, as a prompt.
    code = f"import time; print({url!r}, end='', flush=True); time.sleep(60)"
    script.write_text(code)

    assert_refused(pytester, service, script, problem)


def assert_refused(
    pytester: pytest.Pytester, service: FaultyService, script: Path, problem: str
) -> None:
    """Run the suite with this tunnel; it must fail for this reason, and create no device."""
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest(f"--device-tunnel={sys.executable} {script} {{port}}")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*config: {problem}"])
    assert service.statuses() == []


def test_a_tunnel_that_fails_is_started_once(
    pytester: pytest.Pytester, service: FaultyService, tmp_path: Path
) -> None:
    script = tmp_path / "broken.sh"
    script.write_text(f"echo started >> {tmp_path}/starts\nexit 3\n")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        @pytest.mark.parametrize("number", [1, 2])
        def test_it(device_session, device_update_service, number): pass
    """)

    result = pytester.runpytest(f"--device-tunnel=sh {script} {{port}}")

    result.assert_outcomes(errors=2)
    assert result.stdout.str().count("config: the tunnel 'sh' (device_tunnel)") >= 2
    assert (tmp_path / "starts").read_text() == "started\n"
    assert service.statuses() == []


def test_a_tunnel_that_ends_during_the_run_costs_no_further_device(
    pytester: pytest.Pytester, service: FaultyService, pids: Path
) -> None:
    pytester.makepyfile(
        """
        import pathlib, psutil, pytest
        from tests.waiting import eventually

        pytestmark = pytest.mark.device(platform="android", type="web-preview-only", share="test")

        def test_first(device_session, device_push_endpoint):
            tunnel = psutil.Process(int(pathlib.Path(PIDS).read_text()))
            guard = tunnel.parent()
            tunnel.kill()
            assert eventually(lambda: guard.status() == psutil.STATUS_ZOMBIE)

        def test_without_a_service(device_session): pass

        def test_next(device_session, device_push_endpoint): pass
    """.replace("PIDS", repr(str(pids)))
    )

    result = pytester.runpytest(f"--device-tunnel={command(pids)}")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "config: the tunnel * (device_tunnel) ended with status * during the run. It printed: see *"
        ]
    )
    assert service.statuses() == ["stopped", "stopped"]


def test_a_device_does_not_boot_ahead_of_a_tunnel_that_may_fail(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_PREFETCH", "3")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="ios", type="web-preview-only")
        def test_first(device_session): pass

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_next(device_session, device_push_endpoint): pass
    """)

    result = pytester.runpytest("--device-tunnel=false {port}")

    result.assert_outcomes(passed=1, errors=1)
    assert service.statuses() == ["stopped"]


def test_without_a_tunnel_a_run_on_remote_devices_ends_before_it_creates_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> None:
    del service
    monkeypatch.setenv("DEVICE_URL", "https://devices.invalid")
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*test_it.py:*: test_all_services_are_public: {service} is on this machine, where the devices of "
            f"DEVICE_URL can't reach it: set a tunnel (--device-tunnel, *), override device_tunnel_factory, or return "
            f"public_url from {settings}"
            for service, settings in (
                ("device_identity_provider", "device_identity_settings"),
                ("device_update_service", "device_update_settings"),
                ("device_push_endpoint", "device_push_settings"),
            )
        ]
    )


def test_a_suites_own_tunnel_must_provide_a_url(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> None:
    monkeypatch.setenv("DEVICE_TUNNEL", "unused {port}")
    pytester.makeconftest("""
        import contextlib, pytest

        @pytest.fixture(scope="session")
        def device_tunnel_factory():
            return lambda port: contextlib.nullcontext(None)
    """)
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(
        [
            "*config: device_tunnel_factory provided 'None', which is no http or https URL: yield the tunnel's public URL"
        ]
    )
    assert service.statuses() == []


def test_services_with_a_public_url_of_their_own_need_no_tunnel(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def device_push_settings():
            return {"public_url": "https://push.example/app"}
    """)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(device_session, device_push_endpoint):
            assert device_push_endpoint.base_url == "https://push.example/app/"
    """)

    pytester.runpytest("--device-tunnel=false {port}").assert_outcomes(passed=1)


SETTINGS_WITHOUT_URL = """
import pytest
from pytest_device.auth.provider import Client

@pytest.fixture(scope="session")
def device_identity_settings():
    return {"clients": [Client("app", ["notes://redirect"])]}

@pytest.fixture(scope="session")
def device_update_settings():
    return {}
"""
"""Of a suite that overrides fixtures for something else than the public URL, which collection can't know."""


@pytest.fixture
def remote_service(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> FaultyService:
    """The service, with the run taking it for one on another machine."""
    monkeypatch.setattr(reach, "is_loopback", lambda _host: False)
    return service


@pytest.mark.parametrize(
    ("fixture", "service_fixture"),
    [
        ("device_session", "device_identity_provider"),
        ("class_device_driver", "device_update_service"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("device_session", "device_update_service"),
                ("class_device_driver", "device_identity_provider"),
            )
        ),
    ],
)
def test_settings_without_a_public_url_cost_no_device(
    pytester: pytest.Pytester,
    remote_service: FaultyService,
    fixture: str,
    service_fixture: str,
) -> None:
    pytester.makeconftest(SETTINGS_WITHOUT_URL)
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.device(platform="android", type="appium", share="run")
        class TestIt:
            def test_it(self, {fixture}, {service_fixture}): pass
    """)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{service_fixture} is on this machine, *"])
    assert remote_service.statuses() == []


def test_a_tunnel_that_fails_costs_no_device_that_tests_share(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="appium", share="run")
        class TestIt:
            def test_it(self, class_device_driver, device_update_service): pass
    """)

    result = pytester.runpytest("--device-tunnel=false {port}")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["config: the tunnel 'false' (device_tunnel) ended *"])
    assert service.statuses() == []


def test_a_service_that_a_test_requests_while_it_runs_must_be_reachable(
    pytester: pytest.Pytester, remote_service: FaultyService
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(request, device_session):
            request.getfixturevalue("device_update_service")

        def test_without_a_device(device_update_service): pass
    """)

    result = pytester.runpytest()

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["*ConfigError: device_update_service is on this machine, *"]
    )
    assert remote_service.statuses() == ["stopped"]


def test_settings_may_depend_on_the_device(
    pytester: pytest.Pytester, remote_service: FaultyService
) -> None:
    pytester.makeconftest("""
        import pytest

        @pytest.fixture
        def device_update_settings(device_session):
            host = f"{device_session.platform}.example"
            return {"public_url": f"https://{host}"} if "android" in host else {}
    """)
    pytester.makepyfile("""
        import pytest

        pytestmark = pytest.mark.device(platform=["android", "ios"], type="web-preview-only")

        def test_it(device_session, device_update_service):
            assert device_update_service.url.startswith("https://android.example")
    """)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*device_update_service is on this machine, *"])
    assert remote_service.statuses() == ["stopped", "stopped"]


def test_a_killed_run_leaves_no_tunnel(
    pytester: pytest.Pytester, service: FaultyService, pids: Path
) -> None:
    del service
    pytester.makepyfile("""
        import pathlib, pytest, time

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(device_session, device_push_endpoint):
            pathlib.Path("in_test").touch()
            time.sleep(60)
    """)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", f"--device-tunnel={command(pids)}"],
        cwd=pytester.path,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert eventually((pytester.path / "in_test").exists)
    finally:
        os.killpg(run.pid, signal.SIGKILL)  # as a CI system does: with its children
        run.wait()

    assert eventually(lambda: ended(pids))


def test_a_tunnel_ends_with_the_children_of_its_command(
    pytester: pytest.Pytester, service: FaultyService, pids: Path
) -> None:
    del service
    script = pids.with_name("start.sh")
    tunnel = command(pids).replace("{port}", "$1")
    started = f"while ! [ -s {pids} ]; do sleep 0.05; done"
    script.write_text(f"{tunnel} &\n{started}\nexit 3\n")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(device_session, device_push_endpoint): pass
    """)

    pytester.runpytest(f"--device-tunnel=sh {script} {{port}}")

    assert eventually(lambda: ended(pids))


@pytest.mark.parametrize(
    ("udid", "platform", "expected"),
    [
        ("emulator-5554", "android", ["reverse", "reverse --remove"]),
        *(
            pytest.param(*case, [], marks=pytest.mark.nightly)
            for case in (("chromium-cdp-1", "android"), ("8F1C", "ios"))
        ),
    ],
)
def test_an_emulator_reaches_the_services_while_a_test_has_it(
    pytester: pytest.Pytester,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    udid: str,
    platform: str,
    expected: list[str],
) -> None:
    adb = FakeProgram.made(tmp_path / "bin/adb")
    monkeypatch.setenv("PATH", f"{adb.path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UDID", udid)
    pytester.makepyfile("""
        import os, pytest
        from pytest_device import Session
        from pytest_device.plugin.options import settings_of
        from pytest_device.plugin.provider.reach import forwarded

        def test_it(request, device_push_endpoint):
            session = Session.model_validate({
                "id": "6c1f0f9e-0d5c-4a86-9f2e-7f2f1f0f9e0d", "status": "in-progress", "type": "appium",
                "platform": os.environ["DEVICE_PLATFORM"],
                "remoteConfig": {
                    "appiumUrl": "http://127.0.0.1:1", "capabilities": {"appium:udid": os.environ["UDID"]},
                },
            })
            print(device_push_endpoint.local_url)
            with forwarded(request.config, settings_of(request.config), [session]):
                pass
    """)
    monkeypatch.setenv("DEVICE_PLATFORM", platform)

    result = pytester.runpytest("--device-local", "-rP")

    result.assert_outcomes(passed=1)
    port = result.stdout.str().partition("http://127.0.0.1:")[2].split()[0]
    both = {"reverse": f" tcp:{port} tcp:{port}", "reverse --remove": f" tcp:{port}"}
    assert adb.asked == [f"-s {udid} {word}{both[word]}" for word in expected]

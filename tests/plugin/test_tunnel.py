"""Services that devices on other machines reach at a public URL."""

import os
from pathlib import Path

import pytest

import pytest_device.tunnel
from pytest_device.plugin.provider import reach
from pytest_device.testing import FaultyService
from tests.fakes.programs import FakeProgram

TUNNEL = """
import contextlib, socket, threading
import pytest

def passes(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

def connects(client, port):
    with client, socket.create_connection(("127.0.0.1", port)) as service:
        replies = threading.Thread(target=passes, args=(service, client), daemon=True)
        replies.start()
        passes(client, service)
        replies.join()

def relays(listener, port):
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=connects, args=(client, port), daemon=True).start()

@contextlib.contextmanager
def tunnel(port):
    with open("tunnels", "a") as log, socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=relays, args=(listener, port), daemon=True).start()
        log.write("opened\\n")
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        log.write("closed\\n")

@pytest.fixture(scope="session")
def device_tunnel_factory():
    return tunnel
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
def remote_service(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> FaultyService:
    """The service, with the run taking it for one on another machine."""
    monkeypatch.setattr(reach, "is_loopback", lambda _host: False)
    return service


def test_devices_reach_all_services_through_one_tunnel_that_ends_with_the_run(
    pytester: pytest.Pytester, remote_service: FaultyService
) -> None:
    pytester.makeconftest(TUNNEL)
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    assert pytester.path.joinpath("tunnels").read_text() == "opened\nclosed\n"
    assert remote_service.statuses() == ["stopped"]


def test_devices_reach_all_services_at_a_public_url_of_each_port(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("--device-public-url=http://127.0.0.1:{port}/")

    result.assert_outcomes(passed=1)
    assert service.statuses() == ["stopped"]


def test_a_public_url_names_the_worker(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makepyfile("""
        def test_it(device_tunnel_factory):
            with device_tunnel_factory(80) as url:
                assert url == "https://gw0-80.tests.example"
    """)

    url = "https://{worker}-{port}.tests.example"
    result = pytester.runpytest_subprocess("-n1", f"--device-public-url={url}")

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("leads_to", ["nothing", "another server"])
def test_a_public_url_that_leads_elsewhere_costs_no_device_and_is_tried_once(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    leads_to: str,
) -> None:
    monkeypatch.setattr(pytest_device.tunnel, "START_SECONDS", 0.0)
    url = "http://127.0.0.1:1" if leads_to == "nothing" else service.url
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        @pytest.mark.parametrize("number", [1, 2])
        def test_it(device_session, device_update_service, number): pass
    """)

    result = pytester.runpytest(f"--device-public-url={url}/{{port}}")

    result.assert_outcomes(errors=2)
    problem = "config: the public URL of the services leads nowhere: http://127.0.0.1:*"
    result.stdout.fnmatch_lines([f"*{problem}", f"*{problem}"])
    assert service.statuses() == []


def test_a_device_does_not_boot_ahead_of_a_public_url_that_may_fail(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_device.tunnel, "START_SECONDS", 0.0)
    monkeypatch.setenv("DEVICE_PREFETCH", "3")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="ios", type="web-preview-only")
        def test_first(device_session): pass

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_next(device_session, device_push_endpoint): pass
    """)

    result = pytester.runpytest("--device-public-url=http://127.0.0.1:1/{port}")

    result.assert_outcomes(passed=1, errors=1)
    assert service.statuses() == ["stopped"]


def test_without_a_public_url_a_run_on_remote_devices_ends_before_it_creates_one(
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
            f"DEVICE_URL can't reach it: set its public URL (--device-public-url, *), override device_tunnel_factory, or return "
            "its public_url from device_service_settings"
            for service in (
                "device_identity_provider",
                "device_update_service",
                "device_push_endpoint",
            )
        ]
    )


def test_a_suites_own_tunnel_must_provide_a_url(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> None:
    monkeypatch.setenv("DEVICE_PUBLIC_URL", "http://unused.example/{port}")
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


def test_services_with_a_public_url_of_their_own_need_no_other(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def device_service_settings():
            return {"device_push_endpoint": {"public_url": "https://push.example/app"}}
    """)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(device_session, device_push_endpoint):
            assert device_push_endpoint.base_url == "https://push.example/app/"
    """)

    pytester.runpytest("--device-public-url=http://127.0.0.1:1/{port}").assert_outcomes(
        passed=1
    )


SETTINGS_WITHOUT_URL = """
import pytest
from pytest_device.auth.provider import Client

@pytest.fixture(scope="session")
def device_service_settings():
    return {"device_identity_provider": {"clients": [Client("app", ["notes://redirect"])]}}
"""
"""Of a suite that overrides the fixture for something else than the public URL, which collection can't know."""


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

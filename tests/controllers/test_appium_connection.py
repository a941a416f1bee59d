"""The connection to an Appium server: timeouts, no secrets in its log, and direct connections."""

import base64
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_device.controllers.appium.connection import (
    DriverPolicy,
    connect_directly,
    url_of,
)
from pytest_device.controllers.appium.drivers import driver
from pytest_device.errors import ControllerError
from tests.controllers.appium_servers import DONE, appium, session_on
from tests.fakes.http_server import ScriptedServer, scripted_server

BASIC = f"Basic {base64.b64encode(b'ada:open sesame').decode()}"


@pytest.fixture
def nearer() -> Generator[ScriptedServer]:
    """Provide the server for direct connections."""
    with scripted_server() as server:
        server.answer = lambda _call: DONE
        yield server


def _named(server: ScriptedServer, prefix: str = "", **changes: Any) -> dict[str, Any]:
    parts = {
        "Protocol": "http",
        "Host": "127.0.0.1",
        "Port": server.server_port,
        "Path": "/wd",
    } | changes
    return {f"{prefix}directConnect{name}": value for name, value in parts.items()}


@pytest.mark.parametrize("prefix", ["", "appium:"])
def test_a_driver_continues_at_the_url_that_its_server_returns(
    controller: ScriptedServer, nearer: ScriptedServer, prefix: str
) -> None:
    controller.answer = appium(_named(nearer, prefix))

    with driver(session_on(controller), {}) as driven:
        assert driven.page_source is None

    assert [path for path, _ in controller.asked] == ["/session"]
    assert [path for path, _ in nearer.asked] == [
        "/wd/session/1/source",
        "/wd/session/1",
    ]


def test_limits_credentials_and_proxy_bypass_apply_there_too(
    controller: ScriptedServer, nearer: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    controller.answer = appium(_named(nearer))
    url = controller.url.replace("//", "//ada:open%20sesame@")
    config = {"appiumUrl": url, "capabilities": {}}

    with driver(
        session_on(controller, remoteConfig=config),
        {},
        policy=DriverPolicy(timeout_seconds=77),
    ) as driven:
        limits = driven.command_executor.client_config
        assert limits.timeout == 77
        assert limits.init_args_for_pool_manager == {
            "init_args_for_pool_manager": {"retries": False}
        }

    assert {
        authorization for _, authorization in [*controller.asked, *nearer.asked]
    } == {BASIC}


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_driver_trusts_the_authority_that_the_environment_names(
    controller: ScriptedServer,
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller.use_own_tls(tmp_path / "ca.pem")
    controller.answer = appium()
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "ca.pem"))

    with driver(session_on(controller), {}) as driven:
        assert driven.page_source is None


def test_a_driver_trusts_the_directory_of_authorities_that_the_environment_names(
    controller: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.answer = appium()
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    with driver(session_on(controller), {}) as driven:
        pool = driven.command_executor.client_config.init_args_for_pool_manager[
            "init_args_for_pool_manager"
        ]

    assert pool["ca_cert_dir"] == str(tmp_path)


def test_it_stays_if_the_policy_says_so(
    controller: ScriptedServer, nearer: ScriptedServer
) -> None:
    controller.answer = appium(_named(nearer))

    with driver(
        session_on(controller), {}, policy=DriverPolicy(direct_connection=False)
    ):
        pass

    assert nearer.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"Protocol": "ftp"},
        {"Host": "127.0.0.1:1/x?"},
        {"Host": "evil@127.0.0.1"},
        {"Host": ""},
        {"Port": "many"},
        {"Port": 0},
        {"Path": "/wd?x=1"},
        {"Host": "[::1"},
    ],
)
def test_it_stays_if_the_server_returns_no_usable_url(
    controller: ScriptedServer,
    nearer: ScriptedServer,
    changes: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller.answer = appium(_named(nearer, **changes))

    with driver(session_on(controller), {}) as driven:
        assert url_of(driven) == controller.url

    assert "the driver keeps the first one" in caplog.text


def test_it_never_downgrades_from_tls(
    controller: ScriptedServer, nearer: ScriptedServer
) -> None:
    controller.answer = appium(_named(nearer))

    with driver(
        session_on(controller), {}, policy=DriverPolicy(direct_connection=False)
    ) as driven:
        connect_directly(driven, "https://controller.example/", DriverPolicy())
        assert url_of(driven) == controller.url


@pytest.mark.parametrize("end", ["/", "//", "/wd/hub/", "?x=1", "#x"])
def test_a_base_path_is_kept_and_a_query_or_fragment_refused(
    controller: ScriptedServer, end: str
) -> None:
    controller.answer = appium()
    session = session_on(
        controller,
        remoteConfig={"appiumUrl": f"{controller.url}{end}", "capabilities": {}},
    )
    if end.startswith("/"):
        with driver(session, {}):
            pass
        assert [path for path, _ in controller.asked] == [
            f"{end.rstrip('/')}/session{one}" for one in ("", "/1")
        ]
    else:
        with (
            pytest.raises(ControllerError, match="query or fragment"),
            driver(session, {}),
        ):
            pass
        assert controller.asked == []


def test_the_clients_own_log_contains_no_credentials(
    controller: ScriptedServer, nearer: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    controller.answer = appium(_named(nearer))
    url = controller.url.replace("//", "//ada:open%20sesame@")

    with driver(
        session_on(controller, remoteConfig={"appiumUrl": url, "capabilities": {}}), {}
    ) as driven:
        _ = driven.page_source

    assert {
        authorization for _, authorization in [*controller.asked, *nearer.asked]
    } == {BASIC}
    assert "selenium" in {record.name.partition(".")[0] for record in caplog.records}
    assert not any(
        secret in caplog.text for secret in ("sesame", "ada", BASIC.partition(" ")[2])
    )

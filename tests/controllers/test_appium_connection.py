"""The connection to an Appium server: time limits, authorities, and no secrets in its log."""

import base64
import logging
from pathlib import Path

import pytest

from pytest_device.controllers.appium.connection import (
    DriverPolicy,
)
from pytest_device.controllers.appium.drivers import driver
from pytest_device.errors import ControllerError
from tests.controllers.appium_servers import appium, session_on
from tests.fakes.http_server import ScriptedServer

BASIC = f"Basic {base64.b64encode(b'ada:open sesame').decode()}"


def test_a_driver_has_the_limits_of_its_policy_and_no_proxy_on_this_machine(
    controller: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    controller.answer = appium()
    policy = DriverPolicy(timeout_seconds=77)

    with driver(session_on(controller), {}, policy=policy) as driven:
        limits = driven.command_executor.client_config

    assert limits.timeout == 77
    assert limits.init_args_for_pool_manager == {
        "init_args_for_pool_manager": {"retries": False}
    }


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
    controller: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    controller.answer = appium()
    url = controller.url.replace("//", "//ada:open%20sesame@")

    with driver(
        session_on(controller, remoteConfig={"appiumUrl": url, "capabilities": {}}), {}
    ) as driven:
        _ = driven.page_source

    assert {authorization for _, authorization in controller.asked} == {BASIC}
    assert "selenium" in {record.name.partition(".")[0] for record in caplog.records}
    assert not any(
        secret in caplog.text for secret in ("sesame", "ada", BASIC.partition(" ")[2])
    )

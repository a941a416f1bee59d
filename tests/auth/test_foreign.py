"""The client with a third-party provider, and the provider with a third-party client."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from oauthlib.oauth2 import (
    AccessDeniedError,
    BackendApplicationClient,
    InvalidClientError,
    InvalidGrantError,
    LegacyApplicationClient,
    MismatchingStateError,
    MissingTokenError,
    UnsupportedGrantTypeError,
)
from requests_oauthlib import OAuth2Session

from pytest_device import auth
from pytest_device.auth.provider import IdentityProvider
from pytest_device.errors import TokenError, UnexpectedReplyError
from pytest_device.service.programs.toolchain import Node

HERE: Final = Path(__file__).with_name("foreign")
APP: Final = {"client_id": "app", "redirect_uri": "http://127.0.0.1/callback"}
SERVER: Final = {
    "client_id": "server",
    "redirect_uri": "https://app.example/callback",
    "client_secret": "s p~/+%:x",
}


@pytest.fixture(scope="module")
def running(settings: dict[str, Any]) -> Iterator[IdentityProvider]:
    with IdentityProvider(**settings) as provider:
        yield provider


@pytest.fixture
def provider(running: IdentityProvider) -> IdentityProvider:
    """Provide the module's provider: a new one for each failure would take most of the time."""
    running.clear_failures()
    running.automatic_user = "ada"
    return running


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, node: Node) -> Path:
    directory = tmp_path_factory.mktemp("foreign")
    for path in HERE.iterdir():
        shutil.copy(path, directory)
    install = [*node.npm, "ci", "--ignore-scripts"]
    subprocess.run(install, cwd=directory, check=True)
    return directory


@pytest.fixture(scope="module")
def foreign_issuer(programs: Path, node: Node) -> Iterator[str]:
    command = [str(node.executable), "provider.mjs"]
    with subprocess.Popen(
        command, cwd=programs, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{"):
                break
        yield json.loads(line)["issuer"]
        process.stdin.close()


@pytest.fixture
def foreign(foreign_issuer: str, http: httpx.Client) -> auth.DiscoveryDocument:
    return auth.fetch_discovery(foreign_issuer, client=http)


def authorized(
    config: dict[str, str], discovery: auth.DiscoveryDocument, http: httpx.Client
) -> tuple[dict[str, Any], auth.AuthSessionResult]:
    """Return what the exchange of a code needs, and the result of the authorization request."""
    public = {name: value for name, value in config.items() if name != "client_secret"}
    request = auth.AuthRequest(
        {
            **public,
            "scopes": ["openid", "offline_access"],
            "extra_params": {"prompt": "consent"},
        }
    )

    def browser(url: str, return_url: str) -> str:
        """Follow redirects as a browser does, with cookies, until one leaves the provider."""
        for _ in range(10):
            url = str(httpx.URL(url).join(http.get(url).headers["location"]))
            if url.startswith(return_url):
                break
        return url

    result = request.prompt(discovery, browser=browser)
    assert result.type == "success", result.error
    exchange = {**config, "code": result.params["code"], "scopes": ["openid"]}
    return {
        **exchange,
        "extra_params": {"code_verifier": request.code_verifier},
    }, result


@pytest.mark.parametrize("config", [APP, SERVER], ids=["public", "confidential"])
def test_every_flow_works_with_a_third_party_provider(
    config: dict[str, str], foreign: auth.DiscoveryDocument, http: httpx.Client
) -> None:
    exchange, _ = authorized(config, foreign, http)
    credentials: dict[str, str] = {
        name: config[name] for name in ("client_id", "client_secret") if name in config
    }

    tokens = auth.exchange_code(exchange, foreign, client=http)
    assert auth.fetch_user_info(tokens, foreign, client=http)["sub"] == "ada"
    fresh = tokens.refresh(credentials, foreign, client=http)
    assert fresh.refresh_token != tokens.refresh_token
    assert auth.revoke(
        {**credentials, "token": fresh.access_token}, foreign, client=http
    )
    with pytest.raises(UnexpectedReplyError, match="401"):
        auth.fetch_user_info(fresh, foreign, client=http)
    with pytest.raises(TokenError) as reused:
        tokens.refresh(credentials, foreign, client=http)
    assert reused.value.code == "invalid_grant"


@pytest.mark.parametrize(
    ("config", "change", "code"),
    [
        pytest.param(
            APP,
            {"extra_params": {"code_verifier": "x" * 43}},
            "invalid_grant",
            id="verifier",
        ),
        pytest.param(
            APP,
            {"redirect_uri": "http://127.0.0.1/other"},
            "invalid_grant",
            id="redirect URI",
        ),
        pytest.param(APP, {"code": "unknown"}, "invalid_grant", id="code"),
        pytest.param(
            SERVER, {"client_secret": "wrong"}, "invalid_client", id="client secret"
        ),
        pytest.param(APP, {"client_id": "unknown"}, "invalid_client", id="client"),
    ],
)
def test_a_wrong_parameter_is_rejected_by_a_third_party_provider(
    config: dict[str, str],
    change: dict[str, Any],
    code: str,
    foreign: auth.DiscoveryDocument,
    http: httpx.Client,
) -> None:
    exchange, _ = authorized(config, foreign, http)

    with pytest.raises(TokenError) as raised:
        auth.exchange_code({**exchange, **change}, foreign, client=http)

    assert raised.value.code == code


@dataclass
class PythonApp:
    """An app that uses requests-oauthlib."""

    provider: IdentityProvider
    http: httpx.Client
    session: OAuth2Session

    def returned(self) -> str:
        """Return the address that the provider redirects to."""
        url = self.session.authorization_url(f"{self.provider.issuer}/authorize")[0]
        return self.http.get(url).headers["location"]

    def exchange(self, returned: str, **given: Any) -> Any:
        endpoint = f"{self.provider.issuer}/token"
        return self.session.fetch_token(
            endpoint, authorization_response=returned, include_client_id=True, **given
        )

    def refresh(self, **given: Any) -> Any:
        return self.session.refresh_token(
            f"{self.provider.issuer}/token", client_id="app", **given
        )


@pytest.fixture
def python_app(
    provider: IdentityProvider, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PythonApp]:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    scope = ["openid", "profile"]
    with OAuth2Session(
        "app", redirect_uri="myapp://redirect", scope=scope, pkce="S256"
    ) as session:
        yield PythonApp(provider, http, session)


def test_a_python_client_completes_every_flow(python_app: PythonApp) -> None:
    tokens = python_app.exchange(python_app.returned())

    user = python_app.session.get(f"{python_app.provider.issuer}/userinfo").json()
    assert user["name"] == "Ada Lovelace"
    assert python_app.refresh()["access_token"] != tokens["access_token"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code": "unknown", "authorization_response": None}, InvalidGrantError),
        ({"client_secret": "wrong"}, InvalidClientError),
    ],
)
def test_a_python_client_reports_a_wrong_parameter(
    python_app: PythonApp, change: dict[str, Any], error: type[Exception]
) -> None:
    given = {
        "authorization_response": python_app.returned(),
        "include_client_id": True,
        **change,
    }

    with pytest.raises(error):
        python_app.session.fetch_token(f"{python_app.provider.issuer}/token", **given)


def test_a_python_client_reports_a_wrong_verifier(python_app: PythonApp) -> None:
    returned = python_app.returned()
    state = httpx.URL(returned).params["state"]
    # A new verifier.
    python_app.session.authorization_url(
        f"{python_app.provider.issuer}/authorize", state=state
    )

    with pytest.raises(InvalidGrantError):
        python_app.exchange(returned)


def test_a_python_client_reports_a_wrong_refresh_token(python_app: PythonApp) -> None:
    python_app.exchange(python_app.returned())

    with pytest.raises(InvalidGrantError):
        python_app.refresh(refresh_token="unknown")


@pytest.mark.parametrize(
    ("endpoint", "kind", "error"),
    [
        ("authorize", "deny", AccessDeniedError),
        ("authorize", "wrong_state", MismatchingStateError),
        ("authorize", "expired_code", InvalidGrantError),
        ("token", "deny", InvalidGrantError),
        ("token", "server_error", MissingTokenError),
    ],
)
def test_a_python_client_reports_a_failure(
    python_app: PythonApp, endpoint: Any, kind: Any, error: type[Exception]
) -> None:
    python_app.provider.fail(endpoint, kind)

    with pytest.raises(error):
        python_app.exchange(python_app.returned())


@pytest.mark.parametrize(
    "client", [BackendApplicationClient("app"), LegacyApplicationClient("app")]
)
def test_a_python_client_cannot_use_an_unsupported_grant(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    given: Any = (
        {"username": "ada", "password": "x"}
        if isinstance(client, LegacyApplicationClient)
        else {}
    )

    with (
        OAuth2Session(client=client) as session,
        pytest.raises(UnsupportedGrantTypeError),
    ):
        session.fetch_token(f"{provider.issuer}/token", include_client_id=True, **given)

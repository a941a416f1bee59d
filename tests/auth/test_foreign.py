"""The client at a provider, and the provider with a client, that do not know this project."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from oauthlib.oauth2 import InvalidGrantError
from requests_oauthlib import OAuth2Session

from pytest_device import auth
from pytest_device.auth.provider import IdentityProvider
from pytest_device.errors import TokenError, UnexpectedReplyError

HERE: Final = Path(__file__).with_name("foreign")
APP: Final = {"client_id": "app", "redirect_uri": "http://127.0.0.1/callback"}
SERVER: Final = {"client_id": "server", "redirect_uri": "https://app.example/callback", "client_secret": "s p~/+%:x"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("foreign")
    for path in HERE.iterdir():
        shutil.copy(path, directory)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory, check=True)
    return directory


@pytest.fixture(scope="module")
def foreign_issuer(programs: Path) -> Iterator[str]:
    command = ["node", "provider.mjs"]
    with subprocess.Popen(command, cwd=programs, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
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
        {**public, "scopes": ["openid", "offline_access"], "extra_params": {"prompt": "consent"}}
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
    return {**exchange, "extra_params": {"code_verifier": request.code_verifier}}, result


@pytest.mark.parametrize("config", [APP, SERVER], ids=["public", "confidential"])
def test_every_flow_works_at_a_provider_of_another_make(
    config: dict[str, str], foreign: auth.DiscoveryDocument, http: httpx.Client
) -> None:
    exchange, _ = authorized(config, foreign, http)
    credentials: dict[str, str] = {name: config[name] for name in ("client_id", "client_secret") if name in config}

    tokens = auth.exchange_code(exchange, foreign, client=http)
    assert auth.fetch_user_info(tokens, foreign, client=http)["sub"] == "ada"
    fresh = tokens.refresh(credentials, foreign, client=http)
    assert fresh.refresh_token != tokens.refresh_token
    assert auth.revoke({**credentials, "token": fresh.access_token}, foreign, client=http)
    with pytest.raises(UnexpectedReplyError, match="401"):
        auth.fetch_user_info(fresh, foreign, client=http)
    with pytest.raises(TokenError) as reused:
        tokens.refresh(credentials, foreign, client=http)
    assert reused.value.code == "invalid_grant"


@pytest.mark.parametrize(
    ("config", "change", "code"),
    [
        pytest.param(APP, {"extra_params": {"code_verifier": "x" * 43}}, "invalid_grant", id="verifier"),
        pytest.param(APP, {"redirect_uri": "http://127.0.0.1/other"}, "invalid_grant", id="redirect URI"),
        pytest.param(APP, {"code": "unknown"}, "invalid_grant", id="code"),
        pytest.param(SERVER, {"client_secret": "wrong"}, "invalid_client", id="client secret"),
        pytest.param(APP, {"client_id": "unknown"}, "invalid_client", id="client"),
    ],
)
def test_one_wrong_parameter_is_an_error_of_the_provider(
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


def run_client(programs: Path, provider: IdentityProvider, **given: Any) -> dict[str, Any]:
    provider.automatic_user = "ada"
    config = {"issuer": provider.issuer, "clientId": "app", "redirectUri": "myapp://redirect", **given}
    command = ["node", "client.mjs", json.dumps(config)]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, timeout=60, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="public"),
        pytest.param(
            {"clientId": "server", "secret": "s p~é/+%", "redirectUri": "https://app.example/callback"},
            id="confidential",
        ),
    ],
)
def test_a_client_of_another_make_goes_through_every_flow(
    programs: Path, provider: IdentityProvider, config: dict[str, str]
) -> None:
    assert run_client(programs, provider, **config) == {
        "seen": [303, "ada", {"sub": "ada", "name": "Ada Lovelace", "tier": "gold"}, 401, "/end_session"]
    }


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"checks": {"pkceCodeVerifier": "x" * 43}}, "invalid_grant"),
        ({"checks": {"expectedState": "other"}}, "OAUTH_INVALID_RESPONSE"),
        ({"checks": {"expectedNonce": "other"}}, "OAUTH_JWT_CLAIM_COMPARISON_FAILED"),
        ({"url": {"code_challenge_method": "plain"}}, "invalid_request"),
        ({"url": {"response_type": "token"}}, "unsupported_response_type"),
        ({"replay": True}, "invalid_grant"),
        ({"reuse": True}, "invalid_grant"),
        ({"refreshToken": "unknown"}, "invalid_grant"),
        ({"subject": "bob"}, "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_client_of_another_make_sees_one_wrong_parameter(
    programs: Path, provider: IdentityProvider, change: dict[str, Any], error: str
) -> None:
    assert run_client(programs, provider, change=change)["error"] == error


@pytest.mark.parametrize(
    ("endpoint", "kind", "error"),
    [
        ("discovery", "wrong_issuer", "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED"),
        ("authorize", "deny", "access_denied"),
        ("authorize", "wrong_state", "OAUTH_INVALID_RESPONSE"),
        ("authorize", "wrong_issuer", "OAUTH_INVALID_RESPONSE"),
        ("authorize", "expired_code", "invalid_grant"),
        ("token", "deny", "invalid_grant"),
        ("token", "wrong_issuer", "OAUTH_JWT_CLAIM_COMPARISON_FAILED"),
        ("token", "alg_none", "OAUTH_INVALID_RESPONSE"),
        ("token", "bad_signature", "OAUTH_INVALID_RESPONSE"),
        ("token", "redirect", "OAUTH_RESPONSE_IS_NOT_CONFORM"),
        ("token", "oversized", "OAUTH_PARSE_ERROR"),
        ("jwks", "server_error", "OAUTH_RESPONSE_IS_NOT_CONFORM"),
        ("revoke", "server_error", "OAUTH_RESPONSE_IS_NOT_CONFORM"),
        ("token", "server_error", "OAUTH_RESPONSE_IS_NOT_CONFORM"),
        ("userinfo", "deny", "OAUTH_WWW_AUTHENTICATE_CHALLENGE"),
    ],
)
def test_a_client_of_another_make_sees_each_failure(
    programs: Path, provider: IdentityProvider, endpoint: Any, kind: Any, error: str
) -> None:
    provider.fail(endpoint, kind)

    assert run_client(programs, provider)["error"] == error


def test_a_hanging_endpoint_keeps_a_client_of_another_make_waiting(programs: Path, provider: IdentityProvider) -> None:
    provider.fail("token", "hang")

    assert run_client(programs, provider, timeout=1)["error"] == "OAUTH_TIMEOUT"


def test_a_delayed_endpoint_is_waited_for(programs: Path, provider: IdentityProvider) -> None:
    provider.fail("token", "delay", seconds=0.5)

    assert "error" not in run_client(programs, provider)


def python_session(provider: IdentityProvider) -> OAuth2Session:
    provider.automatic_user = "ada"
    return OAuth2Session("app", redirect_uri="myapp://redirect", scope=["openid", "profile"], pkce="S256")


def test_a_python_client_goes_through_the_code_flow(
    provider: IdentityProvider, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    with python_session(provider) as session:
        url, _ = session.authorization_url(f"{provider.issuer}/authorize")
        returned = http.get(url).headers["location"]
        endpoint = f"{provider.issuer}/token"

        session.fetch_token(endpoint, authorization_response=returned, include_client_id=True)

        assert session.get(f"{provider.issuer}/userinfo").json()["name"] == "Ada Lovelace"
        assert session.refresh_token(endpoint, client_id="app")["access_token"]


def test_a_python_client_sees_a_wrong_verifier(
    provider: IdentityProvider, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    with python_session(provider) as session, python_session(provider) as other:
        returned = http.get(session.authorization_url(f"{provider.issuer}/authorize")[0]).headers["location"]
        state = httpx.URL(returned).params["state"]
        other.authorization_url(f"{provider.issuer}/authorize", state=state)

        with pytest.raises(InvalidGrantError):
            other.fetch_token(f"{provider.issuer}/token", authorization_response=returned, include_client_id=True)

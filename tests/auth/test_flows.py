"""The code flow with a real provider: success, and every way to fail."""

import time

import httpx
import pytest

from pytest_device import auth
from pytest_device.auth.provider import IdentityProvider
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    TokenError,
    TransportError,
    UnexpectedReplyError,
)
from tests.auth.app import App
from tests.fakes.http_server import Answer, scripted_server
from tests.waiting import eventually


def test_a_user_signs_in_with_the_code_flow(
    app: App, provider: IdentityProvider
) -> None:
    tokens = app.sign_in()

    claims = auth.verify_id_token(
        tokens.id_token or "", app.discovery, client_id="app", client=app.http
    )
    assert claims["sub"] == "ada"
    assert tokens.is_token_fresh(tokens)
    assert auth.fetch_user_info(
        {"accessToken": tokens.access_token}, app.discovery, client=app.http
    ) == {
        "sub": "ada",
        "name": "Ada Lovelace",
        "tier": "gold",
    }
    assert provider.wait_for_sign_in("ada").access_token == tokens.access_token


def test_a_confidential_client_authenticates_with_any_characters_in_its_secret(
    app: App, provider: IdentityProvider
) -> None:
    own = {"client_id": "server", "redirect_uri": "https://app.example/callback"}
    request = app.request(**own)
    result = app.authorize(request)

    tokens = app.exchange(request, result, **own, client_secret="s p~é/+%")

    assert auth.revoke(
        {
            "client_id": "server",
            "client_secret": "s p~é/+%",
            "token": tokens.access_token,
        },
        app.discovery,
        client=app.http,
    )
    assert provider.requests[-1].status == 200


def test_a_refresh_rotates_the_refresh_token_and_a_second_use_revokes_the_family(
    app: App,
) -> None:
    first = app.sign_in()
    second = app.refresh(first)

    with pytest.raises(TokenError, match="family is revoked") as raised:
        app.refresh(first)

    assert raised.value.code == "invalid_grant"
    assert second.refresh_token != first.refresh_token
    assert second.id_token != first.id_token
    with pytest.raises(TokenError):
        app.refresh(second)
    with pytest.raises(UnexpectedReplyError, match="401"):
        auth.fetch_user_info(second, app.discovery, client=app.http)


def test_a_token_goes_stale_by_the_clock_and_is_refreshed(
    app: App, provider: IdentityProvider
) -> None:
    tokens = app.sign_in()

    provider.clock.advance(3601)

    assert tokens.should_refresh(now=provider.clock.now())
    with pytest.raises(UnexpectedReplyError, match="401"):
        auth.fetch_user_info(tokens, app.discovery, client=app.http)
    assert (
        auth.fetch_user_info(app.refresh(tokens), app.discovery, client=app.http)["sub"]
        == "ada"
    )


def test_a_revoked_token_is_no_longer_accepted(app: App) -> None:
    tokens = app.sign_in()

    auth.revoke(
        {"client_id": "app", "token": tokens.refresh_token},
        app.discovery,
        client=app.http,
    )

    with pytest.raises(UnexpectedReplyError, match="401"):
        auth.fetch_user_info(tokens, app.discovery, client=app.http)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("deny", "access_denied"),
        ("wrong_state", "state_mismatch"),
        ("wrong_issuer", "issuer_mismatch"),
    ],
)
def test_a_failing_authorization_ends_in_an_error(
    app: App, provider: IdentityProvider, kind: str, code: str
) -> None:
    provider.fail("authorize", kind)  # type: ignore[arg-type]  # one of the kinds

    result = app.authorize(app.request())

    assert (result.type, result.error and result.error.code) == ("error", code)
    assert result.authentication is None


def test_a_response_without_the_issuer_is_refused_if_the_provider_promises_it(
    app: App,
) -> None:
    request = app.request()
    returned = httpx.URL(
        app.open(request.make_auth_url(app.discovery))
    ).copy_remove_param("iss")

    result = request.parse_return_url(str(returned))

    assert result.error
    assert result.error.code == "issuer_mismatch"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("bad_signature", "it was made with another key"),
        ("alg_none", "its algorithm is none of RS256, "),
        ("wrong_issuer", "it has another issuer"),
    ],
)
def test_a_forged_id_token_is_refused(
    app: App, provider: IdentityProvider, kind: str, problem: str
) -> None:
    provider.fail("token", kind)  # type: ignore[arg-type]  # one of the kinds

    with pytest.raises(AuthError, match=problem) as raised:
        app.sign_in()

    assert raised.value.code == "invalid_id_token"


def test_an_id_token_is_bound_to_a_client_a_nonce_and_a_time(
    app: App, provider: IdentityProvider
) -> None:
    request = app.request()
    result = app.authorize(request)
    with pytest.raises(AuthError, match="nonce"):
        app.exchange(request, result, nonce="another")

    id_token = provider.tokens[-1].id_token or ""

    with pytest.raises(AuthError, match="another client"):
        auth.verify_id_token(
            id_token, app.discovery, client_id="server", client=app.http
        )
    with pytest.raises(AuthError, match="expired"):
        auth.verify_id_token(
            id_token,
            app.discovery,
            client_id="app",
            now=time.time() + 3700,
            client=app.http,
        )
    with pytest.raises(AuthError, match="future"):
        auth.verify_id_token(
            id_token,
            app.discovery,
            client_id="app",
            now=time.time() - 3700,
            client=app.http,
        )


def test_id_tokens_survive_a_key_rotation_unless_the_old_key_is_dropped(
    app: App, provider: IdentityProvider
) -> None:
    id_token = app.sign_in().id_token or ""

    provider.rotate_keys()
    assert (
        auth.verify_id_token(id_token, app.discovery, client_id="app", client=app.http)[
            "sub"
        ]
        == "ada"
    )
    assert app.sign_in().id_token

    provider.rotate_keys(keep_old=False)
    with pytest.raises(AuthError, match="signature"):
        auth.verify_id_token(id_token, app.discovery, client_id="app", client=app.http)


def test_a_code_works_once_and_its_replay_revokes_the_tokens(app: App) -> None:
    request = app.request()
    result = app.authorize(request)
    tokens = app.exchange(request, result)

    with pytest.raises(TokenError, match="used before"):
        app.exchange(request, result)

    with pytest.raises(TokenError):
        app.refresh(tokens)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"extra_params": {"code_verifier": "x" * 43}}, id="wrong verifier"
        ),
        pytest.param({"extra_params": {}}, id="no verifier"),
        pytest.param({"redirect_uri": "myapp://other"}, id="other redirect URI"),
        pytest.param({"code": "unknown"}, id="unknown code"),
        pytest.param(
            {"client_id": "server", "client_secret": "s p~é/+%"},
            id="another client's code",
        ),
    ],
)
def test_an_exchange_with_one_wrong_parameter_is_refused(
    app: App, changes: dict[str, object]
) -> None:
    request = app.request()
    result = app.authorize(request)

    with pytest.raises(TokenError) as raised:
        app.exchange(request, result, **changes)

    assert raised.value.code == "invalid_grant"


def test_an_expired_code_is_refused(app: App, provider: IdentityProvider) -> None:
    request = app.request()
    late = app.authorize(request)
    provider.clock.advance(61)
    with pytest.raises(TokenError, match="has expired"):
        app.exchange(request, late)

    provider.fail("authorize", "expired_code")
    with pytest.raises(TokenError, match="has expired"):
        app.sign_in()


def test_a_failing_token_endpoint_is_a_server_error(
    app: App, provider: IdentityProvider
) -> None:
    provider.fail("token", "server_error")

    with pytest.raises(TokenError) as raised:
        app.sign_in()

    assert raised.value.code == "server_error"


def test_a_hanging_endpoint_runs_into_the_clients_timeout(
    app: App, provider: IdentityProvider
) -> None:
    provider.fail("token", "hang")
    app.http.timeout = httpx.Timeout(60, read=0.2)

    with pytest.raises(TransportError) as raised:
        app.sign_in()

    assert raised.value.sent
    # The code is not redeemed either: the app may try it again.
    last_request = provider.requests[-1]
    assert (last_request.endpoint, last_request.status) == ("token", 0)


def test_trickling_headers_run_into_the_clients_timeout() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    endless = Answer(103, b"", rest=hint, pause=0.02)

    with (
        scripted_server(lambda _call: endless) as server,
        httpx.Client(timeout=0.2) as client,
    ):

        def error() -> str:
            with pytest.raises(TransportError) as raised:
                auth.fetch_discovery(server.url, client=client)
            return str(raised.value)

        assert eventually(lambda: "took more than 0.2 s" in error())


def test_a_slow_reply_is_waited_for(app: App, provider: IdentityProvider) -> None:
    provider.fail("token", "delay", seconds=0.2)

    assert app.sign_in().access_token


def test_metadata_of_another_issuer_is_refused(
    app: App, provider: IdentityProvider
) -> None:
    provider.fail("discovery", "wrong_issuer")

    with pytest.raises(UnexpectedReplyError, match="must match exactly"):
        auth.fetch_discovery(provider.issuer, client=app.http)


@pytest.mark.parametrize(
    "issuer",
    [
        "http://idp.example",
        "https://idp.example?x",
        "https://idp.example#x",
        "idp",
        "ftp://x",
    ],
)
def test_an_issuer_must_be_a_secure_url_without_query_and_fragment(issuer: str) -> None:
    with pytest.raises(AuthConfigError):
        auth.fetch_discovery(issuer)
    with pytest.raises(AuthConfigError):
        auth.load({"client_id": "app", "redirect_uri": "myapp://redirect"}, issuer)


def test_a_loaded_request_has_its_url(app: App, provider: IdentityProvider) -> None:
    request = auth.load(app.config, provider.issuer, client=app.http)

    assert (request.url or "").startswith(
        f"{provider.issuer}/authorize?code_challenge="
    )


def test_openid_needs_metadata_before_anything_is_sent(
    app: App, provider: IdentityProvider
) -> None:
    seen = len(provider.requests)
    endpoints = {
        "authorization_endpoint": f"{provider.issuer}/authorize",
        "token_endpoint": f"{provider.issuer}/token",
    }

    with pytest.raises(AuthConfigError, match="jwks_uri"):
        app.request().prompt(endpoints, browser=app.open)
    with pytest.raises(AuthConfigError, match="jwks_uri"):
        auth.exchange_code(
            {**app.config, "extra_params": {}, "code": "x"}, endpoints, client=app.http
        )

    assert len(provider.requests) == seen


def test_a_redirect_to_another_scheme_is_refused(app: App) -> None:
    request = app.request()

    result = request.prompt(
        app.discovery,
        browser=lambda _url: f"attacker://redirect?code=x&state={request.state}",
    )

    assert result.error
    assert result.error.code == "redirect_mismatch"


def test_a_dismissed_sign_in_ends(app: App) -> None:
    def browser(url: str) -> str:
        auth.dismiss()
        return app.open(url)

    assert app.request().prompt(app.discovery, browser=browser).type == "dismiss"

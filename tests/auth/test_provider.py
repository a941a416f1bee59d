"""The provider's interfaces: its page, its refusals, and what a test can see and control."""

import base64
import hashlib
import re
from typing import Any, get_args
from urllib.parse import quote_plus

import httpx
import pytest

from pytest_device import auth
from pytest_device.auth.provider import Client, IdentityProvider, User
from pytest_device.auth.provider.model import Endpoint
from pytest_device.errors import AuthConfigError, AuthError, ConfigError
from tests.auth.app import App, submit


@pytest.fixture
def request_by_page(app: App, provider: IdentityProvider) -> auth.AuthRequest:
    provider.automatic_user = None
    request = app.request()
    request.make_auth_url(app.discovery)
    return request


def test_a_person_signs_in_on_the_page(
    app: App, request_by_page: auth.AuthRequest, provider: IdentityProvider
) -> None:
    answer = submit(
        app.http,
        request_by_page.url or "",
        user="ada",
        password="analytical",
        decision="allow",
    )

    result = request_by_page.parse_return_url(answer.headers["location"])
    assert result.type == "success"
    assert app.exchange(request_by_page, result).access_token
    assert [one.user for one in provider.authorizations] == ["ada"]


def test_the_page_labels_its_fields_and_announces_a_mistake(
    app: App, request_by_page: auth.AuthRequest, provider: IdentityProvider
) -> None:
    answer = submit(
        app.http,
        request_by_page.url or "",
        user="ada",
        password='"><script>',
        decision="allow",
    )

    assert answer.status_code == 400
    assert provider.requests[-1].error == "The user name or password is wrong."
    assert 'role="alert"' in answer.text
    assert "<script>" not in answer.text
    for field in ("user", "password"):
        assert f'<label for="{field}">' in answer.text
        assert f'<input id="{field}"' in answer.text
    # By which drivers find them, too.
    for name in (
        "User name",
        "Password",
        "Sign in",
        "Deny",
    ):
        assert f'aria-label="{name}"' in answer.text


def test_a_person_denies_on_the_page(
    app: App, request_by_page: auth.AuthRequest, provider: IdentityProvider
) -> None:
    answer = submit(app.http, request_by_page.url or "", decision="deny")

    result = request_by_page.parse_return_url(answer.headers["location"])
    assert result.error
    assert (result.error.code, result.error.state) == (
        "access_denied",
        request_by_page.state,
    )
    assert provider.authorizations[0].error == "access_denied"


def test_a_link_does_not_decide(
    app: App, request_by_page: auth.AuthRequest, provider: IdentityProvider
) -> None:
    decision = {"user": "ada", "password": "analytical", "decision": "allow"}
    url = httpx.URL(request_by_page.url or "").copy_merge_params(decision)
    answer = app.http.get(url)

    assert answer.status_code == 200
    assert "<form" in answer.text
    assert not provider.authorizations


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"redirect_uri": "https://attacker.example/"}, id="foreign address"
        ),
        pytest.param({"redirect_uri": "myapp://redirect/more"}, id="longer path"),
        pytest.param(
            {"redirect_uri": "http://user@127.0.0.1:1/callback"}, id="credentials"
        ),
        pytest.param(
            {"redirect_uri": "http://127.0.0.1.attacker.example/callback"},
            id="foreign host",
        ),
        pytest.param(
            {"redirect_uri": "http://127.0.0.1:1/other"}, id="other loopback path"
        ),
        pytest.param({"client_id": "unknown"}, id="unknown client"),
    ],
)
def test_the_provider_never_redirects_to_an_unregistered_url(
    app: App, changes: dict[str, str]
) -> None:
    answer = app.http.get(app.request(**changes).make_auth_url(app.discovery))

    assert answer.status_code == 400
    assert "location" not in answer.headers


def test_an_unknown_redirect_uri_is_shown_beside_those_registered(
    app: App, provider: IdentityProvider
) -> None:
    request = app.request(redirect_uri="myapp://<b>?token=hunter2hunter2")
    answer = app.http.get(request.make_auth_url(app.discovery))

    assert (
        "<dt>Received</dt><dd><code>myapp://&lt;b&gt;?token=***</code></dd>"
        in answer.text
    )
    assert (
        "<dt>Registered</dt><dd><code>myapp://redirect</code></dd>"
        "<dd><code>http://127.0.0.1/callback</code></dd>"
    ) in answer.text
    assert provider.requests[-1].error == (
        "Unknown redirect URI: received: myapp://<b>?token=***; "
        "registered: myapp://redirect, http://127.0.0.1/callback"
    )


def test_the_pages_apply_no_style_but_their_own_and_run_no_script(
    app: App, request_by_page: auth.AuthRequest
) -> None:
    answer = app.http.get(request_by_page.url or "")
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert not [rule for rule in policy if "unsafe" in rule or "script" in rule]


def test_an_unknown_address_leads_to_the_metadata(
    app: App, provider: IdentityProvider
) -> None:
    answer = app.http.get(f"{provider.issuer}/sign-in")

    assert answer.status_code == 404
    assert "<h1>Page not found</h1>" in answer.text
    (url,) = re.findall(r'href="(http[^"]+)"', answer.text)
    assert app.http.get(url).json()["issuer"] == provider.issuer


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("code_challenge", None, "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("response_mode", "fragment", "invalid_request"),
        ("request", "x", "request_not_supported"),
    ],
)
def test_an_unsafe_or_unknown_request_is_refused(
    app: App, name: str, value: str | None, code: str
) -> None:
    request = app.request()
    url = httpx.URL(request.make_auth_url(app.discovery)).copy_remove_param(name)
    returned = app.open(str(url.copy_set_param(name, value) if value else url))

    error = request.parse_return_url(returned).error
    assert error
    assert error.code == code


def test_prompt_none_requires_a_signed_in_user(
    app: App, request_by_page: auth.AuthRequest
) -> None:
    returned = app.open(f"{request_by_page.url}&prompt=none")

    error = request_by_page.parse_return_url(returned).error
    assert error
    assert error.code == "login_required"


@pytest.mark.parametrize(
    ("form", "status", "error", "challenge"),
    [
        ({"grant_type": "authorization_code"}, 400, "invalid_request", None),
        ({"grant_type": "refresh_token"}, 400, "invalid_request", None),
        (
            {"client_id": "unknown"},
            401,
            "invalid_client",
            'Basic realm="pytest-device"',
        ),
    ],
)
def test_a_token_request_is_refused_as_in_the_standard(
    app: App,
    provider: IdentityProvider,
    form: dict[str, str],
    status: int,
    error: str,
    challenge: str | None,
) -> None:
    answer = app.http.post(
        f"{provider.issuer}/token", data={"client_id": "app", **form}
    )

    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers.get("www-authenticate") == challenge


def test_user_info_names_the_missing_scope_in_its_challenge(app: App) -> None:
    request = app.request(scopes=["profile"])
    tokens = app.exchange(request, app.authorize(request), scopes=["profile"])

    answer = app.http.get(
        app.discovery.user_info_endpoint or "",
        headers={"Authorization": f"Bearer {tokens.access_token}"},
    )

    assert answer.status_code == 403
    assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'


def test_a_repeated_parameter_is_refused(app: App, provider: IdentityProvider) -> None:
    answer = app.http.get(f"{provider.issuer}/authorize?client_id=app&client_id=app")

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_two_client_authentication_methods_at_once_are_refused(
    app: App, provider: IdentityProvider
) -> None:
    form = {"client_id": "server", "client_secret": "x", "grant_type": "refresh_token"}

    answer = app.http.post(f"{provider.issuer}/token", data=form, auth=("server", "x"))

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_a_refresh_can_narrow_the_scope_but_not_widen_it(app: App) -> None:
    tokens = app.sign_in()

    with pytest.raises(auth.TokenError) as raised:
        tokens.refresh(
            {"client_id": "app", "scopes": ["openid", "email"]},
            app.discovery,
            client=app.http,
        )
    assert raised.value.code == "invalid_scope"

    narrowed = tokens.refresh(
        {"client_id": "app", "scopes": ["openid"]}, app.discovery, client=app.http
    )
    assert auth.fetch_user_info(narrowed, app.discovery, client=app.http) == {
        "sub": "ada",
        "tier": "gold",
    }
    again = narrowed.refresh(
        {"client_id": "app", "extra_params": {"scope": " "}},
        app.discovery,
        client=app.http,
    )
    # The new refresh token keeps the scope, a blank one is none: RFC 6749 section 6.
    assert again.scope == tokens.scope


def test_a_revoked_user_gets_no_tokens_for_a_code(
    app: App, provider: IdentityProvider
) -> None:
    request = app.request()
    result = app.authorize(request)

    provider.revoke_user("ada")

    with pytest.raises(auth.TokenError, match="the code is unknown"):
        app.exchange(request, result)


def test_a_health_check_issues_no_code_and_takes_no_failure(
    app: App, provider: IdentityProvider
) -> None:
    provider.fail("discovery", "server_error")
    metadata = auth.issuer_with_well_known_url(provider.issuer)
    urls = [metadata, app.request().make_auth_url(app.discovery)]

    assert [app.http.head(url).status_code for url in urls] == [405, 405]
    assert provider.authorizations == ()
    assert app.http.get(metadata).status_code == 500


def test_logout_revokes_tokens_and_returns_to_the_app(app: App) -> None:
    tokens = app.sign_in()
    params = {
        "id_token_hint": tokens.id_token or "",
        "post_logout_redirect_uri": "myapp://bye",
        "state": "s",
    }

    answer = app.http.get(app.discovery.end_session_endpoint or "", params=params)

    assert answer.headers["location"] == "myapp://bye?state=s"
    with pytest.raises(auth.TokenError):
        app.refresh(tokens)


@pytest.mark.parametrize("url", ["https://attacker.example", ""])
def test_logout_redirects_to_registered_urls_only(app: App, url: str) -> None:
    tokens = app.sign_in()
    params = {
        "id_token_hint": tokens.id_token or "",
        "post_logout_redirect_uri": url,
    }

    assert (
        app.http.get(
            app.discovery.end_session_endpoint or "", params=params
        ).status_code
        == 400
    )


def test_logout_without_a_hint_ends_the_session_of_the_browser(
    settings: dict[str, Any], http: httpx.Client
) -> None:
    with IdentityProvider(**settings, sessions=True) as provider:
        app = App(auth.fetch_discovery(provider.issuer, client=http), http)
        app.authorize_on_page(app.request())
        assert app.authorize(app.request()).type == "success"

        first, second = (http.get(f"{provider.issuer}/end_session") for _ in range(2))

        assert "<h1>Signed out</h1>" in first.text
        assert "<h1>No user to sign out</h1>" in second.text
        assert "Sign in" in http.get(app.request().make_auth_url(app.discovery)).text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id_token_hint": "forged"}, "is no ID token of this provider"),
        ({"client_id": "server"}, "is not for the client_id"),
    ],
)
def test_logout_with_the_hint_of_another_provider_or_client_is_refused(
    app: App, provider: IdentityProvider, changes: dict[str, str], message: str
) -> None:
    tokens = app.sign_in()
    params = {"id_token_hint": tokens.id_token or "", **changes}

    answer = app.http.get(f"{provider.issuer}/end_session", params=params)

    assert answer.status_code == 400
    assert message in answer.text
    assert app.refresh(tokens).access_token


def test_a_page_of_any_origin_can_exchange_its_code(
    app: App, provider: IdentityProvider
) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}

    answer = app.http.options(f"{provider.issuer}/token", headers=asked)

    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_sign_in_does_not_need_the_tunnel() -> None:
    clients = [Client("app", ["myapp://r"])]
    with IdentityProvider(
        clients=clients, public_url="https://tunnel.invalid"
    ) as provider:
        tokens = provider.sign_in("user")

    assert [one.endpoint for one in provider.requests] == ["authorize", "token", "jwks"]
    assert tokens.id_token


def test_a_timed_out_wait_for_a_sign_in_lists_the_replies(
    app: App, provider: IdentityProvider
) -> None:
    provider.fail("token", "deny")
    with pytest.raises(auth.TokenError):
        app.sign_in()

    with pytest.raises(TimeoutError, match="authorize: 303; token: invalid_grant"):
        provider.wait_for_sign_in("ada", 0.01)


def test_no_repr_contains_a_secret(app: App, provider: IdentityProvider) -> None:
    request = app.request()
    result = app.authorize(request)
    tokens = app.exchange(request, result)
    shown = repr(
        (
            result,
            tokens,
            request.get_auth_request_config(),
            provider.requests,
            provider.tokens,
        )
    )

    secrets = (
        result.params["code"],
        tokens.access_token,
        tokens.refresh_token,
        tokens.id_token,
        request.state,
    )
    assert not [
        secret
        for secret in (*secrets, request.code_verifier)
        if secret and secret in shown
    ]


def test_the_issuer_is_the_public_address() -> None:
    with IdentityProvider(
        clients=[Client("app", ["myapp://r"])], public_url="https://tunnel.example/"
    ) as remote:
        found = httpx.get(auth.issuer_with_well_known_url(remote.local_url)).json()

    assert found["issuer"] == "https://tunnel.example"
    assert found["token_endpoint"] == "https://tunnel.example/token"


def test_each_endpoint_can_fail(app: App, provider: IdentityProvider) -> None:
    for endpoint in get_args(Endpoint):
        provider.fail(endpoint, "server_error")
        provider.fail(endpoint, "delay", seconds=0.01)
        path = {"discovery": ".well-known/openid-configuration"}.get(endpoint, endpoint)
        method = "POST" if endpoint in ("token", "revoke") else "GET"
        replies = [
            app.http.request(method, f"{provider.issuer}/{path}").status_code
            for _ in range(2)
        ]
        assert replies[0] == 500, endpoint
        assert replies[1] < 500, endpoint


def test_an_invalid_provider_setup_is_refused(provider: IdentityProvider) -> None:
    with pytest.raises(
        AuthConfigError,
        match=r"failure 'deny' for endpoint 'jwks' \(available: delay, hang",
    ):
        provider.fail("jwks", "deny")
    with pytest.raises(
        AuthConfigError,
        match=r"endpoint 'tokens': did you mean 'token'\? \(available: discovery, authorize",
    ):
        provider.fail("tokens", "deny")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ConfigError, match="times=0 must be a whole number, 1 or more"):
        provider.fail("token", "deny", times=0)
    port = int(provider.local_url.rpartition(":")[2])
    with pytest.raises(
        AuthConfigError, match=f"port {port} is not available: Address already in use"
    ):
        IdentityProvider(clients=[Client("app", ["myapp://r"])], port=port)
    with pytest.raises(AuthConfigError, match="unknown user 'eve'"):
        provider.automatic_user = "eve"
    with pytest.raises(
        AuthConfigError,
        match=r"redirect_uris 'myapp://r' must be a list, for example \['myapp://r'\]",
    ):
        Client("app", "myapp://r")
    with pytest.raises(AuthConfigError, match="unique, non-empty name"):
        IdentityProvider(users=[User("ada"), User("ada")], clients=[])
    with pytest.raises(AuthConfigError, match=r"unknown user 'eve' \(available: ada\)"):
        IdentityProvider(users=[User("ada")], clients=[], automatic_user="eve")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"redirect_uris": ["myapp://r#top"]}, "'myapp://r#top' of the client 'app' must be an absolute"),
        ({"redirect_uris": ["callback"]}, "must be an absolute URI without a fragment and blanks, for example"),
        ({"post_logout_redirect_uris": ["my app:/bye"]}, "'my app:/bye' of the client 'app' must"),
        ({"scopes": ["openid profile"]}, "the scope 'openid profile' of the client 'app' must be one"),
    ],
)  # fmt: skip
def test_a_value_that_no_client_can_have_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(AuthConfigError, match=message):
        Client("app", **{"redirect_uris": [], **given})


def test_a_client_without_a_redirect_uri_cannot_sign_in() -> None:
    with (
        IdentityProvider(clients=[Client("backend", [])]) as provider,
        pytest.raises(AuthConfigError, match="'backend' has no redirect URI"),
    ):
        provider.sign_in("user")


def test_a_reply_without_the_requested_id_token_is_named() -> None:
    clients = [Client("app", ["myapp://r"], scopes=["profile"])]
    with (
        IdentityProvider(clients=clients) as provider,
        pytest.raises(AuthError, match=r"no ID token, .* granted the scope 'profile'"),
    ):
        provider.sign_in("user")


def test_token_requests_are_forms(
    provider: IdentityProvider, http: httpx.Client
) -> None:
    params = {"client_id": "app", "token": "unknown"}
    url = f"{provider.issuer}/revoke"

    replies = [http.post(url, params=params), http.post(url, json=params)]

    assert [reply.status_code for reply in replies] == [400, 400]
    assert [reply.json()["error_description"] for reply in replies] == [
        "the parameters must be in the form, not in the URL",
        "the body must be a form (application/x-www-form-urlencoded)",
    ]
    assert http.post(url, data=params).status_code == 200


SECRET = "s p~é/+%"
"""The secret of the client ``server``."""


@pytest.mark.parametrize(
    "credentials",
    [
        f"server:{quote_plus(SECRET)}".encode(),
        f"server:{SECRET}".encode(),
        f"server:{SECRET}".encode("latin-1"),
    ],
    ids=["encoded", "raw", "raw_latin_1"],
)
def test_a_client_may_send_its_secret_raw(
    provider: IdentityProvider, http: httpx.Client, credentials: bytes
) -> None:
    def status(sent: bytes) -> int:
        header = f"Basic {base64.b64encode(sent).decode()}"
        reply = http.post(
            f"{provider.issuer}/revoke",
            data={"token": "unknown"},
            headers={"Authorization": header},
        )
        return reply.status_code

    assert status(credentials) == 200
    assert status(credentials + b"x") == 401
    assert status(credentials.replace(b"server", b"other")) == 401

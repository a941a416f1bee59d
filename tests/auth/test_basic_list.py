"""The OpenID Foundation's basic certification plan for providers, by its test ids and in its order.

The ids and what they test are those of its conformance suite: ``oidcc-basic-certification-test-plan``.
"""

import base64
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import httpx
import pytest

from pytest_device import auth
from pytest_device.auth.provider import IdentityProvider
from pytest_device.errors import TokenError
from tests.auth.app import App

Check = Callable[[App, IdentityProvider], None]

LEFT_OUT: Final = {
    "oidcc-max-age-1": "max_age is left out: a test that needs the page asks for it with prompt=login",
    "oidcc-max-age-10000": "as above",
    "oidcc-id-token-hint": "the provider has the user that the test chose",
    "oidcc-idtoken-unsigned": "needs dynamic registration, by which a client would ask for it; the metadata has RS256",
}
"""Tests of the plan that do not apply, with the reason."""


@pytest.fixture(scope="module")
def settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "sessions": True}


def test_basic_list(app: App, provider: IdentityProvider, check: Check) -> None:
    check(app, provider)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", CHECKS.values(), ids=CHECKS.keys())


def id_token_signature(app: App, provider: IdentityProvider) -> None:
    header = app.sign_in().id_token.partition(".")[0]  # type: ignore[union-attr]  # openid is asked for
    found = json.loads(base64.urlsafe_b64decode(f"{header}=="))
    (key,) = app.http.get(f"{provider.issuer}/jwks").json()["keys"]
    assert (found["alg"], found["kid"]) == ("RS256", key["kid"])


def claims_of(app: App, tokens: auth.TokenResponse) -> dict[str, Any]:
    return auth.verify_id_token(
        tokens.id_token or "", app.discovery, client_id="app", client=app.http
    )


def error_of(app: App, name: str, value: str | None) -> str | None:
    """Return the error that a request gets with another parameter, None for success."""
    request = app.request()
    url = httpx.URL(request.make_auth_url(app.discovery)).copy_remove_param(name)
    error = request.parse_return_url(
        app.open(str(url.copy_set_param(name, value) if value else url))
    ).error
    return error.code if error else None


def server(app: App, _provider: IdentityProvider) -> None:
    claims = claims_of(app, app.sign_in())
    assert claims["sub"] == "ada"
    assert claims["auth_time"] <= claims["iat"] <= time.time()


def response_type_missing(app: App, _provider: IdentityProvider) -> None:
    assert error_of(app, "response_type", None) == "unsupported_response_type"


def userinfo(method: str) -> Check:
    def check(app: App, provider: IdentityProvider) -> None:
        headers = {"Authorization": f"Bearer {app.sign_in().access_token}"}
        assert (
            app.http.request(
                method, f"{provider.issuer}/userinfo", headers=headers
            ).json()["sub"]
            == "ada"
        )

    return check


def userinfo_post_body(app: App, provider: IdentityProvider) -> None:
    url, form = (
        f"{provider.issuer}/userinfo",
        {"access_token": app.sign_in().access_token},
    )
    assert app.http.post(url, data=form).json()["sub"] == "ada"
    twice = app.http.post(
        url, data=form, headers={"Authorization": f"Bearer {form['access_token']}"}
    )
    assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request")
    assert app.http.get(url, params=form).status_code == 401


def without_nonce(app: App, _provider: IdentityProvider) -> None:
    request = app.request(extra_params={})
    tokens = app.exchange(request, app.authorize(request), nonce=None)
    assert "nonce" not in claims_of(app, tokens)


def scope(*claims: str, scopes: Sequence[str]) -> Check:
    def check(app: App, _provider: IdentityProvider) -> None:
        with_it = app.sign_in(scopes=scopes)
        without = app.sign_in(scopes=["openid"])
        assert (
            set(claims)
            <= auth.fetch_user_info(with_it, app.discovery, client=app.http).keys()
        )
        assert (
            auth.fetch_user_info(without, app.discovery, client=app.http)
            .keys()
            .isdisjoint(claims)
        )

    return check


def accepted(name: str, value: str) -> Check:
    def check(app: App, _provider: IdentityProvider) -> None:
        assert error_of(app, name, value) is None

    return check


def asks_again(app: App, **changes: object) -> bool:
    """Return whether a request shows the page."""
    return (
        'name="password"'
        in app.http.get(app.request(**changes).make_auth_url(app.discovery)).text
    )


def signed_in(app: App, provider: IdentityProvider) -> auth.TokenResponse:
    """Sign in on the page, so that the provider has a session."""
    provider.automatic_user = None
    request = app.request()
    return app.exchange(request, app.authorize_on_page(request))


def prompt_login(app: App, provider: IdentityProvider) -> None:
    signed_in(app, provider)
    assert asks_again(app, prompt="login")


def prompt_none_not_logged_in(app: App, provider: IdentityProvider) -> None:
    provider.automatic_user = None
    assert error_of(app, "prompt", "none") == "login_required"
    assert error_of(app, "prompt", "none login") == "invalid_request"


def without_page(app: App, provider: IdentityProvider, **params: str) -> None:
    """Check that a request in a session has the same user and the time at which they signed in."""
    first = claims_of(app, signed_in(app, provider))
    request = app.request(extra_params=params)
    second = claims_of(app, app.exchange(request, app.authorize(request), nonce=None))
    assert [second[name] for name in ("sub", "auth_time")] == [
        first[name] for name in ("sub", "auth_time")
    ]


def prompt_none_logged_in(app: App, provider: IdentityProvider) -> None:
    without_page(app, provider, prompt="none")


def code_reuse(seconds: float) -> Check:
    def check(app: App, provider: IdentityProvider) -> None:
        request = app.request()
        result = app.authorize(request)
        tokens = app.exchange(request, result)
        provider.clock.advance(seconds)
        with pytest.raises(TokenError) as raised:
            app.exchange(request, result)
        assert raised.value.code == "invalid_grant"
        headers = {"Authorization": f"Bearer {tokens.access_token}"}
        assert (
            app.http.get(
                app.discovery.user_info_endpoint or "", headers=headers
            ).status_code
            == 401
        )

    return check


def registered_redirect_uri(app: App, _provider: IdentityProvider) -> None:
    answer = app.http.get(
        app.request(redirect_uri="myapp://other").make_auth_url(app.discovery)
    )
    assert (answer.status_code, answer.headers.get("location")) == (400, None)


def post_request(app: App, _provider: IdentityProvider) -> None:
    request = app.request()
    url = httpx.URL(request.make_auth_url(app.discovery))
    answer = app.http.post(url.copy_with(query=None), data=dict(url.params))
    assert request.parse_return_url(answer.headers["location"]).type == "success"


def client_secret_post(app: App, provider: IdentityProvider) -> None:
    own = {"client_id": "server", "redirect_uri": "https://app.example/callback"}
    request = app.request(**own)
    code = app.authorize(request).params["code"]
    form = {
        **own,
        "client_secret": "s p~é/+%",
        "code": code,
        "code_verifier": request.code_verifier or "",
    }
    answer = app.http.post(
        f"{provider.issuer}/token", data={"grant_type": "authorization_code", **form}
    )
    assert answer.json()["access_token"]


def refused(name: str, value: str) -> Check:
    def check(app: App, _provider: IdentityProvider) -> None:
        assert error_of(app, name, value) == "request_not_supported"

    return check


def refreshed(app: App, provider: IdentityProvider) -> None:
    first = app.sign_in()
    second = app.refresh(first)
    assert claims_of(app, second).keys() == claims_of(app, first).keys() - {"nonce"}
    assert claims_of(app, second)["sub"] == claims_of(app, first)["sub"]
    other = {
        "client_id": "server",
        "client_secret": "s p~é/+%",
        "refresh_token": second.refresh_token,
    }
    with pytest.raises(TokenError, match="another client"):
        auth.refresh(other, app.discovery, client=app.http)
    provider.clock.advance(31 * 24 * 3600)
    with pytest.raises(TokenError):
        app.refresh(second)


def reordered(app: App, _provider: IdentityProvider) -> None:
    request = app.request(scopes=["email", "openid"])
    url = httpx.URL(request.make_auth_url(app.discovery))
    backwards = url.copy_with(params=dict(reversed(url.params.multi_items())))
    tokens = app.exchange(request, request.parse_return_url(app.open(str(backwards))))
    assert (
        auth.fetch_user_info(tokens, app.discovery, client=app.http)["email"]
        == "ada@example.com"
    )


UNSIGNED: Final = "eyJhbGciOiJub25lIn0.eyJyZWRpcmVjdF91cmkiOiJteWFwcDovL290aGVyIn0."
"""A request object with another redirect URI."""
ESSENTIAL: Final = json.dumps({"userinfo": {"name": {"essential": True}}})
ALL: Final = ("profile", "email", "address", "phone")
CHECKS: Final[dict[str, Check]] = {
    "oidcc-server": server,
    "oidcc-response-type-missing": response_type_missing,
    "oidcc-idtoken-signature": id_token_signature,
    "oidcc-userinfo-get": userinfo("GET"),
    "oidcc-userinfo-post-header": userinfo("POST"),
    "oidcc-userinfo-post-body": userinfo_post_body,
    "oidcc-ensure-request-without-nonce-succeeds-for-code-flow": without_nonce,
    "oidcc-scope-profile": scope("name", scopes=["openid", "profile"]),
    "oidcc-scope-email": scope("email", scopes=["openid", "email"]),
    "oidcc-scope-address": scope("address", scopes=["openid", "address"]),
    "oidcc-scope-phone": scope("phone_number", scopes=["openid", "phone"]),
    "oidcc-scope-all": scope(
        "name", "email", "address", "phone_number", scopes=["openid", *ALL]
    ),
    "oidcc-alternate-happy-flow": reordered,
    "oidcc-display-page": accepted("display", "page"),
    "oidcc-display-popup": accepted("display", "popup"),
    "oidcc-prompt-login": prompt_login,
    "oidcc-prompt-none-not-logged-in": prompt_none_not_logged_in,
    "oidcc-prompt-none-logged-in": prompt_none_logged_in,
    "oidcc-ensure-request-with-unknown-parameter-succeeds": accepted("extra", "foobar"),
    "oidcc-login-hint": accepted("login_hint", "ada"),
    "oidcc-ui-locales": accepted("ui_locales", "se"),
    "oidcc-claims-locales": accepted("claims_locales", "se"),
    "oidcc-ensure-request-with-acr-values-succeeds": accepted("acr_values", "1 2"),
    "oidcc-codereuse": code_reuse(0),
    "oidcc-codereuse-30seconds": code_reuse(30),
    "oidcc-ensure-registered-redirect-uri": registered_redirect_uri,
    "oidcc-ensure-post-request-succeeds": post_request,
    "oidcc-server-client-secret-post": client_secret_post,
    "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported": refused(
        "request_uri", "https://app.example/request"
    ),
    "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported": refused(
        "request", UNSIGNED
    ),
    "oidcc-claims-essential": accepted("claims", ESSENTIAL),
    "oidcc-ensure-request-object-with-redirect-uri": refused("request", UNSIGNED),
    "oidcc-refresh-token": refreshed,
    "oidcc-ensure-request-with-valid-pkce-succeeds": server,
}


def test_no_test_of_the_list_is_both_run_and_omitted() -> None:
    assert not CHECKS.keys() & LEFT_OUT.keys()

"""The OpenID Foundation's certification plan for the basic profile, by its test ids."""

import time
from collections.abc import Callable
from typing import Any, Final

import httpx
import pytest

from pytest_device import auth
from pytest_device.auth.provider import IdentityProvider
from pytest_device.errors import AuthError, TokenError
from tests.auth.app import App

Check = Callable[[App, IdentityProvider], None]

LEFT_OUT: Final = {
    "oidcc-userinfo-post-body": "access tokens are accepted in the header only, which RFC 6750 recommends",
    "oidcc-prompt-none-logged-in": "there is no session: each request asks, unless a user consents automatically",
    "oidcc-max-age-10000": "there is no session",
    "oidcc-id-token-hint": "there is no session",
    "oidcc-claims-essential": "claims_parameter_supported is false",
    "oidcc-codereuse-30seconds": "as oidcc-codereuse: the provider's clock is the test's",
    "oidcc-ensure-request-object-with-redirect-uri": "request_parameter_supported is false",
    "oidcc-scope-all": "as the single scopes together",
}
"""Tests of the plan that do not apply, with the reason."""


def test_basic_list(app: App, provider: IdentityProvider, check: Check) -> None:
    check(app, provider)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", CHECKS.values(), ids=CHECKS.keys())


def claims_of(app: App, tokens: auth.TokenResponse) -> dict[str, Any]:
    return auth.verify_id_token(tokens.id_token or "", app.discovery, client_id="app", client=app.http)


def error_of(app: App, name: str, value: str | None) -> str | None:
    """Return the error that a request gets with another parameter, None for success."""
    request = app.request()
    url = httpx.URL(request.make_auth_url(app.discovery)).copy_remove_param(name)
    error = request.parse_return_url(app.open(str(url.copy_set_param(name, value) if value else url))).error
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
        assert app.http.request(method, f"{provider.issuer}/userinfo", headers=headers).json()["sub"] == "ada"

    return check


def without_nonce(app: App, _provider: IdentityProvider) -> None:
    request = app.request(extra_params={})
    tokens = app.exchange(request, app.authorize(request), nonce=None)
    assert "nonce" not in claims_of(app, tokens)


def scope(name: str, claim: str) -> Check:
    def check(app: App, _provider: IdentityProvider) -> None:
        with_it = app.sign_in(scopes=["openid", name])
        without = app.sign_in(scopes=["openid"])
        assert claim in auth.fetch_user_info(with_it, app.discovery, client=app.http)
        assert claim not in auth.fetch_user_info(without, app.discovery, client=app.http)

    return check


def accepted(name: str, value: str) -> Check:
    def check(app: App, _provider: IdentityProvider) -> None:
        assert error_of(app, name, value) is None

    return check


def prompt_login(app: App, provider: IdentityProvider) -> None:
    provider.automatic_user = None
    for _ in range(2):
        page = app.http.get(app.request(prompt="login").make_auth_url(app.discovery))
        assert 'name="password"' in page.text


def prompt_none(app: App, provider: IdentityProvider) -> None:
    provider.automatic_user = None
    assert error_of(app, "prompt", "none") == "login_required"


def max_age(app: App, _provider: IdentityProvider) -> None:
    request = app.request(extra_params={"max_age": "1"})
    assert claims_of(app, app.exchange(request, app.authorize(request), nonce=None))["auth_time"] >= time.time() - 10


def code_reuse(app: App, _provider: IdentityProvider) -> None:
    request = app.request()
    result = app.authorize(request)
    tokens = app.exchange(request, result)
    with pytest.raises(TokenError) as raised:
        app.exchange(request, result)
    assert raised.value.code == "invalid_grant"
    headers = {"Authorization": f"Bearer {tokens.access_token}"}
    assert app.http.get(app.discovery.user_info_endpoint or "", headers=headers).status_code == 401


def registered_redirect_uri(app: App, _provider: IdentityProvider) -> None:
    answer = app.http.get(app.request(redirect_uri="myapp://other").make_auth_url(app.discovery))
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
    form = {**own, "client_secret": "s p~é/+%", "code": code, "code_verifier": request.code_verifier or ""}
    answer = app.http.post(f"{provider.issuer}/token", data={"grant_type": "authorization_code", **form})
    assert answer.json()["access_token"]


def refused_request_object(app: App, _provider: IdentityProvider) -> None:
    assert error_of(app, "request", "eyJhbGciOiJub25lIn0.e30.") == "request_not_supported"
    assert error_of(app, "request_uri", "https://app.example/request") == "request_not_supported"


def refreshed(app: App, provider: IdentityProvider) -> None:
    first = app.sign_in()
    second = app.refresh(first)
    assert claims_of(app, second).keys() == claims_of(app, first).keys() - {"nonce"}
    assert claims_of(app, second)["sub"] == claims_of(app, first)["sub"]
    provider.clock.advance(31 * 24 * 3600)
    with pytest.raises(TokenError):
        app.refresh(second)


def rotated_keys(app: App, provider: IdentityProvider) -> None:
    before = app.http.get(f"{provider.issuer}/jwks").json()["keys"]
    provider.rotate_keys()
    after = app.http.get(f"{provider.issuer}/jwks").json()["keys"]
    assert len(after) == len(before) + 1
    assert claims_of(app, app.sign_in())["sub"] == "ada"


def bad_nonce(app: App, _provider: IdentityProvider) -> None:
    request = app.request()
    with pytest.raises(AuthError, match="nonce"):
        app.exchange(request, app.authorize(request), nonce="another")


CHECKS: Final[dict[str, Check]] = {
    "oidcc-server": server,
    "oidcc-response-type-missing": response_type_missing,
    "oidcc-userinfo-get": userinfo("GET"),
    "oidcc-userinfo-post-header": userinfo("POST"),
    "oidcc-ensure-request-without-nonce-succeeds-for-code-flow": without_nonce,
    "oidcc-scope-profile": scope("profile", "name"),
    "oidcc-scope-email": scope("email", "email"),
    "oidcc-scope-address": scope("address", "address"),
    "oidcc-scope-phone": scope("phone", "phone_number"),
    "oidcc-ensure-other-scope-order-succeeds": accepted("scope", "profile openid"),
    "oidcc-display-page": accepted("display", "page"),
    "oidcc-display-popup": accepted("display", "popup"),
    "oidcc-prompt-login": prompt_login,
    "oidcc-prompt-none-not-logged-in": prompt_none,
    "oidcc-max-age-1": max_age,
    "oidcc-ensure-request-with-unknown-parameter-succeeds": accepted("extra", "foobar"),
    "oidcc-login-hint": accepted("login_hint", "ada"),
    "oidcc-ui-locales": accepted("ui_locales", "se"),
    "oidcc-claims-locales": accepted("claims_locales", "se"),
    "oidcc-ensure-request-with-acr-values-succeeds": accepted("acr_values", "1 2"),
    "oidcc-codereuse": code_reuse,
    "oidcc-ensure-registered-redirect-uri": registered_redirect_uri,
    "oidcc-ensure-post-request-succeeds": post_request,
    "oidcc-server-client-secret-post": client_secret_post,
    "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported": refused_request_object,
    "oidcc-refresh-token": refreshed,
    "oidcc-server-rotate-keys": rotated_keys,
    "oidcc-client-test-nonce-invalid": bad_nonce,
}


def test_no_test_of_the_list_is_both_done_and_left_out() -> None:
    assert not CHECKS.keys() & LEFT_OUT.keys()

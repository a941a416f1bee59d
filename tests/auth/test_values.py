"""What is decided without a provider: configurations, requests and tokens."""

from typing import Any, Final

import httpx
import pytest

from pytest_device import auth
from pytest_device.errors import AuthConfigError, UnexpectedReplyError

APP = {"clientId": "app", "redirectUri": "myapp://redirect", "state": "s"}
TOKEN_ENDPOINT = {"tokenEndpoint": "https://idp.example/token"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codeChallengeMethod": "plain"}, "must be 'S256'"),
        ({"clientId": ""}, "client_id"),
        ({"scopes": "openid profile"}, r"must be a list, for example \['openid', 'profile'\]"),
        ({"redirectURL": "x"}, "unknown fields: redirect_url"),
    ],
)
def test_a_mistake_in_a_request_is_a_value_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AuthConfigError, match=message) as raised:
        auth.AuthRequest({**APP, **change})

    assert isinstance(raised.value, ValueError)


def test_a_request_without_state_or_endpoint_has_no_url() -> None:
    with pytest.raises(AuthConfigError, match="state"):
        auth.AuthRequest({**APP, "state": ""}).make_auth_url({"authorizationEndpoint": "https://idp.example/a"})
    with pytest.raises(AuthConfigError, match="authorization_endpoint"):
        auth.AuthRequest(APP).make_auth_url({})


def test_the_query_of_an_endpoint_is_kept() -> None:
    url = auth.AuthRequest(APP).make_auth_url({"authorizationEndpoint": "https://idp.example/a?tenant=1"})

    assert url.startswith("https://idp.example/a?tenant=1&code_challenge=")


def test_a_challenge_and_a_state_are_new_for_each_request() -> None:
    config = {name: value for name, value in APP.items() if name != "state"}
    first, second = (auth.AuthRequest(config) for _ in range(2))

    assert first.state != second.state
    assert first.get_auth_request_config() == first.get_auth_request_config()
    assert first.code_challenge != second.get_auth_request_config().code_challenge


def test_tokens_in_a_redirect_are_returned_unless_it_is_refused() -> None:
    request = auth.AuthRequest(APP)
    tokens = "access_token=a&token_type=Bearer&expires_in=3600"

    found = request.parse_return_url(f"myapp://redirect#{tokens}&state=s").authentication
    assert found
    assert (found.access_token, found.expires_in) == ("a", 3600)
    assert request.parse_return_url(f"myapp://redirect#{tokens}&state=x").authentication is None


@pytest.mark.parametrize("url", ["myapp://redirect?" + "x" * 300_000, "myapp://[redirect"])
def test_an_unusable_returned_url_is_refused(url: str) -> None:
    with pytest.raises(AuthConfigError):
        auth.AuthRequest(APP).parse_return_url(url)


@pytest.mark.parametrize("seconds", ["soon", True, float("nan"), []])
def test_a_lifetime_that_is_no_number_is_refused(seconds: object) -> None:
    with pytest.raises(UnexpectedReplyError, match="expires_in"):
        auth.TokenResponse.from_query_params({"access_token": "a", "expires_in": seconds})


HANDED: Final = auth.TokenResponse(
    access_token="a+/=&#", expires_in=60, refresh_token="r", scope="a b", id_token="h.p.s", issued_at=7
)


@pytest.mark.parametrize(
    ("link", "part", "start"),
    [
        ("myapp://in", "fragment", "myapp://in#access_token=a%2B%2F%3D%26%23&"),
        ("myapp://in?x=1#y", "fragment", "myapp://in?x=1#y&access_token="),
        ("myapp://in", "query", "myapp://in?access_token="),
        ("https://app.example/in?x=1#y", "query", "https://app.example/in?x=1&access_token="),
    ],
)
def test_a_link_hands_tokens_to_the_app(link: str, part: Any, start: str) -> None:
    found = auth.link_with_tokens(link, HANDED, part=part)

    assert found.startswith(start)
    assert found.endswith("#y") is (part == "query" and "#" in link)
    read = auth.AuthRequest(APP).parse_return_url(found).params
    assert auth.TokenResponse.from_query_params(read) == HANDED


def test_launch_arguments_hand_tokens_to_the_app() -> None:
    assert auth.launch_arguments(HANDED)[:3] == ["--access_token=a+/=&#", "--token_type=bearer", "--expires_in=60"]
    assert auth.launch_arguments(auth.TokenResponse("t", issued_at=0), prefix="-")[0] == "-access_token=t"


def test_a_token_that_expires_at_once_is_stale() -> None:
    assert not auth.TokenResponse.is_token_fresh({"issuedAt": 0, "expiresIn": 0}, 0, now=0)


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [(500, b'{"message": "x"}', "server_error"), (503, b"<html>", "server_error"), (200, b'{"error": "x"}', "x")],
)
def test_an_error_of_a_token_endpoint_is_one_with_any_status(status: int, content: bytes, code: str) -> None:
    with pytest.raises(auth.TokenError) as raised:
        refresh_at(status, content)

    assert raised.value.code == code


@pytest.mark.parametrize("content", [b"[]", b"<html>", b"{}", b"[" * 100_000, b'{"access_token": 1}', b"\xff"])
def test_a_reply_without_a_token_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedReplyError):
        refresh_at(200, content)


def refresh_at(status: int, content: bytes) -> auth.TokenResponse:
    transport = httpx.MockTransport(lambda _request: httpx.Response(status, content=content))
    with httpx.Client(transport=transport) as client:
        return auth.refresh({"clientId": "c", "refreshToken": "rt"}, TOKEN_ENDPOINT, client=client)


def test_a_revocation_authenticates_in_one_way() -> None:
    sent: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    config = {"clientId": "c", "clientSecret": "top", "token": "t", "tokenTypeHint": "refresh_token"}
    with httpx.Client(transport=httpx.MockTransport(reply)) as client:
        auth.revoke(config, {"revocationEndpoint": "https://idp.example/revoke"}, client=client)

    assert sent[0].content == b"token=t&token_type_hint=refresh_token&client_id=c"
    assert sent[0].headers["authorization"] == "Basic Yzp0b3A="


def test_tokens_are_never_sent_in_the_clear() -> None:
    with pytest.raises(AuthConfigError, match="must use https"):
        auth.refresh({"clientId": "c", "refreshToken": "rt"}, {"tokenEndpoint": "http://idp.example/token"})


def test_a_driver_is_a_browser_until_it_is_redirected() -> None:
    class Driver:
        current_url = ""

        def get(self, url: str) -> None:
            self.current_url = url

        def act(self) -> None:
            self.current_url = "https://app.example/callback?code=c&state=s"

    driver = Driver()
    request = auth.AuthRequest({**APP, "redirectUri": "https://app.example/callback"})
    discovery = {"authorizationEndpoint": "https://idp.example/a"}

    result = request.prompt(discovery, browser=auth.DriverBrowser(driver, driver.act))
    assert (result.type, result.params["code"]) == ("success", "c")
    with pytest.raises(TimeoutError):
        request.prompt(discovery, browser=driver, timeout_seconds=0.1)


def test_what_is_no_browser_is_refused() -> None:
    discovery = {"authorizationEndpoint": "https://idp.example/a"}
    with pytest.raises(AuthConfigError, match="must be a driver"):
        auth.AuthRequest(APP).prompt(discovery, browser=None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(AuthConfigError, match="must return a URL"):
        auth.AuthRequest(APP).prompt(discovery, browser=lambda _url: 7)

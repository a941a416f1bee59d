"""What needs no provider: configurations, requests and tokens."""

from collections.abc import Callable
from typing import Any, Final

import httpx
import pytest

from pytest_device import auth
from pytest_device.errors import AuthConfigError, UnexpectedReplyError

pytestmark = pytest.mark.every_python

APP = {"clientId": "app", "redirectUri": "myapp://redirect", "state": "s"}
TOKEN_ENDPOINT = {"tokenEndpoint": "https://idp.example/token"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codeChallengeMethod": "plain"}, "must be 'S256'"),
        ({"clientId": ""}, "client_id"),
        (
            {"scopes": "openid profile"},
            r"must be a list, for example \['openid', 'profile'\]",
        ),
        ({"redirectURL": "x"}, "unknown fields: redirect_url"),
        ({"extraParams": ["a"]}, "extra_params must be a mapping, not list"),
        (
            {"extraParams": {"a": None, "b": True, "max_age": 0}},
            "extra_params must have string values: 'a', 'b'$",
        ),
    ],
)
def test_a_mistake_in_a_request_is_a_value_error(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(AuthConfigError, match=message) as raised:
        auth.AuthRequest({**APP, **change})

    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: auth.RevokeTokenRequest({"token": "t", "extraHeaders": [("a", "b")]}),
        lambda: auth.TokenResponse.is_token_fresh("token"),  # type: ignore[arg-type]  # the mistake
        lambda: auth.fetch_user_info(
            {"accessToken": 7}, {"userInfoEndpoint": "https://idp.example/me"}
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_a_value_error(call: Callable[[], object]) -> None:
    with pytest.raises(AuthConfigError):
        call()


def test_a_request_without_state_or_endpoint_has_no_url() -> None:
    with pytest.raises(AuthConfigError, match="state"):
        auth.AuthRequest({**APP, "state": ""}).make_auth_url(
            {"authorizationEndpoint": "https://idp.example/a"}
        )
    for endpoint in (
        "",
        "http://idp.example/a",
        "javascript:alert(1)//",
        "https://idp.example/a#b",
        "https://[idp/a",
    ):
        with pytest.raises(AuthConfigError, match="authorization_endpoint"):
            auth.AuthRequest(APP).make_auth_url({"authorizationEndpoint": endpoint})


def test_the_query_of_an_endpoint_is_kept() -> None:
    url = auth.AuthRequest(APP).make_auth_url(
        {"authorizationEndpoint": "https://idp.example/a?tenant=1"}
    )

    assert url.startswith("https://idp.example/a?tenant=1&code_challenge=")


@pytest.mark.parametrize(("uses_pkce", "is_sent"), [(False, True), (True, False)])
def test_a_given_challenge_is_sent_with_its_method_unless_pkce_makes_one(
    uses_pkce: bool,  # noqa: FBT001
    is_sent: bool,  # noqa: FBT001
) -> None:
    request = auth.AuthRequest({**APP, "usePKCE": uses_pkce, "codeChallenge": "given"})

    params = httpx.URL(
        request.make_auth_url({"authorizationEndpoint": "https://idp.example/a"})
    ).params

    assert (params["code_challenge"] == "given") is is_sent
    assert params["code_challenge_method"] == "S256"
    assert request.get_auth_request_config().code_challenge == params["code_challenge"]


def test_a_challenge_and_a_state_are_new_for_each_request() -> None:
    config = {name: value for name, value in APP.items() if name != "state"}
    first, second = (auth.AuthRequest(config) for _ in range(2))

    assert first.state != second.state
    assert first.get_auth_request_config() == first.get_auth_request_config()
    assert first.code_challenge != second.get_auth_request_config().code_challenge


def test_tokens_in_a_redirect_are_returned_unless_it_is_refused() -> None:
    request = auth.AuthRequest(APP)
    tokens = "access_token=a&token_type=Bearer&expires_in=3600"

    found = request.parse_return_url(
        f"myapp://redirect#{tokens}&state=s"
    ).authentication
    assert found
    assert (found.access_token, found.expires_in) == ("a", 3600)
    assert (
        request.parse_return_url(f"myapp://redirect#{tokens}&state=x").authentication
        is None
    )


@pytest.mark.parametrize(
    ("given", "seconds"), [("1600.5", 1600.5), ("1600", 1600), ("1600.0", 1600)]
)
def test_a_fraction_of_the_lifetime_is_kept(given: str, seconds: float) -> None:
    found = auth.AuthRequest(APP).parse_return_url(
        f"myapp://redirect#access_token=a&expires_in={given}&state=s"
    )

    assert found.authentication
    assert found.authentication.expires_in == seconds
    assert auth.TokenResponse.is_token_fresh(
        {"accessToken": "a", "expiresIn": float(given), "issuedAt": 0},
        0,
        now=seconds - 0.25,
    )


@pytest.mark.parametrize("given", ["abc", "nan", "1e999"])
def test_a_malformed_response_is_a_result_of_type_error(given: str) -> None:
    found = auth.AuthRequest(APP).parse_return_url(
        f"myapp://redirect#access_token=a&expires_in={given}&state=s"
    )

    assert found.error
    assert (found.type, found.authentication) == ("error", None)
    assert found.error.code == "malformed_response"
    assert f"expires_in {given!r}" in (found.error.description or "")


def test_a_response_without_state_is_refused_even_if_the_request_has_none() -> None:
    result = auth.AuthRequest({**APP, "state": ""}).parse_return_url(
        "myapp://redirect?code=c"
    )

    assert result.error
    assert result.error.code == "state_mismatch"


def test_the_first_error_code_counts_and_a_fragment_can_start_with_a_question_mark() -> (
    None
):
    request = auth.AuthRequest(APP)

    assert (
        request.parse_return_url(
            "myapp://redirect?errorCode=A&errorCode=B&state=s"
        ).error_code
        == "A"
    )
    assert request.parse_return_url("myapp://redirect#?code=c&state=s").params == {
        "code": "c",
        "state": "s",
    }


@pytest.mark.parametrize("end", [" ", "\n", " \t\r\n"])
def test_blanks_around_a_returned_url_belong_to_no_parameter(end: str) -> None:
    assert (
        auth.AuthRequest(APP)
        .parse_return_url(f"myapp://redirect?code=c&state=s{end}")
        .type
        == "success"
    )


def test_a_browser_that_returns_a_malformed_url_ends_in_an_error() -> None:
    discovery = {"authorizationEndpoint": "https://idp.example/a"}
    result = auth.AuthRequest(APP).prompt(
        discovery, browser=lambda _url: "myapp://[redirect?code=c&state=s"
    )

    assert result.error
    assert result.error.code == "redirect_mismatch"


@pytest.mark.parametrize(
    "url", ["myapp://redirect?" + "x" * 300_000, "myapp://[redirect"]
)
def test_an_unusable_returned_url_is_refused(url: str) -> None:
    with pytest.raises(AuthConfigError):
        auth.AuthRequest(APP).parse_return_url(url)


@pytest.mark.parametrize("seconds", ["soon", True, float("nan"), []])
def test_a_non_numeric_lifetime_is_refused(seconds: object) -> None:
    with pytest.raises(UnexpectedReplyError, match="expires_in"):
        auth.TokenResponse.from_query_params(
            {"access_token": "a", "expires_in": seconds}
        )


HANDED: Final = auth.TokenResponse(
    access_token="a+/=&#",
    expires_in=60,
    refresh_token="r",
    scope="a b",
    id_token="h.p.s",
    issued_at=7,
)


@pytest.mark.parametrize(
    ("link", "part", "start"),
    [
        ("myapp://in", "fragment", "myapp://in#access_token=a%2B%2F%3D%26%23&"),
        ("myapp://in?x=1#y", "fragment", "myapp://in?x=1#y&access_token="),
        ("myapp://in", "query", "myapp://in?access_token="),
        (
            "https://app.example/in?x=1#y",
            "query",
            "https://app.example/in?x=1&access_token=",
        ),
    ],
)
def test_a_link_passes_tokens_to_the_app(link: str, part: Any, start: str) -> None:
    found = auth.link_with_tokens(link, HANDED, part=part)

    assert found.startswith(start)
    assert found.endswith("#y") is (part == "query" and "#" in link)
    read = auth.AuthRequest(APP).parse_return_url(found).params
    assert auth.TokenResponse.from_query_params(read) == HANDED


def test_launch_arguments_pass_tokens_to_the_app() -> None:
    assert auth.launch_arguments(HANDED)[:3] == [
        "--access_token=a+/=&#",
        "--token_type=bearer",
        "--expires_in=60",
    ]
    assert (
        auth.launch_arguments(auth.TokenResponse("t", issued_at=0), prefix="-")[0]
        == "-access_token=t"
    )


@pytest.mark.parametrize(
    ("token", "is_fresh"), [({"expiresIn": 9000, "issuedAt": None}, False), ({}, True)]
)
def test_a_token_that_expires_needs_its_time_of_issue_to_be_fresh(
    token: dict[str, Any],
    is_fresh: bool,  # noqa: FBT001
) -> None:
    assert auth.TokenResponse.is_token_fresh(token) is is_fresh


def test_without_a_margin_the_default_applies() -> None:
    assert not auth.TokenResponse.is_token_fresh(
        {"issuedAt": 0, "expiresIn": 600}, None, now=0
    )
    assert auth.TokenResponse.is_token_fresh(
        {"issuedAt": 0, "expiresIn": 601}, None, now=0
    )


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [
        (500, b'{"message": "x"}', "server_error"),
        (503, b"<html>", "server_error"),
        (200, b'{"error": "x", "error_description": null}', "x"),
    ],
)
def test_a_token_endpoint_error_is_an_error_with_any_status(
    status: int, content: bytes, code: str
) -> None:
    with pytest.raises(auth.TokenError) as raised:
        refresh_at(status, content)

    assert raised.value.code == code
    assert raised.value.description != "None"


@pytest.mark.parametrize(
    "content",
    [b"[]", b"<html>", b"{}", b"[" * 100_000, b'{"access_token": 1}', b"\xff"],
)
def test_a_reply_without_a_token_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedReplyError):
        refresh_at(200, content)


def refresh_at(status: int, content: bytes) -> auth.TokenResponse:
    transport = httpx.MockTransport(
        lambda _request: httpx.Response(status, content=content)
    )
    with httpx.Client(transport=transport) as client:
        return auth.refresh(
            {"clientId": "c", "refreshToken": "rt"}, TOKEN_ENDPOINT, client=client
        )


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (httpx.Response(307, headers={"Location": "a:/b"}), "returned a redirect"),
        (httpx.Response(200, content=b" " * (1024 * 1024 + 1)), "larger than 1 MB"),
    ],
)
def test_a_redirect_or_a_reply_that_is_too_large_is_refused(
    reply: httpx.Response, message: str
) -> None:
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _request: reply)) as client,
        pytest.raises(UnexpectedReplyError, match=message),
    ):
        auth.refresh(
            {"clientId": "c", "refreshToken": "rt"}, TOKEN_ENDPOINT, client=client
        )


def test_a_revocation_uses_one_authentication_method() -> None:
    sent: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    config = {
        "clientId": "c",
        "clientSecret": "top",
        "token": "t",
        "tokenTypeHint": "refresh_token",
    }
    with httpx.Client(transport=httpx.MockTransport(reply)) as client:
        auth.revoke(
            config, {"revocationEndpoint": "https://idp.example/revoke"}, client=client
        )

    assert sent[0].content == b"token=t&token_type_hint=refresh_token&client_id=c"
    assert sent[0].headers["authorization"] == "Basic Yzp0b3A="


def test_an_extra_header_never_overrides_or_doubles_one_of_the_request() -> None:
    extra = {"authorization": "Custom", "content-type": "text/plain", "X-A": "1"}
    config = {
        "clientId": "c",
        "code": "x",
        "redirectUri": "m://r",
        "extraHeaders": extra,
    }

    assert auth.AccessTokenRequest(config).get_headers() == {
        "authorization": "Custom", "Content-Type": "application/x-www-form-urlencoded", "X-A": "1",
    }  # fmt: skip
    assert auth.AccessTokenRequest({**config, "clientSecret": "s"}).get_headers() == {
        "Authorization": "Basic Yzpz", "Content-Type": "application/x-www-form-urlencoded", "X-A": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "host", ["idp.example:99999", "idp.ex ample", "idp.example/\n", "xn--"]
)
def test_an_endpoint_that_is_not_a_url_is_refused(host: str) -> None:
    with pytest.raises(AuthConfigError, match="endpoint"):
        auth.refresh(
            {"clientId": "c", "refreshToken": "rt"},
            {"tokenEndpoint": f"https://{host}"},
        )


def test_a_reply_that_cannot_be_decompressed_is_refused() -> None:
    def reply(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"{}")
        )

    with (
        httpx.Client(transport=httpx.MockTransport(reply)) as client,
        pytest.raises(UnexpectedReplyError, match="compressed"),
    ):
        auth.refresh(
            {"clientId": "c", "refreshToken": "rt"}, TOKEN_ENDPOINT, client=client
        )


def test_a_null_endpoint_in_metadata_counts_as_absent() -> None:
    metadata = {"issuer": "https://idp.example", "revocation_endpoint": None}
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, json=metadata))
    with httpx.Client(transport=transport) as client:
        found = auth.fetch_discovery("https://idp.example", client=client)

    assert found.revocation_endpoint is None


def test_tokens_are_never_sent_unencrypted() -> None:
    with pytest.raises(AuthConfigError, match="must use https"):
        auth.refresh(
            {"clientId": "c", "refreshToken": "rt"},
            {"tokenEndpoint": "http://idp.example/token"},
        )


def test_a_driver_works_as_the_browser_until_the_redirect() -> None:
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


def test_an_object_that_is_not_a_browser_is_refused() -> None:
    discovery = {"authorizationEndpoint": "https://idp.example/a"}
    with pytest.raises(AuthConfigError, match="must be a driver"):
        auth.AuthRequest(APP).prompt(discovery, browser=None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(AuthConfigError, match="must return a URL"):
        auth.AuthRequest(APP).prompt(discovery, browser=lambda _url: 7)
    with pytest.raises(AuthConfigError, match="must return a URL"):
        auth.AuthRequest(APP).prompt(
            discovery, browser=lambda _url: {"type": "success", "url": 7}
        )

"""Any response of an identity provider ends in a result or a typed error, and any request to ours in a refusal."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis.strategies import (
    SearchStrategy,
    binary,
    builds,
    dictionaries,
    integers,
    just,
    sampled_from,
    text,
)

from pytest_device import auth
from pytest_device.auth.provider import Client, IdentityProvider
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    TokenError,
    UnexpectedReplyError,
)
from tests.fuzz.values import any_json, any_text

ISSUER: Final = "https://idp.example"
REQUEST: Final = auth.AuthRequest(
    {"clientId": "c", "redirectUri": "myapp://r", "state": "s"}
)
METADATA: Final = {
    "tokenEndpoint": f"{ISSUER}/token",
    "discoveryDocument": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/k"},
}

names = sampled_from(
    (
        "state",
        "error",
        "errorCode",
        "code",
        "access_token",
        "expires_in",
        "issued_at",
        "iss",
        "scope",
        "id_token",
        "",
    )
)
values = any_text | sampled_from(
    ("s", "0", "-1", "1e400", "nan", "9" * 5000, "%zz", "%ff", "+")
)
pairs = dictionaries(names, values, max_size=5).map(
    lambda found: "&".join(f"{name}={v}" for name, v in found.items())
)
urls = builds(
    "{}{}{}{}{}".format,
    sampled_from(("myapp://r", "https://[", "", "//", "a:b")),
    just("?"),
    pairs,
    just("#"),
    pairs,
)


@given(urls | any_text)
@example("myapp://r?state=s&access_token=a&expires_in=soon")
def test_any_returned_url_is_parsed_or_refused(url: str) -> None:
    try:
        result = REQUEST.parse_return_url(url)
    except (AuthConfigError, UnexpectedReplyError):
        return

    assert (result.type == "success") == (result.error is None)
    assert result.type == "error" or result.params["state"] == "s"


def replied(status: int, body: bytes) -> httpx.Client:
    return httpx.Client(
        transport=httpx.MockTransport(
            lambda _request: httpx.Response(status, content=body)
        )
    )


def near(fields: Mapping[str, SearchStrategy[Any]]) -> SearchStrategy[bytes]:
    """Return any bytes, any JSON, and objects with the fields of a reply."""
    objects = dictionaries(sampled_from(sorted(fields)), any_json, max_size=len(fields))
    sound: SearchStrategy[dict[str, Any]] = builds(dict, **fields)
    merged = builds(lambda one, other: {**one, **other}, sound, objects)
    return binary() | (any_json | merged).map(lambda found: json.dumps(found).encode())


TOKENS: Final = {
    "access_token": any_text,
    "token_type": just("Bearer"),
    "expires_in": integers() | just("3600"),
    "refresh_token": any_text,
    "scope": any_text,
    "id_token": any_text,
}
DISCOVERED: Final = {
    "issuer": just(ISSUER),
    "token_endpoint": any_text,
    "jwks_uri": any_text,
}


@given(integers(200, 599), near(TOKENS))
@example(200, b'{"access_token": "a", "expires_in": 1e999}')
@example(200, b'{"access_token": "a", "expires_in": NaN}')
def test_any_token_reply_is_read_or_refused(status: int, body: bytes) -> None:
    with replied(status, body) as client:
        try:
            tokens = auth.refresh(
                {"clientId": "c", "refreshToken": "r"}, METADATA, client=client
            )
        except (TokenError, UnexpectedReplyError):
            return

    texts = (
        tokens.access_token,
        tokens.token_type,
        tokens.refresh_token,
        tokens.scope,
        tokens.id_token,
    )
    assert all(isinstance(one, str | None) for one in texts)
    assert isinstance(auth.TokenResponse.is_token_fresh(tokens), bool)


@given(integers(200, 599), near(DISCOVERED))
def test_any_metadata_is_read_or_refused(status: int, body: bytes) -> None:
    with replied(status, body) as client:
        try:
            found = auth.fetch_discovery(ISSUER, client=client)
        except UnexpectedReplyError:
            return

    assert found.discovery_document["issuer"] == ISSUER


@given(
    any_text
    | sampled_from(("..", "a.b.c", "eyJhbGciOiJSUzI1NiJ9.e30.", "e30.e30.e30")),
    near({"keys": any_json}),
)
@example("eyJhbGciOiJSUzI1NiJ9.W10.AA", b'{"keys": [{"kty": "RSA"}]}')
@example("eyJhbGciOiJSUzI1NiJ9.W10.AA", b'{"keys": [null]}')
def test_any_id_token_with_any_keys_is_refused(id_token: str, body: bytes) -> None:
    with replied(200, body) as client, pytest.raises((AuthError, UnexpectedReplyError)):
        auth.verify_id_token(id_token, METADATA, client_id="c", client=client)


@pytest.fixture(scope="module")
def provider() -> Iterator[Callable[[str, str, Mapping[str, str]], httpx.Response]]:
    with (
        IdentityProvider(
            clients=[Client("app", ["myapp://r"])], sessions=True
        ) as running,
        httpx.Client() as client,
    ):
        yield lambda method, path, given: client.request(
            method,
            f"{running.local_url}/{path}",
            params=given if method == "GET" else None,
            data=given if method == "POST" else None,
        )


GIVEN: Final = {
    "client_id": just("app"),
    "redirect_uri": just("myapp://r"),
    "response_type": just("code"),
    "code_challenge": just("x" * 43),
    "code_challenge_method": just("S256"),
}
PARAMS: Final = [
    *GIVEN,
    "prompt",
    "scope",
    "state",
    "user",
    "password",
    "decision",
    "code",
]
utf8 = text()


@settings(suppress_health_check=[*HealthCheck])
@given(
    sampled_from(("GET", "POST")),
    sampled_from(("authorize", "token", "revoke", "userinfo", "end_session", "jwks")),
    builds(dict, **GIVEN) | just({}),
    dictionaries(
        sampled_from([*PARAMS, "token", "grant_type", "refresh_token", "access_token"])
        | utf8,
        utf8,
        max_size=4,
    ),
)
def test_any_request_to_the_provider_is_answered(
    provider: Callable[[str, str, Mapping[str, str]], httpx.Response],
    method: str,
    path: str,
    sound: dict[str, str],
    changes: dict[str, str],
) -> None:
    assert provider(method, path, {**sound, **changes}).status_code < 500

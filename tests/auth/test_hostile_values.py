"""Values that a careless or hostile provider, web page or app sends: ID tokens, keys, redirects and hosts."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from pytest_device import auth
from pytest_device.errors import AuthError
from pytest_device.oauth import is_redirect
from pytest_device.secret_registry import SECRETS
from tests.auth.test_basic_list_client import Provider, claims, published, signing_key

REDIRECT = "http://127.0.0.1/callback"


def private_key() -> rsa.RSAPrivateKey:
    """Return the key with which the provider signs."""
    key = signing_key().private_key
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def signed(token_claims: dict[str, Any], key: rsa.RSAPrivateKey) -> str:
    """Return an ID token, whatever its claims are."""
    content = f"{part({'alg': 'RS256', 'kid': '1'})}.{part(token_claims)}"
    signature = key.sign(content.encode(), PKCS1v15(), SHA256())
    return f"{content}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def sign_in(provider: Provider, **changes: object) -> auth.TokenResponse:
    provider.id_token = signed(claims(**changes), private_key())
    return provider.sign_in()


NOT_TIMES = [float("nan"), float("inf"), "never", True, 10**400]


@pytest.mark.parametrize("value", NOT_TIMES, ids=repr)
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("exp", "it has expired"),
        ("iat", "it was issued in the future"),
        ("nbf", "it is not valid yet"),
    ],
)
def test_a_time_that_is_no_finite_number_is_refused(
    name: str, problem: str, value: object
) -> None:
    token_claims = {**claims(), name: value}
    provider = Provider(id_token=signed(token_claims, private_key()))

    with pytest.raises(AuthError, match=problem):
        provider.sign_in()


def test_an_id_token_is_not_valid_before_its_time() -> None:
    now = claims()["iat"]

    with pytest.raises(AuthError, match="it is not valid yet"):
        sign_in(Provider(), nbf=now + 3600)
    assert sign_in(Provider(), nbf=now).id_token
    assert sign_in(Provider(), nbf=now + 30).id_token  # within the skew of clocks


@pytest.mark.parametrize("subject", [7, ""])
def test_a_subject_that_is_no_text_is_refused(subject: object) -> None:
    with pytest.raises(AuthError, match="it does not name a user"):
        sign_in(Provider(), sub=subject)


def test_a_short_rsa_key_verifies_nothing() -> None:
    key = rsa.generate_private_key(65537, 1024)
    modulus = key.public_key().public_numbers().n.to_bytes(128)
    weak = {
        "kty": "RSA",
        "n": base64.urlsafe_b64encode(modulus).decode(),
        "e": "AQAB",
        "kid": "1",
    }
    provider = Provider(keys={"keys": [weak]}, id_token=signed(claims(), key))

    with pytest.raises(AuthError, match="its signature cannot be verified"):
        provider.sign_in()


FOREIGN_KEYS: list[object] = [
    {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA", "kid": "2"},
    {"kty": "OKP", "crv": "Ed9999", "x": "AA", "kid": "2"},
    {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA", "kid": "2"},
    {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "2"},
    {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "2"},
    {"kid": "2"},
    "text",
    None,
]


@pytest.mark.parametrize("key", FOREIGN_KEYS, ids=str)
def test_a_key_of_an_unknown_kind_is_ignored(key: object) -> None:
    keys = {"keys": [key, *published(signing_key())["keys"]]}

    assert sign_in(Provider(keys=keys)).id_token
    with pytest.raises(AuthError, match="its signature cannot be verified"):
        sign_in(Provider(keys={"keys": [key]}))


def returned(query: str) -> str:
    return f"{REDIRECT}?{query}"


def flow(url: str) -> auth.AuthSessionResult:
    """Return the result of a sign-in whose browser returns to a URL."""
    request = auth.AuthRequest({"clientId": "c", "redirectUri": REDIRECT, "state": "s"})
    return request.prompt(
        {"authorizationEndpoint": "https://idp.example/authorize"},
        browser=lambda _url: url,
    )


@pytest.mark.parametrize(
    "response",
    ["state=s&code=a&code=b", "state=s&code=a&code=a", "state=s&state=s&code=a", "state=s&state=x&code=a",
     "state=s&code=a&iss=i&iss=i", "code=q&state=s#code=h&code=i"],
)  # fmt: skip
def test_a_parameter_that_is_returned_twice_is_refused(response: str) -> None:
    request = auth.AuthRequest({"clientId": "c", "redirectUri": REDIRECT, "state": "s"})

    for result in (
        flow(returned(response)),
        request.parse_return_url(returned(response)),
    ):
        assert result.type == "error"
        assert result.error
        assert result.error.code == "repeated_parameter"


@pytest.mark.parametrize("sign", ["\t", "\n", "\r"])
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/call{}back?code=q",
        "http://127.0{}.0.1/callback",
        "ht{}tp://127.0.0.1/callback",
    ],
)
def test_a_tab_or_line_end_makes_another_address(url: str, sign: str) -> None:
    assert not is_redirect(url.format(sign), REDIRECT)
    assert is_redirect(url.format(""), REDIRECT)
    assert flow(f"{url.format(sign)}?code=q&state=s").type == "error"


@pytest.mark.parametrize("mark", ["?", "#"])
def test_each_value_of_a_repeated_code_is_a_secret(mark: str) -> None:
    secrets: list[str] = []
    stop = SECRETS.follow(lambda *pieces: secrets.extend(pieces))
    request = auth.AuthRequest({"client_id": "app", "redirect_uri": REDIRECT})

    request.parse_return_url(
        f"{REDIRECT}{mark}code=first-code-0123&code=other-code-0123"
    )
    stop()

    assert {"first-code-0123", "other-code-0123"} <= set(secrets)


def test_tokens_in_lists_of_a_reply_are_secrets() -> None:
    secrets: list[str] = []
    stop = SECRETS.follow(lambda *pieces: secrets.extend(pieces))

    reply = {"access_token": "t", "more": [{"access_token": "inner-token-0123"}]}
    auth.TokenResponse.from_query_params(reply)
    stop()

    assert "inner-token-0123" in secrets

"""The OpenID Foundation's basic certification plan for clients, by its test ids and in its order.

The ids and what they test are those of its conformance suite: ``oidcc-client-basic-certification-test-plan``.
"""

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from pytest_device import auth
from pytest_device.errors import AuthError

ISSUER: Final = "https://idp.example"
METADATA: Final = {
    "authorizationEndpoint": f"{ISSUER}/authorize",
    "tokenEndpoint": f"{ISSUER}/token",
    "userInfoEndpoint": f"{ISSUER}/userinfo",
    "discoveryDocument": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"},
}
CONFIG: Final = {
    "clientId": "c",
    "clientSecret": "top",
    "redirectUri": "myapp://r",
    "code": "x",
    "scopes": ["openid"],
}

Check = Callable[["Provider"], None]


@cache
def signing_key(number: int = 1) -> RSAKey:
    """Return one of the provider's keys."""
    return RSAKey.generate_key(
        2048, parameters={"use": "sig", "alg": "RS256", "kid": str(number)}
    )


def claims(**changes: object) -> dict[str, Any]:
    """Return the claims of an ID token; None leaves one out."""
    now = int(time.time())
    found = {
        "iss": ISSUER,
        "sub": "ada",
        "aud": "c",
        "iat": now,
        "exp": now + 600,
        "nonce": "n",
        **changes,
    }
    return {name: value for name, value in found.items() if value is not None}


def published(*keys: RSAKey, with_ids: bool = True) -> dict[str, Any]:
    found = [key.as_dict(private=False) for key in keys]
    return {
        "keys": [
            {name: part for name, part in key.items() if with_ids or name != "kid"}
            for key in found
        ]
    }


@dataclass
class Provider:
    """A provider in this process, whose replies a check sets."""

    claims: Mapping[str, Any] = field(default_factory=claims)
    header: Mapping[str, str] = field(
        default_factory=lambda: {"alg": "RS256", "kid": "1"}
    )
    key: RSAKey = field(default_factory=signing_key)
    keys: Mapping[str, Any] = field(default_factory=lambda: published(signing_key()))
    id_token: str = ""
    user: Mapping[str, Any] = field(
        default_factory=lambda: {"sub": "ada", "name": "Ada Lovelace"}
    )
    seen: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        id_token = self.id_token or jwt.encode(
            dict(self.header), dict(self.claims), self.key
        )
        replies = {
            "/token": {
                "access_token": "at",
                "token_type": "Bearer",
                "id_token": id_token,
            },
            "/jwks": self.keys,
            "/userinfo": self.user,
        }
        return httpx.Response(200, json=replies[request.url.path])

    def sign_in(self) -> auth.TokenResponse:
        with httpx.Client(transport=httpx.MockTransport(self)) as client:
            return auth.exchange_code(CONFIG, METADATA, client=client, nonce="n")

    def user_info(self, tokens: auth.TokenResponse) -> dict[str, Any]:
        with httpx.Client(transport=httpx.MockTransport(self)) as client:
            return auth.fetch_user_info(tokens, METADATA, client=client)


def accepted(provider: Provider) -> None:
    assert provider.user_info(provider.sign_in())["name"] == "Ada Lovelace"
    assert provider.seen[-1].headers["authorization"] == "Bearer at"
    assert "at" not in str(provider.seen[-1].url).split("?")[1:]


def refused(problem: str, **changes: object) -> Check:
    def check(provider: Provider) -> None:
        provider.claims = claims(**changes)
        with pytest.raises(AuthError, match=problem) as raised:
            provider.sign_in()
        assert raised.value.code == "invalid_id_token"
        assert [request.url.path for request in provider.seen] == ["/token", "/jwks"]

    return check


def single_key_without_id(provider: Provider) -> None:
    provider.header, provider.keys = (
        {"alg": "RS256"},
        published(signing_key(), with_ids=False),
    )
    accepted(provider)


def several_keys_without_ids(provider: Provider) -> None:
    """Refuse it, since it does not say which key signed it; the plan allows to try all keys, too."""
    provider.header, provider.keys = (
        {"alg": "RS256"},
        published(signing_key(2), signing_key(), with_ids=False),
    )
    refused("signature")(provider)


def unsigned(provider: Provider) -> None:
    """Refuse it, though the plan allows to accept one that comes from the token endpoint."""
    payload = jwt.encode({"alg": "RS256"}, claims(), signing_key()).split(".")[1]
    provider.id_token = f"eyJhbGciOiJub25lIn0.{payload}."
    refused("signature")(provider)


def foreign_signature(provider: Provider) -> None:
    provider.key = signing_key(2)
    refused("signature")(provider)


def user_info_of_another_user(provider: Provider) -> None:
    tokens = provider.sign_in()
    provider.user = {"sub": "eve", "name": "Ada Lovelace"}
    with pytest.raises(AuthError, match="another user"):
        provider.user_info(tokens)


def scope(_provider: Provider) -> None:
    config = {
        "clientId": "c",
        "redirectUri": "myapp://r",
        "scopes": ["openid", "profile", "email", "address", "phone"],
    }
    url = httpx.URL(auth.AuthRequest(config).make_auth_url(METADATA))
    assert url.params["scope"] == "openid profile email address phone"


def client_secret_basic(provider: Provider) -> None:
    provider.sign_in()
    assert (
        provider.seen[0].headers["authorization"]
        == f"Basic {base64.b64encode(b'c:top').decode()}"
    )
    assert b"client_secret" not in provider.seen[0].content


CHECKS: Final[dict[str, Check]] = {
    "oidcc-client-test": accepted,
    "oidcc-client-test-invalid-iss": refused(
        "another issuer", iss="https://other.example"
    ),
    "oidcc-client-test-missing-sub": refused("does not name a user", sub=None),
    "oidcc-client-test-invalid-aud": refused("another client", aud="other"),
    "oidcc-client-test-missing-iat": refused("issued in the future", iat=None),
    "oidcc-client-test-kid-absent-single-jwks": single_key_without_id,
    "oidcc-client-test-kid-absent-multiple-jwks": several_keys_without_ids,
    "oidcc-client-test-idtoken-sig-rs256": accepted,
    "oidcc-client-test-idtoken-sig-none": unsigned,
    "oidcc-client-test-invalid-sig-rs256": foreign_signature,
    "oidcc-client-test-userinfo-invalid-sub": user_info_of_another_user,
    "oidcc-client-test-nonce-invalid": refused("another nonce", nonce="other"),
    "oidcc-client-test-scope-userinfo-claims": scope,
    "oidcc-client-test-client-secret-basic": client_secret_basic,
    # of the comprehensive plan
    "oidcc-client-test-missing-aud": refused("another client", aud=None),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_basic_list_of_clients(check: Check) -> None:
    check(Provider())

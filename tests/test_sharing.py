"""Services that one process hosts and others call."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pickle import PicklingError
from typing import Any, Final

import httpx
import pytest

from pytest_device.auth.provider import Client, IdentityProvider, User
from pytest_device.errors import AuthConfigError, TokenError
from pytest_device.secret_registry import SECRETS
from pytest_device.sharing import ServiceHost, shared

MAKE = partial(
    IdentityProvider,
    users=[User("ada", {"name": "Ada"}), User("bob")],
    clients=[Client("app", ["my://r"])],
)


SEEN: Final = set[str]()
"""The secrets that this process has learned."""


@pytest.fixture
def host() -> Iterator[ServiceHost]:
    unfollow = SECRETS.follow(lambda *secrets: SEEN.update(secrets))
    running = ServiceHost()
    yield running
    running.close()
    unfollow()


@pytest.fixture
def provider(host: ServiceHost) -> Iterator[Any]:
    with shared(host.ticket, "identity", MAKE) as remote:
        yield remote


def test_all_callers_have_the_same_service(host: ServiceHost, provider: Any) -> None:
    with shared(host.ticket, "identity", MAKE) as other:
        assert other.issuer == provider.issuer
        assert (tokens := other.sign_in("ada")) == provider.sign_in("ada")
        assert {tokens.access_token, tokens.refresh_token, tokens.id_token} <= SEEN
        assert [one.user for one in provider.tokens] == ["ada"]


def test_a_caller_learns_the_secrets_of_a_reply_and_of_an_error(
    host: ServiceHost,
) -> None:
    code = (
        "import json, sys; from pytest_device.secret_registry import SECRETS; "
        "from pytest_device.sharing import shared; from tests.test_sharing import MAKE\n"
        "with shared(json.loads(sys.argv[1]), 'identity', MAKE) as provider:\n"
        "    tokens = provider.sign_in('ada')\n"
        "    known = SECRETS.since(0)[1]\n"
        "    assert {tokens.access_token, tokens.refresh_token, tokens.id_token} <= set(known)\n"
        "    number = len(known)\n"
        "    provider.revoke_user('ada')\n"
        "    provider.fail('userinfo', 'deny')\n"
        "    assert len(SECRETS.since(0)[1]) == number"
    )

    subprocess.run(
        [sys.executable, "-c", code, json.dumps(host.ticket)], check=True, timeout=60
    )


def test_values_set_by_a_test_are_set_at_the_service(provider: Any) -> None:
    provider.automatic_user = "bob"
    tokens = provider.sign_in("ada")

    provider.clock.advance(3601)

    assert provider.automatic_user == "bob"
    assert provider.clock.now() > time.time() + 3600
    assert provider.sign_in("ada") != tokens
    assert provider.wait_for_sign_in("ada", 0).access_token == tokens.access_token


def test_a_services_error_is_raised_at_the_caller(provider: Any) -> None:
    with pytest.raises(
        AuthConfigError, match=r"unknown user 'eve' \(available: ada, bob\)"
    ):
        provider.sign_in("eve")
    with pytest.raises(TimeoutError, match="bob did not sign in"):
        provider.wait_for_sign_in("bob", 0)
    provider.fail("token", "deny")
    with pytest.raises(TokenError) as raised:
        provider.sign_in("ada")

    assert raised.value.code == "invalid_grant"


def test_unserializable_arguments_are_an_error_of_the_call(
    host: ServiceHost, provider: Any
) -> None:
    # Which error it is, and its text, depend on the Python.
    with pytest.raises((AttributeError, PicklingError), match="local object"):
        provider.user(lambda: None)
    with pytest.raises(AttributeError, match="pretend"):
        _ = provider.pretend
    with (
        pytest.raises(AuthConfigError, match="unique, non-empty name"),
        shared(host.ticket, "x", partial(MAKE, users=[User("ada")] * 2)),
    ):
        pass


def test_calls_require_the_key(host: ServiceHost) -> None:
    assert (
        httpx.post(
            host.ticket["url"], content=b"cos\nsystem\n(S'true'\ntR."
        ).status_code
        == 401
    )

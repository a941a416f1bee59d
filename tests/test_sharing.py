"""Services that one process hosts and others call."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import httpx
import pytest

from pytest_device.auth.provider import Client, IdentityProvider, User
from pytest_device.errors import AuthConfigError, TokenError
from pytest_device.sharing import ServiceHost, shared

MAKE = partial(
    IdentityProvider,
    users=[User("ada", {"name": "Ada"}), User("bob")],
    clients=[Client("app", ["my://r"])],
)


SEEN: Final = set[str]()
"""The secrets that services have reported."""


@pytest.fixture
def host() -> Iterator[ServiceHost]:
    running = ServiceHost(lambda *secrets: SEEN.update(secrets))
    yield running
    running.close()


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
    with pytest.raises((AttributeError, TypeError, ValueError), match="pickle"):
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

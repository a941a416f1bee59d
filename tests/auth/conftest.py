"""A provider for each test, and an app that signs its user in."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from pytest_device.auth import DiscoveryDocument, fetch_discovery
from pytest_device.auth.provider import Client, IdentityProvider, User
from tests.auth.app import App

ADA = User(
    "ada",
    {
        "name": "Ada Lovelace",
        "email": "ada@example.com",
        "address": {"country": "GB"},
        "phone_number": "+44 20 7946 0000",
        "tier": "gold",
    },
    password="analytical",
)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """Return the arguments of the provider; a module that needs others overrides it."""
    clients = [
        Client(
            "app",
            ["myapp://redirect", "http://127.0.0.1/callback"],
            post_logout_redirect_uris=["myapp://bye"],
        ),
        Client("server", ["https://app.example/callback"], secret="s p~é/+%"),
    ]
    return {"users": [ADA, User("bob")], "clients": clients}


@pytest.fixture
def provider(settings: dict[str, Any]) -> Iterator[IdentityProvider]:
    with IdentityProvider(**settings) as running:
        yield running


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    # No TLS: loading certificates takes longer than a call.
    with httpx.Client(verify=False) as client:
        yield client


@pytest.fixture
def discovery(provider: IdentityProvider, http: httpx.Client) -> DiscoveryDocument:
    return fetch_discovery(provider.issuer, client=http)


@pytest.fixture
def app(
    provider: IdentityProvider, discovery: DiscoveryDocument, http: httpx.Client
) -> App:
    provider.automatic_user = "ada"
    return App(discovery, http)

"""What the endpoints of a provider share."""

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_device.auth.provider.grants import Grants
from pytest_device.auth.provider.keys import SigningKeys
from pytest_device.auth.provider.model import Client, ProviderClock, User


@dataclass(slots=True)
class Settings:
    """The provider's issuer, users, clients and tokens; a test may change who consents by itself at any time."""

    issuer: str
    users: Mapping[str, User]
    clients: Mapping[str, Client]
    clock: ProviderClock
    grants: Grants
    keys: SigningKeys
    automatic_user: str | None = None

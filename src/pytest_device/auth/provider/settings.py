"""What the endpoints of a provider share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_device.auth.provider.grants import Grants
from pytest_device.auth.provider.keys import SigningKeys
from pytest_device.auth.provider.model import Client, ProviderClock, User


@dataclass(frozen=True, slots=True)
class Session:
    """Who signed in: ``since`` is by the provider's clock, ``auth_time`` by the machine's."""

    user: str
    since: float
    auth_time: int


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
    remembers: bool = False
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    """By the values of their cookies."""

    def sign_out(self, user: str) -> None:
        """Revoke all tokens of a user, and end their sessions."""
        self.grants.revoke_user(user)
        self.sessions = {key: one for key, one in self.sessions.items() if one.user != user}

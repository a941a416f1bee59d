"""State shared by the endpoints of the provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_device.auth.provider.grants import Grants
from pytest_device.auth.provider.keys import SigningKeys
from pytest_device.auth.provider.model import Client, ProviderClock, User


@dataclass(frozen=True, slots=True)
class Session:
    """Session of a signed-in user; ``since`` is the provider's time, ``auth_time`` the system's, both in seconds."""

    user: str
    since: float
    auth_time: int


@dataclass(slots=True)
class Settings:
    """Issuer, users, clients and tokens of the provider; a test can change ``automatic_user`` at any time."""

    issuer: str
    users: Mapping[str, User]
    clients: Mapping[str, Client]
    clock: ProviderClock
    grants: Grants
    keys: SigningKeys
    automatic_user: str | None = None
    remembers: bool = False
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    """Sessions by cookie value."""

    def sign_out(self, user: str) -> None:
        """Revoke all tokens of a user and end the user's sessions."""
        self.grants.revoke_user(user)
        self.sessions = {key: one for key, one in self.sessions.items() if one.user != user}

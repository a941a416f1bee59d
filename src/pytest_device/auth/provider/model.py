"""What a test sets of the identity provider, and what the provider saw."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from pytest_device.errors import AuthConfigError

Endpoint: TypeAlias = Literal["discovery", "authorize", "token", "revoke", "userinfo", "jwks", "end_session"]
FailureKind: TypeAlias = Literal[
    "deny",
    "delay",
    "hang",
    "server_error",
    "redirect",
    "oversized",
    "trickle",
    "wrong_state",
    "wrong_issuer",
    "expired_code",
    "bad_signature",
    "alg_none",
]

ENDPOINTS: Final[tuple[Endpoint, ...]] = get_args(Endpoint)
_ONLY_AT: Final[Mapping[FailureKind, tuple[Endpoint, ...]]] = {
    "deny": ("authorize", "token", "userinfo"),
    "wrong_state": ("authorize",),
    "wrong_issuer": ("discovery", "authorize", "token"),
    "expired_code": ("authorize",),
    "bad_signature": ("token",),
    "alg_none": ("token",),
}


@dataclass(frozen=True, slots=True)
class User:
    """A user: ``claims`` are what the provider knows of them; without a password, any is accepted."""

    name: str
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Client:
    """An app that may ask users to sign in; one without ``secret`` is public."""

    client_id: str
    redirect_uris: Sequence[str]
    secret: str | None = field(default=None, repr=False)
    scopes: Sequence[str] = ("openid", "profile", "email", "address", "phone", "offline_access")
    post_logout_redirect_uris: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long codes and tokens are valid, in seconds by the provider's clock."""

    code: float = 60
    access_token: float = 3600
    refresh_token: float = 30 * 24 * 3600
    id_token: float = 3600


@dataclass(frozen=True, slots=True)
class Failure:
    """How an endpoint fails the next ``times`` times; ``seconds`` is the length of a delay."""

    endpoint: Endpoint
    kind: FailureKind
    times: int = 1
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.endpoint not in ENDPOINTS:
            raise AuthConfigError(f"endpoint {self.endpoint!r} is unknown: there are {', '.join(ENDPOINTS)}")
        possible = [kind for kind in get_args(FailureKind) if self.endpoint in _ONLY_AT.get(kind, ENDPOINTS)]
        if self.kind not in possible:
            raise AuthConfigError(
                f"failure {self.kind!r} is unknown at {self.endpoint!r}: there are {', '.join(possible)}"
            )


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the provider answered with ``status``; ``error`` is the code, or what its page said."""

    endpoint: Endpoint
    method: str
    params: Mapping[str, str] = field(repr=False)
    status: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Authorization:
    """An answer to an authorization request: ``error`` is empty if the user consented."""

    client_id: str
    user: str
    scopes: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens that a client received for a code or a refresh token."""

    client_id: str
    user: str
    scopes: tuple[str, ...]
    grant_type: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    id_token: str | None = field(default=None, repr=False)


class ProviderClock:
    """The clock by which codes and tokens expire: the machine's, and what a test has advanced it by.

    The times in ID tokens are the machine's: clients would refuse those of another clock.
    """

    def __init__(self) -> None:
        self._advanced = 0.0

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self._advanced

    def advance(self, seconds: float) -> None:
        """Let the codes and tokens so far age."""
        self._advanced += seconds

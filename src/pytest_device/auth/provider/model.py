"""Settings of the identity provider, and the entries of its journal: what it received and issued."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from pytest_device import serving
from pytest_device.auth.secret_values import learn_sent
from pytest_device.errors import AuthConfigError, hides_frames
from pytest_device.secret_registry import SECRETS
from pytest_device.spelling import hint, unknown

__tracebackhide__ = hides_frames

Endpoint: TypeAlias = Literal[
    "discovery", "authorize", "token", "revoke", "userinfo", "jwks", "end_session"
]
FailureKind: TypeAlias = Literal[
    "deny",
    "delay",
    "hang",
    "server_error",
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
"""Endpoints of the failures that only some of them can have; all others can happen at each."""
_ABSOLUTE_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^#\s]*")
"""An absolute URI without a fragment (RFC 6749 section 3.1.2)."""
_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""A scope (RFC 6749 section 3.3)."""


@dataclass(frozen=True, slots=True)
class User:
    """User with the ``claims`` of the user info endpoint; without ``password``, the provider accepts any password."""

    name: str
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.learn_secrets()

    def learn_secrets(self) -> None:
        """Register the password; a copy from another process has not been registered in this one."""
        learn_sent({"password": self.password})


@dataclass(frozen=True, slots=True)
class Client:
    """Registered OAuth client; a client without a ``secret`` is public."""

    client_id: str
    redirect_uris: Sequence[str]
    secret: str | None = field(default=None, repr=False)
    scopes: Sequence[str] = (
        "openid",
        "profile",
        "email",
        "address",
        "phone",
        "offline_access",
    )
    post_logout_redirect_uris: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.learn_secrets()
        for name in ("redirect_uris", "scopes", "post_logout_redirect_uris"):
            value = getattr(self, name)
            # A string is a sequence, too, of its characters.
            if isinstance(value, str):
                raise AuthConfigError(
                    f"{name} {value!r} must be a list, for example {value.split()}"
                )
        for scope in self.scopes:
            if not _SCOPE.fullmatch(scope):
                raise AuthConfigError(
                    f"the scope {scope!r} of the client {self.client_id!r} must be one word of printable ASCII without "
                    'blanks, " and \\ (RFC 6749 section 3.3): list each scope by itself'
                )
        for uri in (*self.redirect_uris, *self.post_logout_redirect_uris):
            if not _ABSOLUTE_URI.fullmatch(uri):
                raise AuthConfigError(
                    f"the redirect URI {uri!r} of the client {self.client_id!r} must be an absolute URI without a "
                    "fragment and blanks, for example com.acme.app:/signed-in (RFC 6749 section 3.1.2)"
                )

    def learn_secrets(self) -> None:
        """Register the client secret; a copy from another process has not been registered in this one."""
        SECRETS.learn(self.secret)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Lifetimes of codes and tokens, in seconds of the provider's clock."""

    code: float = 60
    access_token: float = 3600
    refresh_token: float = 30 * 24 * 3600
    id_token: float = 3600


@dataclass(frozen=True, slots=True)
class Failure(serving.Failure):
    """Failure of the next ``times`` requests to an endpoint; ``seconds`` is the duration of a delay."""

    endpoint: Endpoint
    kind: FailureKind

    def __post_init__(self) -> None:
        serving.Failure.__post_init__(self)
        if self.endpoint not in ENDPOINTS:
            raise AuthConfigError(unknown("endpoint", self.endpoint, ENDPOINTS))
        possible = [
            kind
            for kind in get_args(FailureKind)
            if self.endpoint in _ONLY_AT.get(kind, ENDPOINTS)
        ]
        if self.kind not in possible:
            raise AuthConfigError(
                f"unknown failure {self.kind!r} for endpoint {self.endpoint!r}{hint(self.kind, possible)} "
                f"(available: {', '.join(possible)})"
            )


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """Request that the provider received, with the ``status`` and the error code or message of the response.

    The status is 0 without a response (the failure ``hang``).
    """

    endpoint: Endpoint
    method: str
    params: Mapping[str, str] = field(repr=False)
    status: int = 0
    error: str = ""

    def __post_init__(self) -> None:
        learn_sent(self.params)


@dataclass(frozen=True, slots=True)
class Authorization:
    """Response to an authorization request; ``error`` is empty if the user consented."""

    client_id: str
    user: str
    scopes: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens issued to a client for a code or a refresh token."""

    client_id: str
    user: str
    scopes: tuple[str, ...]
    grant_type: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    id_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        SECRETS.learn(self.access_token, self.refresh_token, self.id_token)


class ProviderClock:
    """Clock for the expiry of codes and tokens: the system clock plus the seconds that a test has added.

    Timestamps in ID tokens use the system clock, because clients would reject others.
    """

    def __init__(self) -> None:
        self._advanced = 0.0

    def now(self) -> float:
        """Return the Unix time in seconds."""
        return time.time() + self._advanced

    def advance(self, seconds: float) -> None:
        """Move the clock forward, which ages all codes and tokens issued so far."""
        self._advanced += seconds

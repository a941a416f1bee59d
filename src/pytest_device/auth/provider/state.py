"""State of the provider: users, clients, sessions, and issued codes and tokens (RFC 6749, 7636, 7009, 9700)."""

import hmac
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pytest_device.auth.provider.keys import SigningKeys
from pytest_device.auth.provider.model import Client, Lifetimes, ProviderClock, User
from pytest_device.auth.request import derive_challenge
from pytest_device.errors import AuthConfigError, hides_frames

__tracebackhide__ = hides_frames


class OAuthError(Exception):
    """Error response with a code of RFC 6749 or RFC 6750."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status


@dataclass(frozen=True, slots=True)
class Grant:
    """Consent of a user to a client; all tokens derived from it have the same ``family``.

    A refresh token keeps the scopes that a refresh is ``narrowed_from``.
    """

    client_id: str
    user: str
    scopes: tuple[str, ...]
    redirect_uri: str
    challenge: str
    nonce: str | None
    auth_time: int
    family: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    narrowed_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Issued:
    grant: Grant
    expires: float
    is_used: bool = False


class Grants:
    """Codes and tokens of a provider."""

    def __init__(self, clock: ProviderClock, lifetimes: Lifetimes) -> None:
        self.lock = threading.RLock()
        """Held while tokens are exchanged or revoked: apps do so in the server's thread, tests revoke in their own."""
        self._clock = clock
        self.lifetimes = lifetimes
        self._codes: dict[str, _Issued] = {}
        self._access: dict[str, _Issued] = {}
        self._refresh: dict[str, _Issued] = {}

    def issue_code(self, grant: Grant, *, is_expired: bool = False) -> str:
        """Issue an authorization code."""
        lifetime = -1 if is_expired else self.lifetimes.code

        return _put(self._codes, _Issued(grant, self._clock.now() + lifetime))

    def redeem(self, client: Client, params: Mapping[str, str]) -> Grant:
        """Redeem a code and return its grant; the second use of a code revokes the tokens of the first."""
        code = _required(params, "code")
        issued = self._unused(
            self._codes.get(code),
            client,
            unknown="the code is unknown or belongs to another client",
            reused="the code was used before: its tokens are revoked",
        )
        # Also by a request that fails: whoever has the code gets one attempt.
        self._codes[code] = replace(issued, is_used=True)

        grant = issued.grant
        if issued.expires < self._clock.now():
            raise OAuthError("invalid_grant", "the code has expired")
        if params.get("redirect_uri") != grant.redirect_uri:
            raise OAuthError(
                "invalid_grant",
                "redirect_uri differs from that of the authorization request",
            )
        _check_verifier(params.get("code_verifier", ""), grant.challenge)

        return grant

    def rotate(self, client: Client, params: Mapping[str, str]) -> Grant:
        """Invalidate a refresh token and return its grant; the second use of a token revokes its family."""
        token = _required(params, "refresh_token")
        issued = self._unused(
            self._refresh.get(token),
            client,
            unknown="the refresh token is unknown, revoked or belongs to another client",
            reused="the refresh token was used before: its family is revoked",
        )
        if issued.expires < self._clock.now():
            raise OAuthError("invalid_grant", "the refresh token has expired")

        grant = issued.grant
        # A blank scope is none: the new tokens have those of the old ones.
        scopes = tuple(params.get("scope", "").split()) or grant.scopes
        if not set(scopes) <= set(grant.scopes):
            raise OAuthError("invalid_scope", "the scope exceeds what the user allowed")

        self._refresh[token] = replace(issued, is_used=True)

        return replace(grant, scopes=scopes, narrowed_from=grant.scopes)

    def _unused(
        self, issued: _Issued | None, client: Client, *, unknown: str, reused: str
    ) -> _Issued:
        """Return what a client may use once. Raises OAuthError with one of the texts; a reuse revokes the family."""
        if issued is None or issued.grant.client_id != client.client_id:
            raise OAuthError("invalid_grant", unknown)
        # The first or the second use is that of a thief (RFC 6749 section 4.1.2, RFC 9700 section 4.14.2).
        if issued.is_used:
            self.revoke_family(issued.grant.family)
            raise OAuthError("invalid_grant", reused)

        return issued

    def issue_tokens(self, grant: Grant) -> tuple[str, str]:
        """Issue an access token, and a refresh token with the scopes of the former one (RFC 6749 section 6)."""
        now = self._clock.now()
        access = _Issued(grant, now + self.lifetimes.access_token)
        all_scopes = replace(grant, scopes=grant.narrowed_from or grant.scopes)
        refresh = _Issued(all_scopes, now + self.lifetimes.refresh_token)

        return _put(self._access, access), _put(self._refresh, refresh)

    def allowed_by(self, access_token: str) -> Grant:
        """Return the grant of a valid access token. Raises OAuthError for any other."""
        issued = self._access.get(access_token)
        if issued is None or issued.expires < self._clock.now():
            raise OAuthError(
                "invalid_token", "the access token is unknown, expired or revoked", 401
            )

        return issued.grant

    def revoke(self, client: Client, token: str) -> None:
        """Revoke an access token, or a refresh token and its family; ignore an unknown token (RFC 7009)."""
        with self.lock:
            issued = self._refresh.get(token) or self._access.get(token)
            if issued is None:
                return
            if issued.grant.client_id != client.client_id:
                raise OAuthError("invalid_grant", "the token belongs to another client")

            if token in self._access:
                del self._access[token]
            else:
                self.revoke_family(issued.grant.family)

    def revoke_family(self, family: str) -> None:
        """Revoke the code and all tokens derived from one consent."""
        self._revoke(lambda grant: grant.family == family)

    def revoke_user(self, user: str) -> None:
        """Revoke all codes and tokens of a user."""
        self._revoke(lambda grant: grant.user == user)

    def _revoke(self, matches: Callable[[Grant], bool]) -> None:
        with self.lock:
            # A code, too: it would be exchanged for new tokens.
            for tokens in (self._codes, self._access, self._refresh):
                for token, issued in tuple(tokens.items()):
                    if matches(issued.grant):
                        del tokens[token]


@dataclass(frozen=True, slots=True)
class Session:
    """Session of a user, who signed in at ``auth_time``, in seconds."""

    user: str
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
        """Revoke all codes and tokens of a user and end the user's sessions."""
        self.grants.revoke_user(user)
        # A copy: another thread may start a session.
        for key, session in tuple(self.sessions.items()):
            if session.user == user:
                self.sessions.pop(key, None)


def _put(tokens: dict[str, _Issued], issued: _Issued) -> str:
    token = secrets.token_urlsafe(32)
    tokens[token] = issued

    return token


def _required(params: Mapping[str, str], name: str) -> str:
    """Return a parameter of a request. Raises OAuthError (RFC 6749 section 5.2) if it is missing or empty."""
    value = params.get(name)
    if not value:
        raise OAuthError("invalid_request", f"{name} is missing")

    return value


def _check_verifier(verifier: str, challenge: str) -> None:
    try:
        derived = derive_challenge(verifier)
    except AuthConfigError as error:
        raise OAuthError("invalid_grant", str(error)) from None
    if not hmac.compare_digest(derived, challenge):
        raise OAuthError(
            "invalid_grant", "the code verifier does not match the challenge"
        )

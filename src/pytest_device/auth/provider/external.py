"""Sign-in at a provider that the tests don't control, such as a team's staging one, through its page."""

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import Final, Self, TypeAlias

from pytest_device.auth.config import DiscoveryDocument
from pytest_device.auth.discovery import fetch_discovery
from pytest_device.auth.provider.model import Client, User
from pytest_device.auth.provider.sign_in import is_fresh
from pytest_device.auth.request import AuthRequest
from pytest_device.auth.token import TokenResponse, exchange_code
from pytest_device.auth.urls import check_issuer
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    ConfigError,
    DeviceError,
    ResponseError,
    TokenError,
    UnexpectedReplyError,
    hides_frames,
)
from pytest_device.http_status import is_temporary_status
from pytest_device.redact import shown
from pytest_device.spelling import unknown

__tracebackhide__ = hides_frames

OpenPage: TypeAlias = Callable[[str, str, str, str], str]
"""Signs a user in on a page: gets its URL, the redirect URI, the user name and password; returns the redirect's URL.

Raises ConfigError if the page or the account needs another setting.
"""
SCOPES: Final = ("openid", "profile")

_ATTEMPTS: Final = 2
"""Sign-ins of one user to try if the provider fails; after a refusal, more could lock the account."""
_TEMPORARY: Final = frozenset(("server_error", "temporarily_unavailable"))


class ExternalProvider:
    """OpenID Connect provider of someone else; use it as a context manager.

    ``open_page`` completes its page. Tokens are kept in memory. Raises AuthConfigError for an invalid issuer, and
    without users or with one that has no password.
    """

    def __init__(
        self,
        issuer: str,
        *,
        client: Client,
        users: Iterable[User],
        open_page: OpenPage,
    ) -> None:
        self.issuer = check_issuer(issuer)
        self._client = client
        self._users = {user.name: user for user in users}
        self._open_page = open_page
        self._lock = threading.Lock()
        self._discovery: DiscoveryDocument | None = None
        self._tokens: dict[tuple[str, tuple[str, ...]], TokenResponse] = {}
        self._failures: dict[tuple[str, tuple[str, ...]], list[DeviceError]] = {}

        # A copy from another process has not been registered in this one.
        client.learn_secrets()
        for user in self._users.values():
            user.learn_secrets()
        if not self._users:
            raise AuthConfigError("the sign-in at a provider needs at least one user")
        without_password = [
            repr(user.name) for user in self._users.values() if not user.password
        ]
        if without_password:
            raise AuthConfigError(f"no password for {', '.join(without_password)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Without the lock: an interrupted sign-in may still hold it.
        self._tokens.clear()

    def prepare(self) -> None:
        """Sign in all users, before anything is paid for that needs one.

        Raises the errors of `sign_in` for the first user. Those of others are raised once a test asks for the user:
        most tests do without.
        """
        first, *others = self._users
        self.sign_in(first)

        for name in others:
            # Only once: after that, the tests that ask for a user renew its tokens.
            key = (name, SCOPES)
            if key in self._tokens or self._failures.get(key):
                continue

            with suppress(DeviceError):
                self.sign_in(name)

    def sign_in(
        self,
        user: str,
        scopes: Sequence[str] = SCOPES,
        *,
        client_id: str | None = None,
    ) -> TokenResponse:
        """Return the tokens of a user, who signs in on the page once; stale ones are refreshed.

        Without a refresh token, or once that has expired, the user signs in again. Raises ConfigError for an unknown
        user or client, and if the provider refuses: it is not asked again then. Raises TokenError,
        UnexpectedReplyError and TransportError if it fails.
        """
        if user not in self._users:
            raise AuthConfigError(unknown("user", user, self._users))
        if client_id not in (None, self._client.client_id):
            raise AuthConfigError(
                unknown("client", client_id or "", [self._client.client_id])
            )

        key = (user, tuple(scopes))
        with self._lock:
            tokens = self._tokens.get(key)
            if tokens is not None and not is_fresh(tokens):
                tokens = self._refreshed(tokens)
            if tokens is None:
                tokens = self._signed_in(key)
            self._tokens[key] = tokens

        return tokens

    def _refreshed(self, tokens: TokenResponse) -> TokenResponse | None:
        """Return new tokens, None if the user has to sign in again."""
        if not tokens.refresh_token or self._discovery is None:
            return None

        config = {
            "client_id": self._client.client_id,
            "client_secret": self._client.secret,
        }
        try:
            return tokens.refresh(config, self._discovery)
        except TokenError as error:
            # It has expired or was revoked; any other error is one of the client.
            if error.code != "invalid_grant":
                raise
            return None

    def _signed_in(self, key: tuple[str, tuple[str, ...]]) -> TokenResponse:
        """Sign the user in, unless that was refused before. Raises the error of the last attempt."""
        failures = self._failures.setdefault(key, [])
        if failures:
            is_refused = isinstance(failures[-1], ConfigError)
            # A copy: an exception that is raised twice collects both tracebacks.
            if is_refused or len(failures) >= _ATTEMPTS:
                raise copy(failures[-1])

        name, scopes = key
        try:
            tokens = self._through_page(self._users[name], scopes)
        except DeviceError as error:
            failures.append(self._named(error, name))
            raise copy(failures[-1]) from None

        failures.clear()

        return tokens

    def _through_page(self, user: User, scopes: Sequence[str]) -> TokenResponse:
        if self._discovery is None:
            self._discovery = self._discovered()

        # Only an ID token returns a nonce.
        nonce = secrets.token_urlsafe() if "openid" in scopes else None
        redirect_uri = self._client.redirect_uris[0]
        request = AuthRequest(
            {
                "client_id": self._client.client_id,
                "redirect_uri": redirect_uri,
                "scopes": scopes,
                "extra_params": {"nonce": nonce} if nonce else {},
            }
        )

        def browser(url: str, redirect_uri: str) -> str:
            return self._open_page(url, redirect_uri, user.name, user.password or "")

        result = request.prompt(self._discovery, browser=browser)
        if result.error or "code" not in result.params:
            raise result.error or AuthError(
                {"error": "no_code", "error_description": f"{result.type}, no code"}
            )

        return exchange_code(
            {
                "client_id": self._client.client_id,
                "client_secret": self._client.secret,
                "redirect_uri": redirect_uri,
                "code": result.params["code"],
                "scopes": scopes,
                "extra_params": {"code_verifier": request.code_verifier},
            },
            self._discovery,
            nonce=nonce,
        )

    def _discovered(self) -> DiscoveryDocument:
        """Fetch the provider's metadata; raises ConfigError if there is none of this issuer."""
        try:
            return fetch_discovery(self.issuer)
        except UnexpectedReplyError as error:
            if is_temporary_status(error.status or 0):
                raise
            raise ConfigError(
                f"{error}. The issuer must be exactly as in the provider's metadata"
            ) from None

    @property
    def _as_client(self) -> str:
        uri = self._client.redirect_uris[0]
        return f"client {self._client.client_id!r}, redirect URI {uri}"

    def _named(self, error: DeviceError, name: str) -> DeviceError:
        """Return an error that names the sign-in; one that a retry can't help is a mistake in the configuration."""
        sign_in = f"sign-in of {name!r} at {shown(self.issuer)}"
        if isinstance(error, ResponseError) and error.code not in _TEMPORARY:
            # A description may have line breaks.
            description = " ".join(str(error).split())
            return ConfigError(
                f"{sign_in}: {error.code}: {description} ({self._as_client})"
            )
        if isinstance(error, ConfigError):
            return ConfigError(*(f"{sign_in}: {problem}" for problem in error.problems))
        if isinstance(error, UnexpectedReplyError):
            return UnexpectedReplyError(f"{sign_in}: {error}")

        return error

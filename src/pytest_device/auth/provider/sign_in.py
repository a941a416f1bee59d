"""Sign-in through the authorization code flow without a browser, with a token cache."""

import threading
from collections.abc import Sequence

import httpx

from pytest_device.auth.config import DiscoveryDocument
from pytest_device.auth.provider.model import Client, User
from pytest_device.auth.provider.state import OAuthError, Settings
from pytest_device.auth.request import AuthRequest
from pytest_device.auth.token import MARGIN_SECONDS, TokenResponse, exchange_code
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    TokenError,
    TransportError,
    UnexpectedReplyError,
    hides_frames,
)
from pytest_device.redact import uses_tls

__tracebackhide__ = hides_frames


def is_fresh(tokens: TokenResponse) -> bool:
    """Return whether tests may still use tokens: with the margin of `TokenResponse`, or for half of a shorter lifetime."""
    margin = min(-MARGIN_SECONDS, (tokens.expires_in or 0) / 2)

    return TokenResponse.is_token_fresh(tokens, -margin)


class SignIn:
    """Sign-in at the provider of ``settings`` through its local ``url``, never through a tunnel."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._discovery = DiscoveryDocument(
            authorization_endpoint=f"{url}/authorize",
            token_endpoint=f"{url}/token",
            discovery_document={"issuer": settings.issuer, "jwks_uri": f"{url}/jwks"},
        )
        self._http = httpx.Client(verify=uses_tls(url))
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str, tuple[str, ...]], TokenResponse] = {}

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def tokens(
        self, user: User, client: Client, scopes: Sequence[str]
    ) -> TokenResponse:
        """Return cached tokens, refreshed if stale, or sign in if there are none or they were revoked.

        Raises the errors of the code flow.
        """
        key = (client.client_id, user.name, tuple(scopes))
        # Held during the requests: other threads wait for the same tokens.
        with self._lock:
            cached = self._tokens.get(key)
            tokens = self._valid(client, cached) if cached else None
            if tokens is None:
                tokens = self._signed_in(user, client, scopes)
            self._tokens[key] = tokens

        return tokens

    def _valid(self, client: Client, cached: TokenResponse) -> TokenResponse | None:
        """Return the tokens if they are valid, otherwise refresh them; return None if they were revoked."""
        if is_fresh(cached) and self._is_accepted(cached):
            return cached

        config = {"client_id": client.client_id, "client_secret": client.secret}
        try:
            return cached.refresh(config, self._discovery, client=self._http)
        except TokenError as error:
            # A test has revoked the refresh token: the user signs in again.
            if error.code != "invalid_grant":
                raise
            return None

    def _is_accepted(self, tokens: TokenResponse) -> bool:
        try:
            self._settings.grants.allowed_by(tokens.access_token)
        except OAuthError:
            return False

        return True

    def _signed_in(
        self, user: User, client: Client, scopes: Sequence[str]
    ) -> TokenResponse:
        if not client.redirect_uris:
            raise AuthConfigError(
                f"the client {client.client_id!r} has no redirect URI to sign in with"
            )

        redirect_uri = client.redirect_uris[0]
        request = AuthRequest(
            {
                "client_id": client.client_id,
                "redirect_uri": redirect_uri,
                "scopes": scopes,
            }
        )
        form = {"user": user.name, "password": user.password or "", "decision": "allow"}
        try:
            answer = self._http.post(
                request.make_auth_url(self._discovery),
                data=form,
                follow_redirects=False,
            )
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise TransportError(
                f"no reply from the authorization endpoint: {reason}", sent=True
            ) from None

        if not answer.is_redirect:
            raise UnexpectedReplyError(
                f"the authorization endpoint returned {answer.status_code} (expected a redirect)"
            )

        result = request.parse_return_url(answer.headers["location"])
        if result.error or "code" not in result.params:
            raise result.error or AuthError(result.params)

        config = {
            "client_id": client.client_id,
            "client_secret": client.secret,
            "redirect_uri": redirect_uri,
            "code": result.params["code"],
            "scopes": scopes,
            "extra_params": {"code_verifier": request.code_verifier},
        }

        return exchange_code(config, self._discovery, client=self._http)

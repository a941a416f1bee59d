"""Token requests: code exchange, refresh and revocation (RFC 6749, RFC 7009)."""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pytest_device.auth.config import (
    AUTHORIZATION_CODE,
    REFRESH_TOKEN,
    AccessTokenRequestConfig,
    DiscoveryDocument,
    RefreshTokenRequestConfig,
    RevokeTokenRequestConfig,
    TokenRequestConfig,
    python_names,
    read,
)
from pytest_device.auth.http import (
    ACCEPT_JSON,
    FORM_TYPE,
    Reply,
    seconds_of,
    send,
    text_of,
)
from pytest_device.auth.id_token import (
    check_same_subject,
    missing_id_token,
    require_id_tokens,
    verify_id_token,
)
from pytest_device.auth.secret_values import learn_received
from pytest_device.auth.urls import component
from pytest_device.errors import (
    AuthConfigError,
    TokenError,
    UnexpectedReplyError,
    hides_frames,
)
from pytest_device.http_status import SERVER_ERRORS
from pytest_device.redact import shown
from pytest_device.secret_registry import SECRETS

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

MARGIN_SECONDS: Final = -600
"""Margin that makes a token stale ten minutes before it expires, so that work in progress can finish with it."""

_KEPT: Final = ("refresh_token", "scope", "state", "id_token", "expires_in")
"""Values of a token that a refresh keeps if the provider omits them."""
_TEXTS: Final = (
    "access_token",
    "token_type",
    "refresh_token",
    "scope",
    "state",
    "id_token",
)

Discovery = DiscoveryDocument | Mapping[str, Any]
_C = TypeVar("_C", bound=TokenRequestConfig)
_R = TypeVar("_R", bound=TokenRequestConfig | RevokeTokenRequestConfig)


def get_current_time_in_seconds() -> int:
    """Return the Unix time in whole seconds."""
    return int(time.time())


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """Tokens that expire ``expires_in`` seconds after ``issued_at``; ``raw_response`` is the complete response."""

    access_token: str = field(default="", repr=False)
    token_type: str = "bearer"  # noqa: S105  # a token type
    expires_in: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None
    state: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)
    issued_at: float = field(default_factory=get_current_time_in_seconds)
    raw_response: Mapping[str, Any] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        SECRETS.learn(self.access_token, self.refresh_token, self.id_token)
        learn_received(self.raw_response)

    @classmethod
    def from_query_params(cls, params: Mapping[str, Any]) -> Self:
        """Create a response from parameters. Raises UnexpectedReplyError for a value of the wrong type."""
        # Before any error: a traceback shows what was given.
        learn_received(params)

        values: dict[str, Any] = {name: text_of(params, name) for name in _TEXTS}
        for name in ("expires_in", "issued_at"):
            values[name] = seconds_of(params, name)

        return cls(
            **{name: value for name, value in values.items() if value is not None}
        )

    @staticmethod
    def is_token_fresh(
        token: "TokenResponse | Mapping[str, Any] | None",
        seconds_margin: float | None = MARGIN_SECONDS,
        *,
        now: float | None = None,
    ) -> bool:
        """Return whether a token is valid until its expiry plus ``seconds_margin``, which is negative to end earlier.

        A token without ``expires_in`` never expires; one with it, but without ``issued_at``, is stale.

        >>> TokenResponse.is_token_fresh({"expiresIn": 3600, "issuedAt": 1000}, now=3999)
        True
        >>> TokenResponse.is_token_fresh({"expiresIn": 3600, "issuedAt": 1000}, now=4000)
        False
        """
        if token is None:
            return False

        has_time_of_issue = True
        if not isinstance(token, TokenResponse):
            params = python_names(token)
            token = TokenResponse.from_query_params(params)
            has_time_of_issue = "issued_at" in params

        if token.expires_in is None:
            return True
        if not has_time_of_issue:
            return False

        time_now = get_current_time_in_seconds() if now is None else now
        margin = MARGIN_SECONDS if seconds_margin is None else seconds_margin

        return time_now < token.issued_at + token.expires_in + margin

    def should_refresh(self, *, now: float | None = None) -> bool:
        """Return whether the token is stale and can be refreshed."""
        return bool(self.refresh_token) and not self.is_token_fresh(self, now=now)

    def refresh(
        self,
        config: TokenRequestConfig | Mapping[str, Any],
        discovery: Discovery,
        *,
        client: "httpx.Client | None" = None,
    ) -> "TokenResponse":
        """Refresh the tokens, keeping the values that the provider omits.

        Raises the errors of `RefreshTokenRequest.perform`, and AuthError if the new ID token is for another user
        (OpenID Connect Core section 12.2).
        """
        common = read(TokenRequestConfig, config)
        document = read(DiscoveryDocument, discovery)
        values = {
            field.name: getattr(common, field.name)
            for field in fields(TokenRequestConfig)
        }
        request = RefreshTokenRequest({**values, "refresh_token": self.refresh_token})
        new = request.perform(document, client=client)

        # Without the provider's keys, the new ID token proves nothing.
        if self.id_token and new.id_token and "jwks_uri" in document.discovery_document:
            claims = verify_id_token(
                new.id_token, document, client_id=common.client_id, client=client
            )
            check_same_subject(claims, self.id_token)

        omitted = [name for name in _KEPT if getattr(new, name) in (None, "")]

        return replace(new, **{name: getattr(self, name) for name in omitted})


class _Request(Generic[_R]):
    def __init__(self, config: _R) -> None:
        self._config = config

    def get_request_config(self) -> _R:
        """Return the configuration of the request."""
        return self._config

    def get_headers(self) -> dict[str, str]:
        """Return the headers, with the credentials of a client that has a secret (RFC 6749 section 2.3.1).

        Extra headers never override those of the request, in whatever case they are spelled.
        """
        client_id = self._config.client_id
        secret = self._config.client_secret
        own = {"Content-Type": FORM_TYPE}
        if secret is not None and client_id:
            credentials = f"{component(client_id)}:{component(secret)}".encode()
            encoded = base64.b64encode(credentials).decode("ascii")
            own["Authorization"] = f"Basic {encoded}"

        own_names = {name.lower() for name in own}
        extra = {
            name: value
            for name, value in (self._config.extra_headers or {}).items()
            if str(name).lower() not in own_names
        }

        return {**extra, **own}


class _TokenRequest(_Request[_C]):
    def __init__(
        self, config: _C, grant_type: str, own_params: Mapping[str, str]
    ) -> None:
        super().__init__(config)
        self._grant_type = grant_type
        self._own_params = own_params
        if not config.client_id:
            raise AuthConfigError(f"{type(self).__name__} needs a client_id")

    def get_query_body(self) -> dict[str, str]:
        """Return the parameters of the body; extra parameters never override those of the request."""
        config = self._config
        body = {"grant_type": self._grant_type}
        if not config.client_secret:
            body["client_id"] = config.client_id
        if config.scopes is not None:
            body["scope"] = " ".join(config.scopes)

        # Written twice: first for their order, then over extra parameters of the same names.
        return {**body, **(config.extra_params or {}), **body, **self._own_params}

    def _perform(
        self,
        discovery: Discovery,
        client: "httpx.Client | None",
        *,
        nonce: str | None = None,
        needs_id_token: bool = False,
    ) -> TokenResponse:
        document = read(DiscoveryDocument, discovery)
        is_openid = "openid" in (self._config.scopes or ())
        if not document.token_endpoint:
            raise AuthConfigError("the discovery document has no token_endpoint")
        if is_openid:
            require_id_tokens(document)

        headers = {"Accept": ACCEPT_JSON, **self.get_headers()}
        body = self.get_query_body()
        reply = send("POST", document.token_endpoint, headers, client, form=body)
        tokens = _tokens(reply)

        if is_openid and needs_id_token and not tokens.id_token:
            raise missing_id_token(tokens.scope)
        if is_openid and tokens.id_token:
            verify_id_token(
                tokens.id_token,
                document,
                client_id=self._config.client_id,
                nonce=nonce,
                client=client,
            )

        return tokens


class AccessTokenRequest(_TokenRequest[AccessTokenRequestConfig]):
    """Authorization code exchange (RFC 6749 section 4.1.3); a missing code or redirect URI is an AuthConfigError."""

    def __init__(self, config: AccessTokenRequestConfig | Mapping[str, Any]) -> None:
        request = read(AccessTokenRequestConfig, config)
        if not request.redirect_uri:
            raise AuthConfigError(
                "AccessTokenRequest needs the redirect_uri of the authorization request, such as myapp://redirect"
            )
        if not request.code:
            raise AuthConfigError(
                "AccessTokenRequest needs the code that the identity provider returned"
            )

        super().__init__(
            request,
            AUTHORIZATION_CODE,
            {"redirect_uri": request.redirect_uri, "code": request.code},
        )

    def perform(
        self,
        discovery: Discovery,
        *,
        client: "httpx.Client | None" = None,
        nonce: str | None = None,
    ) -> TokenResponse:
        """Exchange the code for tokens and, if ``scopes`` include openid, verify the ID token and its nonce.

        Raises TokenError for an error response, AuthError for an invalid ID token, AuthConfigError before the request
        is sent, UnexpectedReplyError, TransportError.
        """
        return self._perform(discovery, client, nonce=nonce, needs_id_token=True)


class RefreshTokenRequest(_TokenRequest[RefreshTokenRequestConfig]):
    """Token refresh (RFC 6749 section 6); a missing refresh token is an AuthConfigError."""

    def __init__(self, config: RefreshTokenRequestConfig | Mapping[str, Any]) -> None:
        request = read(RefreshTokenRequestConfig, config)
        if not request.refresh_token:
            raise AuthConfigError("RefreshTokenRequest needs a refresh_token")

        super().__init__(
            request, REFRESH_TOKEN, {"refresh_token": request.refresh_token}
        )

    def perform(
        self, discovery: Discovery, *, client: "httpx.Client | None" = None
    ) -> TokenResponse:
        """Refresh the tokens, with an optional ID token; raises the errors of `AccessTokenRequest.perform`."""
        return self._perform(discovery, client)


class RevokeTokenRequest(_Request[RevokeTokenRequestConfig]):
    """Token revocation (RFC 7009 section 2.1); a missing token is an AuthConfigError."""

    def __init__(self, config: RevokeTokenRequestConfig | Mapping[str, Any]) -> None:
        super().__init__(read(RevokeTokenRequestConfig, config))
        if not self._config.token:
            raise AuthConfigError("RevokeTokenRequest needs the token to revoke")

    def get_query_body(self) -> dict[str, str]:
        """Return the parameters of the body."""
        config = self._config
        body = {
            "token": config.token,
            "token_type_hint": config.token_type_hint,
            "client_id": config.client_id,
            "client_secret": config.client_secret,
        }

        return {name: value for name, value in body.items() if value}

    def perform(
        self, discovery: Discovery, *, client: "httpx.Client | None" = None
    ) -> bool:
        """Revoke the token and return True, even for an error response: an invalid token needs no revocation.

        Raises AuthConfigError if the endpoint is missing, UnexpectedReplyError, TransportError.
        """
        endpoint = read(DiscoveryDocument, discovery).revocation_endpoint
        if not endpoint:
            raise AuthConfigError("the discovery document has no revocation_endpoint")

        headers = self.get_headers()
        body = self.get_query_body()
        if "Authorization" in headers:
            # RFC 6749 section 2.3: one authentication method per request.
            body.pop("client_secret", None)
        send("POST", endpoint, headers, client, form=body)

        return True


def exchange_code(
    config: AccessTokenRequestConfig | Mapping[str, Any],
    discovery: Discovery,
    *,
    client: "httpx.Client | None" = None,
    nonce: str | None = None,
) -> TokenResponse:
    """Exchange a code for tokens; raises the errors of `AccessTokenRequest.perform`."""
    return AccessTokenRequest(config).perform(discovery, client=client, nonce=nonce)


def refresh(
    config: RefreshTokenRequestConfig | Mapping[str, Any],
    discovery: Discovery,
    *,
    client: "httpx.Client | None" = None,
) -> TokenResponse:
    """Exchange a refresh token for new tokens; raises the errors of `RefreshTokenRequest.perform`."""
    return RefreshTokenRequest(config).perform(discovery, client=client)


def revoke(
    config: RevokeTokenRequestConfig | Mapping[str, Any],
    discovery: Discovery,
    *,
    client: "httpx.Client | None" = None,
) -> bool:
    """Revoke a token and return True; raises the errors of `RevokeTokenRequest.perform`."""
    return RevokeTokenRequest(config).perform(discovery, client=client)


def _tokens(reply: Reply) -> TokenResponse:
    """Parse a token response; an ``error`` counts with any status, because some providers send errors with 200."""
    try:
        response = reply.json()
    except UnexpectedReplyError:
        if reply.status < SERVER_ERRORS:
            raise
        response = {}

    if "error" in response:
        params: dict[str, str] = {}
        for name, value in response.items():
            if value is not None:
                params[name] = value if isinstance(value, str) else json.dumps(value)
        raise TokenError(params)
    if reply.status >= SERVER_ERRORS:
        raise TokenError(
            {
                "error": "server_error",
                "error_description": f"{shown(reply.url)} returned {reply.status}",
            }
        )
    if not isinstance(response.get("access_token"), str):
        raise UnexpectedReplyError(
            f"{shown(reply.url)} returned {reply.status} without an access_token"
        )

    # A state belongs to the response of the authorization endpoint.
    tokens = TokenResponse.from_query_params({**response, "state": None})

    return replace(tokens, raw_response=response)

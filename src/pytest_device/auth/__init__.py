"""OAuth 2.0 and OpenID Connect sign-in, independent of device sessions and pytest."""

from pytest_device.auth.browser import (
    BrowserResult,
    BrowserSession,
    DriverBrowser,
)
from pytest_device.auth.config import (
    AccessTokenRequestConfig,
    AuthRequestConfig,
    DiscoveryDocument,
    Environment,
    GrantType,
    RedirectUriOptions,
    RefreshTokenRequestConfig,
    RevokeTokenRequestConfig,
    TokenRequestConfig,
    TokenTypeHint,
)
from pytest_device.auth.discovery import (
    fetch_discovery,
    fetch_user_info,
    issuer_with_well_known_url,
    resolve_discovery,
)
from pytest_device.auth.id_token import verify_id_token
from pytest_device.auth.redirect import (
    get_default_return_url,
    get_redirect_url,
    make_redirect_uri,
)
from pytest_device.auth.request import (
    AuthRequest,
    AuthSessionResult,
    derive_challenge,
    dismiss,
    load,
)
from pytest_device.auth.token import (
    AccessTokenRequest,
    RefreshTokenRequest,
    RevokeTokenRequest,
    TokenResponse,
    exchange_code,
    get_current_time_in_seconds,
    refresh,
    revoke,
)
from pytest_device.auth.token_passing import (
    launch_arguments,
    link_with_tokens,
)
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    ResponseError,
    TokenError,
)

__all__ = [
    "AccessTokenRequest",
    "AccessTokenRequestConfig",
    "AuthConfigError",
    "AuthError",
    "AuthRequest",
    "AuthRequestConfig",
    "AuthSessionResult",
    "BrowserResult",
    "BrowserSession",
    "DiscoveryDocument",
    "DriverBrowser",
    "Environment",
    "GrantType",
    "RedirectUriOptions",
    "RefreshTokenRequest",
    "RefreshTokenRequestConfig",
    "ResponseError",
    "RevokeTokenRequest",
    "RevokeTokenRequestConfig",
    "TokenError",
    "TokenRequestConfig",
    "TokenResponse",
    "TokenTypeHint",
    "derive_challenge",
    "dismiss",
    "exchange_code",
    "fetch_discovery",
    "fetch_user_info",
    "get_current_time_in_seconds",
    "get_default_return_url",
    "get_redirect_url",
    "issuer_with_well_known_url",
    "launch_arguments",
    "link_with_tokens",
    "load",
    "make_redirect_uri",
    "refresh",
    "resolve_discovery",
    "revoke",
    "verify_id_token",
]

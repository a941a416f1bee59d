"""OAuth 2.0 and OpenID Connect sign-in, independent of device sessions and pytest."""

from pytest_device.auth.browser import BrowserResult as BrowserResult
from pytest_device.auth.browser import BrowserSession as BrowserSession
from pytest_device.auth.browser import DriverBrowser as DriverBrowser
from pytest_device.auth.browser import LoopbackBrowser as LoopbackBrowser
from pytest_device.auth.config import (
    AccessTokenRequestConfig as AccessTokenRequestConfig,
)
from pytest_device.auth.config import AuthRequestConfig as AuthRequestConfig
from pytest_device.auth.config import DiscoveryDocument as DiscoveryDocument
from pytest_device.auth.config import Environment as Environment
from pytest_device.auth.config import GrantType as GrantType
from pytest_device.auth.config import RedirectUriOptions as RedirectUriOptions
from pytest_device.auth.config import (
    RefreshTokenRequestConfig as RefreshTokenRequestConfig,
)
from pytest_device.auth.config import (
    RevokeTokenRequestConfig as RevokeTokenRequestConfig,
)
from pytest_device.auth.config import TokenRequestConfig as TokenRequestConfig
from pytest_device.auth.config import TokenTypeHint as TokenTypeHint
from pytest_device.auth.discovery import fetch_discovery as fetch_discovery
from pytest_device.auth.discovery import fetch_user_info as fetch_user_info
from pytest_device.auth.discovery import (
    issuer_with_well_known_url as issuer_with_well_known_url,
)
from pytest_device.auth.discovery import resolve_discovery as resolve_discovery
from pytest_device.auth.id_token import verify_id_token as verify_id_token
from pytest_device.auth.redirect import get_default_return_url as get_default_return_url
from pytest_device.auth.redirect import get_redirect_url as get_redirect_url
from pytest_device.auth.redirect import make_redirect_uri as make_redirect_uri
from pytest_device.auth.request import AuthRequest as AuthRequest
from pytest_device.auth.request import AuthSessionResult as AuthSessionResult
from pytest_device.auth.request import derive_challenge as derive_challenge
from pytest_device.auth.request import dismiss as dismiss
from pytest_device.auth.request import load as load
from pytest_device.auth.token import AccessTokenRequest as AccessTokenRequest
from pytest_device.auth.token import RefreshTokenRequest as RefreshTokenRequest
from pytest_device.auth.token import RevokeTokenRequest as RevokeTokenRequest
from pytest_device.auth.token import TokenResponse as TokenResponse
from pytest_device.auth.token import exchange_code as exchange_code
from pytest_device.auth.token import (
    get_current_time_in_seconds as get_current_time_in_seconds,
)
from pytest_device.auth.token import refresh as refresh
from pytest_device.auth.token import revoke as revoke
from pytest_device.auth.token_passing import launch_arguments as launch_arguments
from pytest_device.auth.token_passing import link_with_tokens as link_with_tokens
from pytest_device.errors import AuthConfigError as AuthConfigError
from pytest_device.errors import AuthError as AuthError
from pytest_device.errors import ResponseError as ResponseError
from pytest_device.errors import TokenError as TokenError

"""Authorization requests and their responses (RFC 6749 section 4.1.1, RFC 7636, RFC 9207)."""

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pytest_device.auth.browser import (
    AnyBrowser,
    BrowserSession,
    SessionLock,
    browser_of,
)
from pytest_device.auth.config import AuthRequestConfig, DiscoveryDocument, read
from pytest_device.auth.discovery import resolve_discovery
from pytest_device.auth.id_token import require_id_tokens, require_joserfc
from pytest_device.auth.token import Discovery, TokenResponse
from pytest_device.auth.urls import (
    check_secure,
    form_encoded,
    return_params,
)
from pytest_device.errors import (
    AuthConfigError,
    AuthError,
    UnexpectedReplyError,
    hides_frames,
)
from pytest_device.oauth import is_redirect
from pytest_device.secret_registry import SECRETS

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

RandomBytes: TypeAlias = Callable[[int], bytes]
ResultType: TypeAlias = Literal["success", "error", "cancel", "dismiss", "locked"]

STATE_LENGTH: Final = 10
VERIFIER_LENGTH: Final = 128
"""Length of a generated code verifier, the maximum of RFC 7636 section 4.1."""
MIN_VERIFIER_LENGTH: Final = 43
TIMEOUT_SECONDS: Final = 120.0

_ALPHANUMERICS: Final = "".join(sorted(ascii_letters)) + digits
_UNRESERVED: Final = frozenset(f"{_ALPHANUMERICS}-._~")
"""Characters of a code verifier (RFC 7636 section 4.1)."""
_SESSIONS: Final = SessionLock()
_STATE_MISMATCH: Final = "Cross-Site request verification failed. Cached state and returned state do not match."  # reference wording


@dataclass(frozen=True, slots=True)
class AuthSessionResult:
    """Result of a sign-in; ``authentication`` contains tokens from the redirect itself (implicit grant)."""

    type: ResultType
    url: str | None = field(default=None, repr=False)
    params: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    error: AuthError | None = None
    authentication: TokenResponse | None = None
    error_code: str | None = None


def dismiss() -> None:
    """Cancel the open sign-in of this process, if any."""
    _SESSIONS.dismiss()


class AuthRequest:
    """Authorization request, with PKCE (S256) unless ``use_pkce`` is False.

    >>> request = AuthRequest({"client_id": "app", "redirect_uri": "myapp://redirect"})
    >>> url = request.make_auth_url({"authorization_endpoint": "https://login.example/authorize"})
    >>> request.parse_return_url(f"myapp://redirect?code=c&state={request.state}").type
    'success'

    Args:
        config: The options of the request.
        random_bytes: Returns that many random bytes, for the state and the code verifier.

    Raises:
        AuthConfigError: The client ID or redirect URI is missing, or the challenge method isn't S256.
    """

    def __init__(
        self,
        config: AuthRequestConfig | Mapping[str, Any],
        *,
        random_bytes: RandomBytes = os.urandom,
    ) -> None:
        request = read(AuthRequestConfig, config)
        if request.code_challenge_method != "S256":
            raise AuthConfigError(
                f"code_challenge_method {request.code_challenge_method!r} must be 'S256': others do not protect the code"
            )
        if not request.redirect_uri:
            raise AuthConfigError(
                "AuthRequest needs a redirect_uri, for example com.your.app:/oauthredirect"
            )
        if not request.client_id:
            raise AuthConfigError("AuthRequest needs a client_id")

        self._random_bytes = random_bytes
        self._config = request
        self._issuer: str | None = None
        self._must_return_issuer = False
        state = request.state
        if state is None:
            state = _random_text(STATE_LENGTH, random_bytes)
        self.state = state
        self.code_verifier: str | None = None
        self.code_challenge = request.code_challenge
        self.url: str | None = None

    def get_auth_request_config(self) -> AuthRequestConfig:
        """Return the configuration with the state and, with PKCE, the code challenge, which is generated only once."""
        if self._config.use_pkce and self.code_verifier is None:
            self.code_verifier = _random_text(VERIFIER_LENGTH, self._random_bytes)
            # Registers the verifier as a secret, too.
            self.code_challenge = derive_challenge(self.code_verifier)

        return replace(
            self._config, state=self.state, code_challenge=self.code_challenge
        )

    def make_auth_url(self, discovery: Discovery) -> str:
        """Build the authorization URL, set ``url`` and return it. Raises AuthConfigError."""
        document = read(DiscoveryDocument, discovery)
        endpoint = document.authorization_endpoint
        if not endpoint:
            raise AuthConfigError(
                "the discovery document has no authorization_endpoint"
            )
        check_secure(endpoint, "authorization_endpoint")
        if not self.state:
            raise AuthConfigError(
                "the authorization request needs a state, which ties the response to it"
            )

        config = self.get_auth_request_config()
        metadata = document.discovery_document
        self._issuer = metadata.get("issuer")
        self._must_return_issuer = (
            metadata.get("authorization_response_iss_parameter_supported") is True
        )

        separator = "&" if "?" in endpoint else "?"
        self.url = f"{endpoint}{separator}{form_encoded(self._params(config))}"

        return self.url

    def parse_return_url(self, url: str) -> AuthSessionResult:
        """Parse the redirect of the identity provider; parameters of its fragment take precedence over its query.

        Raises AuthConfigError for a malformed URL.
        """
        returned = return_params(url)
        params = returned.params
        error = self._error(params, returned.error_code)
        if returned.repeated:
            error = _error(
                "repeated_parameter",
                f"The response contains {' and '.join(returned.repeated)} more than once (RFC 6749 section 3.1).",
            )

        tokens: TokenResponse | None = None
        if "access_token" in params and not error:
            try:
                tokens = TokenResponse.from_query_params(params)
            except UnexpectedReplyError as problem:
                error = _error("malformed_response", str(problem))

        result_type: ResultType = "error" if error else "success"

        return AuthSessionResult(
            result_type, url, params, error, tokens, returned.error_code
        )

    def prompt(
        self,
        discovery: Discovery,
        *,
        browser: AnyBrowser,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> AuthSessionResult:
        """Open the authorization URL in a browser and return the result.

        The result is ``locked`` if another sign-in is open in this process.

        Args:
            discovery: The discovery document of the provider.
            browser: A driver, or a callable that takes the URL and the redirect URI and returns the URL of the redirect,
                or None if canceled.
            timeout_seconds: How long the user may take.

        Raises:
            AuthConfigError: The document or the browser is unsuitable.
            TimeoutError: The user has not finished in time.
        """
        opened = browser_of(browser)
        document = read(DiscoveryDocument, discovery)
        # Before the user signs in, rather than when the tokens are verified.
        if _is_openid(self._config):
            require_id_tokens(document)

        url = self.url or self.make_auth_url(document)
        session = BrowserSession(
            url, self._config.redirect_uri, time.monotonic() + timeout_seconds
        )
        with _SESSIONS.opened(session) as is_open:
            if not is_open:
                return AuthSessionResult("locked")

            result = opened.open(session)

        if session.dismissed.is_set():
            return AuthSessionResult("dismiss")
        if result.type != "success":
            return AuthSessionResult(result.type)
        if result.url is None:
            return AuthSessionResult("cancel")

        return self._result_of(result.url)

    def _result_of(self, url: str) -> AuthSessionResult:
        """Return the result of a sign-in whose browser ended at a URL."""
        if not is_redirect(url, self._config.redirect_uri):
            error = _error(
                "redirect_mismatch",
                "The browser returned to a URL other than redirect_uri.",
            )
            return AuthSessionResult("error", url, error=error)

        return self.parse_return_url(url)

    def _params(self, config: AuthRequestConfig) -> dict[str, str]:
        """Return the parameters in the order of the document; extra parameters never override those of the request."""
        prompt = config.prompt
        if prompt is not None and not isinstance(prompt, str):
            prompt = " ".join(prompt)

        challenge: dict[str, str] = {}
        own: dict[str, str | None] = {}
        if config.code_challenge:
            challenge["code_challenge"] = config.code_challenge
            own["code_challenge_method"] = config.code_challenge_method
        own |= {
            "client_secret": config.client_secret,
            "prompt": prompt,
            "redirect_uri": config.redirect_uri,
            "client_id": config.client_id,
            "response_type": config.response_type,
            "state": config.state,
            "scope": " ".join(config.scopes or ()),
        }

        # The challenge comes first, and is written again over an extra parameter of its name.
        return {
            **challenge,
            **config.extra_params,
            **challenge,
            **{name: value for name, value in own.items() if value},
        }

    def _error(
        self, params: Mapping[str, str], error_code: str | None
    ) -> AuthError | None:
        """Return the error of a response, or None."""
        if "state" not in params or not _are_equal(params["state"], self.state):
            return _error("state_mismatch", _STATE_MISMATCH)

        if self._has_foreign_issuer(params):
            return _error(
                "issuer_mismatch",
                "The response is from another identity provider (RFC 9207).",
            )

        code = params.get("error") or error_code
        if code:
            return AuthError({**params, "error": code})

        return None

    def _has_foreign_issuer(self, params: Mapping[str, str]) -> bool:
        if "iss" not in params:
            return self._must_return_issuer

        return self._issuer is not None and params["iss"] != self._issuer


def derive_challenge(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636 section 4.2).

    >>> derive_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

    Raises AuthConfigError if the verifier is not 43 to 128 characters long or contains one that section 4.1 forbids.
    """
    SECRETS.learn(verifier)
    if not MIN_VERIFIER_LENGTH <= len(verifier) <= VERIFIER_LENGTH:
        raise AuthConfigError(
            f"the code verifier must have {MIN_VERIFIER_LENGTH} to {VERIFIER_LENGTH} characters, not {len(verifier)}"
        )
    if not set(verifier) <= _UNRESERVED:
        raise AuthConfigError(
            "the code verifier must consist of letters, digits and - . _ ~ only"
        )

    digest = hashlib.sha256(verifier.encode("ascii")).digest()

    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def load(
    config: AuthRequestConfig | Mapping[str, Any],
    issuer_or_discovery: str | Discovery,
    *,
    client: "httpx.Client | None" = None,
) -> AuthRequest:
    """Create an authorization request and build its URL; raises the errors of `fetch_discovery` and `AuthRequest`."""
    request_config = read(AuthRequestConfig, config)
    # Before the first request, rather than after the sign-in.
    if _is_openid(request_config):
        require_joserfc()

    request = AuthRequest(request_config)
    request.make_auth_url(resolve_discovery(issuer_or_discovery, client=client))

    return request


def _is_openid(config: AuthRequestConfig) -> bool:
    return "openid" in (config.scopes or ())


def _error(code: str, description: str) -> AuthError:
    return AuthError({"error": code, "error_description": description})


def _random_text(length: int, random_bytes: RandomBytes) -> str:
    """Return a random string of ``length`` ASCII letters and digits."""
    count = len(_ALPHANUMERICS)

    return "".join(_ALPHANUMERICS[byte % count] for byte in random_bytes(length))


def _are_equal(text: str, secret: str) -> bool:
    """Compare a text with a secret, in a time that does not depend on where they differ."""
    return hmac.compare_digest(text.encode(), secret.encode())

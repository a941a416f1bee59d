"""Signs users in at a provider by the real code flow, without a browser, and shares their tokens."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_device.auth.config import DiscoveryDocument
from pytest_device.auth.discovery import fetch_discovery
from pytest_device.auth.provider.model import Client
from pytest_device.auth.provider.server import IdentityProvider
from pytest_device.auth.request import AuthRequest
from pytest_device.auth.token import TokenResponse, exchange_code
from pytest_device.errors import AuthError, TokenError, UnexpectedReplyError

if TYPE_CHECKING:
    import httpx


@contextmanager
def signing_in(provider: IdentityProvider, hide: Callable[..., None]) -> "Generator[SignIn]":
    """Provide what signs users in; ``hide`` receives the tokens, which are secrets."""
    import httpx

    with httpx.Client() as client:
        yield SignIn(provider, client, hide)


class SignIn:
    """Call it with a user's name to get their tokens; they are kept until they are stale or revoked."""

    def __init__(self, provider: IdentityProvider, client: "httpx.Client", hide: Callable[..., None]) -> None:
        self._provider = provider
        self._hide = hide
        self._http = client
        self._discovery: DiscoveryDocument | None = None
        self._tokens: dict[tuple[str, str, tuple[str, ...]], TokenResponse] = {}

    def __call__(
        self, user: str, *, scopes: Sequence[str] = ("openid", "profile"), client_id: str | None = None
    ) -> TokenResponse:
        """Return fresh tokens of a user, for the provider's first client unless another is named.

        Raises AuthConfigError for an unknown user or client, and the errors of the code flow.
        """
        client = self._provider.client(client_id)
        self._provider.user(user)
        self._discovery = self._discovery or fetch_discovery(self._provider.issuer, client=self._http)
        key = (client.client_id, user, tuple(scopes))
        known = self._tokens.get(key)
        found = self._kept(client, known) if known else None
        self._tokens[key] = tokens = found or self._signed_in(client, user, scopes)
        self._hide(*filter(None, (tokens.access_token, tokens.refresh_token, tokens.id_token)))
        return tokens

    def _kept(self, client: Client, known: TokenResponse) -> TokenResponse | None:
        """Return tokens that are still good, else refreshed ones, None if a test revoked them."""
        if TokenResponse.is_token_fresh(known) and self._provider.accepts(known.access_token):
            return known
        config = {"client_id": client.client_id, "client_secret": client.secret}
        try:
            return known.refresh(config, self._discovery or {}, client=self._http)
        except TokenError as error:
            if error.code != "invalid_grant":
                raise
            return None

    def _signed_in(self, client: Client, user: str, scopes: Sequence[str]) -> TokenResponse:
        discovery = self._discovery or DiscoveryDocument()
        redirect_uri = client.redirect_uris[0]
        request = AuthRequest({"client_id": client.client_id, "redirect_uri": redirect_uri, "scopes": scopes})
        form = {"user": user, "password": self._provider.user(user).password or "", "decision": "allow"}
        answer = self._http.post(request.make_auth_url(discovery), data=form, follow_redirects=False)
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
        return exchange_code(config, discovery, client=self._http)

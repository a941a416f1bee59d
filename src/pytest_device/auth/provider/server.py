"""OpenID Connect provider on this machine whose responses a test controls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from starlette.routing import Route

from pytest_device.auth.provider.authorize import Authorize
from pytest_device.auth.provider.endpoints import Endpoints
from pytest_device.auth.provider.exchange import Door, KnownHostsOnly, Respond
from pytest_device.auth.provider.keys import SigningKeys
from pytest_device.auth.provider.model import (
    Authorization,
    Client,
    Endpoint,
    Failure,
    FailureKind,
    IssuedTokens,
    Lifetimes,
    ProviderClock,
    SeenRequest,
    User,
)
from pytest_device.auth.provider.sign_in import SignIn
from pytest_device.auth.provider.state import Grants, Settings
from pytest_device.auth.token import TokenResponse
from pytest_device.auth.urls import check_issuer
from pytest_device.errors import AuthConfigError, ConfigError, hides_frames
from pytest_device.serving import Journal, Service, app_of
from pytest_device.spelling import closest, unknown

if TYPE_CHECKING:
    from starlette.applications import Starlette

__tracebackhide__ = hides_frames

_T = TypeVar("_T")


class IdentityProvider(Service[Journal]):
    """OpenID Connect provider; use it as a context manager.

    With ``sessions``, a cookie remembers who signed in on the page, as ``prompt=none`` and ``max_age`` require.
    ``public_url`` is the URL of a tunnel for devices on other machines; the default issuer is on 127.0.0.1. Raises
    AuthConfigError for a duplicate or empty name of a user or client, an unknown ``automatic_user`` or a port in use.
    """

    def __init__(
        self,
        *,
        users: Iterable[User] = (User("user"),),
        clients: Sequence[Client],
        lifetimes: Lifetimes | None = None,
        automatic_user: str | None = None,
        sessions: bool = False,
        public_url: str | None = None,
        port: int = 0,
    ) -> None:
        named_users = _by_name("user", [(one.name, one) for one in users])
        named_clients = _by_name("client", [(one.client_id, one) for one in clients])
        for user in named_users.values():
            user.learn_secrets()  # that of the run's provider comes from another process
        for client in named_clients.values():
            client.learn_secrets()
        issuer = check_issuer(public_url).removesuffix("/") if public_url else None
        if automatic_user is not None:
            _known("user", automatic_user, named_users)
        super().__init__(Journal(), port)
        self.clock = ProviderClock()
        try:
            local_url = self.local_url
        except ConfigError as error:
            hint = (
                "To share one provider between workers, use --device-identity-scope=run"
            )
            raise AuthConfigError(f"{error}. {hint}") from None
        self._settings = Settings(
            issuer=issuer or local_url,
            users=named_users,
            clients=named_clients,
            clock=self.clock,
            grants=Grants(self.clock, lifetimes or Lifetimes()),
            keys=SigningKeys(),
            automatic_user=automatic_user,
            remembers=sessions,
        )
        self._sign_in = SignIn(self._settings, local_url)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._sign_in.close()

    def sign_in(
        self,
        user: str,
        scopes: Sequence[str] = ("openid", "profile"),
        *,
        client_id: str | None = None,
    ) -> TokenResponse:
        """Sign a user in through the code flow, without a page, and return tokens, cached until stale or revoked.

        The default client is the first one. Raises AuthConfigError for an unknown user or client and for a misspelled
        scope, and the errors of the code flow.
        """
        client = self.client(client_id)
        _check_scopes(scopes, client)
        return self._sign_in.tokens(self.user(user), client, scopes)

    @property
    def issuer(self) -> str:
        """Issuer, which is the base URL of all endpoints."""
        return self._settings.issuer

    @property
    def automatic_user(self) -> str | None:
        """User who consents without a page; None to show the page."""
        return self._settings.automatic_user

    @automatic_user.setter
    def automatic_user(self, name: str | None) -> None:
        if name is not None:
            self.user(name)
        self._settings.automatic_user = name

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """Requests so far."""
        return self._journal.of(SeenRequest)

    @property
    def authorizations(self) -> tuple[Authorization, ...]:
        """Responses to authorization requests so far, including errors."""
        return self._journal.of(Authorization)

    @property
    def tokens(self) -> tuple[IssuedTokens, ...]:
        """Tokens issued so far."""
        return self._journal.of(IssuedTokens)

    def fail(
        self,
        endpoint: Endpoint,
        kind: FailureKind,
        *,
        times: int = 1,
        seconds: float = 1.0,
    ) -> None:
        """Make the next requests to an endpoint fail. Raises AuthConfigError for a failure unknown at the endpoint."""
        self._journal.add_failure(Failure(endpoint, kind, times, seconds))

    def rotate_keys(self, *, keep_old: bool = True) -> None:
        """Sign ID tokens with a new key; the old keys remain published if ``keep_old`` is True."""
        self._settings.keys.rotate(keep_old=keep_old)

    def revoke_user(self, name: str) -> None:
        """Revoke all tokens of a user and end the user's sessions. Raises AuthConfigError for an unknown user."""
        self.user(name)
        self._settings.sign_out(name)

    def wait_for_sign_in(
        self, user: str, timeout_seconds: float = 10.0, *, after: int = 0
    ) -> IssuedTokens:
        """Wait until a client exchanges a code of the user and return its tokens; skip the first ``after`` tokens.

        Raises TimeoutError with the provider's last responses.
        """
        self.user(user)

        def found() -> IssuedTokens | None:
            signed_in = (one for one in self.tokens[after:] if one.user == user)
            return next(
                (one for one in signed_in if one.grant_type == "authorization_code"),
                None,
            )

        tokens = self._journal.wait_until(found, timeout_seconds)
        if tokens is None:
            seen = "; ".join(
                f"{one.endpoint}: {one.error or one.status}"
                for one in self.requests[-5:]
            )
            problem = f"{user} did not sign in within {timeout_seconds:g} s"
            raise TimeoutError(
                f"{problem}. The provider's last replies: {seen or 'none'}"
            )
        return tokens

    def _app(self) -> "Starlette":
        journal, endpoints = self._journal, Endpoints(self._settings, self._journal)
        doors: list[tuple[str, Endpoint, Respond, list[str]]] = [
            (
                "/.well-known/openid-configuration",
                "discovery",
                endpoints.discovery,
                ["GET"],
            ),
            (
                "/authorize",
                "authorize",
                Authorize(self._settings, journal),
                ["GET", "POST"],
            ),
            ("/token", "token", endpoints.token, ["POST"]),
            ("/revoke", "revoke", endpoints.revoke, ["POST"]),
            ("/userinfo", "userinfo", endpoints.userinfo, ["GET", "POST"]),
            ("/jwks", "jwks", endpoints.jwks, ["GET"]),
            ("/end_session", "end_session", endpoints.end_session, ["GET", "POST"]),
        ]
        app = app_of(
            [
                Route(path, Door(name, journal, respond).answer, methods=m)
                for path, name, respond, m in doors
            ]
        )
        app.add_middleware(KnownHostsOnly, urls=(self.local_url, self.issuer))
        return app

    def user(self, name: str) -> User:
        """Return a user. Raises AuthConfigError for an unknown name."""
        return _known("user", name, self._settings.users)

    def client(self, client_id: str | None = None) -> Client:
        """Return a client, by default the first one. Raises AuthConfigError for an unknown client ID."""
        return _known(
            "client",
            next(iter(self._settings.clients), "") if client_id is None else client_id,
            self._settings.clients,
        )


def _by_name(what: str, pairs: list[tuple[str, _T]]) -> Mapping[str, _T]:
    found = dict(pairs)
    if len(found) < len(pairs) or "" in found:
        raise AuthConfigError(
            f"each {what} of the provider needs a unique, non-empty name"
        )
    return found


def _check_scopes(scopes: Sequence[str], client: Client) -> None:
    """Raise AuthConfigError for a misspelled scope: the provider leaves out, silently, what it does not know."""
    wanted = (
        () if isinstance(scopes, str) else scopes
    )  # refused later, with its own error
    for scope in wanted:
        if scope not in client.scopes and (near := closest(scope, client.scopes)):
            raise AuthConfigError(
                f"the client {client.client_id!r} has no scope {scope!r}: did you mean {near!r}? "
                f"(available: {', '.join(client.scopes)})"
            )


def _known(what: str, name: str, known: Mapping[str, _T]) -> _T:
    if name not in known:
        raise AuthConfigError(unknown(what, name, known))
    return known[name]

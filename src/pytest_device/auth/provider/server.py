"""OpenID Connect provider on this machine whose responses a test controls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pytest_device.auth.config import AUTHORIZATION_CODE
from pytest_device.auth.discovery import WELL_KNOWN
from pytest_device.auth.provider.authorize import Authorize
from pytest_device.auth.provider.endpoints import Endpoints
from pytest_device.auth.provider.exchange import (
    RecordedEndpoint,
    Respond,
)
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
from pytest_device.auth.provider.page import not_found_page
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

    Args:
        users: The users, who have the names under which they sign in.
        clients: The registered apps.
        lifetimes: The lifetimes of codes and tokens.
        automatic_user: The user who consents without a page; None shows the page.
        sessions: Whether a cookie remembers who signed in on the page, as ``prompt=none`` requires.
        public_url: The URL of a tunnel for devices on other machines; the default issuer is on 127.0.0.1.
        port: The port of this machine (default: a free one).

    Raises:
        AuthConfigError: A name of a user or client is duplicate or empty, ``automatic_user`` is unknown, or the port is
            in use.
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
        named_users = _by_name("user", [(user.name, user) for user in users])
        named_clients = _by_name(
            "client", [(client.client_id, client) for client in clients]
        )
        # Those of the run's provider come from another process.
        for user in named_users.values():
            user.learn_secrets()
        for client in named_clients.values():
            client.learn_secrets()
        if automatic_user is not None:
            _member("user", automatic_user, named_users)
        issuer = check_issuer(public_url).removesuffix("/") if public_url else None

        super().__init__(Journal(), port)
        self.clock = ProviderClock()
        try:
            local_url = self.local_url
        except ConfigError as error:
            raise AuthConfigError(
                f"{error}. To share one provider between workers, use --device-identity-scope=run"
            ) from None

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
        """Revoke all codes and tokens of a user and end the user's sessions. Raises AuthConfigError for an unknown user."""
        self.user(name)
        self._settings.sign_out(name)

    def wait_for_sign_in(
        self, user: str, timeout_seconds: float = 10.0, *, after: int = 0
    ) -> IssuedTokens:
        """Wait until a client exchanges a code of the user and return its tokens; skip the first ``after`` tokens.

        Raises TimeoutError with the provider's last responses.
        """
        self.user(user)

        def first_exchange() -> IssuedTokens | None:
            for tokens in self.tokens[after:]:
                if tokens.user == user and tokens.grant_type == AUTHORIZATION_CODE:
                    return tokens

            return None

        tokens = self._journal.wait_until(first_exchange, timeout_seconds)
        if tokens is not None:
            return tokens

        last = [
            f"{request.endpoint}: {request.error or request.status}"
            for request in self.requests[-5:]
        ]
        raise TimeoutError(
            f"{user} did not sign in within {timeout_seconds:g} s. "
            f"The provider's last replies: {'; '.join(last) or 'none'}"
        )

    def _app(self) -> "Starlette":
        endpoints = Endpoints(self._settings, self._journal)
        authorize = Authorize(self._settings, self._journal)
        both = ["GET", "POST"]
        app = app_of(
            [
                self._route(
                    WELL_KNOWN,
                    "discovery",
                    endpoints.discovery,
                    ["GET"],
                ),
                self._route("/authorize", "authorize", authorize, both),
                self._route("/token", "token", endpoints.token, ["POST"]),
                self._route("/revoke", "revoke", endpoints.revoke, ["POST"]),
                self._route("/userinfo", "userinfo", endpoints.userinfo, both),
                self._route("/jwks", "jwks", endpoints.jwks, ["GET"]),
                self._route("/end_session", "end_session", endpoints.end_session, both),
            ]
        )
        app.add_exception_handler(404, self._not_found)

        return app

    async def _not_found(self, _request: Request, _error: Exception) -> Response:
        return not_found_page(f"{self.issuer}{WELL_KNOWN}")

    def _route(
        self, path: str, name: Endpoint, respond: Respond, methods: list[str]
    ) -> Route:
        endpoint = RecordedEndpoint(name, self._journal, respond)

        route = Route(path, endpoint.answer)
        # Without HEAD, which no app sends: a health check must neither take a failure nor issue a code.
        route.methods = set(methods)

        return route

    def user(self, name: str) -> User:
        """Return a user. Raises AuthConfigError for an unknown name."""
        return _member("user", name, self._settings.users)

    def client(self, client_id: str | None = None) -> Client:
        """Return a client, by default the first one. Raises AuthConfigError for an unknown client ID."""
        clients = self._settings.clients
        if client_id is None:
            client_id = next(iter(clients), "")

        return _member("client", client_id, clients)


def _by_name(kind: str, pairs: list[tuple[str, _T]]) -> Mapping[str, _T]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs) or "" in by_name:
        raise AuthConfigError(
            f"each {kind} of the provider needs a unique, non-empty name"
        )

    return by_name


def _check_scopes(scopes: Sequence[str], client: Client) -> None:
    """Raise AuthConfigError for a misspelled scope: the provider leaves out, silently, what it does not know."""
    for scope in scopes:
        if scope in client.scopes:
            continue

        near = closest(scope, client.scopes)
        if near:
            raise AuthConfigError(
                f"the client {client.client_id!r} has no scope {scope!r}: did you mean {near!r}? "
                f"(available: {', '.join(client.scopes)})"
            )


def _member(kind: str, name: str, members: Mapping[str, _T]) -> _T:
    if name not in members:
        raise AuthConfigError(unknown(kind, name, members))

    return members[name]

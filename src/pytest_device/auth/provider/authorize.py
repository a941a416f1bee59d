"""Authorization endpoint (OpenID Connect Core section 3.1.2; RFC 9207)."""

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response

from pytest_device.auth.provider.exchange import NO_STORE, SESSION, Exchange
from pytest_device.auth.provider.model import Authorization, Client, FailureKind
from pytest_device.auth.provider.page import mismatch_page, sign_in_page
from pytest_device.auth.provider.state import Grant, OAuthError, Session, Settings
from pytest_device.auth.token import get_current_time_in_seconds
from pytest_device.auth.urls import form_encoded
from pytest_device.errors import hides_frames
from pytest_device.oauth import is_plain
from pytest_device.redact import is_loopback
from pytest_device.secret_registry import SECRETS
from pytest_device.serving import Journal

__tracebackhide__ = hides_frames

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_OF_THE_PAGE: Final = frozenset(("user", "password", "decision"))
_FAILURES: Final[tuple[FailureKind, ...]] = (
    "deny",
    "wrong_state",
    "wrong_issuer",
    "expired_code",
)


@dataclass(frozen=True, slots=True)
class _AuthorizationRequest:
    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Authorize:
    """Authorization endpoint: asks for the user's consent or grants it, and redirects to the app."""

    settings: Settings
    journal: Journal

    def __call__(self, exchange: Exchange) -> Response:
        """Respond to an authorization request; redirect only to a registered URI of a known client."""
        params = {
            name: value
            for name, value in exchange.params.items()
            if name not in _OF_THE_PAGE
        }
        client = self.settings.clients.get(params.get("client_id", ""))
        redirect_uri = params.get("redirect_uri", "")
        # Both on a page: to redirect with the error would make the provider an open redirector.
        if client is None:
            return _unknown_client(params.get("client_id"), self.settings.clients)
        if not _is_registered(redirect_uri, client.redirect_uris):
            return _unknown_redirect_uri(params.get("redirect_uri"), client)

        request = _AuthorizationRequest(
            client, redirect_uri, _scopes(client, params), params
        )
        try:
            _check(params)
            return self._answer(request, exchange)
        except OAuthError as error:
            self.journal.add(
                Authorization(client.client_id, "", request.scopes, error.code)
            )
            return self._redirect(
                request, {"error": error.code, "error_description": error.description}
            )

    def _answer(self, request: _AuthorizationRequest, exchange: Exchange) -> Response:
        # In a link, it would be the decision of whoever wrote the link.
        if "decision" in exchange.form:
            return self._decided(request, exchange.form)

        user = self.settings.automatic_user
        if user is not None:
            return self._consented(request, user)

        session = self._session(request, exchange.session)
        if session is not None:
            return self._consented(request, session.user, session.auth_time)

        if "none" in _prompts(request.params):
            raise OAuthError("login_required", "the user has to sign in")

        return _page_of(request)

    def _decided(
        self, request: _AuthorizationRequest, form: Mapping[str, str]
    ) -> Response:
        user = form.get("user", "")
        if form["decision"] != "allow":
            raise OAuthError("access_denied", "the user denied the request")
        if not self._may_sign_in(user, form.get("password", "")):
            return _page_of(request, "The user name or password is wrong.", user)

        response = self._consented(request, user)
        if self.settings.remembers:
            self._remember(user, response)

        return response

    def _session(self, request: _AuthorizationRequest, key: str) -> Session | None:
        """Return the session that allows a request to skip the page, if any (OpenID Connect Core section 3.1.2.1)."""
        session = self.settings.sessions.get(key)
        if session is None:
            return None
        # Any other prompt asks for the page.
        if not _prompts(request.params) <= {"none"}:
            return None

        return session

    def _remember(self, user: str, response: Response) -> None:
        """Start a session of a user, and set its cookie."""
        key = secrets.token_urlsafe(16)
        SECRETS.learn(key)
        self.settings.sessions[key] = Session(user, get_current_time_in_seconds())
        is_secure = self.settings.issuer.startswith("https:")
        response.set_cookie(
            SESSION, key, secure=is_secure, httponly=True, samesite="lax"
        )

    def _may_sign_in(self, name: str, password: str) -> bool:
        user = self.settings.users.get(name)
        if user is None:
            return False
        if user.password is None:
            return True

        return hmac.compare_digest(user.password.encode(), password.encode())

    def _consented(
        self, request: _AuthorizationRequest, user: str, auth_time: int | None = None
    ) -> Response:
        failure = self.journal.take_failure("authorize", *_FAILURES)
        failure_kind = failure.kind if failure else None
        if failure_kind == "deny":
            raise OAuthError("access_denied", "the test denied the request")

        client_id = request.client.client_id
        grant = Grant(
            client_id,
            user,
            request.scopes,
            request.redirect_uri,
            request.params["code_challenge"],
            request.params.get("nonce"),
            auth_time or get_current_time_in_seconds(),
        )
        self.journal.add(Authorization(client_id, user, request.scopes))
        is_expired = failure_kind == "expired_code"
        code = self.settings.grants.issue_code(grant, is_expired=is_expired)
        SECRETS.learn(code)

        return self._redirect(request, {"code": code}, failure_kind)

    def _redirect(
        self,
        request: _AuthorizationRequest,
        answer: Mapping[str, str],
        failure: str | None = None,
    ) -> Response:
        state = request.params.get("state")
        if failure == "wrong_state":
            state = secrets.token_urlsafe(8)
        issuer = (
            f"{self.settings.issuer}/other"
            if failure == "wrong_issuer"
            else self.settings.issuer
        )
        params = {
            **answer,
            **({} if state is None else {"state": state}),
            "iss": issuer,
        }
        separator = "&" if "?" in request.redirect_uri else "?"
        url = f"{request.redirect_uri}{separator}{form_encoded(params)}"

        return RedirectResponse(url, 303, headers=NO_STORE)


def _page_of(
    request: _AuthorizationRequest, problem: str = "", user: str = ""
) -> Response:
    return sign_in_page(
        request.client.client_id,
        request.scopes,
        form_encoded(request.params),
        problem,
        user,
    )


def _unknown_client(client_id: str | None, clients: Mapping[str, Client]) -> Response:
    return mismatch_page(
        "Unknown client",
        "The provider has no client with the client_id of the app.",
        {"Received": _received(client_id), "Registered": tuple(clients)},
        "Add a Client with this client_id to the provider, or correct the app.",
    )


def _unknown_redirect_uri(redirect_uri: str | None, client: Client) -> Response:
    return mismatch_page(
        "Unknown redirect URI",
        f"The redirect_uri of the app is not registered for the client {client.client_id!r}.",
        {"Received": _received(redirect_uri), "Registered": client.redirect_uris},
        "Add it to the client's redirect_uris, or correct the app: "
        "they must be equal, except for the port of http://127.0.0.1.",
    )


def _received(value: str | None) -> tuple[str, ...]:
    """Return what a request has; a parameter may be empty, which is not the same as none."""
    return () if value is None else (value or "(empty)",)


def _check(params: Mapping[str, str]) -> None:
    if "request" in params or "request_uri" in params:
        raise OAuthError("request_not_supported", "request objects are not supported")
    if params.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    if params.get("response_mode", "query") != "query":
        raise OAuthError("invalid_request", "response_mode must be query")
    if "none" in _prompts(params) and len(_prompts(params)) > 1:
        raise OAuthError("invalid_request", "prompt must be none alone")
    if params.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(
        params.get("code_challenge", "")
    ):
        raise OAuthError("invalid_request", "PKCE with S256 is required")


def _prompts(params: Mapping[str, str]) -> set[str]:
    return set(params.get("prompt", "").split())


def _scopes(client: Client, params: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requested scopes that the client is allowed, ignoring others (OpenID Connect Core section 3.1.2.1)."""
    requested = dict.fromkeys(params.get("scope", "").split())

    return tuple(scope for scope in requested if scope in client.scopes)


def _is_registered(redirect_uri: str, registered: Sequence[str]) -> bool:
    """Return whether a redirect URI is registered, except for the port on loopback (RFC 8252 section 7.3)."""
    if redirect_uri in registered:
        return True

    return any(_differs_in_loopback_port(redirect_uri, uri) for uri in registered)


def _differs_in_loopback_port(redirect_uri: str, registered: str) -> bool:
    """Return whether a redirect URI on loopback is a registered one with another port."""
    if not is_plain(redirect_uri):
        return False

    try:
        received = urlsplit(redirect_uri)
        expected = urlsplit(registered)
        has_port = received.port is not None
    except ValueError:
        return False

    if not has_port or received.scheme != "http":
        return False
    # A user name before the host could look like one.
    if not is_loopback(received.hostname or "") or "@" in received.netloc:
        return False

    received_host = received._replace(netloc=received.hostname or "")
    expected_host = expected._replace(netloc=expected.hostname or "")

    return received_host == expected_host

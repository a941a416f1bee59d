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
class _Asked:
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
        if client is None:
            return _unknown_client(params.get("client_id"), self.settings.clients)
        if not _is_registered(redirect_uri, client.redirect_uris):
            return _unknown_redirect_uri(params.get("redirect_uri"), client)
        asked = _Asked(client, redirect_uri, _scopes(client, params), params)
        try:
            _check(params)
            return self._answer(asked, exchange)
        except OAuthError as error:
            self.journal.add(
                Authorization(client.client_id, "", asked.scopes, error.code)
            )
            return self._redirect(
                asked, {"error": error.code, "error_description": error.description}
            )

    def _answer(self, asked: _Asked, exchange: Exchange) -> Response:
        given, user = exchange.params, self.settings.automatic_user
        if "decision" in given:
            return self._decided(asked, given)
        if user is not None and self._is_hinted(asked, user):
            return self._consented(asked, user)
        if session := self._session(asked, exchange.session):
            return self._consented(asked, session.user, session.auth_time)
        if "none" in _prompts(asked.params):
            raise OAuthError("login_required", "the user has to sign in")
        return sign_in_page(
            asked.client.client_id, asked.scopes, form_encoded(asked.params)
        )

    def _decided(self, asked: _Asked, given: Mapping[str, str]) -> Response:
        user = given.get("user", "")
        if given["decision"] != "allow":
            raise OAuthError("access_denied", "the user denied the request")
        if self._may_sign_in(user, given.get("password", "")):
            return self._remembering(user, self._consented(asked, user))
        problem = "The user name or password is wrong."
        return sign_in_page(
            asked.client.client_id,
            asked.scopes,
            form_encoded(asked.params),
            problem,
            user,
        )

    def _session(self, asked: _Asked, key: str) -> Session | None:
        """Return the session that allows a request to skip the page, if any (OpenID Connect Core section 3.1.2.1)."""
        session = self.settings.sessions.get(key)
        if (
            session is None
            or not _prompts(asked.params) <= {"none"}
            or not self._is_hinted(asked, session.user)
        ):
            return None
        age = self.settings.clock.now() - session.since
        return session if age <= float(asked.params.get("max_age") or "inf") else None

    def _is_hinted(self, asked: _Asked, user: str) -> bool:
        hint = asked.params.get("id_token_hint")
        return not hint or self.settings.keys.claims_of(hint).get("sub") == user

    def _remembering(self, user: str, response: Response) -> Response:
        if self.settings.remembers:
            key, now = secrets.token_urlsafe(16), self.settings.clock.now()
            SECRETS.learn(key)
            self.settings.sessions[key] = Session(
                user, now, get_current_time_in_seconds()
            )
            is_secure = self.settings.issuer.startswith("https:")
            response.set_cookie(
                SESSION, key, secure=is_secure, httponly=True, samesite="lax"
            )
        return response

    def _may_sign_in(self, name: str, password: str) -> bool:
        user = self.settings.users.get(name)
        return user is not None and (
            user.password is None
            or hmac.compare_digest(user.password.encode(), password.encode())
        )

    def _consented(
        self, asked: _Asked, user: str, auth_time: int | None = None
    ) -> Response:
        failure = self.journal.take_failure("authorize", *_FAILURES)
        kind = failure.kind if failure else None
        if kind == "deny":
            raise OAuthError("access_denied", "the test denied the request")
        grant = Grant(
            asked.client.client_id,
            user,
            asked.scopes,
            asked.redirect_uri,
            asked.params["code_challenge"],
            asked.params.get("nonce"),
            auth_time or get_current_time_in_seconds(),
        )
        self.journal.add(Authorization(asked.client.client_id, user, asked.scopes))
        code = self.settings.grants.issue_code(grant, is_expired=kind == "expired_code")
        SECRETS.learn(code)
        return self._redirect(asked, {"code": code}, kind)

    def _redirect(
        self, asked: _Asked, answer: Mapping[str, str], failure: str | None = None
    ) -> Response:
        state = asked.params.get("state")
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
        sign = "&" if "?" in asked.redirect_uri else "?"
        return RedirectResponse(
            f"{asked.redirect_uri}{sign}{form_encoded(params)}", 303, headers=NO_STORE
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
    if not params.get("max_age", "0").isdecimal():
        raise OAuthError("invalid_request", "max_age must be a number of seconds")
    if params.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(
        params.get("code_challenge", "")
    ):
        raise OAuthError("invalid_request", "PKCE with S256 is required")


def _prompts(params: Mapping[str, str]) -> set[str]:
    return set(params.get("prompt", "").split())


def _scopes(client: Client, params: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requested scopes that the client is allowed, ignoring others (OpenID Connect Core section 3.1.2.1)."""
    return tuple(
        scope
        for scope in dict.fromkeys(params.get("scope", "").split())
        if scope in client.scopes
    )


def _is_registered(redirect_uri: str, registered: Sequence[str]) -> bool:
    """Return whether a redirect URI is registered, except for the port on loopback (RFC 8252 section 7.3)."""
    return redirect_uri in registered or any(
        _is_same_loopback(redirect_uri, one) for one in registered
    )


def _is_same_loopback(given: str, registered: str) -> bool:
    if not is_plain(given):
        return False
    try:
        one, other = urlsplit(given), urlsplit(registered)
        is_local = (
            one.scheme == other.scheme == "http"
            and is_loopback(one.hostname or "")
            and one.port is not None
        )
    except ValueError:
        return False
    without_port = (
        one._replace(netloc=one.hostname or ""),
        other._replace(netloc=other.hostname or ""),
    )
    return is_local and "@" not in one.netloc and without_port[0] == without_port[1]

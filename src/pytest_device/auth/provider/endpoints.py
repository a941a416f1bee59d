"""Endpoints for clients: metadata, tokens, revocation, user info, keys and logout."""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_plus

from starlette.responses import JSONResponse, RedirectResponse, Response

from pytest_device.auth.config import AUTHORIZATION_CODE, REFRESH_TOKEN
from pytest_device.auth.provider.exchange import NO_STORE, Exchange
from pytest_device.auth.provider.model import Client, FailureKind, IssuedTokens
from pytest_device.auth.provider.page import message_page, mismatch_page
from pytest_device.auth.provider.state import Grant, OAuthError, Settings
from pytest_device.auth.token import get_current_time_in_seconds
from pytest_device.auth.urls import form_encoded
from pytest_device.errors import hides_frames
from pytest_device.serving import Journal

__tracebackhide__ = hides_frames

CLAIMS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "profile": (
        "name",
        "family_name",
        "given_name",
        "middle_name",
        "nickname",
        "preferred_username",
        "profile",
        "picture",
        "website",
        "gender",
        "birthdate",
        "zoneinfo",
        "locale",
        "updated_at",
    ),
    "email": ("email", "email_verified"),
    "address": ("address",),
    "phone": ("phone_number", "phone_number_verified"),
}
"""The claims that each scope asks for (OpenID Connect Core section 5.4)."""
_NEEDS_SCOPE: Final = frozenset(name for names in CLAIMS_OF.values() for name in names)
_CLIENT_METHODS: Final = ["client_secret_basic", "client_secret_post", "none"]
_TOKEN_FAILURES: Final[tuple[FailureKind, ...]] = (
    "deny",
    "wrong_issuer",
    "bad_signature",
    "alg_none",
)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Response functions of the endpoints."""

    settings: Settings
    journal: Journal

    def discovery(self, _exchange: Exchange) -> Response:
        """Return the metadata (OpenID Connect Discovery section 3, RFC 8414)."""
        issuer = self.settings.issuer
        # Only the issuer is wrong: clients must notice it before they use the endpoints.
        is_wrong = self.journal.take_failure("discovery", "wrong_issuer")

        return JSONResponse(
            {
                "issuer": f"{issuer}/other" if is_wrong else issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "revocation_endpoint": f"{issuer}/revoke",
                "userinfo_endpoint": f"{issuer}/userinfo",
                "jwks_uri": f"{issuer}/jwks",
                "end_session_endpoint": f"{issuer}/end_session",
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": [AUTHORIZATION_CODE, REFRESH_TOKEN],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_methods_supported": _CLIENT_METHODS,
                "revocation_endpoint_auth_methods_supported": _CLIENT_METHODS,
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["openid", *CLAIMS_OF, "offline_access"],
                "claims_supported": ["sub", "auth_time", *sorted(_NEEDS_SCOPE)],
                "authorization_response_iss_parameter_supported": True,
                "claims_parameter_supported": False,
                "request_parameter_supported": False,
                "request_uri_parameter_supported": False,
            }
        )

    def token(self, exchange: Exchange) -> Response:
        """Issue tokens for a code or a refresh token (RFC 6749 sections 4.1.3 and 6)."""
        form = _form(exchange)
        client = self._client(exchange)
        failure = self.journal.take_failure("token", *_TOKEN_FAILURES)
        failure_kind = failure.kind if failure else None
        if failure_kind == "deny":
            raise OAuthError("invalid_grant", "the test denied the request")

        # Together: what is revoked in between must not get new tokens.
        with self.settings.grants.lock:
            grant_type, grant = self._granted(client, form)
            tokens = self._tokens(grant, grant_type, failure_kind)

        return JSONResponse(tokens, headers=NO_STORE)

    def revoke(self, exchange: Exchange) -> Response:
        """Revoke a token (RFC 7009)."""
        form = _form(exchange)
        client = self._client(exchange)
        # The type hint is not needed: the provider finds a token of either type.
        token = form.get("token")
        if not token:
            raise OAuthError("invalid_request", "token is missing")

        self.settings.grants.revoke(client, token)

        return Response(headers=NO_STORE)

    def userinfo(self, exchange: Exchange) -> Response:
        """Return the claims of the user (OpenID Connect Core section 5.3)."""
        token = _bearer(exchange)
        if self.journal.take_failure("userinfo", "deny") or not token:
            raise OAuthError("invalid_token", "an access token is required", 401)

        grant = self.settings.grants.allowed_by(token)
        if "openid" not in grant.scopes:
            raise OAuthError("insufficient_scope", "the scope openid is required", 403)

        # OpenID Connect Core section 5.3.2: that of the ID token.
        claims = {**self._claims(grant), "sub": grant.user}

        return JSONResponse(claims, headers=NO_STORE)

    def jwks(self, _exchange: Exchange) -> Response:
        """Return the public keys."""
        return JSONResponse(self.settings.keys.published())

    def end_session(self, exchange: Exchange) -> Response:
        """Sign the user out, revoke all tokens of the user and redirect to the app (RP-Initiated Logout).

        That is the user of the ID token, or else of the session in the browser.
        """
        params = exchange.params
        claims = self.settings.keys.claims_of(params.get("id_token_hint", ""))
        client = self.settings.clients.get(str(claims.get("aud")))
        if "id_token_hint" in params and client is None:
            return _unknown_hint("The id_token_hint is no ID token of this provider.")
        if client and params.get("client_id", client.client_id) != client.client_id:
            return _unknown_hint("The id_token_hint is not for the client_id.")

        session = self.settings.sessions.get(exchange.session)
        user = str(claims["sub"]) if client else session and session.user
        if user:
            self.settings.sign_out(user)

        url = params.get("post_logout_redirect_uri")
        if url is None and not user:
            return message_page(
                "No user to sign out",
                "The request has no id_token_hint, and this browser has no session.",
                200,
            )
        if url is None:
            return message_page("Signed out", "You can close this page.", 200)
        # An empty URI is none that is registered either: it would redirect to the provider itself.
        if client is None or url not in client.post_logout_redirect_uris:
            return _unknown_logout_uri(url, client)

        if "state" in params:
            separator = "&" if "?" in url else "?"
            url += separator + form_encoded({"state": params["state"]})

        return RedirectResponse(url, 303, headers=NO_STORE)

    def _granted(self, client: Client, form: Mapping[str, str]) -> tuple[str, Grant]:
        """Return the type of a token request and its grant. Raises OAuthError."""
        grants = self.settings.grants
        grant_type = form.get("grant_type")
        if grant_type is None:
            raise OAuthError("invalid_request", "grant_type is missing")
        if grant_type == AUTHORIZATION_CODE:
            return grant_type, grants.redeem(client, form)
        if grant_type == REFRESH_TOKEN:
            return grant_type, grants.rotate(client, form)

        raise OAuthError(
            "unsupported_grant_type",
            "grant_type must be authorization_code or refresh_token",
        )

    def _tokens(
        self, grant: Grant, grant_type: str, failure: str | None
    ) -> dict[str, Any]:
        access_token, refresh_token = self.settings.grants.issue_tokens(grant)
        id_token = None
        if "openid" in grant.scopes:
            claims = self._id_claims(grant, grant_type, failure)
            id_token = self.settings.keys.sign(claims, failure)

        self.journal.add(
            IssuedTokens(
                grant.client_id,
                grant.user,
                grant.scopes,
                grant_type,
                access_token,
                refresh_token,
                id_token,
            )
        )
        response: dict[str, Any] = {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": int(self.settings.grants.lifetimes.access_token),
            "refresh_token": refresh_token,
            "scope": " ".join(grant.scopes),
        }
        if id_token:
            response["id_token"] = id_token

        return response

    def _id_claims(
        self, grant: Grant, grant_type: str, failure: str | None
    ) -> dict[str, Any]:
        issuer = self.settings.issuer
        if failure == "wrong_issuer":
            issuer = f"{issuer}/other"
        now = get_current_time_in_seconds()
        claims: dict[str, Any] = {
            "iss": issuer,
            "sub": grant.user,
            "aud": grant.client_id,
            "iat": now,
            "exp": now + int(self.settings.grants.lifetimes.id_token),
            "auth_time": grant.auth_time,
        }
        # OpenID Connect Core section 12.2: no nonce on refresh.
        if grant_type == AUTHORIZATION_CODE and grant.nonce is not None:
            claims["nonce"] = grant.nonce

        return claims

    def _claims(self, grant: Grant) -> dict[str, Any]:
        """Return the claims of the user that the scopes allow; a test's own claims need no scope."""
        allowed: set[str] = set()
        for scope in grant.scopes:
            allowed.update(CLAIMS_OF.get(scope, ()))
        claims = self.settings.users[grant.user].claims

        return {
            name: value
            for name, value in claims.items()
            if name in allowed or name not in _NEEDS_SCOPE
        }

    def _client(self, exchange: Exchange) -> Client:
        """Authenticate the client with one of the two methods of RFC 6749 section 2.3.1."""
        secret = exchange.form.get("client_secret")
        if not exchange.authorization:
            credentials = [(exchange.form.get("client_id", ""), secret or "")]
        elif secret is None:
            credentials = _basic(exchange.authorization)
        else:
            raise OAuthError(
                "invalid_request", "the client must authenticate in one way"
            )

        problem = "the client is unknown"
        for client_id, received in credentials:
            client = self.settings.clients.get(client_id)
            if client is None:
                continue

            problem = "the client secret is wrong"
            if hmac.compare_digest((client.secret or "").encode(), received.encode()):
                return client

        raise OAuthError("invalid_client", problem, 401)


def _form(exchange: Exchange) -> Mapping[str, str]:
    """Return the parameters of a form: in a URL, secrets would be in logs (RFC 6749 sections 2.3.1 and 3.2)."""
    if exchange.params.keys() != exchange.form.keys():
        raise OAuthError(
            "invalid_request", "the parameters must be in the form, not in the URL"
        )

    return exchange.form


def _unknown_hint(problem: str) -> Response:
    return message_page("Unknown ID token", problem, 400)


def _unknown_logout_uri(target: str, client: Client | None) -> Response:
    title = "Unknown post-logout redirect URI"
    if client is None:
        return message_page(
            title, "The request has no id_token_hint that names a client.", 400
        )

    return mismatch_page(
        title,
        f"The post_logout_redirect_uri of the app is not registered for the client {client.client_id!r}.",
        {
            "Received": (target or "(empty)",),
            "Registered": client.post_logout_redirect_uris,
        },
        "Add it to the client's post_logout_redirect_uris, or correct the app: they must be equal.",
    )


def _bearer(exchange: Exchange) -> str:
    """Return the access token from either the header or the form of a request (RFC 6750 section 2)."""
    scheme, _, token = exchange.authorization.partition(" ")
    in_form = exchange.form.get("access_token", "")
    if in_form and exchange.authorization:
        raise OAuthError("invalid_request", "the access token must be sent in one way")

    return token if scheme.lower() == "bearer" else in_form


def _basic(authorization: str) -> list[tuple[str, str]]:
    """Return the credentials in a header: as RFC 6749 section 2.3.1 encodes them, and as they are.

    Many clients send them without that encoding, so that a ``+`` or ``%`` in a secret means itself, and characters
    outside of ASCII in UTF-8 or, as browsers' ``btoa`` does, in Latin-1.
    """
    scheme, _, encoded = authorization.partition(" ")
    try:
        content = base64.b64decode(encoded, validate=True)
    except ValueError:
        content = b""
    if scheme.lower() != "basic" or b":" not in content:
        raise OAuthError("invalid_client", "Basic credentials are malformed", 401)

    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    client_id, _, secret = text.partition(":")

    return [(unquote_plus(client_id), unquote_plus(secret)), (client_id, secret)]

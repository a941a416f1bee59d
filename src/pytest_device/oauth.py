"""Rules of OAuth and OpenID Connect that several packages need: the redirect, and descriptions of error codes.

The run checks the redirect, and so does the browser that signs a user in; that one can't import the client's package.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit


def is_redirect(url: str, redirect_uri: str) -> bool:
    """Return whether a URL is the redirect URI, with or without additional parameters (RFC 6749 section 3.1.2)."""
    url = url.strip(" \t\r\n")  # as browsers do
    if not is_plain(url):
        return False

    try:
        actual, expected = urlsplit(url), urlsplit(redirect_uri)
    except ValueError:
        return False

    # A parser of URLs reads an empty path with a host as "/".
    is_same_page = (actual.scheme, actual.netloc, actual.path or "/") == (
        expected.scheme,
        expected.netloc,
        expected.path or "/",
    )
    return is_same_page and set(parse_qsl(expected.query)) <= set(
        parse_qsl(actual.query)
    )


def is_plain(url: str) -> bool:
    """Return whether a URL has no tabs and line breaks: parsers of URLs drop them, so that another URL looks the same."""
    return not any(character in url for character in "\t\r\n")


AUTHORIZATION_ERRORS: Final[Mapping[str, str]] = {  # RFC 6749 section 4.1.2.1
    "invalid_request": (
        "The request is missing a required parameter, includes an invalid parameter value, includes a parameter "
        "more than once, or is otherwise malformed."
    ),
    "unauthorized_client": "The client is not authorized to request an authorization code using this method.",
    "access_denied": "The resource owner or authorization server denied the request.",
    "unsupported_response_type": (
        "The authorization server does not support obtaining an authorization code using this method."
    ),
    "invalid_scope": "The requested scope is invalid, unknown, or malformed.",
    "server_error": (
        "The authorization server encountered an unexpected condition that prevented it from fulfilling the request."
    ),
    "temporarily_unavailable": (
        "The authorization server is currently unable to handle the request due to a temporary overloading or "
        "maintenance of the server."
    ),
    # OpenID Connect Core section 3.1.2.6
    "interaction_required": "The Authorization Server requires End-User interaction of some form to proceed.",
    "login_required": "The Authorization Server requires End-User authentication.",
    "account_selection_required": "The End-User is REQUIRED to select a session at the Authorization Server.",
    "consent_required": "The Authorization Server requires End-User consent.",
    "invalid_request_uri": (
        "The request_uri in the Authorization Request returns an error or contains invalid data."
    ),
    "invalid_request_object": "The request parameter contains an invalid Request Object.",
    **{
        f"{part}_not_supported": f"The OP does not support use of the {part} parameter."
        for part in ("request", "request_uri", "registration")
    },
}

TOKEN_ERRORS: Final[Mapping[str, str]] = {  # RFC 6749 section 5.2
    "invalid_request": (
        "The request is missing a required parameter, includes an unsupported parameter value (other than grant "
        "type), repeats a parameter, includes multiple credentials, utilizes more than one mechanism for "
        "authenticating the client, or is otherwise malformed."
    ),
    "invalid_client": (
        "Client authentication failed (e.g., unknown client, no client authentication included, or unsupported "
        "authentication method)."
    ),
    "invalid_grant": (
        "The provided authorization grant (e.g., authorization code, resource owner credentials) or refresh token "
        "is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or "
        "was issued to another client."
    ),
    "unauthorized_client": "The authenticated client is not authorized to use this authorization grant type.",
    "unsupported_grant_type": (
        "The authorization grant type is not supported by the authorization server."
    ),
    "invalid_scope": (
        "The requested scope is invalid, unknown, malformed, or exceeds the scope granted by the resource owner."
    ),
}

"""Identity provider metadata (OpenID Connect Discovery 1.0, RFC 8414)."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, cast

from pytest_device.auth.config import DiscoveryDocument, read
from pytest_device.auth.http import FORM_TYPE, get_json
from pytest_device.auth.id_token import check_same_subject
from pytest_device.auth.urls import check_issuer
from pytest_device.errors import AuthConfigError, UnexpectedReplyError, hides_frames
from pytest_device.redact import shown

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

WELL_KNOWN: Final = "/.well-known/openid-configuration"

_ENDPOINTS: Final = [
    field.name
    for field in fields(DiscoveryDocument)
    if field.name.endswith("_endpoint")
]


def issuer_with_well_known_url(issuer: str) -> str:
    """Return the metadata URL of an issuer: the issuer with the well-known path appended (RFC 5785)."""
    return issuer + WELL_KNOWN


def fetch_discovery(
    issuer: str, *, client: "httpx.Client | None" = None
) -> DiscoveryDocument:
    """Fetch the discovery document of an issuer.

    Raises:
        AuthConfigError: The issuer uses http on another machine, or has a query or fragment.
        UnexpectedReplyError: The metadata is invalid, or names another issuer.
        TransportError: The provider does not reply.
    """
    # OpenID Connect Discovery section 4: without a trailing slash.
    base = check_issuer(issuer).removesuffix("/")
    metadata = get_json(issuer_with_well_known_url(base), {}, client)
    if metadata.get("issuer") != issuer:
        raise UnexpectedReplyError(
            f"{shown(issuer)} returned metadata of the issuer {shown(str(metadata.get('issuer')))!r}: "
            "both must match exactly, including a trailing slash"
        )

    # The document spells one name otherwise than the specification.
    endpoints = {
        name: metadata.get(name.replace("user_info", "userinfo")) for name in _ENDPOINTS
    }
    not_text = [
        name for name, value in endpoints.items() if not isinstance(value, str | None)
    ]
    if not_text:
        raise UnexpectedReplyError(
            f"{shown(issuer)} returned invalid metadata: {', '.join(sorted(not_text))} must be a string"
        )

    return DiscoveryDocument(**endpoints, discovery_document=metadata)


def resolve_discovery(
    issuer_or_discovery: "str | DiscoveryDocument | Mapping[str, Any]",
    *,
    client: "httpx.Client | None" = None,
) -> DiscoveryDocument:
    """Return a given discovery document, or fetch that of an issuer; raises the errors of `fetch_discovery`."""
    if isinstance(issuer_or_discovery, str):
        return fetch_discovery(issuer_or_discovery, client=client)

    return read(DiscoveryDocument, issuer_or_discovery)


def fetch_user_info(
    config: object,
    discovery: "DiscoveryDocument | Mapping[str, Any]",
    *,
    client: "httpx.Client | None" = None,
) -> dict[str, Any]:
    """Fetch the claims of the user.

    Args:
        config: A token response, or a mapping with ``accessToken`` and optionally ``idToken``.
        discovery: The discovery document of the provider.
        client: The HTTP client.

    Raises:
        AuthConfigError: The endpoint or the access token is missing.
        AuthError: The claims are about another user than the ID token.
        UnexpectedReplyError: The reply is not a JSON object.
        TransportError: The provider does not reply.
    """
    endpoint = read(DiscoveryDocument, discovery).user_info_endpoint
    if not endpoint:
        raise AuthConfigError("the discovery document has no user_info_endpoint")

    token = _member(config, "accessToken", "access_token")
    if not token or not isinstance(cast("object", token), str):
        raise AuthConfigError("user info needs an access token, which is a string")

    headers = {"Content-Type": FORM_TYPE, "Authorization": f"Bearer {token}"}
    claims = get_json(endpoint, headers, client)
    id_token = _member(config, "idToken", "id_token")
    if id_token:
        check_same_subject(claims, id_token)

    return claims


def _member(config: object, document_name: str, python_name: str) -> str:
    """Return a member of a mapping or an object, or an empty string if there is none."""
    if isinstance(config, Mapping):
        pairs = cast("Mapping[str, Any]", config)
        return pairs.get(document_name) or pairs.get(python_name) or ""

    return getattr(config, python_name, None) or ""

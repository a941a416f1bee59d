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
    one.name for one in fields(DiscoveryDocument) if one.name.endswith("_endpoint")
]


def issuer_with_well_known_url(issuer: str) -> str:
    """Return the metadata URL of an issuer: the issuer with the well-known path appended (RFC 5785)."""
    return issuer + WELL_KNOWN


def fetch_discovery(
    issuer: str, *, client: "httpx.Client | None" = None
) -> DiscoveryDocument:
    """Fetch the discovery document of an issuer.

    Raises AuthConfigError if the issuer uses http on another machine or has a query or fragment; UnexpectedReplyError
    if the metadata names another issuer; TransportError.
    """
    base = check_issuer(issuer).removesuffix("/")  # OpenID Connect Discovery section 4
    found = get_json(issuer_with_well_known_url(base), {}, client)
    if found.get("issuer") != issuer:
        raise UnexpectedReplyError(
            f"{shown(issuer)} returned metadata of the issuer {shown(str(found.get('issuer')))!r}: "
            "both must match exactly, including a trailing slash"
        )
    endpoints = {
        name: found.get(name.replace("user_info", "userinfo")) for name in _ENDPOINTS
    }
    if not_text := sorted(
        name for name, value in endpoints.items() if not isinstance(value, str | None)
    ):
        raise UnexpectedReplyError(
            f"{shown(issuer)} returned invalid metadata: {', '.join(not_text)} must be a string"
        )
    return DiscoveryDocument(**endpoints, discovery_document=found)


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
    """Fetch the claims of the user; ``config`` is a token response or a mapping with ``accessToken``.

    Raises AuthConfigError if the endpoint or access token is missing, AuthError if ``sub`` differs from that of the ID
    token in ``config``, UnexpectedReplyError, TransportError.
    """
    endpoint = read(DiscoveryDocument, discovery).user_info_endpoint
    if not endpoint:
        raise AuthConfigError("the discovery document has no user_info_endpoint")
    token = _of(config, "accessToken", "access_token")
    if not token or not isinstance(cast("object", token), str):
        raise AuthConfigError("user info needs an access token, which is a string")
    found = get_json(
        endpoint,
        {"Content-Type": FORM_TYPE, "Authorization": f"Bearer {token}"},
        client,
    )
    if id_token := _of(config, "idToken", "id_token"):
        check_same_subject(found, id_token)
    return found


def _of(config: object, name: str, ours: str) -> str:
    if isinstance(config, Mapping):
        pairs = cast("Mapping[str, Any]", config)
        return pairs.get(name) or pairs.get(ours) or ""
    return getattr(config, ours, None) or ""

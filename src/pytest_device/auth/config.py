"""Configurations of the sign-in library, with the names of the document or of Python."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from pytest_device.errors import AuthConfigError

Environment: TypeAlias = Literal["standalone", "bare", "store_client", "web"]
GrantType: TypeAlias = Literal["authorization_code", "refresh_token"]
"""RFC 6749 sections 4.1.3 and 6."""
TokenTypeHint: TypeAlias = Literal["access_token", "refresh_token"]
"""RFC 7009 section 2.1."""

AUTHORIZATION_CODE: Final = "authorization_code"
REFRESH_TOKEN: Final = "refresh_token"  # noqa: S105  # the name of a grant

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class AuthRequestConfig:
    """Authorization request; a missing ``state`` is generated."""

    client_id: str = ""
    redirect_uri: str = ""
    response_type: str = "code"
    scopes: Sequence[str] | None = None
    client_secret: str | None = field(default=None, repr=False)
    code_challenge: str | None = None
    code_challenge_method: str = "S256"
    prompt: str | Sequence[str] | None = None
    state: str | None = field(default=None, repr=False)
    extra_params: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    use_pkce: bool = True


@dataclass(frozen=True, slots=True)
class TokenRequestConfig:
    """Options of all token endpoint requests."""

    client_id: str = ""
    client_secret: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    extra_params: Mapping[str, str] | None = field(default=None, repr=False)
    scopes: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class AccessTokenRequestConfig(TokenRequestConfig):
    """Authorization code exchange (RFC 6749 section 4.1.3)."""

    code: str = field(default="", repr=False)
    redirect_uri: str = ""
    grant_type: GrantType = AUTHORIZATION_CODE


@dataclass(frozen=True, slots=True)
class RefreshTokenRequestConfig(TokenRequestConfig):
    """Token refresh (RFC 6749 section 6)."""

    refresh_token: str | None = field(default=None, repr=False)
    grant_type: GrantType = REFRESH_TOKEN


@dataclass(frozen=True, slots=True)
class RevokeTokenRequestConfig:
    """Token revocation (RFC 7009 section 2.1)."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    token_type_hint: TokenTypeHint | None = None


@dataclass(frozen=True, slots=True)
class RedirectUriOptions:
    """Options of a redirect URI; ``native`` is returned unchanged in the environments ``standalone`` and ``bare``."""

    native: str | None = None
    scheme: str | None = None
    path: str = ""
    is_triple_slashed: bool = False
    query_params: Mapping[str, str] = field(default_factory=dict[str, str])
    prefer_localhost: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryDocument:
    """Endpoints of an identity provider; ``discovery_document`` is the complete metadata."""

    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    revocation_endpoint: str | None = None
    user_info_endpoint: str | None = None
    end_session_endpoint: str | None = None
    registration_endpoint: str | None = None
    discovery_document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def read(kind: type[_T], given: object) -> _T:
    """Return a configuration from an instance or from a mapping, whose None values are ignored.

    Raises AuthConfigError for an unknown name, for scopes in a single string and for anything other than a mapping.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise AuthConfigError(f"{kind.__name__} must be a mapping, not {type(given).__name__}")
    pairs = cast("Mapping[object, Any]", given)
    values = python_names(pairs)
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]  # every kind is a dataclass
    if unknown := sorted(values.keys() - set(known)):
        raise AuthConfigError(
            f"{kind.__name__} has unknown fields: {', '.join(unknown)} (available: {', '.join(known)})"
        )
    if isinstance(scopes := values.get("scopes"), str):
        raise AuthConfigError(f"scopes {scopes!r} must be a list, for example {scopes.split()}")
    return kind(**values)


def python_names(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert the names of a mapping to snake case and drop None values."""
    return {_python_name(str(name)): value for name, value in given.items() if value is not None}


def _python_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]+", lambda found: f"_{found[0].lower()}", name)

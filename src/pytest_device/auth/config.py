"""The configurations of the sign-in library, in the document's names or in Python's."""

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
    """An authorization request: a ``state`` is generated if none is given."""

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
    """What all requests to a token endpoint have in common."""

    client_id: str = ""
    client_secret: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    extra_params: Mapping[str, str] | None = field(default=None, repr=False)
    scopes: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class AccessTokenRequestConfig(TokenRequestConfig):
    """The exchange of a code (RFC 6749 section 4.1.3)."""

    code: str = field(default="", repr=False)
    redirect_uri: str = ""
    grant_type: GrantType = AUTHORIZATION_CODE


@dataclass(frozen=True, slots=True)
class RefreshTokenRequestConfig(TokenRequestConfig):
    """A refresh (RFC 6749 section 6)."""

    refresh_token: str | None = field(default=None, repr=False)
    grant_type: GrantType = REFRESH_TOKEN


@dataclass(frozen=True, slots=True)
class RevokeTokenRequestConfig:
    """A revocation (RFC 7009 section 2.1)."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    token_type_hint: TokenTypeHint | None = None


@dataclass(frozen=True, slots=True)
class RedirectUriOptions:
    """What a redirect URI is made of; ``native`` is used as it is in apps that run on their own."""

    native: str | None = None
    scheme: str | None = None
    path: str = ""
    is_triple_slashed: bool = False
    query_params: Mapping[str, str] = field(default_factory=dict[str, str])
    prefer_localhost: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryDocument:
    """The endpoints of an identity provider; ``discovery_document`` is its whole metadata."""

    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    revocation_endpoint: str | None = None
    user_info_endpoint: str | None = None
    end_session_endpoint: str | None = None
    registration_endpoint: str | None = None
    discovery_document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def read(kind: type[_T], given: object) -> _T:
    """Return a configuration from one, or from a mapping with the document's names or Python's; None counts as absent.

    Raises AuthConfigError for an unknown name, for scopes in one string and for what is no mapping.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise AuthConfigError(f"{kind.__name__} must be a mapping, not {type(given).__name__}")
    pairs = cast("Mapping[object, Any]", given)
    values = python_names(pairs)
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]  # all kinds here are dataclasses
    if unknown := sorted(values.keys() - set(known)):
        raise AuthConfigError(f"{kind.__name__} has no {', '.join(unknown)}: it has {', '.join(known)}")
    if isinstance(scopes := values.get("scopes"), str):
        raise AuthConfigError(f"scopes {scopes!r} must be a list, for example {scopes.split()}")
    return kind(**values)


def python_names(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return values by their names in Python, without those that are None."""
    return {_python_name(str(name)): value for name, value in given.items() if value is not None}


def _python_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]+", lambda found: f"_{found[0].lower()}", name)

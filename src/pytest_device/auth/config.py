"""Configurations of the sign-in library, with the names of the document or of Python."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from pytest_device.auth.secret_values import learn_sent
from pytest_device.errors import AuthConfigError, hides_frames
from pytest_device.spelling import hint

__tracebackhide__ = hides_frames

Environment: TypeAlias = Literal["standalone", "bare", "store_client", "web"]
GrantType: TypeAlias = Literal["authorization_code", "refresh_token"]
"""RFC 6749 sections 4.1.3 and 6."""
TokenTypeHint: TypeAlias = Literal["access_token", "refresh_token"]
"""RFC 7009 section 2.1."""

AUTHORIZATION_CODE: Final = "authorization_code"
REFRESH_TOKEN: Final = "refresh_token"  # noqa: S105  # the name of a grant

_PARAMETERS: Final = frozenset({"extra_params", "extra_headers", "query_params"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Config:
    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        # Before any error: a traceback shows what was given.
        learn_sent(values)
        for name, value in values.items():
            if value is not None:
                _check(name, value)


@dataclass(frozen=True, slots=True)
class AuthRequestConfig(_Config):
    """Authorization request; a missing ``state`` is generated, and with PKCE the ``code_challenge``."""

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
class TokenRequestConfig(_Config):
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
class RevokeTokenRequestConfig(_Config):
    """Token revocation (RFC 7009 section 2.1)."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    token_type_hint: TokenTypeHint | None = None


@dataclass(frozen=True, slots=True)
class RedirectUriOptions(_Config):
    """Options of a redirect URI; ``native`` is returned unchanged in the environments ``standalone`` and ``bare``."""

    native: str | None = None
    scheme: str | None = None
    path: str = ""
    is_triple_slashed: bool = False
    query_params: Mapping[str, str] = field(default_factory=dict[str, str])
    prefer_localhost: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryDocument(_Config):
    """Endpoints of an identity provider; ``discovery_document`` is the complete metadata."""

    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    revocation_endpoint: str | None = None
    user_info_endpoint: str | None = None
    end_session_endpoint: str | None = None
    registration_endpoint: str | None = None
    discovery_document: Mapping[str, Any] = field(
        default_factory=dict[str, Any], repr=False
    )


def read(kind: type[_T], source: object) -> _T:
    """Return a configuration from an instance or from a mapping, whose None values are ignored.

    Raises AuthConfigError for an unknown name and for anything other than a mapping.
    """
    if isinstance(source, kind):
        return source

    values = python_names(source, kind.__name__)
    # Before any error: a traceback shows what was given.
    learn_sent(values)

    available = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # every kind is a dataclass
    unknown = sorted(values.keys() - set(available))
    if unknown:
        names = ", ".join(f"{name}{hint(name, available)}" for name in unknown)
        raise AuthConfigError(
            f"{kind.__name__} has unknown fields: {names} (available: {', '.join(available)})"
        )

    return kind(**values)


def python_names(source: object, label: str = "the value") -> dict[str, Any]:
    """Convert the names of a mapping to snake case and drop None values. Raises AuthConfigError for other types."""
    if not isinstance(source, Mapping):
        raise AuthConfigError(f"{label} must be a mapping, not {type(source).__name__}")

    pairs = cast("Mapping[object, Any]", source)

    return {
        _python_name(str(name)): value
        for name, value in pairs.items()
        if value is not None
    }


def _check(name: str, value: Any) -> None:
    """Raise AuthConfigError for what would be sent as something else, without quoting it: it may be a secret."""
    if name == "scopes" and isinstance(value, str):
        raise AuthConfigError(
            f"scopes {value!r} must be a list, for example {value.split()}"
        )
    if name not in _PARAMETERS:
        return
    if not isinstance(value, Mapping):
        raise AuthConfigError(f"{name} must be a mapping, not {type(value).__name__}")

    # A bool is an int in Python, and has several spellings in a form.
    wrong = [
        repr(key)
        for key, text in cast("Mapping[str, object]", value).items()
        if not isinstance(text, str | int) or isinstance(text, bool)
    ]
    if wrong:
        raise AuthConfigError(f"{name} must have string values: {', '.join(wrong)}")


def _python_name(name: str) -> str:
    """Convert a name of the document to snake case.

    Only the letters after a small one: ``usePKCE`` becomes ``use_pkce``.
    """

    def in_lower_case(match: re.Match[str]) -> str:
        return f"_{match[0].lower()}"

    return re.sub(r"(?<=[a-z])[A-Z]+", in_lower_case, name)

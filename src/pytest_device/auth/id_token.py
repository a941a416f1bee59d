"""Verification of ID tokens (OpenID Connect Core section 3.1.3.7)."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from pytest_device.auth.config import DiscoveryDocument, read
from pytest_device.auth.http import finite_number, get_json
from pytest_device.errors import AuthConfigError, AuthError, hides_frames
from pytest_device.secret_registry import SECRETS

if TYPE_CHECKING:
    import httpx
    from joserfc.jwk import Key

__tracebackhide__ = hides_frames

LEEWAY_SECONDS: Final = 60
"""Maximum clock skew."""
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
"""Accepted asymmetric algorithms: neither ``none`` nor HMAC, whose secret would be in every copy of an app."""
MIN_RSA_BITS: Final = 2048
_SIGNATURE_PROBLEMS: Final[Mapping[str, str]] = {
    "BadSignatureError": "it was made with another key, or the token was changed",
    "DecodeError": "it is no signed token",
    "InvalidKeyIdError": "the provider publishes no key for it",
    "UnsupportedAlgorithmError": f"its algorithm is none of {', '.join(ALGORITHMS)}",
}
"""Words for the errors of joserfc, whose texts may quote the token; by name, since it is an optional package."""
_DOTS: Final = 2
"""Number of dots in a signed token, which has three parts."""


def require_joserfc() -> None:
    """Raise AuthConfigError if joserfc isn't installed."""
    if find_spec("joserfc") is None:
        raise AuthConfigError(
            "the scope openid needs joserfc to verify ID tokens: pip install 'pytest-device[auth]'"
        )


def require_id_tokens(discovery: DiscoveryDocument) -> None:
    """Raise AuthConfigError if ID tokens can't be verified; call it before the first request."""
    require_joserfc()
    metadata = discovery.discovery_document
    missing = [name for name in ("issuer", "jwks_uri") if not metadata.get(name)]
    if missing:
        raise AuthConfigError(
            f"the scope openid needs {', '.join(missing)} of the metadata: use fetch_discovery"
        )


def verify_id_token(
    id_token: str,
    discovery: DiscoveryDocument | Mapping[str, Any],
    *,
    client_id: str,
    nonce: str | None = None,
    now: float | None = None,
    client: "httpx.Client | None" = None,
) -> dict[str, Any]:
    """Verify the signature, issuer, audience, expiry and nonce of an ID token and return its claims.

    Args:
        id_token: The ID token.
        discovery: The discovery document of the provider, from `fetch_discovery`.
        client_id: The client that the token must be for.
        nonce: The nonce of the authorization request, or None if it had none.
        now: The current Unix time in seconds (default: that of the system).
        client: The HTTP client that fetches the provider's keys.

    Raises:
        AuthError: The token is invalid; the code is ``invalid_id_token``.
        AuthConfigError: joserfc is not installed, or the document lacks the metadata.
        UnexpectedReplyError: The provider does not return its keys.
        TransportError: The provider does not reply.
    """
    SECRETS.learn(id_token)
    document = read(DiscoveryDocument, discovery)
    require_id_tokens(document)
    metadata = document.discovery_document
    keys = get_json(str(metadata["jwks_uri"]), {}, client)
    claims = _signed_claims(id_token, keys)

    time_now = time.time() if now is None else now
    problem = _problem(claims, str(metadata["issuer"]), client_id, nonce, time_now)
    if problem:
        raise _invalid(problem)

    return claims


def missing_id_token(scope: str | None) -> AuthError:
    """Return the error of a reply without the ID token that was requested (OpenID Connect Core section 3.1.3.3)."""
    granted = "" if scope is None else f": the provider granted the scope {scope!r}"
    return AuthError(
        {
            "error": "invalid_id_token",
            "error_description": f"the reply has no ID token, although the scope openid was requested{granted}",
        }
    )


def check_same_subject(claims: Mapping[str, Any], id_token: str) -> None:
    """Raise AuthError if ``sub`` differs from that of a verified ID token (OpenID Connect Core section 5.3.2)."""
    SECRETS.learn(id_token)
    payload = id_token.split(".")[1] if id_token.count(".") == _DOTS else ""
    try:
        subject = json.loads(base64.urlsafe_b64decode(f"{payload}==")).get("sub")
    except (ValueError, RecursionError, AttributeError):
        subject = None

    if not isinstance(subject, str) or claims.get("sub") != subject:
        raise _invalid("the reply is about another user")


def _signed_claims(id_token: str, keys: dict[str, Any]) -> dict[str, Any]:
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        usable = KeySet(_usable(keys["keys"]))
        return dict(jwt.decode(id_token, usable, algorithms=list(ALGORITHMS)).claims)
    except (JoseError, ValueError, KeyError, TypeError) as error:
        name = type(error).__name__
        reason = _SIGNATURE_PROBLEMS.get(name, name)
        raise _invalid(f"its signature cannot be verified: {reason}") from None


def _usable(keys: "Sequence[Any]") -> "list[Key]":
    """Return the keys that may verify signatures.

    A key of a kind that this machine does not know is ignored, as RFC 7517 section 5 asks: providers publish keys for
    other purposes, too. So is an RSA key of fewer than 2048 bits (RFC 7518 section 3.3), which can be factored.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    usable: list[Key] = []
    for parameters in keys:
        try:
            if _is_short_rsa_key(parameters):
                continue
            key = JWKRegistry.import_key(parameters)
            # Some keys are only checked when they are used.
            _ = key.public_key
        except (
            JoseError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            UnsupportedAlgorithm,
        ):
            continue
        usable.append(key)

    return usable


def _is_short_rsa_key(parameters: Mapping[str, Any]) -> bool:
    if parameters["kty"] != "RSA":
        return False

    modulus = base64.urlsafe_b64decode(f"{parameters['n']}==")
    return int.from_bytes(modulus).bit_length() < MIN_RSA_BITS


def _problem(
    claims: Mapping[str, Any],
    issuer: str,
    client_id: str,
    nonce: str | None,
    now: float,
) -> str:
    """Return the first violation of OpenID Connect Core sections 2 and 3.1.3.7, or an empty string."""
    if claims.get("iss") != issuer:
        return "it has another issuer"
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        return "it does not name a user"

    problem = _audience_problem(claims, client_id) or _time_problem(claims, now)
    if problem:
        return problem
    if nonce is not None and claims.get("nonce") != nonce:
        return "it has another nonce"

    return ""


def _audience_problem(claims: Mapping[str, Any], client_id: str) -> str:
    audience = claims.get("aud")
    audiences: list[object] = [audience]
    if isinstance(audience, list):
        audiences = cast("list[object]", audience)
    if client_id not in audiences:
        return "it is for another client"

    # With several audiences, the token must say which of them asked for it.
    default = client_id if len(audiences) == 1 else None
    if claims.get("azp", default) != client_id:
        return "it was issued to another client"

    return ""


def _time_problem(claims: Mapping[str, Any], now: float) -> str:
    expires = _time_of(claims, "exp")
    if expires is None or now >= expires + LEEWAY_SECONDS:
        return "it has expired"

    issued = _time_of(claims, "iat")
    if issued is None or issued > now + LEEWAY_SECONDS:
        return "it was issued in the future"

    if "nbf" in claims:
        begins = _time_of(claims, "nbf")
        if begins is None or begins > now + LEEWAY_SECONDS:
            return "it is not valid yet"

    return ""


def _time_of(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time, None unless it is a finite number: JSON parsers of Python accept NaN and Infinity."""
    value = claims.get(name)
    return None if isinstance(value, str) else finite_number(value)


def _invalid(problem: str) -> AuthError:
    return AuthError(
        {
            "error": "invalid_id_token",
            "error_description": f"the ID token is invalid: {problem}",
        }
    )

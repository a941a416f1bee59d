"""The provider's signing keys: published, rotated, and misused where a test wants so."""

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey


class SigningKeys:
    """RS256 keys, the newest of which signs; replaced ones stay published until they are dropped."""

    def __init__(self) -> None:
        self._keys = [_new_key()]

    def rotate(self, *, keep_old: bool = True) -> None:
        """Sign with a new key from here on."""
        self._keys = [_new_key(), *(self._keys if keep_old else ())]

    def published(self) -> dict[str, Any]:
        """Return the public keys as a JWK set."""
        return {"keys": [key.as_dict(private=False) for key in self._keys]}

    def sign(self, claims: Mapping[str, Any], failure: str | None = None) -> str:
        """Return an ID token: signed, unsigned (``alg_none``) or by a foreign key (``bad_signature``)."""
        key = self._keys[0]
        if failure == "alg_none":
            return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."
        signer = _new_key(str(key.kid)) if failure == "bad_signature" else key
        return jwt.encode({"alg": "RS256", "kid": str(key.kid)}, dict(claims), signer)

    def claims_of(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that was signed here, also of an expired one; none of any other."""
        keys = KeySet.import_key_set(self.published())  # type: ignore[arg-type]  # a plain mapping
        try:
            return jwt.decode(id_token, keys, algorithms=["RS256"]).claims
        except (JoseError, ValueError):
            return {}


def _new_key(key_id: str | None = None) -> RSAKey:
    kid = key_id or secrets.token_hex(8)
    return RSAKey.generate_key(2048, parameters={"use": "sig", "alg": "RS256", "kid": kid})


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode("ascii")

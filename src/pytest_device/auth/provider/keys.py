"""Signing keys of the provider: publication, rotation and invalid signatures for failures."""

import base64
import json
import secrets
import threading
from collections.abc import Mapping
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey

from pytest_device.errors import hides_frames
from pytest_device.secret_registry import SECRETS

__tracebackhide__ = hides_frames

_PRIVATE_MEMBERS: Final = ("d", "p", "q", "dp", "dq", "qi")
"""Members of a private RSA key in JSON (RFC 7518 section 6.3.2)."""


class SigningKeys:
    """RS256 keys; the newest key signs, older keys remain published until a rotation drops them.

    The first one is generated when it is needed: that takes longer than a sign-in without an ID token.
    """

    def __init__(self) -> None:
        self._all: list[RSAKey] = []
        self._guard = threading.Lock()

    def rotate(self, *, keep_old: bool = True) -> None:
        """Use a new signing key; the old keys remain published if ``keep_old`` is True."""
        old_keys = self._keys if keep_old else []
        self._all = [_new_key(), *old_keys]

    @property
    def _keys(self) -> list[RSAKey]:
        with self._guard:
            if not self._all:
                self._all = [_new_key()]

            return self._all

    def published(self) -> dict[str, Any]:
        """Return the public keys as a JWK set."""
        return {"keys": [key.as_dict(private=False) for key in self._keys]}

    def sign(self, claims: Mapping[str, Any], failure: str | None = None) -> str:
        """Return an ID token; ``failure`` leaves it unsigned (``alg_none``) or uses another key (``bad_signature``)."""
        key = self._keys[0]
        # An invalid signature names the key that is published: clients must not ignore it as unknown.
        key_id = str(key.kid)
        if failure == "alg_none":
            return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."
        if failure == "bad_signature":
            key = _new_key(key_id)

        return jwt.encode({"alg": "RS256", "kid": key_id}, dict(claims), key)

    def claims_of(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of an ID token of this provider, even if it has expired, or an empty mapping."""
        keys = KeySet.import_key_set(self.published())  # type: ignore[arg-type]  # a mapping is accepted
        try:
            return jwt.decode(id_token, keys, algorithms=["RS256"]).claims
        except (JoseError, ValueError):
            return {}


def _new_key(key_id: str | None = None) -> RSAKey:
    kid = key_id or secrets.token_hex(8)
    key = RSAKey.generate_key(
        2048, parameters={"use": "sig", "alg": "RS256", "kid": kid}
    )
    # In each form in which a test or a traceback may print it.
    SECRETS.learn(key.as_pem(private=True).decode())
    members = key.as_dict(private=True)
    for name in _PRIVATE_MEMBERS:
        SECRETS.learn(members[name])

    return key


def _part(value: Mapping[str, Any]) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps(value).encode())

    return encoded.rstrip(b"=").decode("ascii")

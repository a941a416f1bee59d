"""Proof Key for Code Exchange, limited to the method S256 (RFC 7636)."""

import base64
import hashlib
from collections.abc import Callable
from string import ascii_letters, digits
from typing import Final, TypeAlias

from pytest_device.errors import AuthConfigError

RandomBytes: TypeAlias = Callable[[int], bytes]

VERIFIER_LENGTH: Final = 128
_SIGNS: Final = "".join(sorted(ascii_letters)) + digits


def random_text(length: int, random_bytes: RandomBytes) -> str:
    """Return a random string of ``length`` ASCII letters and digits."""
    return "".join(_SIGNS[byte % len(_SIGNS)] for byte in random_bytes(length))


def derive_challenge(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636 section 4.2).

    Raises AuthConfigError if the verifier is not 43 to 128 characters long or contains one that section 4.1 forbids.
    """
    if not 43 <= len(verifier) <= VERIFIER_LENGTH:  # noqa: PLR2004  # RFC 7636 section 4.1
        raise AuthConfigError(f"the code verifier must have 43 to {VERIFIER_LENGTH} characters, not {len(verifier)}")
    if not set(verifier) <= set(_SIGNS + "-._~"):
        raise AuthConfigError("the code verifier must consist of letters, digits and - . _ ~ only")
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")

"""Secret URLs: one for each purpose of each session."""

import hmac
import secrets
from typing import Final, Literal

Purpose = Literal["preview", "controllers", "appium", "devices", "web-push"]
"""The live preview; the controller or Appium, for a test; the device, for the controller; its push subscriptions."""

_BYTES: Final = 24


class Keys:
    """Creates and checks secret URLs; they are valid as long as the service runs."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._secret = secrets.token_bytes(_BYTES)

    def url(self, purpose: Purpose, session_id: str) -> str:
        """Return ``{base_url}/{purpose}/{session_id}/{key}``, which is a secret."""
        return (
            f"{self._base_url}/{purpose}/{session_id}/{self._key(purpose, session_id)}"
        )

    def fits(self, purpose: Purpose, session_id: str, key: str) -> bool:
        """Return whether a key belongs to a session's URL."""
        # In constant time: otherwise a key could be guessed one character after the other.
        return hmac.compare_digest(
            key.encode(), self._key(purpose, session_id).encode()
        )

    def _key(self, purpose: Purpose, session_id: str) -> str:
        return hmac.new(
            self._secret, f"{purpose} {session_id}".encode(), "sha256"
        ).hexdigest()[: 2 * _BYTES]

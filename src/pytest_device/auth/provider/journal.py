"""Recorded events and pending failures of the provider, shared by the server and test threads."""

from collections.abc import Callable
from typing import Any, Final

from pytest_device import serving
from pytest_device.auth.provider.model import IssuedTokens, SeenRequest

_SECRETS: Final = frozenset(
    ("code", "code_verifier", "client_secret", "access_token", "refresh_token", "token", "id_token_hint")
)
"""Request parameters that are secrets."""


class Journal(serving.Journal):
    """Requests, authorizations and tokens so far, and pending failures."""

    def __init__(self) -> None:
        super().__init__()
        self.on_secret: Callable[..., Any] = lambda *_secrets: None
        """Callback that receives each secret before a client does."""

    def add(self, entry: object) -> None:
        """Record an entry and report its secrets."""
        match entry:
            case SeenRequest():
                self.on_secret(*(value for name, value in entry.params.items() if name in _SECRETS))
            case IssuedTokens():
                self.on_secret(entry.access_token, entry.refresh_token, entry.id_token or "")
            case _:
                pass
        super().add(entry)

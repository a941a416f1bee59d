"""Recorded events and pending failures of the provider, shared by the server and test threads."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from pytest_device import serving
from pytest_device.auth.provider.model import Endpoint, Failure, FailureKind, IssuedTokens, SeenRequest

_SECRETS: Final = frozenset(
    ("code", "code_verifier", "client_secret", "access_token", "refresh_token", "token", "id_token_hint")
)
"""Request parameters that are secrets."""


class Journal(serving.Journal[Failure]):
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

    def take_failure(self, endpoint: Endpoint, *kinds: FailureKind) -> Failure | None:
        """Return the endpoint's next failure of these kinds and decrement its count."""
        with self.changed:
            for index, failure in enumerate(self._failures):
                if failure.endpoint == endpoint and failure.kind in kinds:
                    left = [replace(failure, times=failure.times - 1)] if failure.times > 1 else []
                    self._failures[index : index + 1] = left
                    return failure
        return None

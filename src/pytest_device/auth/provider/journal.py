"""What the provider saw and how it is to fail, shared by the server's thread and the test's."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from pytest_device import serving
from pytest_device.auth.provider.model import Endpoint, Failure, FailureKind, IssuedTokens, SeenRequest

_SECRETS: Final = frozenset(
    ("code", "code_verifier", "client_secret", "access_token", "refresh_token", "token", "id_token_hint")
)
"""The parameters of requests that are secrets."""


class Journal(serving.Journal):
    """The requests, authorizations and tokens so far, and the failures to come."""

    def __init__(self) -> None:
        super().__init__()
        self.on_secret: Callable[..., Any] = lambda *_secrets: None
        """Receives each secret before a client does."""
        self._failures: list[Failure] = []

    def add(self, entry: object) -> None:
        """Note an entry, and report its secrets."""
        match entry:
            case SeenRequest():
                self.on_secret(*(value for name, value in entry.params.items() if name in _SECRETS))
            case IssuedTokens():
                self.on_secret(entry.access_token, entry.refresh_token, entry.id_token or "")
            case _:
                pass
        super().add(entry)

    def fail(self, failure: Failure) -> None:
        """Let an endpoint fail."""
        with self.changed:
            self._failures.append(failure)

    def take_failure(self, endpoint: Endpoint, *kinds: FailureKind) -> Failure | None:
        """Return the endpoint's next failure of these kinds and count it down."""
        with self.changed:
            for index, failure in enumerate(self._failures):
                if failure.endpoint == endpoint and failure.kind in kinds:
                    left = [replace(failure, times=failure.times - 1)] if failure.times > 1 else []
                    self._failures[index : index + 1] = left
                    return failure
        return None

    def clear_failures(self) -> None:
        """Let all endpoints work again."""
        with self.changed:
            self._failures.clear()

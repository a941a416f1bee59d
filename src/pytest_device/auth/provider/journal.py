"""What the provider saw and how it is to fail, shared by the server's thread and the test's."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pytest_device.auth.provider.model import Authorization, Endpoint, Failure, FailureKind, IssuedTokens, SeenRequest

_T = TypeVar("_T")


class Journal:
    """Lists of what happened, in order; `wait_until` waits for the next entry."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._failures: list[Failure] = []
        self.requests: tuple[SeenRequest, ...] = ()
        self.authorizations: tuple[Authorization, ...] = ()
        self.tokens: tuple[IssuedTokens, ...] = ()

    def add(self, entry: SeenRequest | Authorization | IssuedTokens) -> None:
        """Note an entry."""
        with self._changed:
            match entry:
                case SeenRequest():
                    self.requests += (entry,)
                case Authorization():
                    self.authorizations += (entry,)
                case IssuedTokens():
                    self.tokens += (entry,)
            self._changed.notify_all()

    def fail(self, failure: Failure) -> None:
        """Let an endpoint fail."""
        with self._changed:
            self._failures.append(failure)

    def take_failure(self, endpoint: Endpoint, *kinds: FailureKind) -> Failure | None:
        """Return the endpoint's next failure of these kinds and count it down."""
        with self._changed:
            for index, failure in enumerate(self._failures):
                if failure.endpoint == endpoint and failure.kind in kinds:
                    left = [replace(failure, times=failure.times - 1)] if failure.times > 1 else []
                    self._failures[index : index + 1] = left
                    return failure
        return None

    def clear_failures(self) -> None:
        """Let all endpoints work again."""
        with self._changed:
            self._failures.clear()

    def wait_until(self, find: Callable[[], _T | None], timeout_seconds: float) -> _T | None:
        """Return what ``find`` finds, None if it finds nothing in time."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while (found := find()) is None:
                if not self._changed.wait(deadline - time.monotonic()):
                    return find()
            return found

"""The secrets that this process has learned, for everything that masks text."""

import re
from collections.abc import Callable
from threading import RLock
from typing import Final

MAX_SECRETS: Final = 2_000
"""Number of secrets that are kept, the latest: older tokens have usually expired."""
MIN_LENGTH: Final = 8
"""Number of characters of the shortest secret: masking shorter values would garble ordinary text."""
_PLACEHOLDER: Final = (
    r"(?i)(?:[a-z]{1,12}[ _-]?)?(?:tokens?|secrets?|password|key|code)"
)
"""Made-up values, such as ``client-secret``: masking them would garble the names as well."""
_LONGEST: Final = 4_096
"""Characters of one entry: longer secrets are kept in pieces, so that the number limits the memory."""


class SecretRegistry:
    """Receives secrets from the parts of this package that learn them, and passes them on to its followers.

    A part that learns a secret neither knows who prints nor waits until somebody asks.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        """Secrets, oldest first, with a number that increases each time one is learned."""
        self._count = 0
        self._followers: list[Callable[..., object]] = []
        self._lock = RLock()
        """Services learn secrets in their threads, and a follower may learn one itself."""

    def learn(self, *values: object) -> None:
        """Register secrets before anything can print them; ignore other values, short ones and placeholders."""
        secrets = [
            value for value in values if isinstance(value, str) and _is_secret(value)
        ]
        pieces = [piece for secret in secrets for piece in _pieces(secret)]
        if not pieces:
            return

        with self._lock:
            for piece in pieces:
                self._count += 1
                self._numbers.pop(piece, None)  # so that it becomes the latest
                self._numbers[piece] = self._count

            while len(self._numbers) > MAX_SECRETS:
                oldest = next(iter(self._numbers))
                del self._numbers[oldest]

            for follower in tuple(self._followers):
                follower(*pieces)

    def follow(self, on_secrets: Callable[..., object]) -> Callable[[], None]:
        """Call a function with the secrets known so far, then with each new one, until the returned one is called.

        The calls are made in the thread that learns the secret, before it goes on.
        """
        with self._lock:
            if self._numbers:
                on_secrets(*self._numbers)
            self._followers.append(on_secrets)
        return lambda: self._unfollow(on_secrets)

    def _unfollow(self, on_secrets: Callable[..., object]) -> None:
        with self._lock:
            self._followers.remove(on_secrets)

    def since(self, count: int) -> tuple[int, tuple[str, ...]]:
        """Return how many secrets were learned in all, and those learned after the first ``count``."""
        with self._lock:
            if count == self._count:  # the usual answer, without a look at each
                return count, ()
            return self._count, tuple(
                secret for secret, number in self._numbers.items() if number > count
            )


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_LENGTH and not re.fullmatch(_PLACEHOLDER, value)


def _pieces(secret: str) -> list[str]:
    return [
        secret[start : start + _LONGEST] for start in range(0, len(secret), _LONGEST)
    ]


SECRETS: Final = SecretRegistry()
"""The registry of this process."""

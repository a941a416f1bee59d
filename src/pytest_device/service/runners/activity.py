"""When a controller was last used."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Activity:
    """Notes requests by ``clock`` (Unix seconds); one that is under way is use of the controller now."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._under_way = 0
        self._last: float | None = None

    @property
    def last(self) -> float | None:
        """When the controller was last used, None when not yet."""
        return self._clock() if self._under_way else self._last

    def begin(self) -> None:
        """Note that a request has come."""
        self._last = self._clock()
        self._under_way += 1

    def end(self) -> None:
        """Note that a request is answered; an answer to none that was noted changes nothing later."""
        self._last = self._clock()
        self._under_way = max(0, self._under_way - 1)

    @contextmanager
    def request(self) -> Generator[None]:
        """Note a request that is under way until the block ends."""
        self.begin()
        try:
            yield
        finally:
            self.end()

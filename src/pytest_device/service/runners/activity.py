"""The last use of a controller."""

import time
from collections.abc import Callable


class Activity:
    """Records requests by ``clock`` (Unix seconds); while one is in progress, the controller is in use."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._under_way = 0
        self._last: float | None = None

    @property
    def last(self) -> float | None:
        """When the controller was last used, None if it was not used yet."""
        return self._clock() if self._under_way else self._last

    def begin(self) -> None:
        """Record the start of a request."""
        self._last = self._clock()
        self._under_way += 1

    def end(self) -> None:
        """Record the end of a request; one without a start is ignored."""
        self._last = self._clock()
        self._under_way = max(0, self._under_way - 1)

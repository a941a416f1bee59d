"""Durations of boots and tests in earlier runs, stored in pytest's cache."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

_BOOTS: Final = "device/boot_seconds"
_TESTS: Final = "device/test_seconds"
_MOST_BOOTS: Final = 50
"""Maximum number of boots to remember for each model, the newest: enough to predict when most are ready, few enough to
adapt to changes of the service."""
_MOST_MODELS: Final = 200
"""More models than a suite uses; those unused for longest are removed first."""
_MOST_TESTS: Final = 20_000
"""More tests than a large suite has, in a file of about 2 MB that each run reads once."""
_LONGEST_SECONDS: Final = 86_400.0
"""A day: no test or boot takes longer, so such a value is corrupt and must not influence the order."""


class Cache(Protocol):
    """The part of pytest's cache in use."""

    def get(self, key: str, default: Any, /) -> Any: ...
    def set(self, key: str, value: object, /) -> None: ...


class History:
    """Seconds of tests by node ID and of boots by ``boot_key``; loaded on first use.

    ``cache`` is pytest's, None if disabled.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._earlier: Callable[[str], float | None] | None = None
        self._new: set[str] = set()

    def test_seconds(self, nodeid: str) -> float | None:
        """Return a test's duration, with its fixtures but without its wait for a device; None if unknown."""
        seconds = self._tests.get(nodeid)
        if seconds is None and self._earlier:
            return self._earlier(nodeid)
        return seconds

    @property
    def has_earlier(self) -> bool:
        return self._earlier is not None

    def add_earlier(self, seconds: Callable[[str], float | None]) -> None:
        """Use other durations, by node ID, for the tests that the cache does not contain."""
        self._earlier = seconds

    def add_test(self, nodeid: str, seconds: float) -> None:
        """Add a test's duration: its mean with the known duration is stored."""
        if not 0 <= seconds < _LONGEST_SECONDS:
            return
        known = self._tests.pop(nodeid, seconds)  # to move it to the end, as the newest
        self._tests[nodeid] = round((known + seconds) / 2, 3)
        self._new.add(_TESTS)

    def boots(self, key: str) -> Sequence[float]:
        """Return up to fifty boot times, newest last."""
        return tuple(self._boots.get(key, ()))

    def usual_boot(self, key: str) -> float | None:
        """Return the median of these boot times, or of those of the same platform and type, or None."""
        known = self._boots.get(key) or self._kin(key)
        return _median(known) if known else None

    def _kin(self, key: str) -> list[float]:
        label = key.split()[:2]
        return [
            seconds
            for other, boots in self._boots.items()
            if other.split()[:2] == label
            for seconds in boots
        ]

    def add_boot(self, key: str, seconds: float) -> None:
        if not 0 <= seconds < _LONGEST_SECONDS:
            return
        self._boots[key] = [*self._boots.pop(key, ()), round(seconds, 3)][-_MOST_BOOTS:]
        self._new.add(_BOOTS)

    def save(self) -> None:
        """Store the newest durations for later runs, if there are new ones."""
        if self._cache and _BOOTS in self._new:
            self._cache.set(_BOOTS, _newest(self._boots, _MOST_MODELS))
        if self._cache and _TESTS in self._new:
            self._cache.set(_TESTS, _newest(self._tests, _MOST_TESTS))
        self._new.clear()

    @cached_property
    def _boots(self) -> dict[str, list[float]]:
        return _valid_entries(self._stored(_BOOTS), _times)

    @cached_property
    def _tests(self) -> dict[str, float]:
        return _valid_entries(self._stored(_TESTS), _time)

    def _stored(self, key: str) -> object:
        try:
            return self._cache.get(key, None) if self._cache else None
        except RecursionError:  # json's error for deeply nested brackets
            return None


def _median(values: Sequence[float]) -> float:
    # Importing statistics would cost every pytest-xdist run 8 ms.
    known = sorted(values)
    return (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2


def _valid_entries(values: object, read: Callable[[object], T | None]) -> dict[str, T]:
    """Return the valid entries of a stored value, which may be damaged."""
    if not isinstance(values, dict):
        return {}
    found = {
        name: read(value) for name, value in cast("dict[str, object]", values).items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _times(values: object) -> list[float] | None:
    if not isinstance(values, list):
        return None
    times = [
        time for time in map(_time, cast("list[object]", values)) if time is not None
    ]
    return times[-_MOST_BOOTS:] or None


def _time(value: object) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and 0 <= value < _LONGEST_SECONDS
        else None
    )


def _newest(values: dict[str, T], most: int) -> dict[str, T]:
    return dict(list(values.items())[-most:])

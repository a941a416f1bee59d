"""How long boots and tests took in earlier runs, remembered in pytest's cache."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

_BOOTS: Final = "device/boot_seconds"
_TESTS: Final = "device/test_seconds"
_MOST_BOOTS: Final = 50
"""So many boots of each model are remembered, the newest: enough for when most are ready, few enough to forget how long
a service took before it changed."""
_MOST_MODELS: Final = 200
"""More than a suite has devices; what is no longer used goes first."""
_MOST_TESTS: Final = 20_000
"""More than a large suite has, in a file of about 2 MB that each run reads once."""
_LONGEST_SECONDS: Final = 86_400.0
"""A day: no test and no boot takes longer, so such a value is damage, which must not decide an order."""


class Cache(Protocol):
    """The part of pytest's cache in use."""

    def get(self, key: str, default: Any, /) -> Any: ...
    def set(self, key: str, value: object, /) -> None: ...


class History:
    """Seconds of tests by their node ids and of boots by ``boot_key``; read when first asked for.

    ``cache`` is pytest's, None when it is switched off.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._new: set[str] = set()

    def test_seconds(self, nodeid: str) -> float | None:
        """Return how long a test takes with its fixtures, without its wait for a device; None when it never ran."""
        return self._tests.get(nodeid)

    def add_test(self, nodeid: str, seconds: float) -> None:
        """Add one run of a test: the mean of its duration and the known one counts."""
        if not 0 <= seconds < _LONGEST_SECONDS:
            return
        known = self._tests.pop(nodeid, seconds)  # to come last, as the newest
        self._tests[nodeid] = round((known + seconds) / 2, 3)
        self._new.add(_TESTS)

    def boots(self, key: str) -> Sequence[float]:
        """Return how long boots took, up to fifty, the newest last."""
        return tuple(self._boots.get(key, ()))

    def usual_boot(self, key: str) -> float | None:
        """Return the median of such boots, else of those of the same platform and type, else None."""
        known = self._boots.get(key) or self._kin(key)
        return _median(known) if known else None

    def _kin(self, key: str) -> list[float]:
        label = key.split()[:2]
        return [seconds for other, boots in self._boots.items() if other.split()[:2] == label for seconds in boots]

    def add_boot(self, key: str, seconds: float) -> None:
        if not 0 <= seconds < _LONGEST_SECONDS:
            return
        self._boots[key] = [*self._boots.pop(key, ()), round(seconds, 3)][-_MOST_BOOTS:]
        self._new.add(_BOOTS)

    def save(self) -> None:
        """Remember the newest for later runs, when there is something new."""
        if self._cache and _BOOTS in self._new:
            self._cache.set(_BOOTS, _newest(self._boots, _MOST_MODELS))
        if self._cache and _TESTS in self._new:
            self._cache.set(_TESTS, _newest(self._tests, _MOST_TESTS))
        self._new.clear()

    @cached_property
    def _boots(self) -> dict[str, list[float]]:
        return _sound(self._stored(_BOOTS), _times)

    @cached_property
    def _tests(self) -> dict[str, float]:
        return _sound(self._stored(_TESTS), _time)

    def _stored(self, key: str) -> object:
        try:
            return self._cache.get(key, None) if self._cache else None
        except RecursionError:  # what json makes of a file of brackets
            return None


def _median(values: Sequence[float]) -> float:
    known = sorted(values)  # statistics.median would cost every pytest-xdist run 8 ms of imports
    return (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2


def _sound(values: object, read: Callable[[object], T | None]) -> dict[str, T]:
    """Return the valid entries of a stored value, which may be damaged."""
    if not isinstance(values, dict):
        return {}
    found = {name: read(value) for name, value in cast("dict[str, object]", values).items()}
    return {name: value for name, value in found.items() if value is not None}


def _times(values: object) -> list[float] | None:
    if not isinstance(values, list):
        return None
    times = [time for time in map(_time, cast("list[object]", values)) if time is not None]
    return times[-_MOST_BOOTS:] or None


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < _LONGEST_SECONDS else None


def _newest(values: dict[str, T], most: int) -> dict[str, T]:
    return dict(list(values.items())[-most:])

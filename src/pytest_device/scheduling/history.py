"""Durations of boots and tests in earlier runs, stored in pytest's cache."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

_BOOTS: Final = "device/boot_seconds"
_TESTS: Final = "device/test_seconds"
_MAX_BOOTS: Final = 50
"""Maximum number of boots to remember for each model, the newest: enough to predict when most are ready, few enough to
adapt to changes of the service."""
_MAX_MODELS: Final = 200
"""More models than a suite uses; those unused for longest are removed first."""
_MAX_TESTS: Final = 20_000
"""More tests than a large suite has, in a file of about 2 MB that each run reads once."""
_MAX_SECONDS: Final = 86_400.0
"""A day: no test or boot takes longer, so such a value is corrupt and must not influence the order."""


class Cache(Protocol):
    """The part of pytest's cache in use."""

    def get(self, key: str, default: Any, /) -> Any: ...
    def set(self, key: str, value: object, /) -> None: ...


class History:
    """Seconds of tests by node ID and of boots by ``boot_key``; loaded on first use.

    ``cache`` is pytest's, None if it is disabled. ``boot_key`` begins with a platform and a type.
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
        """Whether durations from other files are in use."""
        return self._earlier is not None

    def add_earlier(self, seconds: Callable[[str], float | None]) -> None:
        """Use other durations, by node ID, for the tests that the cache does not contain."""
        self._earlier = seconds

    def add_test(self, nodeid: str, seconds: float) -> None:
        """Add a test's duration: its mean with the known duration is stored."""
        if not 0 <= seconds < _MAX_SECONDS:
            return

        # Removed first, so that it moves to the end: the front is forgotten first.
        known = self._tests.pop(nodeid, seconds)
        self._tests[nodeid] = round((known + seconds) / 2, 3)
        self._new.add(_TESTS)

    def boots(self, key: str) -> Sequence[float]:
        """Return up to fifty boot times of a model, newest last."""
        return tuple(self._boots.get(key, ()))

    def usual_boot(self, key: str) -> float | None:
        """Return the median boot time of a model, or else of the models of its platform and type; None if unknown."""
        known = self._boots.get(key) or self._similar_boots(key)
        return _median(known) if known else None

    def _similar_boots(self, key: str) -> list[float]:
        """Return the boot times of all models of the same platform and type, with which each key begins."""
        label = key.split()[:2]
        return [
            seconds
            for other, boots in self._boots.items()
            if other.split()[:2] == label
            for seconds in boots
        ]

    def add_boot(self, key: str, seconds: float) -> None:
        """Add the seconds of a boot; only the newest fifty of a model are kept."""
        if not 0 <= seconds < _MAX_SECONDS:
            return

        boots = [*self._boots.pop(key, ()), round(seconds, 3)]
        self._boots[key] = boots[-_MAX_BOOTS:]
        self._new.add(_BOOTS)

    def save(self) -> None:
        """Store the newest durations for later runs, if there are new ones."""
        if self._cache and _BOOTS in self._new:
            self._cache.set(_BOOTS, _newest(self._boots, _MAX_MODELS))
        if self._cache and _TESTS in self._new:
            self._cache.set(_TESTS, _newest(self._tests, _MAX_TESTS))

        self._new.clear()

    @cached_property
    def _boots(self) -> dict[str, list[float]]:
        return _valid_entries(self._stored(_BOOTS), _parsed_boots)

    @cached_property
    def _tests(self) -> dict[str, float]:
        return _valid_entries(self._stored(_TESTS), _parsed_seconds)

    def _stored(self, key: str) -> object:
        try:
            return self._cache.get(key, None) if self._cache else None
        except RecursionError:  # json's error for deeply nested brackets
            return None


def _median(values: Sequence[float]) -> float:
    # Importing statistics would cost every pytest-xdist run 8 ms.
    ordered = sorted(values)
    lower = ordered[(len(ordered) - 1) // 2]
    upper = ordered[len(ordered) // 2]
    return (lower + upper) / 2


def _valid_entries(stored: object, parse: Callable[[object], T | None]) -> dict[str, T]:
    """Return the valid entries of a stored value, which may be damaged."""
    if not isinstance(stored, dict):
        return {}

    entries: dict[str, T] = {}
    for name, value in cast("dict[str, object]", stored).items():
        parsed = parse(value)
        if parsed is not None:
            entries[name] = parsed
    return entries


def _parsed_boots(value: object) -> list[float] | None:
    """Return the valid ones of a model's boot times, None without any."""
    if not isinstance(value, list):
        return None

    parsed = map(_parsed_seconds, cast("list[object]", value))
    boots = [seconds for seconds in parsed if seconds is not None]
    return boots[-_MAX_BOOTS:] or None


def _parsed_seconds(value: object) -> float | None:
    # Also false for NaN, which the json module reads.
    if isinstance(value, int | float) and 0 <= value < _MAX_SECONDS:
        return float(value)
    return None


def _newest(values: dict[str, T], number: int) -> dict[str, T]:
    """Return the last entries of a dictionary, which are the newest."""
    return dict(list(values.items())[-number:])

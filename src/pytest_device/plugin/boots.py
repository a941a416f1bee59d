"""How long devices take to be ready, remembered from run to run in pytest's cache."""

from typing import Any, Final, cast

_KEY: Final = "device/boot_seconds"
_MOST: Final = 20
"""So many boots of each kind of device are remembered, the newest."""
_LONGEST_SECONDS: Final = 86_400.0


class BootTimes:
    """The newest boot times by the label of their device; ``cache`` is pytest's, None when it is switched off."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._seconds = _readable(cache.get(_KEY, None)) if cache else {}
        self._is_new = False

    def add(self, label: str, seconds: float) -> None:
        """Take note of one boot."""
        self._seconds[label] = [*self._seconds.get(label, []), seconds][-_MOST:]
        self._is_new = True

    def usual(self, label: str) -> float | None:
        """Return the median of what is known, None when that is nothing."""
        known = sorted(self._seconds.get(label, ()))
        return (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 if known else None

    def save(self) -> None:
        """Remember them for later runs, when there is something new."""
        if self._cache and self._is_new:
            self._cache.set(_KEY, self._seconds)


def _readable(values: object) -> dict[str, list[float]]:
    """Return what is sound of a value that anybody may have written."""
    if not isinstance(values, dict):
        return {}
    return {label: _seconds(times) for label, times in cast("dict[str, object]", values).items()}


def _seconds(times: object) -> list[float]:
    listed = cast("list[object]", times) if isinstance(times, list) else []
    return [float(time) for time in listed if isinstance(time, int | float) and 0 <= time < _LONGEST_SECONDS]

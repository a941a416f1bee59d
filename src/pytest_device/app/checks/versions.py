"""Comparison of npm package versions with version ranges."""

import re
from typing import Final, TypeAlias

Version: TypeAlias = "tuple[int, int, int]"

_PART: Final = re.compile(r"(>=|<=|>|<|=|\^|~)?\s*v?(\d+)(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?[^\s|,]*")


def fits(version: str, wanted: str) -> bool:
    """Return whether a version, or the lowest version of a range, satisfies a range."""
    found = _PART.search(version)
    if not found:
        return False
    actual = _numbers(found)[0]
    return any(all(_holds(actual, part) for part in _PART.finditer(one)) for one in wanted.split("||"))


def _numbers(part: "re.Match[str]") -> "tuple[Version, int]":
    """Return the three numbers of a version, and how many of them were given."""
    given = [int(one) for one in part.groups()[1:] if one and one.isdecimal()]
    return (given[0], (given[1:2] or [0])[0], (given[2:3] or [0])[0]), len(given)


def _holds(actual: "Version", part: "re.Match[str]") -> bool:
    base, given = _numbers(part)
    operator = part[1] or "="
    if operator in (">=", "<=", ">", "<"):
        return {">=": actual >= base, "<=": actual <= base, ">": actual > base, "<": actual < base}[operator]
    same = {"^": _caret(base, given), "~": min(given, 2), "=": given}[operator]
    return actual >= base and actual[:same] == base[:same]


def _caret(base: "Version", given: int) -> int:
    """Return how many leading numbers must match: up to and including the first that is not 0."""
    leading = next((index for index, number in enumerate(base) if number), given - 1)
    return min(leading + 1, given)

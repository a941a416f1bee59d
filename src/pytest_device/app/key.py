"""Rules for an app config key: type, values, default, limits and the SDK references that contain it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from pytest_device.app.document import Json

OLDEST_SDK: Final = 54
NEWEST_SDK: Final = 58
"""Newest SDK version with a known reference; `OLDEST_SDK` is the oldest."""

_KINDS: Final[Mapping[type, tuple[str, ...]]] = {
    str: ("string",), bool: ("boolean",), int: ("integer", "number"), float: ("number",), list: ("array",),
    dict: ("object",),
}  # fmt: skip


class Form(NamedTuple):
    """Format of a string: its pattern, and the rule for error messages."""

    pattern: str
    rule: str


HEX: Final = Form("#[0-9A-Fa-f]{6}", "a color of six digits, such as #000000")
HEX8: Final = Form("#([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})", "a color of six or eight digits, such as #00000088")
URL: Final = Form(r"https?://\S+", "a URL with http or https")
SDK: Final = Form(r"\d+\.\d+\.\d+|UNVERSIONED", "MAJOR.MINOR.PATCH")
TARGET: Final = Form(r"\d+(\.\d+)?", "MAJOR.MINOR or MAJOR")
SCHEME: Final = Form(r"[a-z][a-z0-9+.-]*", "a lowercase letter, then lowercase letters, digits, +, . and -")


@dataclass(frozen=True, slots=True)
class Key:
    """A key; ``first`` is the first reference that contains it, ``removed`` the SDK version that removed it.

    A key without ``kinds`` accepts any value; ``items`` lists the kinds of an array's elements.
    """

    name: str = ""
    kinds: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    default: Json = None
    form: Form | None = None
    low: float | None = None
    high: float | None = None
    first: int = OLDEST_SDK
    removed: int | None = None
    older: bool = False
    """Whether only the older reference contains the key."""
    deprecated: str = ""
    deprecated_in: int = OLDEST_SDK
    """First reference that deprecates the key."""
    generated: bool = False

    @property
    def trail(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    def problem(self, value: Json) -> str | None:
        """Return the rule that a value violates, or None."""
        if not _is_any(value, self.kinds):
            return f"must be of type {' or '.join(self.kinds)}"
        if not isinstance(value, list):
            return self._limit(value)
        for one in value:
            if not _is_any(one, self.items):
                return f"must have elements of type {' or '.join(self.items)}"
            if problem := self._limit(one):
                return problem
        return None

    def _limit(self, value: Json) -> str | None:
        if self.values and value not in self.values:
            return f"must be {_listed(self.values)}"
        if self.form and isinstance(value, str) and not re.fullmatch(self.form.pattern, value, re.ASCII):
            return f"must be {self.form.rule}"
        if self.low is None or self.low <= cast("float", value) <= (math.inf if self.high is None else self.high):
            return None
        return f"must be at least {self.low:g}" if self.high is None else f"must be {self.low:g} to {self.high:g}"


def _is_any(value: Json, kinds: tuple[str, ...]) -> bool:
    """Return whether a value is of one of the kinds; a number without a fraction is an integer."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return not kinds or any(kind in kinds for kind in _KINDS.get(type(value), ()))


def _listed(values: tuple[str, ...]) -> str:
    *most, last = (repr(value) for value in values)
    return f"{', '.join(most)} or {last}" if most else last

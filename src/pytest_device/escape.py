"""Escapes foreign text for terminals and CI logs."""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f"  # move the cursor, change colors or rename the terminal
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # change the reading order, or end a line
    "\ud800-\udfff]"  # cannot be encoded
)
_COMMAND: Final = re.compile(
    r"^([ \t]*)(?=::|##teamcity)|#(?=#(?:\[|vso\[))", re.MULTILINE
)
"""Commands of CI services: ``::error`` and ``##teamcity`` at the start of a line, ``##[`` and ``##vso[`` anywhere."""

COLOR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
"""A color code, which terminals obey; a group, so that a text can be split at it."""


def without_colors(text: str) -> str:
    r"""Return a text without color codes, which pytest puts into messages of assertions if the terminal has colors.

    >>> without_colors("1 != \x1b[94m2\x1b[39;49;00m")
    '1 != 2'
    """
    return COLOR.sub("", text)


def escaped(text: str) -> str:
    """Return a text with control characters escaped as in Python, and CI commands broken by a backslash.

    Line ends and tabs are kept. Escaping twice changes nothing.
    """
    plain = _UNSAFE.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), text
    )
    return _COMMAND.sub(lambda found: f"{found[0]}\\", plain)

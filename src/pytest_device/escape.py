"""Makes foreign text harmless for terminals and CI logs."""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f"  # they move the cursor, recolour or rename the terminal
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # and these change the order of what is read, or end a line
    "\ud800-\udfff]"  # and no encoding can write these
)
_COMMAND: Final = re.compile(r"^([ \t]*)(?=::|##teamcity)|#(?=#(?:\[|vso\[))", re.MULTILINE)
"""What CI services execute: ``::error`` and ``##teamcity`` begin a line, ``##[`` and ``##vso[`` stand anywhere."""


def escaped(text: str) -> str:
    """Return a text whose control characters are shown as Python spells them, and whose CI commands have a backslash.

    Line ends and tabs stay. Escaping twice changes nothing.
    """
    plain = _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    return _COMMAND.sub(lambda found: f"{found[0]}\\", plain)

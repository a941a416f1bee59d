"""The last console lines of a browser's pages."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_device.redact import Redactor

_KEPT_LINES: Final = 500
_LINE_LENGTH: Final = 2000
_LEVELS: Final[Mapping[str, str]] = {
    "error": "SEVERE",
    "assert": "SEVERE",
    "warning": "WARNING",
    "debug": "DEBUG",
}
"""WebDriver's levels for console levels; all others are INFO."""


@dataclass(frozen=True, slots=True)
class Line:
    """A console message of a page: ``at`` in Unix seconds, ``level`` as in WebDriver (SEVERE, WARNING, INFO, DEBUG)."""

    at: float
    level: str
    text: str


class Console:
    """Collects the console messages of pages, with recognizable secrets masked."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=_KEPT_LINES)

    @property
    def lines(self) -> Sequence[Line]:
        """The last lines, oldest first."""
        return tuple(self._lines)

    def on_event(self, method: str, params: Mapping[str, Any]) -> None:
        """Process an event of the browser; those without a message are ignored."""
        match method:
            case "Runtime.consoleAPICalled":
                text = " ".join(_shown(argument) for argument in params["args"])
                self._add(params["timestamp"], params["type"], text)
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", "")
                self._add(
                    params["timestamp"], "error", f"{details['text']} {thrown}".strip()
                )
            case "Log.entryAdded":
                entry = params["entry"]
                self._add(
                    entry["timestamp"],
                    entry["level"],
                    f"{entry['text']} {entry.get('url', '')}".strip(),
                )
            case _:
                pass

    def add_crash(self, how: str) -> None:
        self._add(time.time() * 1000, "error", how)

    def _add(self, milliseconds: float, level: str, text: str) -> None:
        shown = Redactor().text(text[:_LINE_LENGTH])
        self._lines.append(Line(milliseconds / 1000, _LEVELS.get(level, "INFO"), shown))


def _shown(argument: Mapping[str, Any]) -> str:
    """Return a console argument as text: a primitive's value, an object's description, or else its type."""
    for name in ("value", "description", "type"):
        if name in argument:
            return str(argument[name])
    return ""

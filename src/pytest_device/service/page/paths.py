"""Paths of this machine in texts that a page shows.

A page is what people share, as a screenshot or a printout, so it doesn't show where this machine keeps its files. What
programs read keeps the paths, because the fix of a problem may need them: ``/facts``, ``/log`` and the log of the service.
"""

import re
from pathlib import Path
from typing import Final

_DIRECTORIES: Final = r"(?:[^\s/\\:;,'\"()<>|]+[/\\])+(?=[^\s/\\])"
_START: Final = r"(?<![\w.:/\\…~)\]}-])"
"""What stands before a path: a slash after any of these is part of a URL, a fraction or a relative path."""
_ABSOLUTE: Final = re.compile(
    rf"(?:(?<=file://)|{_START})(?:~/(?:{_DIRECTORIES})?|(?:/|[A-Za-z]:[/\\]){_DIRECTORIES})(?=[^\s/\\])"
)
_SYSTEM: Final = re.compile(
    rf"(?:(?<=file://)|{_START})(?:~/|[A-Za-z]:[/\\]"
    r"|/(?:root|home|Users|Library|Applications|tmp|private|var|opt|usr|srv|mnt|Volumes|proc|run|etc)/)"
    rf"(?:{_DIRECTORIES})?(?=[^\s/\\])"
)
"""Of a program's output only these: it has URL paths and XPaths, too, which begin like other absolute paths."""
_HOME: Final = re.compile(
    rf"(?:(?<=file://)|{_START}){re.escape(str(Path.home()))}(?=[/\\])"
)
"""It may contain spaces, where the other patterns end a path."""


def without_directories(text: str) -> str:
    """Return a message with only the last part of each absolute path: ``…/chromium``."""
    return _ABSOLUTE.sub("…/", _without_home(text))


def without_system_directories(text: str) -> str:
    """Return a program's output with only the last part of each path below a directory of the system."""
    return _SYSTEM.sub("…/", _without_home(text))


def _without_home(text: str) -> str:
    return _HOME.sub("~", text)

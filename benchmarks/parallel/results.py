"""The results page: each benchmark updates its own part."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "RESULTS.md"
DOCS: Final = Path(__file__).parents[2] / "docs" / "development"
_PACKAGES: Final = ("pytest", "pytest-xdist", "httpx")


def machine() -> str:
    """Return when and on what was measured."""
    packages = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    python = platform.python_version()
    return f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()}, {cores} cores, Python {python}, {packages}"


def write(part: str, text: str) -> None:
    """Replace a part of the page, which stands between two comments that name it."""
    begin, end = f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->"
    head, _, rest = PAGE.read_text().partition(begin)
    _old, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"{PAGE.name} has no part {begin.strip()} … {end}")
    PAGE.write_text(f"{head}{begin}\n{machine()}\n\n{text}\n\n{end}{tail}")

"""Checks for conflicts with other pytest plugins."""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from pytest_device.cli.doctor.finding import Finding, fail, ok, warn

_RIVAL: Final = "appium_scheduler"
_DIRECTORIES_MAX: Final = 2_000
"""Larger suites are not searched, and get no finding."""


def check_plugins(config: pytest.Config) -> Iterator[Finding]:
    """Yield plugins that conflict with this one, and plugins that only cost time."""
    if config.pluginmanager.has_plugin(_RIVAL):
        text = "pytest-appium-scheduler also uses the marker 'device', in a different way"
        yield fail("plugins", text, f"add `-p no:{_RIVAL}` to addopts, or uninstall it")
    else:
        yield ok("plugins", "no conflicting plugins")
    if config.pluginmanager.has_plugin("anyio") and not _may_use(config, "anyio"):
        text = "anyio's pytest plugin (installed by httpx) slows down startup, and no test file uses it"
        yield warn("start-up", text, "add `-p no:anyio` to addopts")


def _may_use(config: pytest.Config, word: str) -> bool:
    """Return whether the ini file, a conftest.py or a test file contains the word, or there are too many to search."""
    if config.inipath and _holds(config.inipath, word):
        return True
    patterns: list[str] = ["conftest.py", *config.getini("python_files")]
    skipped: list[str] = config.getini("norecursedirs")
    seen = 0
    for root in dict.fromkeys(argument.partition("::")[0] for argument in config.args):
        for directory, names in islice(_walked(config.invocation_params.dir / root, skipped), _DIRECTORIES_MAX + 1):
            seen += 1
            wanted = [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
            if seen > _DIRECTORIES_MAX or any(_holds(directory / name, word) for name in wanted):
                return True
    return False


def _walked(root: Path, skipped: list[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yield each directory that pytest would collect from, with the names of its files."""
    if root.is_file():
        yield root.parent, [root.name, "conftest.py"]
    for directory, below, names in os.walk(root):
        if "pyvenv.cfg" in names:
            below.clear()
            continue
        below[:] = [name for name in below if not any(fnmatch(name, pattern) for pattern in skipped)]
        yield Path(directory), names


def _holds(path: Path, word: str) -> bool:
    try:
        return word in path.read_text("utf-8", errors="replace")
    except OSError:
        return False

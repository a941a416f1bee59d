"""Checks what the other plugins of a run mean for this one."""

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
"""Of larger suites it is not known what they use, and nothing is said."""


def check_plugins(config: pytest.Config) -> Iterator[Finding]:
    """Yield which plugins do not go together, and which only cost time."""
    if config.pluginmanager.has_plugin(_RIVAL):
        text = "pytest-appium-scheduler has a marker 'device' too: the two cannot read the same marker"
        yield fail("plugins", text, f"add `-p no:{_RIVAL}` to addopts, or uninstall it")
    else:
        yield ok("plugins", "none that does not go together with this one")
    if config.pluginmanager.has_plugin("anyio") and not _may_use(config, "anyio"):
        text = "the plugin of anyio, which httpx brings, lengthens each start of pytest, and no test file names it"
        yield warn("start-up", text, "add `-p no:anyio` to addopts")


def _may_use(config: pytest.Config, word: str) -> bool:
    """Tell whether the ini file, a conftest.py or a test file has the word in it, or whether there are too many."""
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
    """Yield each directory that pytest would look into, with the names of its files."""
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

"""Node.js for a project's dynamic configuration: one of this machine, else the pinned one of the cache."""

import asyncio
import os
import sys
from pathlib import Path

from pytest_device.app.dynamic import OLDEST, find_node
from pytest_device.app.project import DYNAMIC_FILES
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.programs import cache_directory


def ensure_node(root: Path) -> None:
    """Install Node.js, pinned by hash, if the project needs it and this machine has none.

    Raises ConfigError with the cause and the fix. Without the extra for the local service nothing is installed: loading
    the project reports that Node.js is missing.
    """
    if not any((root / name).exists() for name in DYNAMIC_FILES):
        return

    try:
        find_node(os.environ)
    except ConfigError:
        pass  # install it
    else:
        return

    try:
        from pytest_device.service.programs.guard import Guard
        from pytest_device.service.programs.toolchain import Requirement, Toolbox
    except ImportError:
        return

    major, minor = OLDEST
    text = f"{major}.{minor} or newer"
    required = Requirement("the app config", text, {major: minor}, major + 1)
    cache = cache_directory(os.environ, Path.home())

    guard = Guard(environ=os.environ, log=_progress)
    try:
        asyncio.run(Toolbox(guard, os.environ, cache).node(required, _progress))
    finally:
        guard.close()


def _progress(line: str) -> None:
    print(escaped(line), file=sys.stderr)

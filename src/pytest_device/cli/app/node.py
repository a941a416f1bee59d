"""Node.js for a project's dynamic configuration: one of this machine, else the pinned one of the cache."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from pytest_device.app.dynamic import OLDEST, find_node
from pytest_device.app.project import DYNAMIC_FILES
from pytest_device.cli.toolbox import show_progress, toolbox
from pytest_device.errors import ConfigError


def ensure_node(root: Path) -> None:
    """Install Node.js, pinned by hash, if the project needs it and this machine has none.

    Raises ConfigError with the cause and the fix. Without the extra for the local service nothing is installed: loading
    the project reports that Node.js is missing.
    """
    if not any((root / name).exists() for name in DYNAMIC_FILES):
        return

    if _has_node():
        return

    major, minor = OLDEST
    text = f"{major}.{minor} or newer"
    with suppress(ImportError), toolbox() as programs:
        from pytest_device.service.programs.toolchain import Requirement

        required = Requirement("the app config", text, {major: minor}, major + 1)
        asyncio.run(programs.node(required, show_progress))


def _has_node() -> bool:
    try:
        find_node(os.environ)
    except ConfigError:
        return False
    return True

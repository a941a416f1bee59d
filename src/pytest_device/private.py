"""Rejects directories that other users own or can write to."""

import os
import stat
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def check_private(directory: Path) -> None:
    """Raise ConfigError, with the fix, if another user owns a directory or can write to it.

    Its contents decide which sessions are stopped and which files are written. A missing directory is fine, and so is
    any directory on Windows, where modes do not exist.
    """
    if os.name == "nt":
        return
    try:
        found = directory.stat()
    except OSError:  # reported by the code that uses it
        return
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"the state directory {directory} belongs to another user (ID {found.st_uid}): choose one of your own"
        )
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            f"the state directory {directory} can be written to by other users (mode {mode:o}): "
            f"run `chmod go-w {directory}`, or choose another"
        )

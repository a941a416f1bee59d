"""Rejects directories that other users own or can write to."""

import os
import stat
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError

_ROOT: Final = 0
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def check_private(
    directory: Path,
    what: str = "the state directory",
    *,
    variable: str = "",
    may_be_of_root: bool = False,
) -> None:
    """Raise ConfigError, with the fix, if another user owns a directory or can write to it.

    Its contents decide which sessions are stopped, which files are written and which programs are started. ``what``
    names it in the message, ``variable`` is the one that selects it. A missing directory is fine, and so is any
    directory on Windows, where modes do not exist.
    """
    if os.name == "nt":
        return
    try:
        found = directory.stat()
    except OSError:  # reported by the code that uses it
        return
    choose = f"set {variable} to" if variable else "choose"
    trusted = {os.geteuid(), _ROOT} if may_be_of_root else {os.geteuid()}
    if found.st_uid not in trusted:
        raise ConfigError(
            f"{what} {directory} belongs to another user (ID {found.st_uid}): {choose} a directory of your own"
        )
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            f"{what} {directory} can be written to by other users (mode {mode:o}): "
            f"run `chmod go-w {directory}`, or {choose} another directory"
        )

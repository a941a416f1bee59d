"""Rejects directories that other users own or can write to."""

from pathlib import Path

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM


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
    directory on Windows, where access control lists are not examined.
    """
    try:
        intrusion = SYSTEM.intrusion(directory, may_be_of_root=may_be_of_root)
    except OSError:  # reported by the code that uses it
        return

    if intrusion is None:
        return

    choose = f"set {variable} to" if variable else "choose"
    fix = (
        f"{intrusion.fix}, or {choose} another directory"
        if intrusion.fix
        else f"{choose} a directory of your own"
    )
    raise ConfigError(f"{what} {directory} {intrusion.problem}: {fix}")

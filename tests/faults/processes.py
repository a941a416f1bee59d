"""Every process that a row has started, however far it has gone away from its parents."""

import ctypes
import os
import signal
from contextlib import suppress
from typing import Final

import psutil

_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Let whatever loses its parent below this process become its child, so that nothing is lost sight of."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below() -> list[psutil.Process]:
    """Return the processes below this one, without those that have ended."""
    return [process for process in psutil.Process().children(recursive=True) if _lives(process)]


def orphans() -> list[psutil.Process]:
    """Return the direct children of this process, without those that have ended."""
    return [process for process in psutil.Process().children() if _lives(process)]


def kill_at_once(processes: list[psutil.Process]) -> None:
    """End processes so that none sees another one end: as when a container is killed."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def bury(known: set[int]) -> None:
    """Collect the exit status of adopted processes; those in ``known`` have somebody else who does."""
    for child in psutil.Process().children():
        if child.pid not in known:
            with suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)


def described(process: psutil.Process) -> str:
    """Return a process as a person knows it."""
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:150]}"
    return str(process.pid)


def has_variable(process: psutil.Process, name: str) -> bool:
    """Tell whether a process was started with a variable in its environment."""
    with suppress(psutil.Error):
        return name in process.environ()
    return False


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False

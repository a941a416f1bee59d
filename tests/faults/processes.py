"""Finds every process that a row started, including those that left their parent."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Become the parent of all orphaned descendants, so that none escapes from view."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below() -> list[psutil.Process]:
    """Return the live descendants of this process."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if _lives(process)
    ]


def orphans() -> list[psutil.Process]:
    """Return the live direct children of this process."""
    return [process for process in psutil.Process().children() if _lives(process)]


def kill_at_once(processes: list[psutil.Process]) -> None:
    """Kill processes so that none notices the end of another, as when a container is killed."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            # Not psutil, which takes it for another process once the system's clock was set. Its ID is not reused:
            # it is a descendant, and nobody else reaps it.
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)


def bury(known: set[int]) -> None:
    """Reap adopted processes that have exited, except those in ``known``, which others wait for."""
    for child in psutil.Process().children():
        if child.pid not in known:
            with suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)


def described(process: psutil.Process) -> str:
    """Return the process ID and command line of a process, for messages."""
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:150]}"
    return str(process.pid)


def has_variable(process: psutil.Process, name: str) -> bool:
    """Return whether a process was started with an environment variable."""
    with suppress(psutil.Error):
        return name in process.environ()
    return False


def works_in(process: psutil.Process, directory: Path) -> bool:
    """Return whether a directory is the current one of a process."""
    with suppress(psutil.Error):
        return process.cwd() == str(directory)
    return False


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False

"""Conditions of real processes for the tests of the runners."""

import asyncio
from collections.abc import Callable

import psutil

LIMIT_SECONDS = 60


async def eventually(condition: Callable[[], object]) -> None:
    """Poll until a condition of other processes holds."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():  # noqa: ASYNC110  nothing reports when it does
            await asyncio.sleep(0.02)


def alive(process: psutil.Process) -> bool:
    """Return whether a process still runs: an exited orphan is a zombie until init reaps it."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def guards(owner: psutil.Process) -> list[psutil.Process]:
    """Return the guards that a process has started."""
    return [
        child
        for child in owner.children()
        if alive(child) and "programs.guard_process" in " ".join(child.cmdline())
    ]

"""What the tests of the runners ask of real processes."""

import asyncio
from collections.abc import Callable

import psutil

LIMIT_SECONDS = 60


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition of other processes holds."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():  # noqa: ASYNC110  nothing tells when it does
            await asyncio.sleep(0.02)


def alive(process: psutil.Process) -> bool:
    """Tell whether it still does anything: an ended orphan waits until the system's first process takes note."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def guards(owner: psutil.Process) -> list[psutil.Process]:
    """Find the guards that a process has started."""
    return [child for child in owner.children() if alive(child) and "runners.guard" in " ".join(child.cmdline())]

"""Runs short commands for their output."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.service.runners.processes import finish_despite_cancellation

LIMIT_SECONDS: Final = 20.0


async def ask(
    command: Sequence[str | Path], *, environ: Mapping[str, str], limit_seconds: float = LIMIT_SECONDS
) -> str:
    """Return a command's output. Raises ConfigError, with the cause, if it cannot run, fails or takes too long."""
    program = Path(command[0])
    try:
        process = await finish_despite_cancellation(
            asyncio.create_subprocess_exec(*command, env=dict(environ), stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
        )
    except OSError as error:
        raise ConfigError(f"{program} cannot be run: {error.strerror}") from error
    try:
        async with asyncio.timeout(limit_seconds):
            printed, complaint = await process.communicate()
    except TimeoutError as error:
        raise ConfigError(f"{program} timed out after {limit_seconds:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode != 0:
        raise ConfigError(
            f"{program} failed with exit status {process.returncode}: {last_line(complaint.decode(errors='replace'))}"
        )
    return printed.decode(errors="replace")


def last_line(output: str) -> str:
    """Return the last line of an output."""
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no output"

"""Command-line tools that control devices, and devices that a session borrows."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.devices.base import Tools
from pytest_device.service.logs import Log
from pytest_device.service.programs.program import COMMAND_SECONDS, ask

BOOT_SECONDS: Final = 300.0
"""Maximum seconds for the boot of an emulator or simulator, whose first one takes longest."""
INSTALL_SECONDS: Final = 300.0
"""Maximum seconds for the installation of an app; the limit of other commands is too short for a large one."""
POLL_SECONDS: Final = 5.0
"""Seconds between checks whether a device is still running: each starts a program."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, and the arguments that precede every command."""

    program: Path
    before: tuple[str, ...]
    environ: Mapping[str, str]

    async def ask(self, *command: str, limit_seconds: float = COMMAND_SECONDS) -> str:
        """Return a command's output. Raises ControllerError, with its last line, if it fails or takes too long."""
        try:
            return await ask(
                [self.program, *self.before, *command],
                environ=self.environ,
                limit_seconds=limit_seconds,
            )
        except ConfigError as error:
            raise ControllerError(
                f"{' '.join((self.program.name, *command[:3]))}: {error}"
            ) from error

    async def succeeds(self, *command: str) -> bool:
        try:
            await self.ask(*command)
        except ControllerError:
            return False

        return True


class Borrowed(ABC):
    """One of the user's devices, see ``devices.base.Device``; a session borrows it for a ``with`` block.

    At the end of the block, the apps of the session are removed.

    Arguments:
        name: The name of the device.
        tools: How the controllers reach it.
        tool: Controls it.
        alive: A command of the tool that succeeds as long as the device is running.
        gone: The reason for the session page once it is not.
        log: Called with a line if the apps cannot be removed.
    """

    def __init__(
        self,
        name: str,
        tools: Tools,
        *,
        tool: Tool,
        alive: Sequence[str],
        gone: str,
        log: Log,
    ) -> None:
        self.name = name
        self.tools = tools
        self._tool = tool
        self._alive = alive
        self._gone = gone
        self._log = log
        self._installed: dict[str, Path] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        try:
            await self.release()
        except ControllerError as error:
            self._log(f"apps of the session may remain on {self.name}: {error}")

    @abstractmethod
    async def remove(self, application_id: str) -> bool: ...

    async def ended(self) -> str:
        while await self._tool.succeeds(*self._alive):  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(POLL_SECONDS)

        return self._gone

    async def release(self) -> None:
        """Remove the apps of this session."""
        for name in list(self._installed):
            await self.remove(name)

"""Command-line tools that control devices, and devices that a session borrows."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.logs import Log
from pytest_device.service.runners.command import LIMIT_SECONDS, ask

INSTALL_SECONDS: Final = 300.0
POLL_SECONDS: Final = 5.0
"""Between two checks whether a device is still up."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, and the arguments before every command."""

    program: Path
    before: tuple[str, ...]
    environ: Mapping[str, str]

    async def ask(self, *command: str, limit_seconds: float = LIMIT_SECONDS) -> str:
        """Return a command's output. Raises ControllerError, with its last line, if it fails or takes too long."""
        try:
            return await ask([self.program, *self.before, *command], environ=self.environ, limit_seconds=limit_seconds)
        except ConfigError as error:
            raise ControllerError(f"{' '.join((self.program.name, *command[:3]))}: {error}") from error

    async def succeeds(self, *command: str) -> bool:
        """Return whether a command succeeds."""
        try:
            await self.ask(*command)
        except ControllerError:
            return False
        return True


class Borrowed(Protocol):
    """A device of the user's that a session borrows."""

    @property
    def name(self) -> str: ...
    async def give_back(self) -> None: ...


_Borrowed = TypeVar("_Borrowed", bound=Borrowed)


@asynccontextmanager
async def borrowed(device: _Borrowed, log: Log) -> AsyncGenerator[_Borrowed]:
    """Borrow a device that is up; at the end of the block remove the apps that were installed, or log a failure."""
    try:
        yield device
    finally:
        try:
            await device.give_back()
        except ControllerError as error:
            log(f"apps of the session may remain on {device.name}: {error}")

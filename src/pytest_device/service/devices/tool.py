"""A program that commands a device, asked one thing at a time."""

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
"""Between two looks whether a device is still there."""


@dataclass(frozen=True, slots=True)
class Tool:
    """The program, and what comes before every command."""

    program: Path
    before: tuple[str, ...]
    environ: Mapping[str, str]

    async def ask(self, *command: str, limit_seconds: float = LIMIT_SECONDS) -> str:
        """Return what a command prints. Raises ControllerError, with its last line, when it fails or takes too long."""
        try:
            return await ask([self.program, *self.before, *command], environ=self.environ, limit_seconds=limit_seconds)
        except ConfigError as error:
            raise ControllerError(f"{' '.join((self.program.name, *command[:3]))}: {error}") from error

    async def succeeds(self, *command: str) -> bool:
        """Tell whether a command ends well, when that is its answer."""
        try:
            await self.ask(*command)
        except ControllerError:
            return False
        return True


class Borrowed(Protocol):
    """A device of the user's that a session has for a while."""

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
            log(f"what the session has installed on {device.name} may still be there: {error}")

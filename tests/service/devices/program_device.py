"""A device behind a fake program, such as an emulator behind adb."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tests.fakes.programs import FakeProgram

DeviceT = TypeVar("DeviceT")
_Result = TypeVar("_Result")


@dataclass
class ProgramDevice(Generic[DeviceT]):
    """A device of the local service, and the fake program that it calls.

    ``pattern`` is that of the program's commands, with ``{}`` for the name of an action.
    """

    program: FakeProgram
    device: DeviceT
    pattern: str
    reported: list[str] = field(default_factory=list[str])

    def do(self, work: Coroutine[Any, Any, _Result], **answers: str) -> _Result:
        """Run an action with this output of the program; ``_`` in a name stands for any character."""
        self.program.answers(
            {
                self.pattern.format(name.replace("_", "?")): printed
                for name, printed in answers.items()
            }
        )
        return asyncio.run(work)

    @property
    def asked(self) -> list[str]:
        """The commands of the last action, without what all of them begin with."""
        start = self.pattern.partition("{")[0].rstrip("*")
        return [command.removeprefix(start) for command in self.program.asked]

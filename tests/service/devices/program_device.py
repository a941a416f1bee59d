"""A device of the local service behind a fake program, such as an emulator behind adb."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_device.service.devices.base import Device
from tests.fakes.machine import FakeMachine
from tests.fakes.programs import FakeProgram

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ProgramDevice:
    """A device that a session has, and the fake program that it calls.

    ``pattern`` is that of the program's commands, with ``{}`` for the name of an action.
    """

    program: FakeProgram
    device: Device
    pattern: str
    runner: asyncio.Runner

    def answers(self, **answers: str) -> None:
        """Print this for actions from now on; ``_`` in a name stands for any character."""
        self.program.answers(
            {
                self.pattern.format(name.replace("_", "?")): printed
                for name, printed in answers.items()
            }
        )

    def do(self, work: Coroutine[Any, Any, _Result], **answers: str) -> _Result:
        """Run an action with this output of the program, as ``answers`` does."""
        self.answers(**answers)
        return self.runner.run(work)

    @property
    def asked(self) -> list[str]:
        """The commands of the last action, without what all of them begin with."""
        start = self.pattern.partition("{")[0].rstrip("*")
        return [command.removeprefix(start) for command in self.program.asked]


@contextmanager
def lent(
    machine: FakeMachine, program: FakeProgram, pattern: str, platform: str
) -> Generator[ProgramDevice]:
    """Lend the device of a session of Appium on a machine whose ``program`` lists it; end the session with the block."""
    with asyncio.Runner() as runner:
        devices = machine.devices()
        lending = runner.run(devices.__aenter__()).lent(
            platform=platform, type="appium"
        )
        device = runner.run(lending.__aenter__())
        try:
            yield ProgramDevice(program, device, pattern, runner)
        finally:
            runner.run(lending.__aexit__(None, None, None))
            runner.run(devices.__aexit__(None, None, None))

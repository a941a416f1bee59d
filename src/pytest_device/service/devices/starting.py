"""Starts the emulator or simulator that the user named, waits until it has booted, and stops it with the service."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices import emulator
from pytest_device.service.devices.found import Found
from pytest_device.service.devices.tool import Tool
from pytest_device.service.logs import Log
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.output_tail import OutputTail
from pytest_device.service.runners.processes import finish_despite_cancellation, remove
from pytest_device.service.runners.program import Program

BOOT_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.5
_PORTS: Final = range(5554, 5682, 2)
"""Ports on which adb finds emulators."""
_FLAGS: Final = ("-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot-save")
"""The live preview shows the screen, and there may be no display. A snapshot of a test run is useless."""

_End = Callable[[], Awaitable[object]]


class Starter:
    """Starts devices, one at a time, and stops them with the service."""

    def __init__(self, environ: Mapping[str, str], guard: Guard) -> None:
        self._environ, self._guard = environ, guard
        self._ends: list[_End] = []
        self.one_at_a_time = asyncio.Lock()

    async def start(self, found: Found, note: Log) -> None:
        """Start the device in ``found``; raises ControllerError if it exits or does not boot in time."""
        note(f"starting {found.kind} {found.to_start}")
        if found.kind == emulator.KIND:
            await self._emulator(found)
            return
        tool = Tool(found.tool, ("simctl",), self._environ)
        self._ends.append(lambda: tool.succeeds("shutdown", found.to_start))
        await tool.ask("bootstatus", found.to_start, "-b", limit_seconds=BOOT_SECONDS)  # boots it, too

    async def close(self) -> None:
        """Stop the started devices."""
        ends, self._ends = self._ends, []
        for end in ends:
            await end()

    async def _emulator(self, found: Found) -> None:
        listed = await Tool(found.tool, (), self._environ).ask("devices")
        port = next((port for port in _PORTS if f"emulator-{port}" not in listed), None)
        if port is None or found.starter is None:
            raise ControllerError(f"the emulator {found.to_start} cannot be started: adb has no free port")
        command = [str(found.starter), "-avd", found.to_start, "-port", str(port), *_FLAGS]
        tool = Tool(found.tool, ("-s", f"emulator-{port}"), self._environ)
        directory = Path(tempfile.mkdtemp(prefix="pytest-device-emulator-"))  # the guard removes it
        try:
            process = await self._guard.start(command, directory=directory, environ=self._environ)
            program = Program.reading(f"emulator -avd {found.to_start}", process, OutputTail())
            await program.ready(lambda: _booted(tool), BOOT_SECONDS)
        except BaseException as error:
            await finish_despite_cancellation(asyncio.to_thread(remove, [directory]))
            if isinstance(error, OSError):
                raise ControllerError(f"{found.starter} cannot be run: {error.strerror}") from error
            raise
        self._ends.append(lambda: tool.succeeds("emu", "kill"))  # otherwise the guard stops it


async def _booted(tool: Tool) -> bool | None:
    """Return True if an emulator has booted, None otherwise."""
    try:
        if (await tool.ask("shell", "getprop", "sys.boot_completed")).strip() == "1":
            return True
    except ControllerError:
        pass  # not reachable through adb yet
    await asyncio.sleep(_POLL_SECONDS)
    return None

"""A machine with the devices that a test puts there, as the local service searches it."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_device.service.devices.availability import DevicePreference
from pytest_device.service.devices.base import Device
from pytest_device.service.devices.kinds import Devices, Machine, all_available
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.isolation import Isolation
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import Platform, SessionType
from tests.fakes.programs import FakeProgram

if TYPE_CHECKING:
    from pytest_device.service.devices.availability import Availability

LISTED: Final = "List of devices attached\n{}"
"""What `adb devices -l` prints, with a line for each device."""
EMULATOR: Final = "emulator-5554          device product:sdk_gphone64_x86_64 model:sdk_gphone64_x86_64 device:emu64x\n"
"""The line of adb about a running emulator."""


@dataclass(frozen=True)
class FakeMachine:
    """Stands in for a user's machine: only the programs that a test puts there are on its PATH.

    The directory is the user's home, and its ``bin`` the PATH. Lines that the local service logs are added to
    ``reported``. A request without a type is for argent, which needs no driver of the user's.
    """

    directory: Path
    reported: list[str] = field(default_factory=list[str])

    @property
    def bin(self) -> Path:
        return self.directory / "bin"

    @property
    def cache(self) -> Path:
        """The cache of installed programs."""
        return self.directory / "cache"

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.bin)}

    @cached_property
    def adb(self) -> FakeProgram:
        """Android's adb, which the first use installs."""
        return FakeProgram.made(self.bin / "adb")

    @cached_property
    def xcrun(self) -> FakeProgram:
        """Apple's xcrun, which the first use installs."""
        return FakeProgram.made(self.bin / "xcrun")

    def install(self, name: str, script: str = "") -> Path:
        """Put a shell script on the PATH, with the system's commands on its own."""
        program = self.bin / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        program.chmod(0o755)
        return program

    def install_driver(self, package: str, manifest: object = None) -> Path:
        """Install a driver of Appium; return the directory with the user's drivers."""
        appium_home = self.directory / ".appium"
        path = appium_home / "node_modules" / package / "package.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest or {}))
        return appium_home

    def install_emulator(self, *avds: str, boots: bool = True, exits: str = "") -> None:
        """Put an emulator there: once it is started adb lists it, and at the third question says that it has booted.

        With ``exits`` it prints this text and exits instead, and without ``boots`` it never finishes.
        """
        program, adb = self.bin / "emulator", self.adb.path
        program.write_text(
            f"#!{sys.executable}\n"
            "import pathlib, sys, time\n"
            f"if sys.argv[1:] == ['-list-avds']: print({' '.join(avds)!r}.replace(' ', chr(10))); sys.exit()\n"
            f"pathlib.Path({str(program)!r} + '.log').open('a').write(' '.join(sys.argv[1:]) + chr(10))\n"
            f"if {exits!r}: sys.exit({exits!r})\n"
            f"pathlib.Path({str(adb)!r} + '.up').touch()\n"
            "time.sleep(600)\n"
        )
        program.chmod(0o755)
        self.install(
            "adb",
            f"echo \"$*\" >>'{self.adb.log}'\n"
            f"if ! [ -e '{adb}.up' ]\n"
            "then case \"$*\" in devices*) echo 'List of devices attached'; exit;; esac; exit 1; fi\n"
            'case "$*" in\n'
            f"devices*) echo 'List of devices attached'; echo '{EMULATOR.strip()}';;\n"
            "*'emu avd name') printf 'Phone_34\\r\\nOK\\r\\n';;\n"
            f"*sys.boot_completed) echo >>'{adb}.asked'\n"
            f"[ $(wc -l <'{adb}.asked') -ge 3 ] && echo {int(boots)};;\n"
            f"*'emu kill') rm '{adb}.up';;\n"
            "esac",
        )

    @property
    def started_emulators(self) -> list[str]:
        """The arguments of each start of the emulator."""
        log = self.bin / "emulator.log"
        return log.read_text().splitlines() if log.exists() else []

    def find(
        self,
        platform: str,
        session_type: str = "argent",
        *,
        environ: dict[str, str] | None = None,
        **preference: Any,
    ) -> "Sequence[Availability]":
        """Return the devices of a platform, by kind, as ``pytest-device doctor`` reports them."""
        machine = Machine(
            self.environ if environ is None else environ,
            self.directory,
            preference=DevicePreference(**preference),
        )
        return asyncio.run(
            all_available(Platform(platform), SessionType(session_type), machine)
        )

    def find_browser(
        self,
        session_type: str = "appium",
        *,
        built_for: str | None = None,
        **preference: Any,
    ) -> "Availability":
        """Return the browser for sessions of a type, where missing programs can be installed in ``cache``.

        ``built_for`` replaces the hardware of the machine.
        """
        more = {"built_for": built_for} if built_for else {}
        machine = Machine(
            self.environ,
            self.directory,
            self.cache,
            preference=DevicePreference(**preference),
            **more,
        )
        kinds = asyncio.run(
            all_available(Platform.ANDROID, SessionType(session_type), machine)
        )
        [browser] = [kind for kind in kinds if kind.kind == "chromium"]
        return browser

    @asynccontextmanager
    async def devices(
        self,
        *,
        handover_seconds: float = 0,
        isolation: Isolation | None = None,
        **preference: Any,
    ) -> AsyncGenerator["LocalDevices"]:
        """Provide the devices of a service on this machine, for the user's preferences; stop them with the block."""
        async with devices_of(
            self.environ,
            self.directory,
            self.reported.append,
            preference=DevicePreference(**preference),
            isolation=isolation or Isolation(),
            handover_seconds=handover_seconds,
        ) as devices:
            yield LocalDevices(devices, self)

    def refusal(
        self, *, isolation: Isolation | None = None, **request: str
    ) -> str | None:
        """Return why a service on this machine refuses a create request, None if it does not."""

        async def scenario() -> str | None:
            async with self.devices(isolation=isolation) as devices:
                return await devices.refusal(**request)

        return asyncio.run(scenario())


@dataclass(frozen=True)
class LocalDevices:
    """The devices of one service on a fake machine; each call is for a create request."""

    devices: Devices
    machine: FakeMachine

    async def refusal(self, **request: str) -> str | None:
        """Return why a session cannot be created. Raises BusyError, a ControllerError, while all devices are in use."""
        return await self.devices.refusal(_request(**request))

    async def kind(self, **request: str) -> str:
        """Return the kind of the chosen device, started if the user named it. Raises ConfigError if there is none."""
        chosen = await self.devices.choose(
            _request(**request), self.machine.reported.append
        )
        return chosen.kind

    @asynccontextmanager
    async def lent(self, **request: str) -> AsyncGenerator[Device]:
        """Lend the device of a session for the block."""
        lending = self.devices.borrowed(_request(**request), self.machine.directory)
        async with lending as device:
            yield device


@asynccontextmanager
async def devices_of(
    environ: Mapping[str, str],
    home: Path,
    log: Callable[[str], None],
    *,
    cache: Path | None = None,
    **more: Any,
) -> AsyncGenerator[Devices]:
    """Provide the devices of a service on any machine; stop them with the block.

    A missing browser is installed in ``cache``; without one, none is. ``more`` are further arguments of ``Devices``.
    """
    guard = Guard(environ=environ, log=log)
    toolbox = Toolbox(guard, environ, cache) if cache else None
    devices = Devices(
        environ=environ, home=home, guard=guard, log=log, toolbox=toolbox, **more
    )
    try:
        yield devices
    finally:
        await devices.close()
        await asyncio.to_thread(guard.close)


def _request(**request: str) -> dict[str, Any]:
    return {"platform": "android", "type": "argent"} | request

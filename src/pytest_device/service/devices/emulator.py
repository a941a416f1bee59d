"""An Android emulator or device, controlled by `adb`."""

import asyncio
import base64
import binascii
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import (
    AppState,
    Orientation,
    Tools,
    capabilities,
)
from pytest_device.service.devices.found import ConnectedDevice, DevicePreference, Found
from pytest_device.service.devices.tool import (
    BOOT_SECONDS,
    INSTALL_SECONDS,
    Borrowed,
    Tool,
)
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.processes import finish_despite_cancellation, remove
from pytest_device.service.programs.program import Program, ask, last_line
from pytest_device.spec import Platform

KIND: Final = "emulator"
_READY: Final = "device"
"""State of a usable device in the output of `adb devices`."""

_FIX: Final = "install Android's platform-tools, and start an emulator"
_LAUNCHER: Final = "android.intent.category.LAUNCHER"
_PORTS: Final = range(5554, 5682, 2)
"""Ports on which adb finds emulators."""
_FLAGS: Final = ("-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot-save")
"""The live preview shows the screen, and there may be no display. A snapshot of a test run is useless."""
_POLL_SECONDS: Final = 0.5
_ROTATIONS: Final[Mapping[Orientation, str]] = {"PORTRAIT": "0", "LANDSCAPE": "1"}


async def listed(environ: Mapping[str, str], preference: DevicePreference) -> Found:
    """Find the running devices, or the named one."""
    adb = shutil.which("adb", path=_search_path(environ, "platform-tools"))
    if adb is None:
        return Found(KIND, missing="adb is not on PATH", fix=_FIX)

    try:
        devices = parse(await ask([adb, "devices", "-l"], environ=environ))
        if preference.avd:
            return await _named(preference.avd, devices, Path(adb), environ)
    except (ConfigError, ControllerError) as error:
        return Found(KIND, missing=f"adb devices -l: {error}", fix=_FIX)

    if not devices:
        return Found(
            KIND,
            missing="adb devices -l lists no ready device",
            fix="start an emulator",
        )

    return Found(KIND, devices, Path(adb))


async def _named(
    avd: str, devices: Sequence[ConnectedDevice], adb: Path, environ: Mapping[str, str]
) -> Found:
    """Return the emulator of an Android Virtual Device: running, or to be started."""
    tools = [
        (one, Tool(adb, ("-s", one.udid), environ))
        for one in devices
        if one.udid.startswith("emulator-")
    ]
    up = [
        one
        for one, tool in tools
        if (await tool.ask("emu", "avd", "name")).splitlines()[:1] == [avd]
    ]
    if up:
        return Found(KIND, up, adb)

    starter = shutil.which("emulator", path=_search_path(environ, "emulator"))
    if starter is None:
        missing = "emulator is neither on PATH nor in ANDROID_HOME"
        return Found(
            KIND,
            missing=missing,
            fix="install Android's emulator package, or start the emulator yourself",
        )

    known = (await ask([starter, "-list-avds"], environ=environ)).split()
    if avd not in known:
        missing = f"emulator -list-avds has no {avd!r}: {', '.join(known) or 'none'}"
        return Found(
            KIND, missing=missing, fix="name one of these, or create it with avdmanager"
        )

    return Found(KIND, program=adb, to_start=avd, starter=Path(starter))


async def start(
    found: Found, environ: Mapping[str, str], guard: Guard, stack: AsyncExitStack
) -> None:
    """Start the named emulator and wait until it has booted; ``stack`` stops it, or else the guard.

    Raises ControllerError if it exits or does not boot in time.
    """
    running = await Tool(found.tool, (), environ).ask("devices")
    port = next((port for port in _PORTS if f"emulator-{port}" not in running), None)
    if port is None or found.starter is None:
        raise ControllerError(
            f"the emulator {found.to_start} cannot be started: adb has no free port"
        )

    command = [str(found.starter), "-avd", found.to_start, "-port", str(port), *_FLAGS]
    tool = Tool(found.tool, ("-s", f"emulator-{port}"), environ)
    # The guard removes it.
    directory = Path(tempfile.mkdtemp(prefix="pytest-device-emulator-"))

    try:
        process = await guard.start(command, directory=directory, environ=environ)
        program = Program.reading(
            f"emulator -avd {found.to_start}", process, OutputTail()
        )
        await program.ready(lambda: _booted(tool), BOOT_SECONDS)
    except BaseException as error:
        await finish_despite_cancellation(asyncio.to_thread(remove, [directory]))
        if isinstance(error, OSError):
            raise ControllerError(
                f"{found.starter} cannot be run: {error.strerror}"
            ) from error

        raise

    stack.push_async_callback(tool.succeeds, "emu", "kill")


async def _booted(tool: Tool) -> bool | None:
    """Return True if an emulator has booted, None otherwise."""
    try:
        if (await tool.ask("shell", "getprop", "sys.boot_completed")).strip() == "1":
            return True
    except ControllerError:
        pass  # not reachable through adb yet

    await asyncio.sleep(_POLL_SECONDS)
    return None


def parse(printed: str) -> Sequence[ConnectedDevice]:
    """Parse `adb devices -l`. A device's names are its serial number, product, model and device."""
    rows = [line.split() for line in printed.splitlines()]
    return [
        ConnectedDevice.of(
            row[0],
            *(
                word.partition(":")[2]
                for word in row[2:]
                if re.match("product:|model:|device:", word)
            ),
        )
        for row in rows
        if len(row) > 1 and row[1] == _READY
    ]


class Emulator(Borrowed):
    """A running device that a session borrows."""

    kind = KIND
    platform = Platform.ANDROID

    def __init__(
        self, serial: str, found: Found, *, environ: Mapping[str, str], log: Log
    ) -> None:
        super().__init__(
            serial,
            Tools(
                capabilities(self.platform, serial),
                found.appium_home,
                environ={"ANDROID_SERIAL": serial},
            ),
            tool=Tool(found.tool, ("-s", serial), environ),
            alive=("get-state",),
            gone=f"adb no longer reaches {serial}",
            log=log,
        )
        self._is_turned = False

    async def install(self, app: App) -> str:
        """Install an .apk; return its package name, found by comparing the packages before and after."""
        if app.path is None or not app.path.is_file():
            raise ControllerError(
                f"an Android device needs an .apk, not {app.path or app.url}"
            )

        before = await self._packages()
        printed = await self._tool.ask(
            "install", "-r", "-g", str(app.path), limit_seconds=INSTALL_SECONDS
        )
        if "Success" not in printed:
            raise ControllerError(
                f"{app.path.name} cannot be installed: {last_line(printed)}"
            )

        application_id = app.application_id or self._new_one(
            before, await self._packages()
        )
        self._installed.pop(application_id, None)  # move it to the end
        self._installed[application_id] = app.path

        return application_id

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Restart an app with arguments of `am start`, such as ``--es name value``; without any, bring it to front."""
        intent = (
            "-a",
            "android.intent.action.MAIN",
            "-c",
            _LAUNCHER,
            "-n",
            await self._activity(application_id),
        )
        await self._start("-W", *(("-S",) if arguments else ()), *intent, *arguments)

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        await self._start(
            "-W",
            "-a",
            "android.intent.action.VIEW",
            "-d",
            url,
            *filter(None, [application_id]),
        )

    async def terminate(self, application_id: str) -> bool:
        if not await self._runs(application_id):
            return False

        await self._shell("am", "force-stop", application_id)
        return True

    async def remove(self, application_id: str) -> bool:
        if application_id not in (await self._packages()).values():
            return False

        printed = await self._tool.ask("uninstall", application_id)
        if "Success" not in printed:
            raise ControllerError(
                f"{application_id} cannot be removed: {last_line(printed)}"
            )

        self._installed.pop(application_id, None)
        return True

    async def clear(self, application_id: str | None = None) -> None:
        for name in [application_id] if application_id else self._installed:
            printed = await self._shell("pm", "clear", name)
            if "Success" not in printed:
                raise ControllerError(
                    f"the state of {name} cannot be cleared: {last_line(printed)}"
                )

    async def apps(self) -> Mapping[str, AppState]:
        front = await self._front()
        return {name: await self._state(name, front) for name in self._installed}

    async def screenshot(self) -> bytes:
        printed = await self._tool.ask("exec-out", "screencap -p | base64")
        try:
            return base64.b64decode(printed)
        except binascii.Error as error:
            raise ControllerError(
                f"no screenshot of {self.name}: {last_line(printed)}"
            ) from error

    async def tap(self, x: float, y: float) -> None:
        width, height = await self._size()
        await self._shell(
            "input", "tap", str(round(x * (width - 1))), str(round(y * (height - 1)))
        )

    async def orientation(self) -> Orientation:
        width, height = await self._size()
        return "LANDSCAPE" if width > height else "PORTRAIT"

    async def rotate(self, orientation: Orientation) -> None:
        """Rotate the screen, and turn off auto-rotation."""
        self._is_turned = True
        await self._set("accelerometer_rotation", "0")
        await self._set("user_rotation", _ROTATIONS[orientation])

    async def release(self) -> None:
        """Remove the apps of this session, and restore auto-rotation."""
        await super().release()
        if self._is_turned:
            await self.rotate("PORTRAIT")
            await self._set("accelerometer_rotation", "1")

    async def _shell(self, *command: str) -> str:
        return await self._tool.ask("shell", shlex.join(command))

    async def _start(self, *intent: str) -> None:
        printed = await self._shell("am", "start", *intent)
        if problem := re.search(r"^Error.*", printed, re.MULTILINE):
            raise ControllerError(f"am start: {problem[0]}")

    async def _set(self, name: str, value: str) -> None:
        await self._shell("settings", "put", "system", name, value)

    async def _packages(self) -> Mapping[str, str]:
        """Return the user's packages by path, which changes with each installation."""
        lines = (await self._shell("pm", "list", "packages", "-f", "-3")).split()
        pairs = (line.removeprefix("package:").rpartition("=") for line in lines)
        return {path: name for path, _, name in pairs}

    def _new_one(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        new = [name for path, name in after.items() if path not in before]
        if len(new) != 1:
            raise ControllerError(
                f"the app was installed, but its package is unknown: new on {self.name} are {new or 'none'}"
            )

        return new[0]

    async def _activity(self, application_id: str) -> str:
        command = (
            "cmd",
            "package",
            "resolve-activity",
            "--brief",
            "-c",
            _LAUNCHER,
            application_id,
        )
        found = last_line(await self._shell(*command))
        if not found.startswith(f"{application_id}/"):
            raise ControllerError(
                f"{application_id} is not installed on {self.name}, or has no launcher activity"
            )

        return found

    async def _front(self) -> str:
        printed = await self._shell("dumpsys", "activity", "activities")
        found = re.search(
            r"ResumedActivity[:=] ?ActivityRecord\{\S+ \S+ ([\w.]+)/", printed
        )
        return found[1] if found else ""

    async def _state(self, application_id: str, front: str) -> AppState:
        if application_id == front:
            return AppState.FOREGROUND

        return (
            AppState.BACKGROUND
            if await self._runs(application_id)
            else AppState.NOT_RUNNING
        )

    async def _runs(self, application_id: str) -> bool:
        return await self._tool.succeeds("shell", shlex.join(("pidof", application_id)))

    async def _size(self) -> tuple[int, int]:
        printed = await self._shell("dumpsys", "window", "displays")
        found = re.search(r"\bcur=(\d+)x(\d+)", printed)
        if found is None:
            raise ControllerError(f"{self.name} does not report the size of its screen")

        return int(found[1]), int(found[2])


def _search_path(environ: Mapping[str, str], package: str) -> str:
    sdks = [
        environ[name]
        for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT")
        if environ.get(name)
    ]
    return os.pathsep.join(
        [environ.get("PATH", ""), *(f"{sdk}/{package}" for sdk in sdks)]
    )

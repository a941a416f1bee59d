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
from pytest_device.service.devices.availability import (
    Availability,
    ConnectedDevice,
    DevicePreference,
)
from pytest_device.service.devices.base import (
    AppState,
    Orientation,
    Tools,
    capabilities,
)
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
"""Console ports on which adb finds emulators; each has adb's own port next to it."""
_FLAGS: Final = ("-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot-save")
"""The live preview shows the screen, and there may be no display. A snapshot of a test run is useless."""
_POLL_SECONDS: Final = 0.5
_ROTATIONS: Final[Mapping[Orientation, str]] = {"PORTRAIT": "0", "LANDSCAPE": "1"}


async def listed(
    environ: Mapping[str, str], preference: DevicePreference
) -> Availability:
    """Find the running devices, or the named one."""
    adb = shutil.which("adb", path=_search_path(environ, "platform-tools"))
    if adb is None:
        return Availability(
            KIND, missing="adb is neither on PATH nor in ANDROID_HOME", fix=_FIX
        )

    try:
        devices = parse(await ask([adb, "devices", "-l"], environ=environ))
        if preference.avd:
            return await _named(preference.avd, devices, Path(adb), environ)
    except (ConfigError, ControllerError) as error:
        return Availability(KIND, missing=f"adb devices -l: {error}", fix=_FIX)

    if not devices:
        return Availability(
            KIND,
            missing="adb devices -l lists no ready device",
            fix="start an emulator",
        )

    return Availability(KIND, devices, Path(adb))


async def _named(
    avd: str, devices: Sequence[ConnectedDevice], adb: Path, environ: Mapping[str, str]
) -> Availability:
    """Return the emulator of an Android Virtual Device: running, or to be started."""
    running: list[ConnectedDevice] = []
    for device in devices:
        if not device.udid.startswith("emulator-"):
            continue
        tool = Tool(adb, ("-s", device.udid), environ)
        printed = await tool.ask("emu", "avd", "name")
        if printed.partition("\n")[0].strip() == avd:  # the second line is OK
            running.append(device)
    if running:
        return Availability(KIND, running, adb)

    starter = shutil.which("emulator", path=_search_path(environ, "emulator"))
    if starter is None:
        return Availability(
            KIND,
            missing="emulator is neither on PATH nor in ANDROID_HOME",
            fix="install Android's emulator package, or start the emulator yourself",
        )

    printed = await ask([starter, "-list-avds"], environ=environ)
    available = printed.split()
    if avd not in available:
        choices = ", ".join(available) or "none"
        return Availability(
            KIND,
            missing=f"emulator -list-avds has no {avd!r}: {choices}",
            fix="name one of these, or create it with avdmanager",
        )

    return Availability(KIND, program=adb, to_start=avd, starter=Path(starter))


async def start(
    availability: Availability,
    environ: Mapping[str, str],
    guard: Guard,
    stack: AsyncExitStack,
) -> None:
    """Start the named emulator and wait until it has booted; ``stack`` stops it, or else the guard.

    Raises ControllerError if it exits or does not boot in time.
    """
    # Also those that are offline or unauthorized, which `availability` leaves out: their ports are taken.
    listed_devices = await Tool(availability.tool, (), environ).ask("devices")
    free_ports = [port for port in _PORTS if f"emulator-{port}" not in listed_devices]
    if not free_ports or availability.starter is None:
        raise ControllerError(
            f"the emulator {availability.to_start} cannot be started: adb has no free port"
        )

    port = free_ports[0]
    command = [
        str(availability.starter),
        "-avd",
        availability.to_start,
        "-port",
        str(port),
        *_FLAGS,
    ]
    tool = Tool(availability.tool, ("-s", f"emulator-{port}"), environ)
    # The guard removes it.
    directory = Path(tempfile.mkdtemp(prefix="pytest-device-emulator-"))

    try:
        process = await guard.start(command, directory=directory, environ=environ)
        program = Program.reading(
            f"emulator -avd {availability.to_start}", process, OutputTail()
        )
        await program.ready(lambda: _booted(tool), BOOT_SECONDS)
    except BaseException as error:
        await finish_despite_cancellation(asyncio.to_thread(remove, [directory]))
        if isinstance(error, OSError):
            raise ControllerError(
                f"{availability.starter} cannot be run: {error.strerror}"
            ) from error

        raise

    stack.push_async_callback(tool.succeeds, "emu", "kill")


async def _booted(tool: Tool) -> bool | None:
    """Return True if an emulator has booted, None otherwise."""
    try:
        printed = await tool.ask("shell", "getprop", "sys.boot_completed")
    except ControllerError:  # not reachable through adb yet
        printed = ""

    if printed.strip() == "1":
        return True
    await asyncio.sleep(_POLL_SECONDS)
    return None


def parse(printed: str) -> Sequence[ConnectedDevice]:
    """Parse `adb devices -l`. A device's names are its serial number, product, model and device."""
    devices: list[ConnectedDevice] = []
    for line in printed.splitlines():
        match line.split():
            case [serial, state, *properties] if state == _READY:
                names = [
                    value
                    for name, _, value in (text.partition(":") for text in properties)
                    if name in ("product", "model", "device")
                ]
                devices.append(ConnectedDevice.of(serial, *names))
            case _:
                pass  # the heading, or a device that is offline or unauthorized
    return devices


class Emulator(Borrowed):
    """A running device that a session borrows."""

    kind = KIND
    platform = Platform.ANDROID

    def __init__(
        self,
        serial: str,
        availability: Availability,
        *,
        environ: Mapping[str, str],
        log: Log,
    ) -> None:
        super().__init__(
            serial,
            Tools(
                capabilities(self.platform, serial),
                availability.appium_home,
                environ={"ANDROID_SERIAL": serial},
            ),
            tool=Tool(availability.tool, ("-s", serial), environ),
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
        # -r replaces an installed app, -g grants it all permissions that it asks for at runtime.
        printed = await self._tool.ask(
            "install", "-r", "-g", str(app.path), limit_seconds=INSTALL_SECONDS
        )
        if "Success" not in printed:  # the exit status may be 0 all the same
            raise ControllerError(
                f"{app.path.name} cannot be installed: {last_line(printed)}"
            )

        application_id = app.application_id
        if not application_id:
            application_id = self._new_package(before, await self._packages())
        self._installed.pop(application_id, None)  # move it to the end
        self._installed[application_id] = app.path
        return application_id

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Restart an app with arguments of `am start`, such as ``--es name value``; without any, bring it to front."""
        activity = await self._activity(application_id)
        intent = ("-a", "android.intent.action.MAIN", "-c", _LAUNCHER, "-n", activity)
        # A running app ignores arguments: -S stops it first.
        restart = ("-S",) if arguments else ()
        await self._start("-W", *restart, *intent, *arguments)

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        package = (application_id,) if application_id else ()
        await self._start("-W", "-a", "android.intent.action.VIEW", "-d", url, *package)

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
        names = [application_id] if application_id else list(self._installed)
        for name in names:
            printed = await self._shell("pm", "clear", name)
            if "Success" not in printed:
                raise ControllerError(
                    f"the state of {name} cannot be cleared: {last_line(printed)}"
                )

    async def apps(self) -> Mapping[str, AppState]:
        front = await self._front()
        return {name: await self._state(name, front) for name in self._installed}

    async def screenshot(self) -> bytes:
        # As text: the output of commands is decoded.
        printed = await self._tool.ask("exec-out", "screencap -p | base64")
        try:
            return base64.b64decode(printed)
        except binascii.Error as error:
            raise ControllerError(
                f"no screenshot of {self.name}: {last_line(printed)}"
            ) from error

    async def tap(self, x: float, y: float) -> None:
        # Asked each time: it changes with the rotation.
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
        # With auto-rotation, the device ignores the other setting.
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
        # Its exit status is 0 even if it failed.
        problem = re.search(r"^Error.*", printed, re.MULTILINE)
        if problem:
            raise ControllerError(f"am start: {problem[0]}")

    async def _set(self, name: str, value: str) -> None:
        await self._shell("settings", "put", "system", name, value)

    async def _packages(self) -> Mapping[str, str]:
        """Return the user's packages by path, which changes with each installation."""
        printed = await self._shell("pm", "list", "packages", "-f", "-3")

        packages: dict[str, str] = {}
        for line in printed.split():
            # A path may contain the separator, a package name does not.
            path, _, name = line.removeprefix("package:").rpartition("=")
            packages[path] = name
        return packages

    def _new_package(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        new = [name for path, name in after.items() if path not in before]
        if len(new) != 1:
            raise ControllerError(
                f"the app was installed, but its package is unknown: new on {self.name} are {new or 'none'}"
            )

        return new[0]

    async def _activity(self, application_id: str) -> str:
        query = ("cmd", "package", "resolve-activity", "--brief", "-c", _LAUNCHER)
        activity = last_line(await self._shell(*query, application_id))
        if not activity.startswith(f"{application_id}/"):
            raise ControllerError(
                f"{application_id} is not installed on {self.name}, or has no launcher activity"
            )

        return activity

    async def _front(self) -> str:
        """Return the package of the activity in front, empty if there is none."""
        printed = await self._shell("dumpsys", "activity", "activities")
        resumed = re.search(
            r"ResumedActivity[:=] ?ActivityRecord\{\S+ \S+ ([\w.]+)/", printed
        )
        return resumed[1] if resumed else ""

    async def _state(self, application_id: str, front: str) -> AppState:
        if application_id == front:
            return AppState.FOREGROUND
        if await self._runs(application_id):
            return AppState.BACKGROUND
        return AppState.NOT_RUNNING

    async def _runs(self, application_id: str) -> bool:
        return await self._tool.succeeds("shell", shlex.join(("pidof", application_id)))

    async def _size(self) -> tuple[int, int]:
        printed = await self._shell("dumpsys", "window", "displays")
        current = re.search(r"\bcur=(\d+)x(\d+)", printed)
        if current is None:
            raise ControllerError(f"{self.name} does not report the size of its screen")

        return int(current[1]), int(current[2])


def _search_path(environ: Mapping[str, str], package: str) -> str:
    """Return PATH and the directories of a package of Android's SDK, whose tools are rarely on PATH."""
    directories = [environ.get("PATH", "")]
    for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        sdk = environ.get(name)
        if sdk:
            directories.append(f"{sdk}/{package}")
    return os.pathsep.join(directories)

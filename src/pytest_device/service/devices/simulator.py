"""An iOS simulator, controlled by `xcrun simctl`."""

import json
import plistlib
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

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
from pytest_device.service.devices.profiles import plain
from pytest_device.service.devices.tool import (
    BOOT_SECONDS,
    INSTALL_SECONDS,
    Borrowed,
    Tool,
)
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.program import COMMAND_SECONDS, ask
from pytest_device.spec import Platform

KIND: Final = "simulator"
_LIST: Final = ("simctl", "list", "devices", "booted", "-j")
_ALL: Final = ("simctl", "list", "devices", "available", "-j")
_FIX: Final = (
    "on macOS install Xcode, and boot a simulator: xcrun simctl boot 'iPhone 16'"
)
WDA_TIMEOUT: Final = "appium:wdaLaunchTimeout"
FIRST_BUILD_MS: Final = 480_000
"""The build of WebDriverAgent may take minutes, more than the driver waits by default."""
_CANNOT: Final = "simctl has no command for it; the session's controller may support it"


async def listed(
    environ: Mapping[str, str], preference: DevicePreference
) -> Availability:
    """Find the booted simulators, or the named one."""
    xcrun = shutil.which("xcrun", path=environ.get("PATH", ""))
    if xcrun is None:
        return Availability(KIND, missing="xcrun is not on PATH", fix=_FIX)

    query = _ALL if preference.simulator else _LIST
    command = f"xcrun {' '.join(query)}"

    try:
        printed = await ask([xcrun, *query], environ=environ)
        devices = parse(printed)

        if preference.simulator:
            return _named(
                preference.simulator, parse(printed, booted=False), devices, Path(xcrun)
            )
    except (ConfigError, ValueError, KeyError) as error:
        return Availability(KIND, missing=f"{command}: {error}", fix=_FIX)

    if not devices:
        return Availability(
            KIND,
            missing=f"{command} lists no booted simulator",
            fix="xcrun simctl boot 'iPhone 16'",
        )

    return Availability(KIND, devices, Path(xcrun))


def _named(
    name: str,
    available: Sequence[ConnectedDevice],
    booted: Sequence[ConnectedDevice],
    xcrun: Path,
) -> Availability:
    """Return the simulator with this name, booted or to be started; of several, the one with the newest system."""
    matching = [simulator for simulator in available if plain(name) in simulator.names]
    if not matching:
        return Availability(
            KIND,
            missing=f"xcrun {' '.join(_ALL)} has no {name!r}",
            fix="name one that it lists, or create it: xcrun simctl create",
        )

    # simctl lists the systems from the oldest to the newest.
    matching_booted = [simulator for simulator in matching if simulator in booted]
    if matching_booted:
        return Availability(KIND, [matching_booted[-1]], xcrun)
    return Availability(KIND, program=xcrun, to_start=matching[-1].udid)


async def start(
    availability: Availability,
    environ: Mapping[str, str],
    _guard: Guard,
    stack: AsyncExitStack,
) -> None:
    """Start the named simulator and wait until it has booted; ``stack`` stops it. Raises ControllerError."""
    tool = Tool(availability.tool, ("simctl",), environ)
    stack.push_async_callback(tool.succeeds, "shutdown", availability.to_start)
    # Boots it, too.
    await tool.ask(
        "bootstatus", availability.to_start, "-b", limit_seconds=BOOT_SECONDS
    )


def parse(printed: str, *, booted: bool = True) -> Sequence[ConnectedDevice]:
    """Parse `xcrun simctl list devices -j`. A simulator's names are its UDID and its name."""
    runtimes: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(printed)["devices"]
    return [
        ConnectedDevice.of(simulator["udid"], simulator["name"])
        for runtime, simulators in runtimes.items()
        if ".iOS-" in runtime
        for simulator in simulators
        if simulator["state"] == "Booted" or not booted
    ]


class Simulator(Borrowed):
    """A booted simulator that a session borrows; its screenshots are written to ``directory``."""

    kind = KIND
    platform = Platform.IOS

    def __init__(
        self,
        udid: str,
        availability: Availability,
        *,
        environ: Mapping[str, str],
        directory: Path,
        log: Log,
    ) -> None:
        super().__init__(
            udid,
            Tools(
                {**capabilities(self.platform, udid), **_first_build_timeout(environ)},
                availability.appium_home,
            ),
            tool=Tool(availability.tool, (), environ),
            alive=("simctl", "spawn", udid, "launchctl", "version"),
            gone=f"the simulator {udid} was shut down",
            log=log,
        )
        self._picture = directory / "screen.jpeg"
        self._front = ""

    async def install(self, app: App) -> str:
        """Install an .app directory; return its bundle identifier."""
        if app.path is None or not (app.path / "Info.plist").is_file():
            raise ControllerError(
                f"a simulator needs an .app directory, not {app.path or app.url}"
            )

        application_id = app.application_id or _bundle_id(app.path / "Info.plist")
        await self._simctl("install", str(app.path), limit_seconds=INSTALL_SECONDS)
        self._installed[application_id] = app.path

        return application_id

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        # A running app ignores arguments.
        restart = ("--terminate-running-process",) if arguments else ()
        await self._tool.ask(
            "simctl", "launch", *restart, self.name, application_id, *arguments
        )
        self._front = application_id

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        """Open a URL in the app that handles it; ``simctl`` cannot select an app."""
        await self._simctl("openurl", url)
        self._front = application_id or self._front

    async def terminate(self, application_id: str) -> bool:
        if application_id not in await self._running():
            return False

        await self._simctl("terminate", application_id)
        return True

    async def remove(self, application_id: str) -> bool:
        if not await self._tool.succeeds(
            "simctl", "get_app_container", self.name, application_id
        ):
            return False

        await self._simctl("uninstall", application_id)
        self._installed.pop(application_id, None)
        return True

    async def clear(self, application_id: str | None = None) -> None:
        """Clear the stored data of an app, or of every app of this session, by reinstalling it.

        ``simctl`` has no command for it. Of other apps, the file to reinstall is unknown.
        """
        names = [application_id] if application_id else list(self._installed)
        for name in names:
            path = self._installed.get(name)
            if path is None:
                raise ControllerError(
                    f"the state of {name} cannot be cleared: this session did not install it"
                )

            await self.remove(name)
            await self.install(App(path=path, application_id=name))

    async def apps(self) -> Mapping[str, AppState]:
        """Return the apps that this session installed; the one that was launched last is in front.

        ``simctl`` lists the running ones, but not which of them is in front.
        """
        running = await self._running()
        return {name: self._state(name, running) for name in self._installed}

    async def screenshot(self) -> bytes:
        await self._tool.ask(
            "simctl", "io", self.name, "screenshot", "--type=jpeg", str(self._picture)
        )
        try:
            return self._picture.read_bytes()
        except OSError as error:
            raise ControllerError(
                f"no screenshot of {self.name}: {error.strerror}"
            ) from error

    async def tap(self, x: float, y: float) -> None:
        raise ControllerError(f"cannot tap the simulator at {x:g}, {y:g}: {_CANNOT}")

    async def orientation(self) -> Orientation:
        raise ControllerError(f"the orientation of the simulator is unknown: {_CANNOT}")

    async def rotate(self, orientation: Orientation) -> None:
        raise ControllerError(
            f"cannot rotate the simulator to {orientation}: {_CANNOT}"
        )

    async def _simctl(
        self, command: str, *arguments: str, limit_seconds: float = COMMAND_SECONDS
    ) -> str:
        return await self._tool.ask(
            "simctl", command, self.name, *arguments, limit_seconds=limit_seconds
        )

    async def _running(self) -> frozenset[str]:
        printed = await self._simctl("spawn", "launchctl", "list")
        return frozenset(
            re.findall(r"^\d+\t.*UIKitApplication:([\w.-]+)", printed, re.MULTILINE)
        )

    def _state(self, application_id: str, running: frozenset[str]) -> AppState:
        if application_id not in running:
            return AppState.NOT_RUNNING
        if application_id == self._front:
            return AppState.FOREGROUND
        return AppState.BACKGROUND


def _first_build_timeout(environ: Mapping[str, str]) -> Mapping[str, int]:
    """Return the capability with the time limit of a first start, which builds WebDriverAgent; later ones reuse it."""
    xcode = Path(environ.get("HOME", ""), "Library/Developer/Xcode")
    if any(xcode.glob("DerivedData/WebDriverAgent-*")):
        return {}
    return {WDA_TIMEOUT: FIRST_BUILD_MS}


def _bundle_id(info: Path) -> str:
    try:
        return str(plistlib.loads(info.read_bytes())["CFBundleIdentifier"])
    except (plistlib.InvalidFileException, KeyError, ValueError) as error:
        raise ControllerError(
            f"{info.parent.name} has an invalid Info.plist: {error}"
        ) from error

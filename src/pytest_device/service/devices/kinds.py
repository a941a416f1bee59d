"""Which device stands behind a session: a table of kinds, the first that this machine has is taken."""

import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices import browser, chromium, emulator, fake, profiles, simulator
from pytest_device.service.devices.base import Device
from pytest_device.service.devices.found import Found, Listed
from pytest_device.service.devices.profiles import plain
from pytest_device.service.runners.guard import Guard
from pytest_device.spec import DEFAULT_SESSION_TYPE, Platform, SessionType

FORCED: Final = (chromium.KIND, fake.KIND)
"""A ``deviceIdentifier`` of this name gets this kind, also where a real device is. Ours."""

_INSTALL: Final = {
    "apt-get": "apt-get install chromium chromium-driver",
    "dnf": "dnf install chromium chromedriver",
    "apk": "apk add chromium chromium-chromedriver",
    "pacman": "pacman -S chromium",
    "zypper": "zypper install chromium chromedriver",
    "brew": "brew install --cask google-chrome chromedriver",
}
_BY_HAND: Final = "install Chromium, and chromedriver of its version, so that both are on PATH"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where devices are looked for: the environment that programs see, and the user's home directory."""

    environ: Mapping[str, str]
    home: Path

    @property
    def for_tools(self) -> Mapping[str, str]:
        """The environment of the tools of real devices, whose keys and settings are the user's."""
        return {**self.environ, "HOME": str(self.home)}


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table: what it can serve, and how it is looked for."""

    name: str
    platforms: Collection[Platform]
    types: Collection[SessionType]
    look: Callable[[Machine, SessionType], Awaitable[Found]]


async def _emulators(machine: Machine, session_type: SessionType) -> Found:
    found = await emulator.listed(machine.for_tools)
    return _with_appium_driver(found, machine, "appium-uiautomator2-driver", session_type)


async def _simulators(machine: Machine, session_type: SessionType) -> Found:
    found = await simulator.listed(machine.for_tools)
    return _with_appium_driver(found, machine, "appium-xcuitest-driver", session_type)


async def _chromium(machine: Machine, session_type: SessionType) -> Found:
    program, driver = browser.find_chromium(machine.environ), browser.find_chromedriver(machine.environ)
    lacking = [
        *([] if program else ["no Chromium is on PATH"]),
        *([] if driver or session_type is not SessionType.APPIUM else ["chromedriver is not on PATH"]),
    ]
    fix = _install_line(machine.environ) if lacking else ""
    return Found(chromium.KIND, (), program, driver, missing=", ".join(lacking), fix=fix)


async def _fake(_machine: Machine, _session_type: SessionType) -> Found:
    return Found(fake.KIND)


_EVERY: Final = tuple(SessionType)
KINDS: Final = (
    Kind(emulator.KIND, (Platform.ANDROID,), _EVERY, _emulators),
    Kind(simulator.KIND, (Platform.IOS,), _EVERY, _simulators),
    Kind(chromium.KIND, tuple(Platform), _EVERY, _chromium),
    Kind(fake.KIND, tuple(Platform), (SessionType.APPIUM,), _fake),
)
"""The kinds of devices, the preferred ones first."""


async def availability(
    platform: Platform, session_type: SessionType, *, environ: Mapping[str, str], home: Path
) -> Sequence[Found]:
    """Tell what this machine has for sessions of a type, by kind; the first in which nothing is missing is taken."""
    machine = Machine(environ, home)
    return [
        await kind.look(machine, session_type)
        for kind in KINDS
        if platform in kind.platforms and session_type in kind.types
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a session gets: a kind, and of a kind with several devices the one."""

    found: Found
    device: Listed | None = None


def choose(founds: Sequence[Found], platform: Platform, identifier: str | None, taken: Collection[str]) -> Choice:
    """Choose the device of a session.

    Raises ControllerError when this machine has none that can serve, or real devices but none that is called so or
    none that is free: a session never gets another device than the one asked for. Ours.
    """
    wanted = plain(identifier) if identifier else None
    if wanted in FORCED:
        founds = [found for found in founds if found.kind == wanted]
    usable = next((found for found in founds if not found.missing), None)
    if usable is None:
        raise _nothing(founds, platform, wanted)
    if not usable.devices:
        return Choice(usable)
    return Choice(usable, _one(usable.devices, platform, identifier, taken))


class Devices:
    """Lends the devices of this machine to sessions, each to one at a time.

    ``environ`` is what the programs of a session may see; ``serve`` gives a web build an address.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        home: Path,
        guard: Guard,
        log: Callable[[str], None],
        serve: Callable[[Path], AbstractAsyncContextManager[str]] | None = None,
    ) -> None:
        self._machine = Machine(environ, home)
        self._guard = guard
        self._log = log
        self._serve = serve or _site
        self._taken: set[str] = set()

    @asynccontextmanager
    async def lent(
        self, request: Mapping[str, Any], directory: Path, *, log: Callable[[str], None] | None = None
    ) -> AsyncGenerator[Device, None]:
        """Give the device for a valid create request; at the end of the block it is as it was, or has ended.

        What it writes is below ``directory``, which exists and is the session's own. ``log`` is told which device it
        is, and why no other. Raises ControllerError where nothing can serve or the device does not come up, OSError
        when its places cannot be made.
        """
        platform, identifier = Platform(request["platform"]), request.get("deviceIdentifier")
        session_type = SessionType(request.get("type") or DEFAULT_SESSION_TYPE)
        founds = await availability(platform, session_type, environ=self._machine.environ, home=self._machine.home)
        choice = choose(founds, platform, identifier, self._taken)
        async with self._reserved(choice), self._opened(choice, platform, identifier, directory) as device:
            (log or self._log)(f"the device is {device.name} ({device.kind}){_others(founds, choice.found)}")
            yield device

    @asynccontextmanager
    async def _reserved(self, choice: Choice) -> AsyncGenerator[None, None]:
        device = {choice.device.udid} if choice.device else set[str]()
        self._taken |= device
        try:
            yield
        finally:
            self._taken -= device

    def _opened(
        self, choice: Choice, platform: Platform, identifier: str | None, directory: Path
    ) -> AbstractAsyncContextManager[Device]:
        found, environ = choice.found, self._machine.environ
        if choice.device:
            return self._borrowed(choice.device.udid, found, directory)
        if found.kind == chromium.KIND and found.program:
            profile = profiles.chosen(platform, None if plain(identifier or "") == chromium.KIND else identifier)
            return chromium.booted(
                profile,
                programs=(found.program, found.chromedriver),
                directory=directory,
                environ=environ,
                guard=self._guard,
                serve=self._serve,
            )
        return fake.made(platform, identifier)

    def _borrowed(self, udid: str, found: Found, directory: Path) -> AbstractAsyncContextManager[Device]:
        environ = self._machine.for_tools
        if found.kind == emulator.KIND:
            return emulator.borrowed(udid, found, environ=environ, log=self._log)
        return simulator.borrowed(udid, found, environ=environ, directory=directory, log=self._log)


def _with_appium_driver(found: Found, machine: Machine, package: str, session_type: SessionType) -> Found:
    """Appium drives a real device by the driver that the user has installed; other controllers bring their own."""
    if session_type is not SessionType.APPIUM:
        return found
    appium_home = Path(machine.environ.get("APPIUM_HOME") or machine.home / ".appium")
    if (appium_home / "node_modules" / package / "package.json").is_file():
        return replace(found, appium_home=appium_home)
    missing = f"{package} is not installed in {appium_home}"
    name = package.removeprefix("appium-").removesuffix("-driver")
    return replace(
        found,
        missing="; ".join(text for text in (found.missing, missing) if text),
        fix=found.fix or f"appium driver install {name}",
    )


def _one(devices: Sequence[Listed], platform: Platform, identifier: str | None, taken: Collection[str]) -> Listed:
    wanted = [device for device in devices if identifier is None or plain(identifier) in device.names]
    if not wanted:
        known = ", ".join(sorted(device.udid for device in devices))
        raise ControllerError(
            f"deviceIdentifier {identifier!r} is none of the {platform} devices that are up: {known}. "
            f"Name one of these, {' or '.join(map(repr, FORCED))} for a device of that kind, or none."
        )
    free = next((device for device in wanted if device.udid not in taken), None)
    if free is None:
        busy = ", ".join(device.udid for device in wanted)
        raise ControllerError(f"every {platform} device that fits is in use by another session: {busy}")
    return free


def _nothing(founds: Sequence[Found], platform: Platform, wanted: str | None) -> ControllerError:
    if not founds:  # the fake one was asked for, and is for another type
        return ControllerError(f"deviceIdentifier {wanted!r}: that device serves appium sessions only")
    lacking = "; ".join(f"{found.kind}: {found.missing}" for found in founds)
    fixes = [found.fix for found in founds if found.fix]
    return ControllerError(f"this machine has no {platform} device for the session ({lacking}): {fixes[-1]}")


def _others(founds: Sequence[Found], used: Found) -> str:
    """Tell why none of the kinds before the one that is used was taken."""
    lacking = [f"no {found.kind}: {found.missing}" for found in founds[: founds.index(used)] if found.missing]
    return f"; {'; '.join(lacking)}" if lacking else ""


def _install_line(environ: Mapping[str, str]) -> str:
    path = os.pathsep.join([environ.get("PATH", ""), os.defpath])
    return next((line for tool, line in _INSTALL.items() if shutil.which(tool, path=path)), _BY_HAND)


def _site(directory: Path) -> AbstractAsyncContextManager[str]:
    from pytest_device.service.apps.site import serving

    return serving(directory)

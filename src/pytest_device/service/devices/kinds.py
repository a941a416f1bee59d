"""Chooses the device of a session: the first kind of a table that this machine has."""

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.devices import (
    browsers,
    chromium,
    emulator,
    fake,
    profiles,
    simulator,
)
from pytest_device.service.devices.base import (
    BusyError,
    Device,
    Expect,
    RequestError,
)
from pytest_device.service.devices.found import (
    FORCED,
    Choice,
    DevicePreference,
    Found,
    choose,
    usable,
    with_driver,
)
from pytest_device.service.devices.profiles import plain
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.isolation import Isolation, required
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import DEFAULT_SESSION_TYPE, Platform, SessionType

HANDOVER_SECONDS: Final = 10.0
"""Maximum seconds to wait for the device of a session that has ended."""
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine to search for devices: the environment of programs, and the user's home directory.

    A missing browser can be installed in ``cache_dir`` if it is ``built_for`` this hardware.
    """

    environ: Mapping[str, str]
    home: Path
    cache_dir: Path | None = None
    built_for: str = field(default_factory=browsers.hardware)
    preference: DevicePreference = field(default_factory=DevicePreference)

    @property
    def for_tools(self) -> Mapping[str, str]:
        """Environment for the tools of real devices, which need the user's keys and settings."""
        return {**self.environ, "HOME": str(self.home)}


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table: the platforms and session types of a kind, and a function that finds its devices."""

    name: str
    platforms: Collection[Platform]
    types: Collection[SessionType]
    find: Callable[[Machine, SessionType], Awaitable[Found]]


def _real(
    listed: Callable[[Mapping[str, str], DevicePreference], Awaitable[Found]],
    platform: Platform,
    package: str,
) -> Callable[[Machine, SessionType], Awaitable[Found]]:
    """Return a function that finds real devices; for Appium, it requires the user's driver in ``package``."""

    async def find(machine: Machine, session_type: SessionType) -> Found:
        found = await listed(machine.for_tools, machine.preference)
        if machine.preference.device_of(platform):
            found = replace(found, is_named=True)
        # Other controllers bring their own drivers.
        if session_type is not SessionType.APPIUM:
            return found
        return with_driver(
            found,
            Path(machine.environ.get("APPIUM_HOME") or machine.home / ".appium"),
            package,
        )

    return find


async def _chromium(machine: Machine, session_type: SessionType) -> Found:
    return await browsers.find(
        machine.environ,
        session_type,
        cache_dir=machine.cache_dir,
        built_for=machine.built_for,
        selenium_manager=machine.preference.selenium_manager,
    )


async def _fake(_machine: Machine, _session_type: SessionType) -> Found:
    return Found(fake.KIND)


_EVERY: Final = tuple(SessionType)
KINDS: Final = (
    Kind(
        emulator.KIND,
        (Platform.ANDROID,),
        _EVERY,
        _real(emulator.listed, Platform.ANDROID, "appium-uiautomator2-driver"),
    ),
    Kind(
        simulator.KIND,
        (Platform.IOS,),
        _EVERY,
        _real(simulator.listed, Platform.IOS, "appium-xcuitest-driver"),
    ),
    Kind(chromium.KIND, tuple(Platform), _EVERY, _chromium),
    Kind(fake.KIND, tuple(Platform), (SessionType.APPIUM,), _fake),
)
"""The kinds of devices, in order of preference."""


async def availability(
    platform: Platform, session_type: SessionType, machine: Machine
) -> Sequence[Found]:
    """Return this machine's devices for a session type, by kind, in order of preference."""
    return [
        await kind.find(machine, session_type)
        for kind in KINDS
        if platform in kind.platforms and session_type in kind.types
        if not (machine.preference.real_only and kind.name in FORCED)
    ]


class Devices:
    """The devices of this machine; each is borrowed by one session at a time.

    ``environ`` is the environment of a session's programs; ``toolbox`` installs a missing browser. Requests that
    cannot have a required ``isolation`` are refused.
    Devices that ``preference`` names are started for the first session; ``close`` stops them.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        home: Path,
        guard: Guard,
        log: Log,
        toolbox: Toolbox | None = None,
        preference: DevicePreference = DevicePreference(),  # noqa: B008  # frozen
        isolation: Isolation = Isolation(),  # noqa: B008  # frozen
        handover_seconds: float = HANDOVER_SECONDS,
    ) -> None:
        self._machine = Machine(
            environ, home, toolbox.cache_dir if toolbox else None, preference=preference
        )
        self._isolation = isolation
        self._handover_seconds = handover_seconds
        self._started = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._toolbox = toolbox
        self._guard = guard
        self._log = log
        self._taken: set[str] = set()

    async def choose(self, request: Mapping[str, Any], progress: Log) -> Found:
        """Return the device for a request, which starts if necessary; raises ConfigError if there is none."""
        try:
            _, device = await self._up(request, progress)
        except ControllerError as error:
            raise ConfigError(str(error)) from error
        return device

    async def refusal(self, request: Mapping[str, Any]) -> str | None:
        """Return why this machine has no usable device for a request, None if it has one or can install or start it.

        Raises BusyError while another session uses it.
        """
        try:
            availabilities, _ = await self._find(request)
            self._choice(availabilities, request)
        except BusyError:
            raise
        except ControllerError as error:
            return str(error)
        return None

    async def _find(self, request: Mapping[str, Any]) -> tuple[Sequence[Found], Found]:
        platform = Platform(request["platform"])
        availabilities = await availability(platform, _type(request), self._machine)
        found = usable(availabilities, platform, request.get("deviceIdentifier"))
        if self._isolation.required and (
            reason := await self._exposure(found, _type(request))
        ):
            raise RequestError(required(reason))
        return availabilities, found

    async def _exposure(self, found: Found, session_type: SessionType) -> str:
        """Return how other users of this machine could reach programs of a session, "" if they cannot.

        Only the controllers of a browser start programs that listen on ports. The fake device listens on none.
        """
        match found.kind:
            case fake.KIND:
                return ""
            case chromium.KIND if session_type is SessionType.WEB_PREVIEW_ONLY:
                return ""
            case chromium.KIND:
                return await self._isolation.refusal(self._machine.environ)
            case _:
                return f"the tools of the {found.kind} listen on ports without access control"

    def _choice(
        self, availabilities: Sequence[Found], request: Mapping[str, Any]
    ) -> Choice:
        return choose(
            availabilities,
            Platform(request["platform"]),
            request.get("deviceIdentifier"),
            self._taken,
        )

    async def _up(
        self, request: Mapping[str, Any], note: Log
    ) -> tuple[Sequence[Found], Found]:
        """Find the devices for a request, after starting the one that the user named."""
        async with self._starting:
            availabilities, found = await self._find(request)
            if not found.to_start:
                return availabilities, found
            note(f"starting {found.kind} {found.to_start}")
            start = emulator.start if found.kind == emulator.KIND else simulator.start
            await start(found, self._machine.for_tools, self._guard, self._started)
            return await self._find(request)

    async def close(self) -> None:
        """Stop the devices that were started here."""
        await self._started.aclose()

    async def _free(
        self, request: Mapping[str, Any], note: Log
    ) -> tuple[Sequence[Found], Choice]:
        """Choose the device once it is free: a session that has ended may still be restoring it."""
        until = time.monotonic() + self._handover_seconds
        while True:
            availabilities, _ = await self._up(request, note)
            try:
                return availabilities, self._choice(availabilities, request)
            except BusyError:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def install(
        self, found: Found, request: Mapping[str, Any], progress: Log
    ) -> Found:
        """Return a chosen device with its programs installed; raises ConfigError if one cannot be installed."""
        if not (found.to_install and self._toolbox):
            return found
        return await browsers.install(
            found,
            self._toolbox,
            _type(request),
            progress,
            built_for=self._machine.built_for,
        )

    @asynccontextmanager
    async def borrowed(
        self,
        request: Mapping[str, Any],
        directory: Path,
        *,
        log: Log | None = None,
        expect: Expect | None = None,
    ) -> AsyncGenerator[Device, None]:
        """Borrow the device for a valid create request; at the end of the block, restore or stop it.

        It only writes to ``directory``, which exists and belongs to the session. ``log`` reports the device, and why
        others were not chosen. ``expect`` is called before a browser starts, and not for other devices. Raises
        ControllerError if no device is usable or it does not start, ConfigError if a browser cannot be installed,
        OSError if its directories cannot be created.
        """
        platform, identifier, note = (
            Platform(request["platform"]),
            request.get("deviceIdentifier"),
            log or self._log,
        )
        availabilities, choice = await self._free(request, note)
        async with self._reserved(choice):
            installed = await self.install(choice.found, request, note)
            async with self._opened(
                replace(choice, found=installed),
                platform,
                identifier,
                directory,
                note,
                expect,
            ) as device:
                kind = (
                    f"{device.kind}: {_named(installed)}"
                    if device.kind == chromium.KIND
                    else device.kind
                )
                note(
                    f"device: {device.name} ({kind}){_others(availabilities, choice.found)}"
                )
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
        self,
        choice: Choice,
        platform: Platform,
        identifier: str | None,
        directory: Path,
        note: Log,
        expect: Expect | None,
    ) -> AbstractAsyncContextManager[Device]:
        found, environ = choice.found, self._machine.environ
        if choice.device:
            return self._borrowed(choice.device.udid, found, directory)
        if found.kind == chromium.KIND and found.program:
            profile = profiles.find_profile(
                platform,
                None if plain(identifier or "") == chromium.KIND else identifier,
            )
            return chromium.booted(
                profile,
                programs=(found.program, found.chromedriver),
                directory=directory,
                environ=environ,
                guard=self._guard,
                log=note,
                expect=expect,
            )
        return nullcontext(fake.Fake(platform, identifier))

    def _borrowed(
        self, udid: str, found: Found, directory: Path
    ) -> AbstractAsyncContextManager[Device]:
        environ = self._machine.for_tools
        if found.kind == emulator.KIND:
            return emulator.Emulator(udid, found, environ=environ, log=self._log)
        return simulator.Simulator(
            udid, found, environ=environ, directory=directory, log=self._log
        )


def _others(availabilities: Sequence[Found], used: Found) -> str:
    """Return why the preferred kinds were not usable."""
    lacking = [
        f"no {found.kind}: {found.missing}"
        for found in availabilities[: availabilities.index(used)]
        if found.missing
    ]
    return f"; {'; '.join(lacking)}" if lacking else ""


def _named(browser: Found) -> str:
    return (
        f"{browser.program}, {browser.about}" if browser.about else str(browser.program)
    )


def _type(request: Mapping[str, Any]) -> SessionType:
    return SessionType(request.get("type") or DEFAULT_SESSION_TYPE)

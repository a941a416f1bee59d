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
from pytest_device.service.devices.availability import (
    FORCED,
    Availability,
    Choice,
    DevicePreference,
    choose,
    usable,
    with_driver,
)
from pytest_device.service.devices.base import (
    BusyError,
    Device,
    Expect,
    RequestError,
)
from pytest_device.service.devices.profiles import plain
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.isolation import Isolation, required
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import DEFAULT_SESSION_TYPE, Platform, SessionType

HANDOVER_SECONDS: Final = 10.0
"""Maximum seconds to wait for the device of a session that has ended: it is restored after the reply to the stop call."""
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
    find: Callable[[Machine, SessionType], Awaitable[Availability]]


def _real(
    listed: Callable[[Mapping[str, str], DevicePreference], Awaitable[Availability]],
    platform: Platform,
    package: str,
) -> Callable[[Machine, SessionType], Awaitable[Availability]]:
    """Return a function that finds real devices; for Appium, it requires the user's driver in ``package``."""

    async def find(machine: Machine, session_type: SessionType) -> Availability:
        availability = await listed(machine.for_tools, machine.preference)
        if machine.preference.device_of(platform):
            availability = replace(availability, is_named=True)

        # Other controllers bring their own drivers.
        if session_type is not SessionType.APPIUM:
            return availability

        appium_home = machine.environ.get("APPIUM_HOME") or machine.home / ".appium"
        return with_driver(availability, Path(appium_home), package)

    return find


async def _chromium(machine: Machine, session_type: SessionType) -> Availability:
    return await browsers.find(
        machine.environ,
        session_type,
        cache_dir=machine.cache_dir,
        built_for=machine.built_for,
        selenium_manager=machine.preference.selenium_manager,
    )


async def _fake(_machine: Machine, _session_type: SessionType) -> Availability:
    return Availability(fake.KIND)


_ALL_TYPES: Final = tuple(SessionType)
KINDS: Final = (
    Kind(
        emulator.KIND,
        (Platform.ANDROID,),
        _ALL_TYPES,
        _real(emulator.listed, Platform.ANDROID, "appium-uiautomator2-driver"),
    ),
    Kind(
        simulator.KIND,
        (Platform.IOS,),
        _ALL_TYPES,
        _real(simulator.listed, Platform.IOS, "appium-xcuitest-driver"),
    ),
    Kind(chromium.KIND, tuple(Platform), _ALL_TYPES, _chromium),
    Kind(fake.KIND, tuple(Platform), (SessionType.APPIUM,), _fake),
)
"""The kinds of devices, in order of preference."""


async def all_available(
    platform: Platform, session_type: SessionType, machine: Machine
) -> Sequence[Availability]:
    """Return what is available on this machine for a session type, by kind, in order of preference."""
    availabilities: list[Availability] = []
    for kind in KINDS:
        if platform not in kind.platforms or session_type not in kind.types:
            continue
        if machine.preference.real_only and kind.name in FORCED:
            continue
        availabilities.append(await kind.find(machine, session_type))
    return availabilities


class Devices:
    """The devices of this machine; each is borrowed by one session at a time.

    Devices that the user named are started for the first session; ``close`` stops them.

    Arguments:
        environ: The environment of a session's programs.
        home: The user's home directory.
        guard: Stops the devices' programs if this process is killed.
        log: Called with a line for each event without a session.
        toolbox: Installs a missing browser; without it, none is installed.
        preference: The user's choice of devices.
        isolation: How programs are isolated from other users; requests that can't have a required one are refused.
        handover_seconds: The maximum time to wait for the device of a session that has ended.
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

    async def choose(self, request: Mapping[str, Any], progress: Log) -> Availability:
        """Return the device for a request, which starts if necessary; raises ConfigError if there is none."""
        try:
            _, availability = await self._find_running(request, progress)
        except ControllerError as error:
            raise ConfigError(str(error)) from error
        return availability

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

    async def _find(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Availability], Availability]:
        platform = Platform(request["platform"])
        session_type = _type(request)
        availabilities = await all_available(platform, session_type, self._machine)
        availability = usable(availabilities, platform, request.get("deviceIdentifier"))

        if self._isolation.required:
            reason = await self._exposure(availability, session_type)
            if reason:
                raise RequestError(required(reason))

        return availabilities, availability

    async def _exposure(
        self, availability: Availability, session_type: SessionType
    ) -> str:
        """Return how other users of this machine could reach programs of a session, "" if they cannot.

        Only the controllers of a browser start programs that listen on ports. The fake device listens on none.
        """
        match availability.kind:
            case fake.KIND:
                return ""
            case chromium.KIND if session_type is SessionType.WEB_PREVIEW_ONLY:
                return ""
            case chromium.KIND:
                return await self._isolation.refusal(self._machine.environ)
            case _:
                return f"the tools of the {availability.kind} listen on ports without access control"

    def _choice(
        self, availabilities: Sequence[Availability], request: Mapping[str, Any]
    ) -> Choice:
        return choose(
            availabilities,
            Platform(request["platform"]),
            request.get("deviceIdentifier"),
            self._taken,
        )

    async def _find_running(
        self, request: Mapping[str, Any], note: Log
    ) -> tuple[Sequence[Availability], Availability]:
        """Find the devices for a request, after starting the one that the user named."""
        # One at a time: two first sessions would start the device twice.
        async with self._starting:
            availabilities, availability = await self._find(request)
            if not availability.to_start:
                return availabilities, availability

            note(f"starting {availability.kind} {availability.to_start}")
            start = (
                emulator.start
                if availability.kind == emulator.KIND
                else simulator.start
            )
            await start(
                availability, self._machine.for_tools, self._guard, self._started
            )
            return await self._find(request)

    async def close(self) -> None:
        """Stop the devices that were started here."""
        await self._started.aclose()

    async def _choose_free(
        self, request: Mapping[str, Any], note: Log
    ) -> tuple[Sequence[Availability], Choice]:
        """Choose the device once it is free: a session that has ended may still be restoring it."""
        until = time.monotonic() + self._handover_seconds
        while True:
            availabilities, _ = await self._find_running(request, note)
            try:
                return availabilities, self._choice(availabilities, request)
            except BusyError:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def install(
        self, availability: Availability, request: Mapping[str, Any], progress: Log
    ) -> Availability:
        """Return a chosen device with its programs installed; raises ConfigError if one cannot be installed."""
        if not availability.to_install or self._toolbox is None:
            return availability

        return await browsers.install(
            availability,
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

        Arguments:
            request: The body of the request.
            directory: The only directory that the device writes to; it exists and belongs to the session.
            log: Called with the device, and why others were not chosen.
            expect: Called before a browser starts, and not for other devices.

        Raises:
            ControllerError: No device is usable, or it does not start.
            ConfigError: A browser cannot be installed.
            OSError: The directories of a browser cannot be created.
        """
        note = log or self._log
        availabilities, choice = await self._choose_free(request, note)
        async with self._reserved(choice):
            installed = await self.install(choice.availability, request, note)
            opened = self._opened(
                replace(choice, availability=installed),
                Platform(request["platform"]),
                request.get("deviceIdentifier"),
                directory,
                note,
                expect,
            )
            async with opened as device:
                kind = device.kind
                if kind == chromium.KIND:
                    kind = f"{kind}: {_described(installed)}"
                others = _unusable_kinds(availabilities, choice.availability)
                note(f"device: {device.name} ({kind}){others}")
                yield device

    @asynccontextmanager
    async def _reserved(self, choice: Choice) -> AsyncGenerator[None, None]:
        if choice.device is None:  # each session starts its own
            yield
            return

        self._taken.add(choice.device.udid)
        try:
            yield
        finally:
            self._taken.discard(choice.device.udid)

    def _opened(
        self,
        choice: Choice,
        platform: Platform,
        identifier: str | None,
        directory: Path,
        note: Log,
        expect: Expect | None,
    ) -> AbstractAsyncContextManager[Device]:
        availability = choice.availability
        if choice.device:
            return self._borrowed(choice.device.udid, availability, directory)
        if availability.kind == fake.KIND:
            return nullcontext(fake.Fake(platform, identifier))
        if availability.kind != chromium.KIND:
            raise ControllerError(
                f"the {availability.kind} {availability.to_start} has booted, but is not listed as running"
            )

        names_kind = plain(identifier or "") == chromium.KIND
        profile = profiles.find_profile(platform, None if names_kind else identifier)
        return chromium.booted(
            profile,
            programs=(availability.tool, availability.chromedriver),
            directory=directory,
            environ=self._machine.environ,
            guard=self._guard,
            log=note,
            expect=expect,
        )

    def _borrowed(
        self, udid: str, availability: Availability, directory: Path
    ) -> AbstractAsyncContextManager[Device]:
        environ = self._machine.for_tools
        if availability.kind == emulator.KIND:
            return emulator.Emulator(udid, availability, environ=environ, log=self._log)
        return simulator.Simulator(
            udid, availability, environ=environ, directory=directory, log=self._log
        )


def _unusable_kinds(availabilities: Sequence[Availability], used: Availability) -> str:
    """Return why the kinds before the used one, which would be preferred, were not usable."""
    preferred = availabilities[: availabilities.index(used)]
    return "".join(
        f"; no {availability.kind}: {availability.missing}"
        for availability in preferred
        if availability.missing
    )


def _described(browser: Availability) -> str:
    if browser.about:
        return f"{browser.program}, {browser.about}"
    return str(browser.program)


def _type(request: Mapping[str, Any]) -> SessionType:
    return SessionType(request.get("type") or DEFAULT_SESSION_TYPE)

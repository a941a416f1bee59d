"""Which devices are available on this machine, and the choice of a session's device from them."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, assert_never

from pytest_device.errors import ControllerError
from pytest_device.service.devices import browser, fake
from pytest_device.service.devices.base import BusyError, RequestError
from pytest_device.service.devices.profiles import plain
from pytest_device.service.programs.toolchain import APPIUM
from pytest_device.spec import Platform

FORCED: Final = (browser.KIND, fake.KIND)
"""Kinds that a ``deviceIdentifier`` of this name selects, even if there is a real device. Not in the document; chosen here."""


@dataclass(frozen=True, slots=True)
class DevicePreference:
    """The user's choice of devices on this machine.

    Attributes:
        real_only: Whether no browser may replace a device.
        avd: The only emulator to use, which is started unless it is running; no browser replaces it.
        simulator: The only simulator to use, in the same way.
        selenium_manager: Whether Selenium Manager may download a browser or chromedriver that this machine lacks.
    """

    real_only: bool = False
    avd: str | None = None
    simulator: str | None = None
    selenium_manager: bool = False

    def device_of(self, platform: Platform) -> str | None:
        """Return the device that the user named for a platform."""
        match platform:
            case Platform.ANDROID:
                return self.avd
            case Platform.IOS:
                return self.simulator
            case _:
                assert_never(platform)


@dataclass(frozen=True, slots=True)
class ConnectedDevice:
    """A running real device, emulator or simulator. Requests may use any of ``names``, see ``plain``."""

    udid: str
    names: frozenset[str]

    @classmethod
    def of(cls, udid: str, *names: str) -> "ConnectedDevice":
        """Return a device with its ID and these names."""
        return cls(udid, frozenset(plain(name) for name in (udid, *names)))


class Origin(StrEnum):
    """Where a browser and its chromedriver come from."""

    MACHINE = "this machine"
    PINNED_DRIVER = "this machine, with the pinned chromedriver"
    PINNED = "the pinned browser and chromedriver"
    SELENIUM_MANAGER = "Selenium Manager"


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether devices of one kind are available on this machine, and which.

    Attributes:
        kind: The name of the kind.
        devices: The running devices; none for kinds that start one for each session.
        program: The program that controls the devices.
        chromedriver: Lets Appium control a browser.
        appium_home: The directory with the user's Appium driver for a real device.
        missing: Why none is usable, empty if one is.
        fix: What makes one usable.
        about: The version and origin of a browser.
        unused: The machine's own browser that it replaces, with the reason.
        to_install: The missing programs of a browser, for messages.
        origin: Where a browser and its missing programs come from.
        to_start: The device to start for the first session.
        starter: The program that starts it.
        is_named: Whether the user named the device of this kind to use.
    """

    kind: str
    devices: Sequence[ConnectedDevice] = ()
    program: Path | None = None
    chromedriver: Path | None = None
    appium_home: Path | None = None
    missing: str = ""
    fix: str = ""
    about: str = ""
    unused: str = ""
    to_install: str = ""
    origin: Origin = Origin.MACHINE
    to_start: str = ""
    starter: Path | None = None
    is_named: bool = False

    @property
    def tool(self) -> Path:
        """The program that lists and controls the devices."""
        if self.program is None:
            raise RuntimeError(
                f"devices of the kind {self.kind} have no program that controls them"
            )

        return self.program


def with_driver(
    availability: Availability, appium_home: Path, package: str
) -> Availability:
    """Require the user's Appium driver in ``package``, in a version for the local service's Appium."""
    name = package.removeprefix("appium-").removesuffix("-driver")
    try:
        path = appium_home / "node_modules" / package / "package.json"
        driver: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return _lacking(
            availability,
            f"{package} is not installed in {appium_home}",
            f"appium driver install {name}",
        )

    majors = _other_majors(driver)
    if majors:
        version = driver.get("version", "")
        return _lacking(
            availability,
            f"{package} {version} in {appium_home} is for Appium {majors}, "
            f"the local service runs {APPIUM.version}",
            f"appium driver update {name} --unsafe",
        )

    return replace(availability, appium_home=appium_home)


def _lacking(availability: Availability, missing: str, fix: str) -> Availability:
    """Return devices with one more reason why none is usable; the fix for the first reason comes first."""
    if availability.missing:
        missing = f"{availability.missing}; {missing}"

    return replace(availability, missing=missing, fix=availability.fix or fix)


def _other_majors(driver: dict[str, Any]) -> str:
    """Return the major versions of Appium that a driver supports, empty if the local service's is or may be one."""
    supported = str(driver.get("peerDependencies", {}).get("appium", ""))
    majors = re.findall(r"(?:^|\|\|)[\s^~v=]*+(\d+)", supported)
    if APPIUM.version.partition(".")[0] in majors:
        return ""

    return " or ".join(majors)


def usable(
    availabilities: Sequence[Availability], platform: Platform, identifier: str | None
) -> Availability:
    """Return the first kind with a usable device. Raises ControllerError if there is none."""
    requested = plain(identifier) if identifier else None
    if requested in FORCED:
        matching = [
            availability
            for availability in availabilities
            if availability.kind == requested
        ]
    else:
        # The fake device cannot run an app: only requests that name it get it.
        matching = [
            availability
            for availability in availabilities
            if availability.kind != fake.KIND
        ]

    candidates = without_fallback(matching)
    for availability in candidates:
        if not availability.missing:
            return availability

    raise _no_device(candidates, platform, requested)


def without_fallback(availabilities: Sequence[Availability]) -> Sequence[Availability]:
    """Return the kind whose device the user named, all if there is none.

    With a browser instead, a run would pass without the device that it is about.
    """
    named = [availability for availability in availabilities if availability.is_named]
    return named or availabilities


@dataclass(frozen=True, slots=True)
class Choice:
    """The device of a session: its kind, and the device if the kind has several."""

    availability: Availability
    device: ConnectedDevice | None = None


def choose(
    availabilities: Sequence[Availability],
    platform: Platform,
    identifier: str | None,
    taken: Collection[str],
) -> Choice:
    """Choose the device of a session.

    Not in the document; chosen here: a session never gets another device than the requested one.

    Arguments:
        availabilities: The devices of this machine, by kind, in order of preference.
        platform: The requested platform.
        identifier: The requested device, None for any.
        taken: The IDs of the devices that other sessions use.

    Raises:
        RequestError: No device has the requested name.
        BusyError: Every matching device is in use.
        ControllerError: This machine has no usable device.
    """
    availability = usable(availabilities, platform, identifier)
    if not availability.devices:
        return Choice(availability)

    return Choice(
        availability, _free_device(availability.devices, platform, identifier, taken)
    )


def _free_device(
    devices: Sequence[ConnectedDevice],
    platform: Platform,
    identifier: str | None,
    taken: Collection[str],
) -> ConnectedDevice:
    matching = [
        device
        for device in devices
        if identifier is None or plain(identifier) in device.names
    ]
    if not matching:
        running = ", ".join(sorted(device.udid for device in devices))
        kinds = " or ".join(repr(kind) for kind in FORCED)
        raise RequestError(
            f"deviceIdentifier {identifier!r} is not a running {platform} device: {running}. "
            f"Set it to one of these, to {kinds} for a device of that kind, or leave it out."
        )

    for device in matching:
        if device.udid not in taken:
            return device

    busy = ", ".join(device.udid for device in matching)
    raise BusyError(
        f"every matching {platform} device is in use by another session: {busy}"
    )


def _no_device(
    availabilities: Sequence[Availability], platform: Platform, requested: str | None
) -> ControllerError:
    if not availabilities and requested == browser.KIND:
        return ControllerError(
            f"deviceIdentifier {requested!r}: this service uses real devices only"
        )

    if not availabilities:  # the fake device was requested, for another session type
        return ControllerError(
            f"deviceIdentifier {requested!r}: that device is for appium sessions only"
        )

    reasons = "; ".join(
        f"{availability.kind}: {availability.missing}"
        for availability in availabilities
    )
    # The fix for the last kind, which is the browser unless the user excluded it: it can stand in for any phone.
    fixes = [availability.fix for availability in availabilities if availability.fix]
    return ControllerError(
        f"this machine has no {platform} device for the session ({reasons}): {fixes[-1]}"
    )

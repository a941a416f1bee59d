"""The devices found on this machine, and the choice of a session's device from them."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, assert_never

from pytest_device.errors import ControllerError
from pytest_device.service.devices import chromium, fake
from pytest_device.service.devices.base import BusyError, RequestError
from pytest_device.service.devices.profiles import plain
from pytest_device.service.programs.toolchain import APPIUM
from pytest_device.spec import Platform

FORCED: Final = (chromium.KIND, fake.KIND)
"""Kinds that a ``deviceIdentifier`` of this name selects, even if there is a real device. Not in the document; chosen here."""


@dataclass(frozen=True, slots=True)
class DevicePreference:
    """The user's choice of devices on this machine.

    ``real_only``: no browser replaces a device. ``avd`` and ``simulator`` name the only emulator and simulator to use,
    which are started unless they are running; no browser replaces them, either. ``selenium_manager``: a browser or
    chromedriver that this machine lacks may be downloaded by it.
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
class Found:
    """The devices of one kind; ``missing`` is the reason why none is usable, ``fix`` how to fix that.

    ``to_start`` is the device to start for the first session, with the program ``starter``. ``program`` controls the
    devices, ``chromedriver`` lets Appium control a browser, ``appium_home`` has the user's Appium driver for a real
    device. ``about`` is the version and origin of a browser, ``to_install`` lists its missing programs, ``origin`` says what
    installs them. ``is_named``: the user named the device of this kind to use.
    """

    kind: str
    devices: Sequence[ConnectedDevice] = ()
    program: Path | None = None
    chromedriver: Path | None = None
    appium_home: Path | None = None
    missing: str = ""
    fix: str = ""
    about: str = ""
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


def with_driver(found: Found, appium_home: Path, package: str) -> Found:
    """Require the user's Appium driver in ``package``, in a version for the local service's Appium."""
    name = package.removeprefix("appium-").removesuffix("-driver")
    try:
        path = appium_home / "node_modules" / package / "package.json"
        driver: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        missing, fix = (
            f"{package} is not installed in {appium_home}",
            f"appium driver install {name}",
        )
    else:
        if not (majors := _other_majors(driver)):
            return replace(found, appium_home=appium_home)

        which = f"{package} {driver.get('version', '')} in {appium_home} is for Appium {majors}"
        missing, fix = (
            f"{which}, the local service runs {APPIUM.version}",
            f"appium driver update {name} --unsafe",
        )

    return replace(
        found,
        missing="; ".join(filter(None, (found.missing, missing))),
        fix=found.fix or fix,
    )


def _other_majors(driver: dict[str, Any]) -> str:
    """Return the major versions of Appium that a driver supports, empty if ours is or may be one of them."""
    wanted = str(driver.get("peerDependencies", {}).get("appium", ""))
    majors = re.findall(r"(?:^|\|\|)\s*[\^~v=]?\s*(\d+)", wanted)
    return "" if APPIUM.version.partition(".")[0] in majors else " or ".join(majors)


def usable(
    availabilities: Sequence[Found], platform: Platform, identifier: str | None
) -> Found:
    """Return the first kind with a usable device. Raises ControllerError if there is none."""
    wanted = plain(identifier) if identifier else None
    # The fake device cannot run an app: only requests that name it get it.
    fitting = [
        one
        for one in availabilities
        if (one.kind == wanted if wanted in FORCED else one.kind != fake.KIND)
    ]
    candidates = without_fallback(fitting)

    found = next((one for one in candidates if not one.missing), None)
    if found is None:
        raise _nothing(candidates, platform, wanted)

    return found


def without_fallback(availabilities: Sequence[Found]) -> Sequence[Found]:
    """Return the kind whose device the user named, all if there is none.

    With a browser instead, a run would pass without the device that it is about.
    """
    return [one for one in availabilities if one.is_named] or availabilities


@dataclass(frozen=True, slots=True)
class Choice:
    """The device of a session: its kind, and the device if the kind has several."""

    found: Found
    device: ConnectedDevice | None = None


def choose(
    availabilities: Sequence[Found],
    platform: Platform,
    identifier: str | None,
    taken: Collection[str],
) -> Choice:
    """Choose the device of a session.

    Raises ControllerError if this machine has no usable device, or has real devices but none with the requested name or
    none that is free: a session never gets another device than the requested one. Not in the
    document; chosen here.
    """
    found = usable(availabilities, platform, identifier)
    return Choice(
        found,
        _one(found.devices, platform, identifier, taken) if found.devices else None,
    )


def _one(
    devices: Sequence[ConnectedDevice],
    platform: Platform,
    identifier: str | None,
    taken: Collection[str],
) -> ConnectedDevice:
    wanted = [
        device
        for device in devices
        if identifier is None or plain(identifier) in device.names
    ]
    if not wanted:
        known = ", ".join(sorted(device.udid for device in devices))
        raise RequestError(
            f"deviceIdentifier {identifier!r} is not a running {platform} device: {known}. "
            f"Set it to one of these, to {' or '.join(map(repr, FORCED))} for a device of that kind, or leave it out."
        )

    free = next((device for device in wanted if device.udid not in taken), None)
    if free is None:
        busy = ", ".join(device.udid for device in wanted)
        raise BusyError(
            f"every matching {platform} device is in use by another session: {busy}"
        )

    return free


def _nothing(
    availabilities: Sequence[Found], platform: Platform, wanted: str | None
) -> ControllerError:
    if not availabilities and wanted == chromium.KIND:
        return ControllerError(
            f"deviceIdentifier {wanted!r}: this service uses real devices only"
        )
    if not availabilities:  # the fake device was requested, for another session type
        return ControllerError(
            f"deviceIdentifier {wanted!r}: that device is for appium sessions only"
        )

    lacking = "; ".join(f"{found.kind}: {found.missing}" for found in availabilities)
    fixes = [found.fix for found in availabilities if found.fix]
    return ControllerError(
        f"this machine has no {platform} device for the session ({lacking}): {fixes[-1]}"
    )

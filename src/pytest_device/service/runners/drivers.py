"""Which device stands behind an Appium session, and which Appium driver drives it."""

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.runners.command import ask
from pytest_device.spec import Platform

FAKE: Final = "fake"
"""A request for the device of this name gets the fake one even where a real one is. Ours."""

_BLANK_APP: Final = Path(__file__).parent / "blank.xml"
_READY: Final = "device"
"""The state in which `adb devices` shows a device that can be used."""


@dataclass(frozen=True, slots=True)
class Device:
    """A real device, emulator or simulator that is up. ``names`` are what a request may call it, see ``_plain``."""

    udid: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Driver:
    """What a session is given: its capabilities, and the Appium home that has the driver (None: the fake one)."""

    capabilities: Mapping[str, str]
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of real devices: how they are listed, and what drives them."""

    platform_name: str
    automation_name: str
    package: str
    command: tuple[str, ...]
    parse: Callable[[str], Sequence[Device]]


@dataclass(frozen=True, slots=True)
class Found:
    """The real devices that can be driven here; ``why_none`` tells what is missing when there are none."""

    devices: Sequence[Device] = ()
    home: Path | None = None
    why_none: str = ""


def parse_adb(printed: str) -> Sequence[Device]:
    """Read `adb devices -l`. A device goes by its serial number, its model, product and device name."""
    rows = [line.split() for line in printed.splitlines()]
    return [
        _device(row[0], *(word.partition(":")[2] for word in row[2:] if re.match("product:|model:|device:", word)))
        for row in rows
        if len(row) > 1 and row[1] == _READY
    ]


def parse_simctl(printed: str) -> Sequence[Device]:
    """Read `xcrun simctl list devices booted -j`. A simulator goes by its UDID and its name."""
    runtimes: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(printed)["devices"]
    return [
        _device(simulator["udid"], simulator["name"])
        for runtime, simulators in runtimes.items()
        if ".iOS-" in runtime
        for simulator in simulators
        if simulator["state"] == "Booted"
    ]


KINDS: Final[Mapping[Platform, Kind]] = {
    Platform.ANDROID: Kind(
        "Android", "UiAutomator2", "appium-uiautomator2-driver", ("adb", "devices", "-l"), parse_adb
    ),
    Platform.IOS: Kind(
        "iOS",
        "XCUITest",
        "appium-xcuitest-driver",
        ("xcrun", "simctl", "list", "devices", "booted", "-j"),
        parse_simctl,
    ),
}


async def find(platform: Platform, *, environ: Mapping[str, str], home: Path) -> Found:
    """Look for real devices of a platform whose Appium driver the user has installed."""
    kind = KINDS[platform]
    appium_home = Path(environ.get("APPIUM_HOME") or home / ".appium")
    if not (appium_home / "node_modules" / kind.package / "package.json").is_file():
        return Found(why_none=f"{kind.package} is not installed in {appium_home}")
    tool = shutil.which(kind.command[0], path=_search_path(environ))
    if tool is None:
        return Found(why_none=f"{kind.command[0]} is not on PATH")
    try:
        devices = kind.parse(await ask([tool, *kind.command[1:]], environ=environ))
    except (ConfigError, ValueError, KeyError) as error:
        return Found(why_none=f"{' '.join(kind.command)}: {error}")
    return Found(devices, appium_home, "" if devices else f"{' '.join(kind.command)} lists none that is ready")


def choose(platform: Platform, identifier: str | None, found: Found, taken: Collection[str]) -> Driver:
    """Choose the device of a session: a real one that is free, or where there is none the fake one.

    Raises ControllerError when real devices are there but none that is called so, or none that is free: a
    session never gets another device than the one asked for. Ours.
    """
    if not found.devices or identifier == FAKE:
        return _fake(platform, identifier)
    wanted = [device for device in found.devices if identifier is None or _plain(identifier) in device.names]
    if not wanted:
        known = ", ".join(sorted(device.udid for device in found.devices))
        raise ControllerError(
            f"deviceIdentifier {identifier!r} is none of the {platform} devices that are up: {known}. "
            f"Name one of these, {FAKE!r} for the fake device, or none."
        )
    free = next((device for device in wanted if device.udid not in taken), None)
    if free is None:
        busy = ", ".join(device.udid for device in wanted)
        raise ControllerError(f"every {platform} device that fits is in use by another session: {busy}")
    return _real(KINDS[platform], free, found.home)


def _real(kind: Kind, device: Device, home: Path | None) -> Driver:
    return Driver(
        {
            "platformName": kind.platform_name,
            "appium:automationName": kind.automation_name,
            "appium:udid": device.udid,
        },
        home,
    )


def _fake(platform: Platform, identifier: str | None) -> Driver:
    return Driver(
        {
            "platformName": "Fake",
            "appium:automationName": "Fake",
            "appium:deviceName": identifier or f"fake {platform} device",
            "appium:app": str(_BLANK_APP),  # it wants one; a suite gives its own in its place
        }
    )


def _device(udid: str, *names: str) -> Device:
    return Device(udid, frozenset(_plain(name) for name in (udid, *names)))


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name.lower())


def _search_path(environ: Mapping[str, str]) -> str:
    sdks = [environ[name] for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT") if environ.get(name)]
    return os.pathsep.join([environ.get("PATH", ""), *(f"{sdk}/platform-tools" for sdk in sdks)])

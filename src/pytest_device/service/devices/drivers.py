"""Checks the user's Appium drivers for real devices."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_device.service.devices.found import Found
from pytest_device.service.runners.toolchain import APPIUM


def with_driver(found: Found, appium_home: Path, package: str) -> Found:
    """Require the user's Appium driver in ``package``, one for the Appium that the local service runs."""
    name = package.removeprefix("appium-").removesuffix("-driver")
    try:
        path = appium_home / "node_modules" / package / "package.json"
        driver: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        missing, fix = f"{package} is not installed in {appium_home}", f"appium driver install {name}"
    else:
        if not (majors := _other_majors(driver)):
            return replace(found, appium_home=appium_home)
        which = f"{package} {driver.get('version', '')} in {appium_home} is for Appium {majors}"
        missing, fix = f"{which}, the local service runs {APPIUM.version}", f"appium driver update {name} --unsafe"
    return replace(found, missing="; ".join(filter(None, (found.missing, missing))), fix=found.fix or fix)


def _other_majors(driver: dict[str, Any]) -> str:
    """Return the majors of Appium that a driver is for, empty if ours is one of them or may be."""
    wanted = str(driver.get("peerDependencies", {}).get("appium", ""))
    majors = re.findall(r"(?:^|\|\|)\s*[\^~v=]?\s*(\d+)", wanted)
    return "" if APPIUM.version.partition(".")[0] in majors else " or ".join(majors)

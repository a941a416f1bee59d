"""Checks which devices the local service can use, by platform and kind."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_device.cli.doctor.finding import Finding, ok, warn
from pytest_device.programs import cache_directory
from pytest_device.service.devices import chromium, fake
from pytest_device.service.devices.browsers import DISK_MB, DOWNLOAD_MB
from pytest_device.service.devices.found import (
    DevicePreference,
    Found,
    without_fallback,
)
from pytest_device.service.devices.kinds import Machine, availability
from pytest_device.service.runners.resources import for_sessions
from pytest_device.settings import Settings
from pytest_device.spec import Platform, SessionType

_TYPES: Final = {
    SessionType.APPIUM: "appium",
    SessionType.AGENT_DEVICE: "agent-device, argent and preview",
}
"""One session type of each group that uses the same devices."""


def check_devices(
    environ: Mapping[str, str], home: Path, settings: Settings
) -> Iterator[Finding]:
    """Yield a finding per platform and kind of device: the sessions that use it, or what is missing."""
    preference = DevicePreference(
        settings.local_real,
        settings.avd,
        settings.simulator,
        settings.local_selenium_manager,
    )
    machine = Machine(
        for_sessions(environ),
        home,
        cache_directory(environ, home),
        preference=preference,
    )

    for platform in Platform:
        availabilities = {
            one: asyncio.run(availability(platform, one, machine)) for one in _TYPES
        }
        for found in availabilities[SessionType.APPIUM]:  # supported by every kind
            yield _finding(platform, found.kind, availabilities)


def _finding(
    platform: Platform, kind: str, availabilities: Mapping[SessionType, Sequence[Found]]
) -> Finding:
    name = f"{platform}: {kind}"
    if kind == fake.KIND:
        return ok(name, f"only for appium sessions with device_identifier={kind!r}")

    rows = [
        found for one in _TYPES for found in availabilities[one] if found.kind == kind
    ]
    lacking = next((found for found in rows if found.missing), None)
    text = _users(
        [title for one, title in _TYPES.items() if _used(availabilities[one]) == kind],
        rows,
    )
    if lacking is None:
        return _later(name, text, rows)

    # Without a browser, a session gets a device only if there is a real one, perhaps the only kind requested.
    # Nor does one replace a device that the user named.
    candidates = without_fallback(availabilities[SessionType.APPIUM])
    if kind == chromium.KIND or len(candidates) == 1:
        return warn(name, f"{text}: {lacking.missing}", lacking.fix)

    return ok(name, f"{text}: {lacking.missing} (to use it: {lacking.fix})")


def _later(name: str, text: str, rows: Sequence[Found]) -> Finding:
    """Return the finding for a usable kind, with the programs that the first session will install."""
    to_install = next((found for found in rows if found.to_install), None)
    if to_install is None:
        return ok(name, text)

    size = f"at most {DOWNLOAD_MB} MB to download, {DISK_MB} MB on disk"
    later = f"the first session that needs a browser installs {to_install.to_install} ({size})"
    if to_install.unused:
        later += f"; {to_install.unused}"
    return warn(
        name,
        f"{text}: {later}",
        f"run a session once with network access, or {to_install.fix}",
    )


def _used(availabilities: Sequence[Found]) -> str | None:
    return next(
        (
            found.kind
            for found in without_fallback(availabilities)
            if not found.missing and found.kind != fake.KIND
        ),
        None,
    )


def _users(titles: Sequence[str], rows: Sequence[Found]) -> str:
    """Describe the sessions that use a kind, and its devices or programs; names both if there are two browsers."""
    if not titles:
        return "not used"

    sessions = (
        "sessions of every type"
        if len(titles) == len(_TYPES)
        else f"{titles[0]} sessions"
    )
    there = {
        found.program: found
        for found in reversed(rows)
        if found.program and not found.to_install
    }
    devices = ", ".join(device.udid for device in rows[-1].devices) or rows[-1].to_start
    what = devices or "; ".join(_programs(found) for found in there.values())

    return f"for {sessions}{what and f', {what}'}"


def _programs(found: Found) -> str:
    programs = ", ".join(
        str(program) for program in (found.program, found.chromedriver) if program
    )
    return f"{programs} ({found.about})" if found.about else programs

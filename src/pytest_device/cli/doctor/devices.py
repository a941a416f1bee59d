"""Checks which devices the local service can use, by platform and kind."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_device.cli.doctor.finding import Finding, ok, warn
from pytest_device.programs import cache_directory
from pytest_device.service.devices import chromium, fake
from pytest_device.service.devices.availability import (
    Availability,
    DevicePreference,
    without_fallback,
)
from pytest_device.service.devices.browsers import DISK_MB, DOWNLOAD_MB
from pytest_device.service.devices.kinds import Machine, all_available
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
            session_type: asyncio.run(all_available(platform, session_type, machine))
            for session_type in _TYPES
        }
        # Appium sessions are supported by every kind.
        for availability in availabilities[SessionType.APPIUM]:
            yield _finding(platform, availability.kind, availabilities)


def _finding(
    platform: Platform,
    kind: str,
    availabilities: Mapping[SessionType, Sequence[Availability]],
) -> Finding:
    name = f"{platform}: {kind}"
    if kind == fake.KIND:
        return ok(name, f"only for appium sessions with device_identifier={kind!r}")

    rows: list[Availability] = []
    titles: list[str] = []
    for session_type, title in _TYPES.items():
        rows += [
            availability
            for availability in availabilities[session_type]
            if availability.kind == kind
        ]
        if _used_kind(availabilities[session_type]) == kind:
            titles.append(title)

    text = _users(titles, rows)
    unusable = [availability for availability in rows if availability.missing]
    if not unusable:
        return _usable(name, text, rows)

    missing, fix = unusable[0].missing, unusable[0].fix
    # Without a browser, a session gets a device only if there is a real one, perhaps the only kind requested.
    # Nor does one replace a device that the user named.
    candidates = without_fallback(availabilities[SessionType.APPIUM])
    if kind == chromium.KIND or len(candidates) == 1:
        return warn(name, f"{text}: {missing}", fix)
    return ok(name, f"{text}: {missing} (to use it: {fix})")


def _usable(name: str, text: str, rows: Sequence[Availability]) -> Finding:
    """Return the finding for a usable kind, with the programs that the first session will install."""
    for availability in rows:
        if availability.to_install:
            size = f"at most {DOWNLOAD_MB} MB to download, {DISK_MB} MB on disk"
            later = f"the first session that needs a browser installs {availability.to_install} ({size})"
            if availability.unused:
                later += f"; {availability.unused}"

            return warn(
                name,
                f"{text}: {later}",
                f"run a session once with network access, or {availability.fix}",
            )

    return ok(name, text)


def _used_kind(availabilities: Sequence[Availability]) -> str | None:
    """Return the kind that a session gets without naming one."""
    for availability in without_fallback(availabilities):
        if not availability.missing and availability.kind != fake.KIND:
            return availability.kind
    return None


def _users(titles: Sequence[str], rows: Sequence[Availability]) -> str:
    """Describe the sessions that use a kind, and its devices or programs; names both if there are two browsers."""
    if not titles:
        return "not used"

    text = f"for {titles[0]} sessions"
    if len(titles) == len(_TYPES):
        text = "for sessions of every type"

    # The types may use different browsers; of equal ones, the first has the chromedriver.
    installed = {
        availability.program: availability
        for availability in reversed(rows)
        if availability.program and not availability.to_install
    }
    devices = ", ".join(device.udid for device in rows[-1].devices) or rows[-1].to_start
    details = devices or "; ".join(
        _programs(availability) for availability in installed.values()
    )
    return f"{text}, {details}" if details else text


def _programs(availability: Availability) -> str:
    programs = ", ".join(
        str(program)
        for program in (availability.program, availability.chromedriver)
        if program
    )
    return f"{programs} ({availability.about})" if availability.about else programs

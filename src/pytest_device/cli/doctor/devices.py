"""Checks which devices the local service can use, by platform and kind."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_device.cli.doctor.finding import Finding, ok, warn
from pytest_device.spec import Platform, SessionType

if TYPE_CHECKING:
    from pytest_device.service.devices.found import Found

_TYPES: Final = {SessionType.APPIUM: "appium", SessionType.AGENT_DEVICE: "agent-device, argent and preview"}
"""One session type of each group that uses the same devices."""


def check_devices(environ: Mapping[str, str], home: Path) -> Iterator[Finding]:
    """Yield a finding per platform and kind of device: the sessions that use it, or what is missing."""
    for platform in Platform:
        founds = asyncio.run(_available(platform, environ, home))
        for found in founds[SessionType.APPIUM]:  # which every kind supports
            yield _finding(platform, found.kind, founds)


async def _available(
    platform: Platform, environ: Mapping[str, str], home: Path
) -> Mapping[SessionType, Sequence["Found"]]:
    from pytest_device.service.devices.kinds import availability
    from pytest_device.service.runners.environment import for_sessions

    seen = for_sessions(environ)
    return {one: await availability(platform, one, environ=seen, home=home) for one in _TYPES}


def _finding(platform: Platform, kind: str, founds: Mapping[SessionType, Sequence["Found"]]) -> Finding:
    from pytest_device.service.devices.chromium import KIND

    name = f"{platform}: {kind}"
    rows = [found for one in _TYPES for found in founds[one] if found.kind == kind]
    lacking = next((found for found in rows if found.missing), None)
    text = _users([title for one, title in _TYPES.items() if _used(founds[one]) == kind], rows[-1])
    if lacking is None:
        return ok(name, text)
    if kind == KIND:  # without it, sessions get a device without a screen, or none
        return warn(name, f"{text}: {lacking.missing}", lacking.fix)
    return ok(name, f"{text}: {lacking.missing} (to use it: {lacking.fix})")


def _used(founds: Sequence["Found"]) -> str | None:
    return next((found.kind for found in founds if not found.missing), None)


def _users(titles: Sequence[str], found: "Found") -> str:
    if not titles:
        return "not used"
    sessions = "sessions of every type" if len(titles) == len(_TYPES) else f"{titles[0]} sessions"
    programs = (str(program) for program in (found.program, found.chromedriver) if program)
    what = ", ".join(device.udid for device in found.devices) or ", ".join(programs)
    return f"for {sessions}{what and f', {what}'}"

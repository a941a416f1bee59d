"""Chooses a session's device from those that were found. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices import chromium, fake
from pytest_device.service.devices.base import RequestError
from pytest_device.service.devices.found import BusyError, ConnectedDevice, Found
from pytest_device.service.devices.profiles import plain
from pytest_device.spec import Platform

FORCED: Final = (chromium.KIND, fake.KIND)
"""Kinds that a ``deviceIdentifier`` of this name selects, even if there is a real device. Ours."""


def usable(availabilities: Sequence[Found], platform: Platform, identifier: str | None) -> Found:
    """Return the first kind with a usable device. Raises ControllerError if there is none."""
    wanted = plain(identifier) if identifier else None
    # The fake device cannot run an app: only requests that name it get it.
    fitting = [one for one in availabilities if (one.kind == wanted if wanted in FORCED else one.kind != fake.KIND)]
    found = next((one for one in fitting if not one.missing), None)
    if found is None:
        raise _nothing(fitting, platform, wanted)
    return found


@dataclass(frozen=True, slots=True)
class Choice:
    """The device of a session: its kind, and the device if the kind has several."""

    found: Found
    device: ConnectedDevice | None = None


def choose(
    availabilities: Sequence[Found], platform: Platform, identifier: str | None, taken: Collection[str]
) -> Choice:
    """Choose the device of a session.

    Raises ControllerError if this machine has no usable device, or has real devices but none with the requested name or
    none that is free: a session never gets another device than the requested one. Ours.
    """
    found = usable(availabilities, platform, identifier)
    return Choice(found, _one(found.devices, platform, identifier, taken) if found.devices else None)


def _one(
    devices: Sequence[ConnectedDevice], platform: Platform, identifier: str | None, taken: Collection[str]
) -> ConnectedDevice:
    wanted = [device for device in devices if identifier is None or plain(identifier) in device.names]
    if not wanted:
        known = ", ".join(sorted(device.udid for device in devices))
        raise RequestError(
            f"deviceIdentifier {identifier!r} is not a running {platform} device: {known}. "
            f"Set it to one of these, to {' or '.join(map(repr, FORCED))} for a device of that kind, or leave it out."
        )
    free = next((device for device in wanted if device.udid not in taken), None)
    if free is None:
        busy = ", ".join(device.udid for device in wanted)
        raise BusyError(f"every matching {platform} device is in use by another session: {busy}")
    return free


def _nothing(availabilities: Sequence[Found], platform: Platform, wanted: str | None) -> ControllerError:
    if not availabilities and wanted == chromium.KIND:
        return ControllerError(f"deviceIdentifier {wanted!r}: this service uses real devices only")
    if not availabilities:  # the fake device was requested, for another session type
        return ControllerError(f"deviceIdentifier {wanted!r}: that device is for appium sessions only")
    lacking = "; ".join(f"{found.kind}: {found.missing}" for found in availabilities)
    fixes = [found.fix for found in availabilities if found.fix]
    return ControllerError(f"this machine has no {platform} device for the session ({lacking}): {fixes[-1]}")

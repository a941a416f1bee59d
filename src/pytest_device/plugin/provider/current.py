"""Finds what provides devices to the tests of this run."""

from typing import Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.provider.devices import Devices

CURRENT_DEVICES: Final = pytest.StashKey[Devices]()


def devices_of(request: pytest.FixtureRequest) -> Devices:
    """Return what provides devices to the tests of this run; raises ConfigError where none does."""
    if devices := request.config.stash.get(CURRENT_DEVICES, None):
        return devices
    raise ConfigError(
        f"{request.node.nodeid} requests a device while it runs, but no test did at collection: mark it with "
        "@pytest.mark.device(platform=...)"
    )

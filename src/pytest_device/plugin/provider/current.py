"""Finds the run of a test or fixture."""

from typing import Final, Protocol

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.provider.devices import Devices


class CurrentRun(Protocol):
    """The part of the run that fixtures use."""

    @property
    def devices(self) -> Devices:
        """What provides devices to tests."""
        ...

    def keeps(self, item: pytest.Item) -> bool:
        """Return whether to leave the sessions of a failed test running."""
        ...


CURRENT_RUN: Final = pytest.StashKey[CurrentRun]()


def devices_of(request: pytest.FixtureRequest) -> Devices:
    """Return what provides devices to the tests of this run; raises ConfigError where none does."""
    run = request.config.stash.get(CURRENT_RUN, None)
    if run is None:
        raise ConfigError(
            f"{request.node.nodeid} requests a device while it runs, but no test did at collection: mark it with "
            "@pytest.mark.device(platform=...)"
        )
    return run.devices


def keeps(item: pytest.Item) -> bool:
    """Return whether to leave the sessions of a failed test running."""
    run = item.config.stash.get(CURRENT_RUN, None)
    return run is not None and run.keeps(item)

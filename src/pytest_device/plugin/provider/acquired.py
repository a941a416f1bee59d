"""The sessions that a test has now."""

from collections.abc import Mapping
from typing import Final

import pytest

from pytest_device.sessions.device_session import DeviceSession

ACQUIRED: Final = pytest.StashKey[Mapping[str, DeviceSession]]()
Sessions = Mapping[str, DeviceSession]
"""Sessions by device name."""


def sessions_of(item: pytest.Item) -> Sessions:
    """Return the sessions that a test has now."""
    return item.stash.get(ACQUIRED, None) or {}

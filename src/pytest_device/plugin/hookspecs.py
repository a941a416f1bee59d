"""The hooks that a ``conftest.py`` or another plugin can implement."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_device.errors import DeviceError
    from pytest_device.sessions.models import Session


def pytest_device_request(
    item: pytest.Item, name: str, arguments: dict[str, Any]
) -> None:
    """Change the marker arguments of a test's device in place.

    Called at collection, for each device of each test. ``name`` is the device's name, empty if its marker has none.
    ``arguments`` are those of the markers, with one platform; they take precedence over the settings.
    """


def pytest_device_ready(item: pytest.Item, device_session: "Session") -> None:
    """React to a session that is ready, before its first test uses it."""


def pytest_device_stopping(item: pytest.Item, device_session: "Session") -> None:
    """Save what a session recorded, before it is stopped.

    ``item`` is the last test that used it. An exception is an error of that test; the session is still stopped.
    """


def pytest_device_infrastructure_error(
    item: pytest.Item, error: "DeviceError", device_session: "Session | None"
) -> None:
    """React to an infrastructure error, after the test's teardown.

    ``device_session`` is None if there was none yet.
    """

"""The hooks that a ``conftest.py`` or another plugin can implement."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_device.errors import DeviceError
    from pytest_device.sessions.models import Session


def pytest_device_request(item: pytest.Item, name: str, arguments: dict[str, Any]) -> None:
    """Change what a test asks of a device: the arguments of its markers, in place.

    Called at collection, for each device of each test. ``name`` is the device's, empty when its marker has none.
    ``arguments`` hold what the markers say, with one platform; the project's defaults come below them.
    """


def pytest_device_ready(item: pytest.Item, device_session: "Session") -> None:
    """React to a session that is in progress, before its first test gets it."""


def pytest_device_stopping(item: pytest.Item, device_session: "Session") -> None:
    """React to a session that was in progress, before it is stopped: the time to save what it recorded.

    ``item`` is the last test that had it. What is raised is an error of that test; the session is stopped all the same.
    """


def pytest_device_infrastructure_error(
    item: pytest.Item, error: "DeviceError", device_session: "Session | None"
) -> None:
    """React to an error that is not the test's. ``device_session`` is None when there was none yet.

    Called when the test has been torn down.
    """

"""The hooks that a ``conftest.py`` or another plugin can implement."""

from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_device.sessions.models import Session
    from pytest_device.verdict import Verdict


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


def pytest_device_verdict(
    item: pytest.Item,
    when: Literal["setup", "call", "teardown"],
    verdict: "Verdict | None",
    error: BaseException,
) -> None:
    """React to the verdict on a failed phase of a test with devices, before it is reported.

    ``verdict`` is None if the test itself failed. ``error`` explains the failure: with a verdict, it is the
    ``DeviceError``. Also called for an attempt that is retried. An exception becomes a line in the summary at the end of the
    run.
    """


def pytest_device_artifacts_saved(item: pytest.Item, directory: "Path") -> None:
    """React to the files of a test, when the last one is written: after its teardown, once for each attempt.

    Not called for a test without files. They are masked as all output is. An exception becomes a line in the summary at
    the end of the run.
    """

"""Fixtures for tests of every room."""

import os
from pathlib import Path
from typing import Final

import pytest

pytest_plugins = ["pytester"]

HERE: Final = Path(__file__).parent
PROGRAMS: Final = (
    *("bare", "contract/test_any_service.py", "plugin/test_local_appium.py", "plugin/test_local_controllers.py"),
    *("controllers/test_agent_device.py", "controllers/test_argent.py"),
    *("service/appium_driver", "service/devices/test_chromium.py", "service/devices/test_browsers_installed.py"),
    *("service/runners/test_programs_runner.py", "service/test_controllers.py", "service/test_pages_in_a_browser.py"),
)
"""Tests at real devices and controllers: slow, and what they test hardly depends on the Python that runs it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one environment run the tests at real programs, the others the rest."""
    places = [HERE / name for name in PROGRAMS]
    for item in items:
        if any(item.path == place or place in item.path.parents for place in places):
            item.add_marker(pytest.mark.programs)


@pytest.fixture(autouse=True)
def _no_service_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the person running the tests has configured out of them."""
    for name in [name for name in os.environ if name.startswith("DEVICE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Runs within tests, without plugins that take each of their processes longer to load than all else."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:anyio -p no:valkey")
    return pytester

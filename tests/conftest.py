"""Fixtures for tests of every room."""

import os

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _no_service_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the person running the tests has configured out of them."""
    for name in [name for name in os.environ if name.startswith("DEVICE_")]:
        monkeypatch.delenv(name)

"""The project of the app under test; with ``device_app_root`` in the ini file, this fixture is not needed."""

from pathlib import Path

import pytest

from pytest_device.app import Project, load_project


@pytest.fixture(scope="session")
def device_app() -> Project:
    return load_project(Path(__file__).with_name("app"), dynamic="never")

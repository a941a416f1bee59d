"""Real programs for the tests of the runners."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.processes import end
from pytest_device.service.runners.toolchain import APPIUM, Project, Toolbox, Toolchain


@pytest.fixture(scope="session")
def tools(cache_dir: Path) -> Toolchain:
    """Appium and its Node."""
    return installed(cache_dir, APPIUM)


def installed(cache_dir: Path, project: Project) -> Toolchain:
    guard = Guard(environ=os.environ, log=print)
    try:
        return asyncio.run(Toolbox(guard, os.environ, cache_dir).get(project, print))
    finally:
        guard.close()


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard(environ=os.environ, log=print)
    yield guard
    guard.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A directory for programs; those still running in it at the end are killed."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    yield directory
    end([directory], grace_seconds=0)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write an executable."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write

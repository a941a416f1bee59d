"""Real programs for the tests of the runners, and ways to wait for what they do."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.service.config import cache_directory
from pytest_device.service.runners import node, toolchain
from pytest_device.service.runners.cache import Installer
from pytest_device.service.runners.environment import for_installers
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.processes import end
from pytest_device.service.runners.toolchain import Toolchain


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """The user's own: what is there already is not fetched again."""
    return cache_directory(os.environ, Path.home())


@pytest.fixture(scope="session")
def tools(cache_dir: Path) -> Toolchain:
    guard = Guard(environ=os.environ, log=print)
    installer = Installer(guard, for_installers(os.environ), print)
    try:
        return asyncio.run(toolchain.prepare(installer, cache_dir, nodes=node.candidates(os.environ)))
    finally:
        guard.close()


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard(environ=os.environ, log=print)
    yield guard
    guard.close()


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Path]:
    """A directory to work for; whoever is left in it is ended."""
    directory = tmp_path / "workplace"
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

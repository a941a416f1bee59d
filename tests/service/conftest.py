"""A service without programs, and real programs."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_device.programs import for_installers
from pytest_device.service.programs.cache import Installer
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import end
from pytest_device.service.programs.toolchain import APPIUM, Node, Toolchain, prepare
from tests.fakes.local_service import InProcessService


@pytest.fixture
def service() -> Iterator[InProcessService]:
    with closing(InProcessService()) as service:
        yield service


@pytest.fixture(scope="session")
def tools(cache_dir: Path, node: Node) -> Toolchain:
    """Appium, and the Node.js that the local service installs."""
    guard = Guard(environ=os.environ, log=print)
    installer = Installer(guard, for_installers(os.environ), print)
    try:
        return asyncio.run(
            prepare(installer, cache_dir, APPIUM, nodes=[node.executable])
        )
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

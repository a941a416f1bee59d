"""The systems that the tests of this directory run on, and the service that their runs use."""

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest

from pytest_device.testing import FaultyService, faulty_service
from tests.platforms import arm_python, macos_like_python, windows_python
from tests.platforms.foreign_python import ForeignPython, MissingError
from tests.platforms.suite import FOREIGN, Suite

BUILDERS: Final[dict[str, Callable[[Path], ForeignPython]]] = {
    "windows": windows_python.build,
    "arm64": arm_python.build,
}
"""What takes minutes: kept in pytest's cache."""


@pytest.fixture(scope="session", params=[*FOREIGN, "macos_like"])
def python(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ForeignPython:
    """Return a Python of another system."""
    if request.param not in BUILDERS:
        if sys.platform != "linux":
            pytest.skip("it hides what Linux has and macOS lacks")
        return macos_like_python.build(tmp_path_factory.mktemp("macos_like"))

    cache = request.config.cache
    assert cache is not None
    try:
        return BUILDERS[request.param](cache.mkdir(f"python-{request.param}"))
    except MissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def service() -> Generator[FaultyService]:
    """Start a service on this machine: the runs reach it by the loopback interface, which they share."""
    with faulty_service() as service:
        yield service


@pytest.fixture
def suite(python: ForeignPython, service: FaultyService, tmp_path: Path) -> Suite:
    service.reset()
    return Suite(python, service, tmp_path)

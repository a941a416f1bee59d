"""A phone shared by the tests of a module."""

from collections.abc import Generator

import pytest

from tests.service.devices.phone import BootedDevice, booted


@pytest.fixture(scope="module")
def shared_phone(tmp_path_factory: pytest.TempPathFactory) -> Generator[BootedDevice]:
    # As long as the path of a session in a deeply nested project.
    directory = (
        tmp_path_factory.mktemp("a-project-with-a-name-that-says-a-lot")
        / "state"
        / "programs"
        / ("s" * 36)
    )
    directory.mkdir(parents=True)
    with booted(directory, deviceIdentifier="pixel_7") as phone:
        yield phone


@pytest.fixture
def phone(shared_phone: BootedDevice) -> Generator[BootedDevice]:
    """The module's phone in portrait, without apps or stored data."""
    yield shared_phone
    device = shared_phone.device
    shared_phone.do(device.rotate("PORTRAIT"))
    for app in shared_phone.do(device.apps()):
        shared_phone.do(device.remove(app))
    shared_phone.do(device.go_home())

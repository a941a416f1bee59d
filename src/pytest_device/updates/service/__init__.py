"""Update service controlled by tests; requires the ``services`` extra."""

from pytest_device.updates.service.releases import Release as Release
from pytest_device.updates.service.server import (
    DeviceUpdateService as DeviceUpdateService,
)
from pytest_device.updates.service.server import FailureKind as FailureKind
from pytest_device.updates.service.server import SeenRequest as SeenRequest

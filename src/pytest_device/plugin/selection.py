"""Finds the tests that need a device, by their fixtures and markers. Every pytest run imports this module."""

import sys
from typing import Final, cast

import pytest

SCOPED_DRIVERS: Final = {
    "class_device_driver": "class",
    "module_device_driver": "module",
    "session_device_driver": "session",
}
"""Drivers that tests share, with their scopes."""
SINGLE_DEVICE: Final = frozenset(
    {
        "device_session",
        "device_agent_device",
        "device_argent",
        "device_driver",
        "device_environment",
        "device_platform",
        *SCOPED_DRIVERS,
    }
)
"""Fixtures for a test with one device."""
MULTI_DEVICE: Final = frozenset(
    {"device_sessions", "device_agent_devices", "device_argents", "device_drivers"}
)
"""Fixtures for a test with several devices."""
WITH_DEVICE: Final = SINGLE_DEVICE | MULTI_DEVICE
_FIXTURES: Final = WITH_DEVICE | {"device_client", "device_lease"}
"""The same, and those that create sessions without a marker."""
_READ: Final = pytest.StashKey[bool]()
"""Whether the markers of a package or module were added."""


def requests_device(item: pytest.Item) -> bool:
    """Return whether a test's markers or fixtures request a device."""
    add_package_marks(item)
    if item.get_closest_marker("device") is not None:
        # A doctest has no fixtures: it can only inherit a marker, which is not meant for it.
        return not isinstance(item, pytest.DoctestItem)

    return not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def add_package_marks(node: pytest.Item) -> None:
    """Add the device markers of a test's packages to their nodes, as pytest does for classes and modules.

    pytest itself ignores ``pytestmark`` in a package's ``__init__.py``.
    """
    module_node = node.getparent(pytest.Module)
    if module_node is None or _READ in module_node.stash:
        return

    module_node.stash[_READ] = True
    # A doctest in a text file has no module.
    name: str = getattr(module_node.obj, "__name__", "")
    packages = [
        parent
        for parent in module_node.listchain()
        if isinstance(parent, pytest.Package)
    ]
    for package in reversed(packages):
        name = name.rpartition(".")[0]
        if _READ in package.stash:
            return  # its parents are done, too

        package.stash[_READ] = True
        marks: object = getattr(sys.modules.get(name), "pytestmark", [])
        listed = cast("list[object]", marks if isinstance(marks, list) else [marks])
        for mark in listed:
            # Markers of other plugins are their own business.
            if isinstance(mark, pytest.MarkDecorator) and mark.name == "device":
                package.add_marker(mark)

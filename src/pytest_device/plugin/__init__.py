"""The pytest edge: hooks and fixtures that join the steps of the flow, without logic of their own.

Everything heavy is imported inside the hooks, and only for a run that has device tests.
"""

import os

import pytest

from pytest_device.option_table import TOKEN_VARIABLE
from pytest_device.plugin.fixtures import device_appium_options, device_driver, device_session

__all__ = ["device_appium_options", "device_driver", "device_session"]

_FIXTURES = frozenset({"device_session", "device_driver"})
"""Those that need a device."""
_MARKER_LINE = (
    "device(platform, type, ...): run the test on a remote device; the arguments are the fields of a create request in "
    "snake_case, platform='android' or 'ios', type='agent-device' (default), 'appium', 'argent', 'web-preview-only'"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini keys of the one table."""
    from pytest_device.plugin.options import add

    add(parser)


@pytest.hookimpl(trylast=True)  # after xdist has decided whether this process is a controller
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the controller's part of an xdist run."""
    config.addinivalue_line("markers", _MARKER_LINE)
    if os.environ.get(TOKEN_VARIABLE):  # there is something to hide from now on: also in the names of tests
        from pytest_device.plugin.secrets import hide_token

        hide_token(config)
    if config.pluginmanager.has_plugin("dsession"):
        from pytest_device.plugin.controller import Controller

        config.pluginmanager.register(Controller(config), "device-controller")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the service in use, when one is configured."""
    from pytest_device.plugin.options import header

    return header(config)


@pytest.hookimpl(trylast=True)  # after others have deselected what will not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Turn the markers of the tests that will run into requests, or report all their mistakes at once."""
    wanted = [item for item in items if _wants_device(item)]
    if wanted:
        from pytest_device.plugin.run import begin

        begin(config, items, wanted)


def _wants_device(item: pytest.Item) -> bool:
    if item.get_closest_marker("device") is not None:
        return True
    return not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))

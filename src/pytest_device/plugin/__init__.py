"""The pytest edge: hooks and fixtures that connect the steps of the flow, without logic of their own.

Everything heavy is imported inside the hooks, and only for a run with device tests.
"""

import os
from collections.abc import Generator

import pytest

from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.selection import (
    WITH_DEVICE,
    add_package_marks,
    requests_device,
)

pytest_plugins = ("pytest_device.plugin.fixtures", "pytest_device.plugin.services")

_MARKER_LINE = (
    "device([name], platform, type, ...): run the test on a remote device; the arguments are the fields of the create "
    "request in snake_case: platform='android', 'ios' or a list of both, type='agent-device' (default), 'appium', "
    "'argent' or 'web-preview-only'; share='run', 'module', 'class' or 'test' sets which tests share a session"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys of the options table."""
    from pytest_device.plugin.options import add

    add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that a suite can implement."""
    from pytest_device.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(
    wrapper=True, tryfirst=True
)  # before pytest-xdist decides whether to start workers
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Run a dry run in this process alone; record the user's ``--dist`` and ``-n``."""
    if (
        config.getoption("dist", default=None) is not None
    ):  # pytest-xdist is active, under whatever name
        from pytest_device.plugin.options import note_distribution

        note_distribution(config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; hide the token."""
    config.addinivalue_line("markers", _MARKER_LINE)
    # Secrets exist from now on, also in test names.
    if os.environ.get(TOKEN_VARIABLE) or os.environ.get(Options.slots_url.variable):
        from pytest_device.plugin.output.secrets import hide_token

        hide_token(config)


@pytest.hookimpl(
    tryfirst=True
)  # after pytest-xdist was configured, and before it starts its workers
def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the coordinator plugin in a pytest-xdist run."""
    if session.config.pluginmanager.has_plugin("dsession"):
        from pytest_device.plugin.xdist.coordinator import Coordinator

        session.config.pluginmanager.register(
            Coordinator(session.config), "device-coordinator"
        )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Show the configured service."""
    from pytest_device.plugin.options import header

    return header(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests that are marked for several platforms."""
    add_package_marks(metafunc.definition)
    if metafunc.definition.get_closest_marker("device") or not WITH_DEVICE.isdisjoint(
        metafunc.fixturenames
    ):
        from pytest_device.plugin.collection import parametrize

        parametrize(metafunc)


@pytest.hookimpl(
    wrapper=True, tryfirst=True
)  # around hooks that deselect and reorder tests
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Turn the markers of the selected tests into requirements, or report all mistakes at once."""
    before = {item: place for place, item in enumerate(items)}
    yield
    wanted = [item for item in items if requests_device(item)]
    if wanted:
        from pytest_device.plugin.collection import begin

        places = [before.get(item, -1) for item in wanted]
        begin(config, items, wanted, may_order=places == sorted(places))
        return
    from pytest_device.plugin.options import is_sharded, may_be_dry_run

    if is_sharded(config) or may_be_dry_run(config):
        from pytest_device.plugin.collection import begin_without

        begin_without(config, items)

"""The integration with pytest: the hooks that connect all other modules, without logic of their own.

Everything heavy is imported inside the hooks, and only for a run with device tests.
"""

import os
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.selection import (
    WITH_DEVICE,
    add_package_marks,
    requests_device,
)
from pytest_device.secret_registry import SECRETS

pytest_plugins = ("pytest_device.plugin.fixtures", "pytest_device.plugin.services")

_MARKER_LINE = (
    "device([name], platform, type, ...): run the test on a remote device; the arguments are the fields of the create "
    "request in snake_case: platform='android', 'ios' or a list of both, type='agent-device' (default), 'appium', "
    "'argent' or 'web-preview-only'; share='run', 'module', 'class' or 'test' sets which tests share a session"
)

_QUARANTINE_LINE = (
    'device_quarantine(until="2027-01-31", reason="..."): run and report the test with its device, but let the run '
    "pass if it fails, up to and including that day (UTC)"
)
_OWNER_LINE = "owner(name): who is responsible for the test; the report adds up device minutes by owner"

_ARTIFACTS: Final = re.compile(
    r"-[0-9a-f]{8}(-retry-\d+)?(-rerun-\d+)?$|^device-artifacts$"
)
"""How the names end that ``artifacts.directory_of`` makes, and the default directory for them: another one, which somebody
has chosen, may have tests, too.

Here, since most runs need no more of that module than this: collection asks for each path of the suite.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and ini keys of the options table."""
    from pytest_device.plugin.options import add

    add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that a suite can implement."""
    from pytest_device.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config,
) -> Generator[None, object, object]:
    """Mask the error of a ``conftest.py`` that can't be imported, which pytest prints before plugins are configured."""
    # Before the suite, which may set a function of its own instead.
    if "pytest_check" in sys.modules:
        _follow_checks(early_config)

    try:
        return (yield)
    except Exception as error:
        from pytest_device.plugin.output.secrets import mask_early_error

        mask_early_error(error)
        raise


def _follow_checks(config: pytest.Config) -> None:
    """Let pytest-check call what takes evidence when a check fails, in runs with devices."""

    def on_fail(message: str) -> None:
        tests = config.pluginmanager.get_plugin("device-tests")
        if tests is not None:
            tests.check_failed(message)

    check: Any = sys.modules["pytest_check"].check
    # Older versions have no such function.
    if hasattr(check, "call_on_fail"):
        check.call_on_fail(on_fail)


# Before pytest-xdist decides whether to start workers.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Run a plan in this process alone; record the user's ``--dist`` and ``-n``."""
    # Pytest-xdist is active, under whatever name.
    if config.getoption("dist", default=None) is not None:
        from pytest_device.plugin.options import note_distribution

        note_distribution(config)

    try:
        return (yield)
    except pytest.UsageError as error:
        from pytest_device.plugin.output.secrets import mask_error

        mask_error(config, error)
        raise


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; mask the token, and all secrets that this process learns."""
    for line in (_MARKER_LINE, _QUARANTINE_LINE, _OWNER_LINE):
        config.addinivalue_line("markers", line)

    # Secrets exist from now on, also in test names.
    secret_variables = (TOKEN_VARIABLE, Options.slots_url.variable)
    if any(map(os.environ.get, secret_variables)):
        from pytest_device.plugin.output.secrets import hide_token

        hide_token(config)

    def on_secrets(*secrets: str) -> None:
        from pytest_device.plugin.output.secrets import redactor_of

        redactor_of(config).add(*secrets)

    config.add_cleanup(SECRETS.follow(on_secrets))


# After pytest-xdist was configured, and before it starts its workers.
@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the coordinator plugin in a pytest-xdist run; load the app's project, which may contain secrets."""
    if session.config.pluginmanager.has_plugin("dsession"):
        from pytest_device.plugin.xdist.coordinator import Coordinator

        session.config.pluginmanager.register(
            Coordinator(session.config), "device-coordinator"
        )

    from pytest_device.plugin.options import load_project

    load_project(session.config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore artifacts of tests: a process may remove some of them while another one, such as a new worker, collects."""
    # Without loading the settings for all other paths.
    if not _ARTIFACTS.search(collection_path.name):
        return None

    from pytest_device.plugin.output.artifacts import has_artifacts

    return True if has_artifacts(collection_path, config) else None


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


# Around hooks that deselect and reorder tests.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Turn the markers of the selected tests into requirements, or report all mistakes at once."""
    earlier_index = {item: index for index, item in enumerate(items)}
    yield

    with_device = [item for item in items if requests_device(item)]
    if with_device:
        from pytest_device.plugin.collection import begin_with_devices

        indexes = [earlier_index.get(item, -1) for item in with_device]
        begin_with_devices(
            config, items, with_device, may_order=indexes == sorted(indexes)
        )
        return

    from pytest_device.plugin.options import is_sharded, may_be_plan

    if is_sharded(config) or may_be_plan(config):
        from pytest_device.plugin.collection import begin_without_devices

        begin_without_devices(config, items)

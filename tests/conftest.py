"""Fixtures and markers for all tests."""

import asyncio
import gc
import os
import re
import signal
import subprocess
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import forking

if TYPE_CHECKING:
    from pytest_device.service.programs.toolchain import Node
    from pytest_device.testing import FaultyService

pytest_plugins = ["pytester"]

HERE: Final = Path(__file__).parent
PROGRAMS: Final = (
    "bare",
    "red/test_traces.py",
    "service/appium_driver",
    "service/test_programs.py",
    "service/test_controllers.py",
    "service/devices/test_browsers_installed.py",
    "service/runners/test_appium_launcher.py",
    "service/devices/test_chromium.py",
    "plugin/test_local_app.py",
    "plugin/test_local_reasons.py",
    "plugin/test_report_page.py",
    "plugin/test_local_controllers.py",
    "plugin/test_failure.py",
    "plugin/test_local_appium.py",
    "plugin/test_local_selenium_manager.py",
    "auth/test_foreign.py",
    "app/test_typescript.py",
    "app/test_dynamic.py",
    "contract/test_any_service.py",
    "service/test_pages_in_a_browser.py",
    "service/devices/test_notifications.py",
    "service/devices/test_web_push.py",
    "service/devices/test_relay.py",
    "controllers/test_agent_device.py",
    "controllers/test_argent.py",
    "controllers/test_examples.py",
    "platforms/test_readme.py",
    "test_native_example.py",
)
"""Tests with real devices and controllers, slow and hardly dependent on the Python version; the longest start first.

The tests of an entry run on one worker: they share services, browsers and Appium servers.
"""

SLOW_TO_LOAD: Final = (
    "allure_pytest",
    "anyio",
    "html",
    "metadata",
    "pytest_jsonreport",
    "valkey",
)
"""Plugins that take half of the startup time of each process, and are used by hardly any test."""

ONLY_IF_NAMED: Final = ("nightly", "windows", "arm64")
"""Markers of tests that are long, or need packages of the system."""


LONGEST_IN_ID: Final = 60

EVERY_PYTHON: Final = "every_python"
"""A marker that a module has as a whole, in its text."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules whose tests ``-m`` would deselect: that takes each worker ten seconds."""
    if collection_path.is_dir():
        return None

    expression = config.option.markexpr
    if expression == "programs":
        return None if has_programs(collection_path) else True
    if excludes_programs(expression) and has_programs(collection_path):
        return True

    if not requires_every_python(expression):
        return None
    return (
        None if f"pytest.mark.{EVERY_PYTHON}" in collection_path.read_text() else True
    )


def excludes_programs(expression: str) -> bool:
    """Return whether ``-m`` selects no test with real programs: ``not programs`` is a part that every test must match."""
    outside_parentheses = re.sub(r"\([^()]*\)", "", expression)
    if " or " in outside_parentheses:
        return False
    return "not programs" in outside_parentheses.split(" and ")


def requires_every_python(expression: str) -> bool:
    """Return whether ``-m`` begins with the marker: no module without it can have a test that it selects."""
    first, _, _ = expression.partition(" and ")
    return first == EVERY_PYTHON


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark the tests with real programs, which run in a separate environment, and start the longest first.

    Tests of the markers in ``ONLY_IF_NAMED`` run only if ``-m`` names the marker.
    """
    for item in items:
        if has_programs(item.path):
            item.add_marker(pytest.mark.programs)
    if config.option.markexpr == "programs":
        items.sort(key=lambda item: place(item.path))

    for marker in ONLY_IF_NAMED:
        if marker not in config.option.markexpr:
            left_out = [item for item in items if item.get_closest_marker(marker)]
            items[:] = [item for item in items if item not in left_out]
            config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten the ID of a long value: with xdist, each process sends, compares and reports the IDs of all tests."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_IN_ID:
        return None
    beginning = val[:LONGEST_IN_ID]
    text = beginning if isinstance(beginning, str) else beginning.decode("latin-1")
    return f"{text.encode('unicode_escape').decode()}... {len(val)} in all"


class _ByEntry(LoadScopeScheduling):
    """Gives all tests of an entry of PROGRAMS to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return PROGRAMS[place(HERE.parent / nodeid.partition("::")[0])]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling | None:
    return _ByEntry(config, log) if config.option.markexpr == "programs" else None


def has_programs(path: Path) -> bool:
    return place(path) < len(PROGRAMS)


@cache  # asked for each test: a third of the time of a collection
def place(path: Path) -> int:
    """Return the place of a test's file in PROGRAMS; after them for others."""
    places = (
        place for place, name in enumerate(PROGRAMS) if path.is_relative_to(HERE / name)
    )
    return next(places, len(PROGRAMS))


@pytest.fixture(autouse=True, scope="session")
def _default_signals_in_children() -> None:
    """Start the processes of tests with default signals, also under ``nohup`` and as a shell's background job.

    A program inherits what its parent ignores, but not what its parent handles: so the signal is handled, by doing
    nothing. The tests themselves are to survive a logout, as before.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


@pytest.fixture(autouse=True, scope="session")
def _own_temporary_directories_of_runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[None]:
    """Keep runs within tests away from the temporary directories of other runs.

    Each run of pytest removes those of earlier ones at its end, which can hold a gigabyte: it looked like a hang.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(
            "PYTEST_DEBUG_TEMPROOT", str(tmp_path_factory.mktemp("runs"))
        )
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_service_from_outside() -> Generator[None]:
    """Keep the developer's own configuration, and the summary of a CI job, out of the tests."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in ("GITHUB_ACTIONS", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_TAG"):
            monkeypatch.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("DEVICE_")]:
            monkeypatch.delenv(name)
        yield


@pytest.fixture(scope="session")
def running_service() -> Generator["FaultyService"]:
    """A local service with simulated devices and fault injection, as a separate process: one for all tests.

    A test that uses it resets it first: late requests for the sessions of other tests are not listed then.
    """
    from pytest_device.testing import faulty_service

    # Some tests leave sessions running, to be found by a later run.
    with faulty_service(max_sessions=1000) as service:
        yield service


@pytest.fixture
def service(running_service: "FaultyService") -> "FaultyService":
    """That service, without faults and sessions of other tests."""
    running_service.reset()
    return running_service


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """The user's own cache, found before a test moves HOME: what is installed there is not installed again."""
    from pytest_device.programs import cache_directory

    return cache_directory(os.environ, Path.home())


@pytest.fixture(scope="session")
def node() -> "Node":
    """The Node.js that the local service installs in the user's cache, and its npm.

    Never those on PATH: they may be missing, or of any version.
    """
    from pytest_device.programs import cache_directory, for_installers
    from pytest_device.service.programs.cache import Installer
    from pytest_device.service.programs.guard import Guard
    from pytest_device.service.programs.toolchain import AGENT_DEVICE, choose_node

    cache_dir = cache_directory(os.environ, Path.home())
    guard = Guard(environ=os.environ, log=print)
    installer = Installer(guard, for_installers(os.environ), print)
    try:
        return asyncio.run(
            choose_node(installer, cache_dir, AGENT_DEVICE.node, nodes=[])
        )
    finally:
        guard.close()


@pytest.fixture
def node_on_path(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the code under test find that Node.js first."""
    monkeypatch.setenv("PATH", str(node.executable.parent), prepend=os.pathsep)


@pytest.fixture
def installed_programs(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs within a test use the programs of the user's own cache, though pytester moves HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_dir.parent))


@pytest.fixture
def programs_are_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start ``pytest-device`` and services, by the commands in ``forking``, without their imports."""
    monkeypatch.setattr(subprocess, "Popen", forking.Popen)


@pytest.fixture(scope="session")
def _packages_are_read_once() -> None:
    forking.remember_packages()


@pytest.fixture
def pytester(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    _packages_are_read_once: None,
) -> pytest.Pytester:
    """Run pytest within tests without the plugins that are slowest to load; ``-p NAME`` loads one.

    What pytest deprecates is an error there: in suites that turn warnings into errors, it is one for their users.
    """
    monkeypatch.setattr(subprocess, "Popen", forking.LeanPopen)
    monkeypatch.setenv(
        "PYTEST_ADDOPTS",
        # The warning is about plugins of this machine, such as hypothesis, that the outer run has loaded already.
        " ".join(
            [
                "-W error::pytest.PytestDeprecationWarning",
                "-W ignore::pytest.PytestAssertRewriteWarning",
                *(f"-p no:{name}" for name in SLOW_TO_LOAD),
            ]
        ),
    )
    return pytester


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collections, and exclude the tests from all later ones.

    Nearly all that is created lives until the end of the run. Each run within a test would scan it again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()

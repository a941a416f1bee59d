"""Hands the devices and files of tests to the reporters of a run: properties for JUnit, and those that plugins own.

Each reporter has a module of its own, which is imported only if its plugin is active.
"""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_device.plugin.output.allure import LISTENER
from pytest_device.plugin.output.artifacts import (
    attempt_of,
    directory_of,
    written_since,
)
from pytest_device.plugin.state import DEVICE_SINCE, FAILED, requirements_of
from pytest_device.trace.playwright import ARCHIVE

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session
    from pytest_device.settings import Settings

DEVICE: Final = "device_name"
"""User property of a report: the models of the test's devices."""
SESSION: Final = "device_session"
_PLATFORM: Final = "device_platform"
_MINUTES: Final = "device_minutes"
_ATTEMPT: Final = "device_attempt"
_HTML: Final = "html"
_BEGAN: Final = pytest.StashKey[float]()
"""When an attempt at a test began, in seconds since the epoch."""

_ATTACHED: Final = (
    "failure.md",
    "screenshot.png",
    "screen.txt",
    ARCHIVE,
    "video.mp4",
    "video.webm",
)
"""Names of the files that reporters show, in this order."""


def note_devices(item: pytest.Item, sessions: "Mapping[str, Session]") -> None:
    """Add the devices of a test to the user properties of its reports."""
    if not sessions:
        return

    models = [session.device_name or "" for session in sessions.values()]
    platforms = [str(session.platform) for session in sessions.values()]

    _set(item, _PLATFORM, ", ".join(platforms))
    _set(item, DEVICE, ", ".join(filter(None, models)))
    _set(item, _ATTEMPT, str(attempt_of(item)))


def attached(files: Iterable[Path]) -> list[Path]:
    """Return the files of a test that reporters show, those of several devices next to each other."""
    shown = [path for path in files if path.name in _ATTACHED]
    return sorted(shown, key=lambda path: _ATTACHED.index(path.name))


def shown_name(path: Path) -> str:
    """Return the name of a file, with the name of its device if the test has several."""
    # Only the test's own directory has these; those of its devices are below it.
    is_of_test = any((path.parent / name).exists() for name in ("failure.md", ARCHIVE))
    return path.name if is_of_test else f"{path.parent.name}/{path.name}"


class DeviceCarriers:
    """Registered as a plugin while a process runs tests with devices."""

    def __init__(
        self,
        config: pytest.Config,
        settings: "Settings",
        call_hook: Callable[..., None],
    ) -> None:
        """Begin a run; ``call_hook`` calls a hook of the suite with its arguments, and notes exceptions."""
        self._config = config
        self._settings = settings
        self._call_hook = call_hook

    # Around those that write the files of an attempt, with its last report.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Hand over the files of an attempt when it is over."""
        if call.when == "setup":
            # By pytest's clock, which a suite that freezes the time does not change.
            item.stash[_BEGAN] = call.start
        if call.when == "teardown":
            _note_minutes(item)

        report = yield
        if report.when != "teardown" or not requirements_of(item):
            return report

        directory = directory_of(item, self._settings)
        # Another plugin may run the phases, and ask for no report of the setup.
        began = item.stash.get(_BEGAN, call.start)
        written = list(written_since(directory, began))
        files: dict[str, Path] = {}
        if report.failed or item.stash.get(FAILED, False):
            files = {shown_name(path): path for path in attached(written)}

        plugins = self._config.pluginmanager
        if plugins.has_plugin(LISTENER):
            from pytest_device.plugin.output.allure import add_device

            properties = dict(item.user_properties)
            device = properties.get(DEVICE)
            session = properties.get(SESSION)
            listener = plugins.get_plugin(LISTENER)
            add_device(listener, str(device or ""), str(session or ""), files)

        if plugins.has_plugin(_HTML) and files:
            from pytest_device.plugin.output.html_report import add_files

            add_files(report, self._config, files)

        if written:
            self._call_hook(
                item.ihook.pytest_device_artifacts_saved, item=item, directory=directory
            )

        return report


def _note_minutes(item: pytest.Item) -> None:
    """Add for how many minutes a test had its devices, all together."""
    since = item.stash.get(DEVICE_SINCE, None)
    if since is None:
        return

    minutes = (time.monotonic() - since) / 60 * max(1, len(requirements_of(item)))
    _set(item, _MINUTES, f"{minutes:.2f}")
    del item.stash[DEVICE_SINCE]


def _set(item: pytest.Item, name: str, value: str) -> None:
    """Set a user property, in place of that of an earlier attempt."""
    others = [pair for pair in item.user_properties if pair[0] != name]
    item.user_properties[:] = [*others, (name, value)]

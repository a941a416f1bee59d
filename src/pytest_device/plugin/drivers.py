"""Appium drivers for a test, one for each of its devices."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_device.controllers.appium import driver
from pytest_device.plugin.devices import DRIVERS, check_type, providing
from pytest_device.plugin.run import keeps
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    Options = AppiumOptions | Mapping[str, Any]


@contextmanager
def started(
    item: pytest.Item, sessions: Mapping[str, Session], options: "Options | Mapping[str, Options]"
) -> "Generator[Mapping[str, WebDriver]]":
    """Start a driver on each session and quit them all at the end, but for those of a failed test that are kept."""
    drivers: dict[str, WebDriver] = {}
    with ExitStack() as stack, ExitStack() as starting:
        starting.enter_context(providing(item))
        for session in sessions.values():
            check_type(session, "an Appium driver", SessionType.APPIUM)
        for name, session in sessions.items():
            started_one = driver(session, _options_of(name, sessions, options), leave=lambda: keeps(item))
            drivers[name] = stack.enter_context(started_one)
        starting.close()
        item.stash[DRIVERS] = drivers
        try:
            yield drivers
        finally:
            item.stash[DRIVERS] = {}


def _options_of(name: str, sessions: Mapping[str, Session], options: "Options | Mapping[str, Options]") -> "Options":
    """Return the options of one device: its own where they are told by the names of all."""
    if name and isinstance(options, Mapping) and set(options) == set(sessions):
        return cast("Options", options[name])
    return options

"""Appium drivers for a test, one for each of its devices."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import pytest

from pytest_device.controllers.appium.connection import DriverPolicy, address_of
from pytest_device.controllers.appium.drivers import driver
from pytest_device.controllers.appium.options import capabilities_of
from pytest_device.plugin.output.secrets import redactor_of
from pytest_device.plugin.provider.devices import devices_of, providing
from pytest_device.plugin.state import DRIVERS, check_type
from pytest_device.sessions.breaker import key_of
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.spec import SessionType

_OPTIONS: Final = "device_appium_options"

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    Options = AppiumOptions | Mapping[str, Any]


def check_start(request: pytest.FixtureRequest, needs: Mapping[str, DeviceRequirement]) -> None:
    """Raise NotAttemptedError, before a device is created for it, for a test whose driver is known not to start."""
    if _may_use_sessions(request.node):
        return
    options, gate = request.getfixturevalue(_OPTIONS), devices_of(request).gate
    with providing(request.node):
        for name, need in needs.items():
            attempt = gate.attempt(_key(need.request, _options_of(name, needs, options)))
            attempt.may_begin()
            attempt.release()


def _may_use_sessions(item: pytest.Item) -> bool:
    """Return whether the fixture of the options may use the test's sessions, which it has to wait for then."""
    info: Any = getattr(item, "_fixtureinfo", None)
    names, seen = [_OPTIONS], set[str]()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            names += [one for definition in info.name2fixturedefs.get(name, ()) for one in definition.argnames]
    return not seen.isdisjoint({"device_sessions", "request"})


@contextmanager
def started(
    request: pytest.FixtureRequest,
    sessions: Mapping[str, Session],
    options: "Options | Mapping[str, Options]",
    policy: DriverPolicy,
) -> "Generator[Mapping[str, WebDriver]]":
    """Start a driver on each session and quit them all at the end, but for those of a failed test that are kept."""
    item: pytest.Item = request.node
    devices = devices_of(request)
    asked = devices.requests(item)
    drivers: dict[str, WebDriver] = {}
    with ExitStack() as stack, ExitStack() as starting:
        starting.enter_context(providing(item))
        for session in sessions.values():
            check_type(session, "an Appium driver", SessionType.APPIUM)
        for name, session in sessions.items():
            mine, request_of_one = _options_of(name, sessions, options), asked.get(name)
            started_one = driver(
                session,
                mine,
                request=request_of_one,
                policy=policy,
                leave=lambda: devices.keeps(item),
                lost=lambda: devices.spend(item),  # a hanging driver must not disturb the next test
            )
            with devices.gate.attempting(_key(request_of_one, mine), item.nodeid):
                drivers[name] = stack.enter_context(started_one)
            _hide_address(item, session, drivers[name])
        starting.close()
        item.stash[DRIVERS] = drivers
        try:
            yield drivers
        finally:
            item.stash[DRIVERS] = {}


def _hide_address(item: pytest.Item, session: Session, one: "WebDriver") -> None:
    """Mask the address of a driver that was redirected from the session's: it gives access to the device."""
    address, config = address_of(one), session.remote_config
    if isinstance(config, AppiumConfig) and urlsplit(address).hostname != urlsplit(config.appium_url).hostname:
        redactor_of(item.config).add(*AppiumConfig.model_validate({"appiumUrl": address, "capabilities": {}}).secrets())


def _key(request: SessionRequest | None, options: "Options") -> str:
    """Return what is equal for starts that can be expected to end alike."""
    return key_of(request, capabilities_of(options))


def _options_of(name: str, sessions: Mapping[str, object], options: "Options | Mapping[str, Options]") -> "Options":
    """Return the options of one device: its own where they are given by the names of all."""
    if name and isinstance(options, Mapping) and set(options) == set(sessions):
        return cast("Options", options[name])
    return options

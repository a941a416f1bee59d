"""Appium drivers for a test, one for each of its devices."""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from pytest_device.controllers.appium.drivers import driver, load_client
from pytest_device.controllers.appium.options import (
    capabilities_of,
    check_local_app,
    check_options,
)
from pytest_device.plugin.markers import SINGLE
from pytest_device.plugin.output.recording import device_recorder
from pytest_device.plugin.project import installed_app
from pytest_device.plugin.provider.acquired import sessions_of
from pytest_device.plugin.provider.devices import Devices, release_starts
from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.plugin.state import (
    DRIVERS,
    STARTS,
    check_type,
    providing,
)
from pytest_device.sessions.breaker import key_of
from pytest_device.spec import SessionType

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.sessions.request import DeviceRequirement, SessionRequest

    Options = AppiumOptions | Mapping[str, Any]

_OPTIONS: Final = "device_appium_options"
_CLOUD_SCRIPTS: Final = ("lambda-", "sauce:", "browserstack_executor:")
"""Prefixes of scripts by which suites report a test's status to a cloud of devices."""
_DRIVING: Final = {"device_driver", "device_drivers", *SCOPED_DRIVERS}


@contextmanager
def held(devices: Devices, fixture: str) -> "Generator[WebDriver]":
    """Provide the driver for a wider-scoped fixture, with the options of its first test."""
    item: Any = devices.item
    values = item._request.getfixturevalue  # noqa: SLF001  # the test's fixtures: wider ones may not request them
    options = item.funcargs[_OPTIONS] = values(_OPTIONS)
    _ = values("device_sessions")

    with (
        started(devices, item, options) as drivers,
        devices.held_drivers.holding(fixture, item, drivers),
    ):
        yield drivers[SINGLE]


@contextmanager
def started(
    devices: Devices,
    item: pytest.Item,
    options: "Options | Mapping[str, Options]",
) -> "Generator[Mapping[str, WebDriver]]":
    """Start a driver on each session of a test; quit them at the end, except for those that are kept."""
    sessions = sessions_of(item)
    drivers: dict[str, WebDriver] = {}
    with ExitStack() as stack, ExitStack() as starting:
        starting.enter_context(providing(item))
        starting.enter_context(devices.reporting_once())
        starts = item.stash.setdefault(STARTS, {})

        for session in sessions.values():
            check_type(session.session, "an Appium driver", SessionType.APPIUM)

        load_client()
        for name, session in sessions.items():
            own_options = _options_of(name, sessions, options)
            request = session.requirement.request
            complete = _with_app(
                item, own_options, request, session.session.application_archive_url
            )
            check_options(complete, request)
            # A hanging driver must not disturb the next test.
            lost = partial(devices.mark_unusable, {name: session})
            # As computed before there is a session.
            key = key_of(request, capabilities_of(own_options))
            with devices.permits.attempting(key, starts.pop(key, None)):
                connected = driver(
                    session.session,
                    complete,
                    request=request,
                    leave=partial(devices.leaves_driver, session),
                    lost=lost,
                    recorder=device_recorder(item.config, name, session.session),
                )
                try:
                    drivers[name] = stack.enter_context(connected)
                except pytest.fail.Exception:  # of pytest-timeout
                    lost()
                    raise

            if devices.settings.local:
                _note_cloud_scripts(drivers[name], devices.note)

        starting.close()

        item.stash[DRIVERS] = drivers
        try:
            yield drivers
        finally:
            item.stash[DRIVERS] = {}


def _note_cloud_scripts(driver: "WebDriver", note: Callable[[str], None]) -> None:
    """Report scripts for a cloud that the local device ignored: the receipt shows each text once per run."""
    execute = driver.execute

    def noted(command: Any, params: dict[str, Any] | None = None) -> Any:
        response = execute(command, params)
        script = str((params or {}).get("script", ""))
        if script.startswith(_CLOUD_SCRIPTS):
            name = re.split("[=:]", script)[0]
            note(
                f"the local device ignored scripts for another service ({name}): here, they have no effect"
            )

        return response

    driver.execute = noted  # type: ignore[method-assign, assignment]  # the method that all commands use


def check_early(
    devices: Devices, item: pytest.Item, requirements: "Mapping[str, DeviceRequirement]"
) -> None:
    """Raise an error for a test's drivers that cannot start, if their options are known before its sessions.

    Raises ConfigError for invalid options, NotAttemptedError if equal drivers have failed to start. The drivers then
    count as in progress until they start.
    """
    values: Mapping[str, Any] = getattr(item, "funcargs", {})
    with_options: Mapping[str, DeviceRequirement] = (
        requirements if _OPTIONS in values else {}
    )
    keys: set[str] = set()
    for name, requirement in with_options.items():
        own_options = _options_of(name, requirements, values[_OPTIONS])
        check_options(
            _with_app(
                item,
                own_options,
                requirement.request,
                requirement.request.application_archive_url,
            ),
            requirement.request,
        )

        if devices.settings.local:
            check_local_app(own_options, requirement.request)

        keys.add(key_of(requirement.request, capabilities_of(own_options)))

    item.stash[STARTS] = dict(devices.permits.begin(keys))
    # It may start some later, or none.
    if _DRIVING.isdisjoint(getattr(item, "fixturenames", ())):
        release_starts(item)


def _options_of(
    name: str, sessions: Mapping[str, Any], options: "Options | Mapping[str, Options]"
) -> "Options":
    """Return the options of one device: its own if the options are a mapping by device name."""
    if name and isinstance(options, Mapping) and set(options) == set(sessions):
        return cast("Options", options[name])

    return options


def _with_app(
    item: pytest.Item,
    options: "Options",
    request: "SessionRequest",
    archive_url: str | None,
) -> "Options":
    """Return options with the project's installed app, unless there is an archive or the suite names another app."""
    if (
        archive_url
        or request.vendor_go
        or not (isinstance(options, Mapping) or hasattr(options, "to_capabilities"))
    ):
        return options

    added = installed_app(item.config, capabilities_of(options), request.platform)
    if isinstance(options, Mapping):
        return {**options, **added}

    # A copy: the suite's fixture may return the same object for all tests.
    return deepcopy(options).load_capabilities(added)

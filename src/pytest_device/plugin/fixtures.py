"""The fixtures for devices, without logic of their own: every run loads this module."""

from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Unpack

    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.argent import Argent
    from pytest_device.plugin.provider.devices import Devices
    from pytest_device.sessions.client import SessionClient
    from pytest_device.sessions.lifecycle import WaitPolicy
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.request import (
        DeviceArguments,
        DeviceLease,
        SessionRequest,
    )
    from pytest_device.spec import Platform

    Options = AppiumOptions | Mapping[str, Any]


@pytest.fixture
def device_request_defaults() -> "DeviceArguments":
    """Return marker arguments that are only known while tests run; override it in a conftest."""
    return {}


@pytest.fixture
def device_wait_policy(request: pytest.FixtureRequest) -> "WaitPolicy":
    """Return how to wait for a session; override it to change timeouts."""
    return _devices(request).policy()


@pytest.fixture
def device_appium_options() -> "Options | Mapping[str, Options]":
    """Return capabilities or an Appium option class; override it in a conftest.

    They take precedence over the capabilities that the service returns for its device.
    """
    return {}


@pytest.fixture
def device_sessions(
    request: pytest.FixtureRequest,
    device_request_defaults: "DeviceArguments",
    device_wait_policy: "WaitPolicy",
) -> "Generator[Mapping[str, Session]]":
    """Provide the test's sessions by the names of their markers; they boot in parallel."""
    from pytest_device.plugin.output.trace import waiting_for_device
    from pytest_device.plugin.provider.drivers import check_early
    from pytest_device.plugin.provider.reach import forwarded
    from pytest_device.plugin.provider.timeouts import timer_paused
    from pytest_device.plugin.state import check_policy, providing
    from pytest_device.sessions.lifecycle import WaitPolicy

    devices = _devices(request)
    defaults = cast("Mapping[str, Any]", device_request_defaults)
    check = (
        partial(check_early, devices)
        if "device_appium_options" in request.fixturenames
        else None
    )

    with (
        providing(request.node),
        devices.reporting_once(),
        timer_paused(request.node),
        waiting_for_device(request.config),
    ):
        check_policy(device_wait_policy, "device_wait_policy", WaitPolicy)
        sessions = devices.acquire(request.node, defaults, device_wait_policy, check)

    with forwarded(request.config, devices.settings, sessions.values()):
        yield sessions


@pytest.fixture
def device_session(device_sessions: "Mapping[str, Session]") -> "Session":
    """Provide the test's device session, ready to use; it is stopped once no test needs it."""
    from pytest_device.plugin.state import single_value

    return single_value(device_sessions, "device_session", "device_sessions")


@pytest.fixture
def device_platform(request: pytest.FixtureRequest) -> "Platform":
    """Provide the platform of the test's device, even before its session: ``Platform.ANDROID`` or ``Platform.IOS``."""
    return _request_of(request, "device_platform").platform


@pytest.fixture
def device_drivers(
    request: pytest.FixtureRequest,
    device_appium_options: "Options | Mapping[str, Options]",
    device_sessions: "Mapping[str, Session]",
) -> "Generator[Mapping[str, WebDriver]]":
    """Provide an Appium driver for each device of the test, by its marker's name; quit after the test."""
    from pytest_device.plugin.provider.drivers import started

    del device_sessions  # needed for its setup only

    with started(_devices(request), request.node, device_appium_options) as drivers:
        yield drivers


@pytest.fixture
def device_driver(device_drivers: "Mapping[str, WebDriver]") -> "WebDriver":
    """Provide an Appium driver for the test's device (``type="appium"``); quit after the test."""
    from pytest_device.plugin.state import single_value

    return single_value(device_drivers, "device_driver", "device_drivers")


@pytest.fixture(scope="class")
def class_device_driver(request: pytest.FixtureRequest) -> "Generator[WebDriver]":
    """Provide one Appium driver for the tests of a class; quit after the last."""
    yield from _held_driver(request)


@pytest.fixture(scope="module")
def module_device_driver(request: pytest.FixtureRequest) -> "Generator[WebDriver]":
    """Provide one Appium driver for the tests of a module; quit after the last."""
    yield from _held_driver(request)


@pytest.fixture(scope="session")
def session_device_driver(request: pytest.FixtureRequest) -> "Generator[WebDriver]":
    """Provide one Appium driver for the tests of a run, or of a pytest-xdist worker; quit at its end."""
    yield from _held_driver(request)


def _held_driver(request: pytest.FixtureRequest) -> "Generator[WebDriver]":
    from pytest_device.plugin.provider.drivers import held

    with held(_devices(request), str(request.fixturename)) as driver:
        yield driver


@pytest.fixture
def device_agent_devices(
    request: pytest.FixtureRequest,
    device_sessions: "Mapping[str, Session]",
    tmp_path_factory: pytest.TempPathFactory,
) -> "Generator[Mapping[str, AgentDevice]]":
    """Provide an agent-device client for each device of the test, by its marker's name; closed after the test."""
    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.plugin.provider.agents import clients

    with clients(
        AgentDevice, request.node, device_sessions, tmp_path_factory
    ) as by_name:
        yield by_name


@pytest.fixture
def device_agent_device(
    device_agent_devices: "Mapping[str, AgentDevice]",
) -> "AgentDevice":
    """Provide an agent-device client for the test's device (``type="agent-device"``); closed after the test."""
    from pytest_device.plugin.state import single_value

    return single_value(
        device_agent_devices, "device_agent_device", "device_agent_devices"
    )


@pytest.fixture
def device_argents(
    request: pytest.FixtureRequest,
    device_sessions: "Mapping[str, Session]",
    tmp_path_factory: pytest.TempPathFactory,
) -> "Generator[Mapping[str, Argent]]":
    """Provide an argent client for each device of the test, by its marker's name."""
    from pytest_device.controllers.argent import Argent
    from pytest_device.plugin.provider.agents import clients

    with clients(Argent, request.node, device_sessions, tmp_path_factory) as by_name:
        yield by_name


@pytest.fixture
def device_argent(device_argents: "Mapping[str, Argent]") -> "Argent":
    """Provide an argent client for the test's device (``type="argent"``)."""
    from pytest_device.plugin.state import single_value

    return single_value(device_argents, "device_argent", "device_argents")


@pytest.fixture
def device_environment(
    request: pytest.FixtureRequest,
    device_session: "Session",
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, str]:
    """Provide environment variables that point the controller's own tools to the test's device."""
    from pytest_device.plugin.markers import SINGLE
    from pytest_device.plugin.provider.agents import variables

    return variables(request.node, SINGLE, device_session, tmp_path_factory)


@pytest.fixture
def device_artifacts_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Provide a directory for the test's artifacts: in ``--device-artifacts-dir`` if that is set, else ``tmp_path``."""
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.output.artifacts import directory_of

    settings = settings_of(request.config)
    directory = (
        tmp_path
        if settings.is_default("artifacts_dir")
        else directory_of(request.node, settings)
    )
    directory.mkdir(parents=True, exist_ok=True)

    return directory


@pytest.fixture(scope="session")
def device_client(request: pytest.FixtureRequest) -> "SessionClient":
    """Provide the service's client; sessions that it creates are stopped at the end of the run at the latest."""
    return _devices(request).backend.sessions()


@pytest.fixture(scope="session")
def device_lease(request: pytest.FixtureRequest) -> "DeviceLease":
    """Provide a session for a ``with`` block, also in fixtures of any scope.

    Call it with marker arguments: ``with device_lease(platform="ios") as session:``.
    """
    devices = _devices(request)

    def leased(
        **arguments: "Unpack[DeviceArguments]",
    ) -> "AbstractContextManager[Session]":
        return devices.lease(cast("Mapping[str, Any]", arguments))

    return leased


def _request_of(request: pytest.FixtureRequest, fixture: str) -> "SessionRequest":
    """Return the request for the test's one device, for a fixture that needs no session."""
    from pytest_device.plugin.state import requirements_of, single_value

    if not requirements_of(request.node):  # requested while the test runs
        request.getfixturevalue("device_sessions")

    return single_value(
        requirements_of(request.node), fixture, "device_sessions"
    ).request


def _devices(request: pytest.FixtureRequest) -> "Devices":
    from pytest_device.plugin.provider.devices import devices_of

    return devices_of(request)

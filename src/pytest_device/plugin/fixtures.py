"""The fixtures: each joins two steps of the flow."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Unpack

    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.appium.connection import DriverPolicy
    from pytest_device.controllers.argent import Argent
    from pytest_device.plugin.provider.devices import Devices
    from pytest_device.sessions.client import SessionClient
    from pytest_device.sessions.lifecycle import WaitPolicy
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.requirement import DeviceArguments, DeviceLease
    from pytest_device.spec import Platform

    Options = AppiumOptions | Mapping[str, Any]

OF_ONE: Final = frozenset(
    {
        "device_session",
        "device_agent_device",
        "device_argent",
        "device_driver",
        "device_preview_url",
        "device_environment",
        "device_process_environment",
        "device_platform",
    }
)
"""The fixtures of a test with one device."""
OF_SEVERAL: Final = frozenset({"device_sessions", "device_agent_devices", "device_argents", "device_drivers"})
"""The fixtures of a test with several devices."""
MAKING: Final = frozenset({"device_client", "device_lease"})
"""The fixtures that create sessions without a marker."""


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
def device_driver_policy() -> "DriverPolicy":
    """Return timeouts and retries of Appium drivers; override it to change them."""
    from pytest_device.controllers.appium.connection import DriverPolicy

    return DriverPolicy()


@pytest.fixture
def device_sessions(
    request: pytest.FixtureRequest, device_request_defaults: "DeviceArguments", device_wait_policy: "WaitPolicy"
) -> "Mapping[str, Session]":
    """Provide the test's sessions by the names of their markers; they boot in parallel."""
    devices, defaults = _devices(request), cast("Mapping[str, Any]", device_request_defaults)
    if "device_drivers" in request.fixturenames:
        from pytest_device.plugin.provider.drivers import check_start

        check_start(request, devices.requirements.of(request.node, defaults))
    return devices.acquire(request.node, defaults, device_wait_policy)


@pytest.fixture
def device_session(device_sessions: "Mapping[str, Session]") -> "Session":
    """Provide the test's device session, ready to use; it is stopped when no test needs it."""
    from pytest_device.plugin.state import session_of

    return session_of(device_sessions)


@pytest.fixture
def device_platform(device_session: "Session") -> "Platform":
    """Provide the platform of the test's device: ``Platform.ANDROID`` or ``Platform.IOS``."""
    from pytest_device.spec import Platform

    return Platform(str(device_session.platform))


@pytest.fixture
def device_preview_url(device_session: "Session") -> str | None:
    """Provide the URL of the live preview of the test's device, None if the service has none."""
    config = device_session.remote_config
    return config.web_preview_url if config else None


@pytest.fixture
def device_drivers(
    request: pytest.FixtureRequest,
    device_sessions: "Mapping[str, Session]",
    device_appium_options: "Options | Mapping[str, Options]",
    device_driver_policy: "DriverPolicy",
) -> "Generator[Mapping[str, WebDriver]]":
    """Provide an Appium driver for each device of the test, by its marker's name; quit after the test."""
    from pytest_device.plugin.provider.drivers import started

    with started(request, device_sessions, device_appium_options, device_driver_policy) as drivers:
        yield drivers


@pytest.fixture
def device_driver(device_session: "Session", device_drivers: "Mapping[str, WebDriver]") -> "WebDriver":
    """Provide an Appium driver for the test's device (``type="appium"``); quit after the test."""
    from pytest_device.plugin.markers import ONLY

    del device_session  # raises for a test with several devices before a client starts
    return device_drivers[ONLY]


@pytest.fixture
def device_agent_devices(
    request: pytest.FixtureRequest,
    device_sessions: "Mapping[str, Session]",
    tmp_path_factory: pytest.TempPathFactory,
) -> "Generator[Mapping[str, AgentDevice]]":
    """Provide an agent-device client for each device of the test, by its marker's name; closed after the test."""
    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.plugin.provider.agents import clients

    with clients(AgentDevice, request.node, device_sessions, tmp_path_factory) as by_name:
        yield by_name


@pytest.fixture
def device_agent_device(device_session: "Session", device_agent_devices: "Mapping[str, AgentDevice]") -> "AgentDevice":
    """Provide an agent-device client for the test's device (``type="agent-device"``); closed after the test."""
    from pytest_device.plugin.markers import ONLY

    del device_session  # raises for a test with several devices before a client starts
    return device_agent_devices[ONLY]


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
def device_argent(device_session: "Session", device_argents: "Mapping[str, Argent]") -> "Argent":
    """Provide an argent client for the test's device (``type="argent"``)."""
    from pytest_device.plugin.markers import ONLY

    del device_session  # raises for a test with several devices before a client starts
    return device_argents[ONLY]


@pytest.fixture
def device_environment(
    request: pytest.FixtureRequest, device_session: "Session", tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str]:
    """Provide environment variables with which the controller's own tools find the test's device."""
    from pytest_device.plugin.markers import ONLY
    from pytest_device.plugin.provider.agents import variables

    return variables(request.node, ONLY, device_session, tmp_path_factory)


@pytest.fixture
def device_process_environment(
    device_environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, str]:
    """Set the variables of ``device_environment`` in this process until the test is over."""
    for name, value in device_environment.items():
        monkeypatch.setenv(name, value)
    return device_environment


@pytest.fixture
def device_artifacts_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Provide a directory for the test's artifacts: below ``--device-artifacts-dir``, else ``tmp_path``."""
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.output.artifacts import directory_of

    directory = directory_of(request.node, settings_of(request.config)) or tmp_path
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def device_client(request: pytest.FixtureRequest) -> "SessionClient":
    """Provide the client of the service; sessions that it creates are stopped at the end of the run at the latest."""
    from pytest_device.plugin.provider.backend import CurrentClient

    return CurrentClient(_devices(request).backend)


@pytest.fixture(scope="session")
def device_lease(request: pytest.FixtureRequest) -> "DeviceLease":
    """Provide a session for a ``with`` block, also in fixtures of any scope.

    Call it with marker arguments: ``with device_lease(platform="ios") as session:``.
    """
    devices = _devices(request)

    def leased(**arguments: "Unpack[DeviceArguments]") -> "AbstractContextManager[Session]":
        return devices.lease(cast("Mapping[str, Any]", arguments))

    return leased


def _devices(request: pytest.FixtureRequest) -> "Devices":
    from pytest_device.plugin.provider.devices import devices_of

    return devices_of(request)

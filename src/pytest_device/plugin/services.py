"""Fixtures for the app under test and the services that it uses."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pytest_device.app.link import Links
    from pytest_device.app.project import Project
    from pytest_device.app.vendor import VendorProfile
    from pytest_device.auth.provider import Client, IdentityProvider
    from pytest_device.notifications.center import NotificationCenter
    from pytest_device.notifications.content import PushMessage
    from pytest_device.notifications.endpoint import PushEndpoint
    from pytest_device.notifications.push import DevicePush, PushDelivery, PushDevice
    from pytest_device.plugin.provider.reach import Tunnel
    from pytest_device.serving import Service
    from pytest_device.sessions.models import Session
    from pytest_device.tunnel import TunnelFactory
    from pytest_device.updates.service import DeviceUpdateService

S = TypeVar("S", bound="Service[Any]")
T = TypeVar("T")

CONFIGURED: Final = (
    "device_identity_provider",
    "device_update_service",
    "device_push_endpoint",
    "device_notifications",
)
"""The fixtures whose arguments are in ``device_service_settings``."""


@pytest.fixture(scope="session")
def device_app(request: pytest.FixtureRequest) -> "Project":
    """Provide the project of the app under test, from ``device_app_root``."""
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.project import needed_project

    settings_of(request.config)  # loads the project
    return needed_project(request.config, "device_app")


@pytest.fixture
def device_link(request: pytest.FixtureRequest, device_app: "Project") -> "Links":
    """Provide a function that returns the deep link of a route: ``device_link("/notes/[id]", id="7")``."""
    from pytest_device.plugin.project import links_of
    from pytest_device.plugin.state import ARGUMENTS

    return links_of(device_app, request.node.stash.get(ARGUMENTS, {}))


@pytest.fixture(scope="session")
def device_tunnel_factory(request: pytest.FixtureRequest) -> "TunnelFactory | None":
    """Return a function that opens a tunnel to a port for devices on other machines; override it in ``conftest.py``.

    It gets a port of 127.0.0.1 and returns a context manager that provides the tunnel's public URL. By default, it
    provides the URL of ``device_public_url``; None without one.
    """
    from pytest_device.plugin.options import settings_of
    from pytest_device.tunnel import at_public_url

    url = settings_of(request.config).public_url
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return at_public_url(url, worker) if url else None


@pytest.fixture(scope="session")
def _device_tunnel(
    request: pytest.FixtureRequest, device_tunnel_factory: "TunnelFactory | None"
) -> "Generator[Tunnel]":
    """Provide the tunnel of this process to its services, for devices on other machines."""
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.provider.reach import Tunnel, is_remote

    settings = settings_of(request.config)
    with Tunnel(device_tunnel_factory if is_remote(settings) else None) as tunnel:
        yield tunnel


@pytest.fixture(scope="session")
def device_service_settings() -> "Mapping[str, Mapping[str, Any]]":
    """Return the arguments of the services, by the names of their fixtures; override it in ``conftest.py``.

    ``device_identity_provider`` has those of `IdentityProvider`, ``device_update_service`` of `DeviceUpdateService`,
    ``device_push_endpoint`` of `PushEndpoint`, ``device_notifications`` of `NotificationCenter`.

    >>> {"device_push_endpoint": {"public_url": "https://push.example"}}
    {'device_push_endpoint': {'public_url': 'https://push.example'}}
    """
    return {}


@pytest.fixture(scope="session")
def device_identity_provider(
    request: pytest.FixtureRequest,
    device_service_settings: "Mapping[str, Mapping[str, Any]]",
    _device_tunnel: "Tunnel",
) -> "Generator[IdentityProvider]":
    """Provide an OpenID Connect provider on this machine, one per process of the run.

    By default, its client ``app`` may return to the schemes of the app's project, with and without the path
    ``redirect``, and to its web build on this machine.
    """
    from pytest_device.auth.provider import IdentityProvider

    yield from _service(
        request,
        _device_tunnel,
        IdentityProvider,
        device_service_settings,
        clients=[_app_client(request.config)],
    )


@pytest.fixture
def device_update_service(
    request: pytest.FixtureRequest,
    device_service_settings: "Mapping[str, Mapping[str, Any]]",
    _device_tunnel: "Tunnel",
) -> "Generator[DeviceUpdateService]":
    """Provide a new, empty update service on this machine, with the vendor profile of the settings."""
    from pytest_device.updates.service import DeviceUpdateService

    yield from _service(
        request,
        _device_tunnel,
        DeviceUpdateService,
        device_service_settings,
        vendor=_profile(request.config),
    )


@pytest.fixture(scope="session")
def device_push_endpoint(
    request: pytest.FixtureRequest,
    device_service_settings: "Mapping[str, Mapping[str, Any]]",
    _device_tunnel: "Tunnel",
) -> "Generator[PushEndpoint]":
    """Provide an endpoint for push tokens on this machine, one per process of the run."""
    from pytest_device.notifications.endpoint import PushEndpoint

    yield from _service(
        request,
        _device_tunnel,
        PushEndpoint,
        device_service_settings,
        vendor=_profile(request.config),
    )


@pytest.fixture
def device_push_delivery() -> (
    "PushDelivery | Callable[[PushMessage, PushDevice], object] | None"
):
    """Return the delivery of push messages, or None to use the controller; override it in ``conftest.py``."""
    return None


@pytest.fixture
def device_push(
    request: pytest.FixtureRequest,
    device_session: "Session",
    device_push_delivery: "PushDelivery | Callable[[PushMessage, PushDevice], object] | None",
) -> "DevicePush":
    """Provide a `DevicePush`, which sends push messages to the test's device and handles its notifications."""
    from pytest_device.plugin.provider.push import push_to

    return push_to(device_session, request.getfixturevalue, device_push_delivery)


@pytest.fixture
def device_notifications(
    request: pytest.FixtureRequest,
    device_service_settings: "Mapping[str, Mapping[str, Any]]",
) -> "NotificationCenter":
    """Provide a `NotificationCenter`, which computes dates and rules of notifications without an app or a device."""
    from pytest_device.notifications.center import NotificationCenter
    from pytest_device.plugin.provider.push import center_of

    arguments = _arguments_of(
        NotificationCenter, device_service_settings, "device_notifications"
    )

    return center_of(request.node, arguments)


def _app_client(config: pytest.Config) -> "Client":
    """Return the provider's client for the app under test."""
    from pytest_device.auth.provider import Client
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.project import project_of

    settings_of(config)  # loads the project
    project = project_of(config)
    schemes = project.schemes() if project else ()
    own = [f"{scheme}://{path}" for scheme in schemes for path in ("redirect", "")]

    return Client(
        "app", ["http://127.0.0.1/callback", "http://127.0.0.1/redirect", *own]
    )


def _arguments_of(kind: type, returned: object, service: str) -> "Mapping[str, Any]":
    """Return a service's arguments of the settings fixture. Raises ConfigError for those that the class doesn't have."""
    from inspect import signature

    from pytest_device.errors import ConfigError
    from pytest_device.plugin.provider.reach import SETTINGS
    from pytest_device.spelling import unknown

    settings = cast("Mapping[str, Any]", returned)
    if not isinstance(returned, Mapping) or not all(
        isinstance(arguments, Mapping) for arguments in settings.values()
    ):
        raise ConfigError(
            f"{SETTINGS} must return a mapping of services to mappings of their arguments, not {returned!r}"
        )

    problems = [
        f"{SETTINGS}: {unknown('service', name, CONFIGURED)}"
        for name in settings
        if name not in CONFIGURED
    ]
    arguments: Mapping[str, Any] = settings.get(service, {})
    parameters = signature(kind).parameters
    problems += [
        f"{SETTINGS}: {service}: {unknown('argument', name, parameters)}"
        for name in arguments
        if name not in parameters
    ]
    if problems:
        raise ConfigError(*problems)

    return arguments


def _profile(config: pytest.Config) -> "VendorProfile":
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.project import vendor_profile

    return vendor_profile(settings_of(config))


def _service(
    request: pytest.FixtureRequest,
    tunnel: "Tunnel",
    make: "type[S]",
    returned: "Mapping[str, Mapping[str, Any]]",
    **defaults: object,
) -> "Generator[S]":
    """Provide a service of this process.

    Arguments:
        request: the request for the fixture that provides the service.
        tunnel: the tunnel of this process, for devices on other machines.
        make: the class of the service.
        returned: what ``device_service_settings`` returned.
        defaults: arguments that the settings fixture may override.

    Raises:
        ConfigError: the arguments are invalid, or the test's device can't reach the service.
    """
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.provider.reach import is_remote, noted

    name = str(request.fixturename)
    arguments = {**defaults, **_arguments_of(make, returned, name)}

    settings = settings_of(request.config)
    is_reached = not is_remote(settings) or bool(
        arguments.get("public_url") or tunnel.factory
    )
    if not is_reached:
        _refuse_if_it_has_a_device(request.config, name)

    opened = tunnel.opened(make, arguments)
    with ExitStack() as stack:
        service = _entered(stack, opened, request.config)
        stack.enter_context(noted(request.config, name, service, is_reached=is_reached))
        yield service


def _entered(
    stack: ExitStack, manager: "AbstractContextManager[T]", config: pytest.Config
) -> T:
    """Enter a context manager. A ConfigError has no frames of it: pytest would show those in contextlib."""
    from pytest_device.errors import ConfigError
    from pytest_device.plugin.output.failure import shows_all_frames

    try:
        return stack.enter_context(manager)
    except ConfigError as error:
        if shows_all_frames(config):
            raise

        raise error.with_traceback(None) from None


def _refuse_if_it_has_a_device(config: pytest.Config, service: str) -> None:
    """Raise ConfigError if the current test has a device, which can't reach a service that it opens only now.

    Collection doesn't know the services that a test requests while it runs.
    """
    from pytest_device.errors import ConfigError
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.provider.acquired import sessions_of
    from pytest_device.plugin.provider.devices import CURRENT_DEVICES
    from pytest_device.plugin.provider.reach import unreachable_service

    devices = config.stash.get(CURRENT_DEVICES, None)
    if devices and devices.item and sessions_of(devices.item):
        raise ConfigError(unreachable_service(service, settings_of(config)))


def _hides_frames(error: object) -> bool:
    # Imported here: every run loads this module, but not that one.
    from pytest_device.errors import hides_frames

    return hides_frames(error)


__tracebackhide__ = _hides_frames

"""Fixtures for the app under test and the services that it uses."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_device.options import Option, Options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from pytest_device.app.link import Links
    from pytest_device.app.project import Project
    from pytest_device.app.vendor import VendorProfile
    from pytest_device.auth.provider import IdentityProvider
    from pytest_device.auth.token import TokenResponse
    from pytest_device.notifications.center import NotificationCenter
    from pytest_device.notifications.content import PushMessage
    from pytest_device.notifications.endpoint import PushEndpoint
    from pytest_device.notifications.push import DevicePush, PushDelivery, PushDevice
    from pytest_device.sessions.models import Session
    from pytest_device.updates.service import DeviceUpdateService

S = TypeVar("S")


@pytest.fixture(scope="session")
def device_app(request: pytest.FixtureRequest) -> "Project":
    """Provide the project of the app under test, from ``device_app_root``."""
    __tracebackhide__ = True
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
def device_identity_settings(request: pytest.FixtureRequest) -> "Mapping[str, Any]":
    """Return the arguments of `IdentityProvider`: ``users``, ``clients``, …; override it in ``conftest.py``.

    The client ``app`` may return to the schemes of the app's project, with and without the path ``redirect``.
    """
    from pytest_device.auth.provider import Client
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.project import project_of

    settings_of(request.config)  # loads the project
    project = project_of(request.config)
    schemes = project.schemes() if project else ()
    own = [f"{one}://{path}" for one in schemes for path in ("redirect", "")]
    return {"clients": [Client("app", ["http://127.0.0.1/callback", *own])]}


@pytest.fixture(scope="session")
def device_identity_provider(
    request: pytest.FixtureRequest, device_identity_settings: "Mapping[str, Any]"
) -> "Generator[IdentityProvider]":
    """Provide an OpenID Connect provider for this worker, or for the run with ``--device-identity-scope=run``."""
    from pytest_device.auth.provider import IdentityProvider

    with _service(
        request.config,
        Options.identity_scope,
        partial(IdentityProvider, **device_identity_settings),
    ) as one:
        yield one


@pytest.fixture(scope="session")
def device_sign_in(
    device_identity_provider: "IdentityProvider",
) -> "Callable[..., TokenResponse]":
    """Provide a function that signs a user in without a browser and returns the tokens: ``device_sign_in("ada")``."""

    def sign_in(
        user: str,
        scopes: "Sequence[str]" = ("openid", "profile"),
        *,
        client_id: str | None = None,
    ) -> "TokenResponse":
        return device_identity_provider.sign_in(user, scopes, client_id=client_id)

    return sign_in


@pytest.fixture(scope="session")
def device_update_settings() -> "Mapping[str, Any]":
    """Return the arguments of `DeviceUpdateService`: ``signing``, ``public_url``, …; override it in ``conftest.py``."""
    return {}


@pytest.fixture
def device_update_service(
    request: pytest.FixtureRequest, device_update_settings: "Mapping[str, Any]"
) -> "Generator[DeviceUpdateService]":
    """Provide a new, empty update service on this machine, for apps with the vendor's profile of the settings."""
    from pytest_device.updates.service import DeviceUpdateService

    given: dict[str, Any] = {
        "vendor": _profile(request.config),
        **device_update_settings,
    }
    with DeviceUpdateService(**given) as service:
        yield service


@pytest.fixture(scope="session")
def device_push_endpoint(request: pytest.FixtureRequest) -> "Generator[PushEndpoint]":
    """Provide an endpoint for push tokens on this machine, one per process of the run."""
    from pytest_device.notifications.endpoint import PushEndpoint

    with PushEndpoint(vendor=_profile(request.config)) as endpoint:
        yield endpoint


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
def device_notification_settings() -> "Mapping[str, Any]":
    """Return the arguments of `NotificationCenter`: ``handler_timeout_seconds``, …; override it in ``conftest.py``."""
    return {}


@pytest.fixture
def device_notifications(
    request: pytest.FixtureRequest, device_notification_settings: "Mapping[str, Any]"
) -> "NotificationCenter":
    """Provide the dates and rules of notifications on the platform of the device or settings; it runs no app."""
    from pytest_device.plugin.provider.push import center_of

    return center_of(request.node, device_notification_settings)


def _profile(config: pytest.Config) -> "VendorProfile":
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.project import vendor_profile

    return vendor_profile(settings_of(config))


@contextmanager
def _service(
    config: pytest.Config,
    breadth: Option[str],
    make: "Callable[[], AbstractContextManager[S]]",
) -> "Generator[S]":
    """Provide a service of this process, or the run's service, which the pytest-xdist coordinator hosts."""
    from pytest_device.errors import ConfigError
    from pytest_device.plugin.options import settings_of
    from pytest_device.plugin.state import SERVICES
    from pytest_device.sharing import shared

    given: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    if given is None or settings_of(config).values.get(breadth.word) != "run":
        with make() as service:
            yield service
        return
    if SERVICES not in given:
        raise ConfigError(
            f"{breadth.ini}=run requires all workers on one machine, but this one is on another: use worker"
        )
    with shared(given[SERVICES], breadth.word, make) as service:
        yield service

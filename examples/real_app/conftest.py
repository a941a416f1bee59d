"""The build under test, the services with which it talks, and the app as the tests see it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from appium.webdriver.webdriver import WebDriver

from pytest_device import Platform
from pytest_device.app import Project

from .notes_app import NotesApp

pytest.importorskip("joserfc", reason="needs the extra services: pip install 'pytest-device[services]'")

from pytest_device.auth.provider import IdentityProvider, User  # requires joserfc
from pytest_device.notifications.endpoint import PushEndpoint
from pytest_device.updates.service import DeviceUpdateService

# The web export, for the local device; for a phone, the .apk or .app archive of a test build.
BUILD = Path(__file__).with_name("app") / "dist"


@pytest.fixture(scope="session")
def device_service_settings() -> Mapping[str, Mapping[str, Any]]:
    """Add a user; by default, the provider returns to the project's scheme and to its web build."""
    ada = User("ada", {"name": "Ada Lovelace"}, password="analytical engine")  # noqa: S106  # test data
    return {"device_identity_provider": {"users": [ada]}}


@pytest.fixture
def device_appium_options(
    device_app: Project,
    device_platform: Platform,
    device_identity_provider: IdentityProvider,
    device_update_service: DeviceUpdateService,
    device_push_endpoint: PushEndpoint,
) -> dict[str, Any]:
    """Select the build, and pass it the addresses of the services as launch arguments."""
    arguments = [
        f"--platform={device_platform}",
        f"--issuer={device_identity_provider.issuer}",
        f"--updates={device_update_service.url}",
        f"--push={device_push_endpoint.token_url}",
    ]
    identifier = device_app.identifier(device_platform)
    match device_platform:
        case Platform.ANDROID:
            return {
                "appium:app": str(BUILD),
                "appium:appPackage": identifier,
                "appium:optionalIntentArguments": " ".join(arguments),
            }
        case Platform.IOS:
            return {
                "appium:app": str(BUILD),
                "appium:bundleId": identifier,
                "appium:processArguments": {"args": arguments},
            }


@pytest.fixture
def app(device_driver: WebDriver, device_app: Project, device_platform: Platform) -> NotesApp:
    return NotesApp(device_driver, str(device_app.identifier(device_platform)))

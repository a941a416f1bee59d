"""The local device as a suite sees it: real service, Chromium, Appium with our driver, and client."""

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions
from appium.webdriver import Remote
from appium.webdriver.client_config import AppiumClientConfig
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import WebDriverException

import pytest_device
from pytest_device.local import LocalService, log_lines
from pytest_device.programs import for_installers
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.request import SessionRequest
from pytest_device.settings import LOCAL_APP_ID
from pytest_device.spec import Platform, SessionType, Status
from tests.waiting import eventually

APP: Final = Path(__file__).parent / "app"
APP_ID: Final = "org.example.notes"
COMMAND_SECONDS: Final = 60
WAIT_SECONDS: Final = 5
WEBM: Final = b"\x1aE\xdf\xa3"
"""What a video begins with."""
OPTIONS: Final[dict[Platform, Callable[[], AppiumOptions]]] = {
    Platform.ANDROID: UiAutomator2Options,
    Platform.IOS: XCUITestOptions,
}


@pytest.fixture(scope="session")
def service() -> Generator[LocalService]:
    service = LocalService.start(app_id=LOCAL_APP_ID, progress=print, runner="real")
    yield service
    service.close()


@contextmanager
def with_own_driver(folder: Path) -> Generator[tuple[LocalService, Path]]:
    """Run a service from a copy of the package in a folder.

    Provides the service, and the directory of its driver, which it copies for each
    session: a test may change the driver before.
    """
    package = folder / "pytest_device"
    shutil.copytree(Path(pytest_device.__file__).parent, package)
    with pytest.MonkeyPatch.context() as patch:
        path = {"PYTHONPATH": str(folder)}
        patch.setattr(
            "pytest_device.programs.for_installers",
            lambda environ: {**for_installers(environ), **path},
        )
        service = LocalService.start(app_id=LOCAL_APP_ID, progress=print, runner="real")
        yield service, package / "service/appium_driver"
        service.close()


@contextmanager
def booted(service: LocalService, platform: Platform) -> Generator[Session]:
    """Provide a session of the local device."""
    request = SessionRequest(
        app_id=UUID(LOCAL_APP_ID),
        platform=platform,
        type=SessionType.APPIUM,
        device_identifier="chromium",
    )
    with DeviceClient(service.url, service.token) as client:
        session_id = client.create(request).id
        try:
            assert eventually(lambda: client.get(session_id).status != Status.NEW, 120)
            session = client.get(session_id)
            assert session.remote_config, log_lines(service.log_path, [str(session_id)])
            yield session
        finally:
            client.stop(session_id)


@contextmanager
def driven(session: Session, capabilities: dict[str, Any]) -> Generator[Remote]:
    """Run a driver with the options class that a suite for the session's platform uses."""
    config = session.remote_config
    assert isinstance(config, AppiumConfig)
    # The one platform's driver is left alone while the other's is at work.
    patient = {"newCommandTimeout": 0}
    options = OPTIONS[Platform(str(session.platform))]().load_capabilities(
        {**config.capabilities, **patient, **capabilities}
    )
    url = config.appium_url
    driver = Remote(
        client_config=AppiumClientConfig(
            remote_server_addr=url, timeout=COMMAND_SECONDS
        ),
        options=options,
    )
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def android(service: LocalService) -> Generator[Session]:
    with booted(service, Platform.ANDROID) as session:
        yield session


@pytest.fixture(scope="session")
def ios(service: LocalService) -> Generator[Session]:
    with booted(service, Platform.IOS) as session:
        yield session


@pytest.fixture(scope="session")
def android_driver(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(APP), "appium:appPackage": APP_ID}) as driver:
        yield driver


@pytest.fixture(scope="session")
def ios_driver(ios: Session) -> Generator[Remote]:
    with driven(ios, {"app": str(APP), "appium:bundleId": APP_ID}) as driver:
        yield driver


@pytest.fixture
def phone(android_driver: Remote) -> Remote:
    return fresh(android_driver)


@pytest.fixture
def iphone(ios_driver: Remote) -> Remote:
    return fresh(ios_driver)


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, an identifier on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


def seen(driver: Remote, name: str) -> WebElement:
    """Find an element by its test ID."""
    return driver.find_element(*by_test_id(name))


@contextmanager
def without_wait(driver: Remote) -> Generator[None]:
    """Find elements without the implicit wait: that for one that is gone lasts until its end."""
    driver.implicitly_wait(0)
    try:
        yield
    finally:
        driver.implicitly_wait(WAIT_SECONDS)


def fresh(driver: Remote, screen: str = "reset") -> Remote:
    """Return a driver with the app installed and in front: without stored data, or at a screen that stores none."""
    driver.switch_to.context("NATIVE_APP")
    driver.implicitly_wait(WAIT_SECONDS)
    named = "bundleId" if driver.capabilities["platformName"] == "iOS" else "package"
    link = {"url": f"notes:///{screen}", named: APP_ID}
    try:
        driver.execute_script("mobile: deepLink", link)
    except WebDriverException:  # an earlier test has removed the app
        driver.install_app(str(APP))
        driver.execute_script("mobile: deepLink", link)
    return driver

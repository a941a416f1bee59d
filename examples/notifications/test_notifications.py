"""Push notifications: tap, reply, dismiss, and handle data-only messages in the background."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device import ConfigError
from pytest_device.notifications import DevicePush

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


NEWS = {"title": "A note for you", "body": "from Ada", "data": {"url": "/notes/7"}}


def wait_for(driver: WebDriver, text: str, *, of: str = "status") -> None:
    element = by_test_id(of)
    WebDriverWait(driver, 10).until(expected_conditions.text_to_be_present_in_element(element, text))


@pytest.fixture
def app(device_driver: WebDriver) -> WebDriver:
    """Allow notifications; return the driver once the app is ready to receive messages."""
    WebDriverWait(device_driver, 10).until(expected_conditions.alert_is_present()).accept()
    wait_for(device_driver, "Ready")
    return device_driver


def test_a_tapped_notification_opens_its_link(app: WebDriver, device_push: DevicePush) -> None:
    device_push.send(NEWS)
    shown = device_push.wait_shown("A note for you")
    assert shown.body == "from Ada"

    device_push.tap(shown)

    device_push.wait_opened("/notes/7")
    wait_for(app, "/notes/7", of="place")


def test_an_action_takes_a_text(app: WebDriver, device_push: DevicePush) -> None:
    device_push.send(NEWS)

    device_push.tap(device_push.wait_shown(), action="reply", text="Thank you")

    wait_for(app, "Replied Thank you")


def test_a_dismissed_notification_opens_nothing(app: WebDriver, device_push: DevicePush) -> None:
    device_push.send(NEWS)

    device_push.dismiss(device_push.wait_shown())

    wait_for(app, "Dismissed A note for you")
    assert device_push.wait_opened("/")


def test_a_message_with_data_alone_is_handled_without_a_screen(
    app: WebDriver, app_id: str, device_push: DevicePush
) -> None:
    app.terminate_app(app_id)
    device_push.send({"data": {"sync": "notes"}, "_contentAvailable": True}, application_id=app_id)

    app.activate_app(app_id)

    wait_for(app, "Synchronized notes")
    with pytest.raises(TimeoutError, match="no notification"):
        device_push.wait_shown(timeout_seconds=0)


@pytest.mark.usefixtures("app")
def test_ios_requires_a_flag_for_data_only_messages(device_push: DevicePush) -> None:
    if device_push.device.platform == "android":
        device_push.send({"data": {"sync": "notes"}})
        return
    with pytest.raises(ConfigError, match="_contentAvailable"):
        device_push.send({"data": {"sync": "notes"}})

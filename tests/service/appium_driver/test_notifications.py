"""The notification center of the device by its own `mobile:` script; examples/notifications answers what it shows."""

from typing import Any

import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import InvalidArgumentException, WebDriverException

from tests.service.appium_driver.conftest import APP_ID

SCRIPT = "mobile: localNotifications"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "'do' is missing"),
        ({"do": "explode"}, "explode"),
        ({"do": "push", "message": "{}"}, "no argument 'message'"),
    ],
)
def test_invalid_arguments_of_the_script_are_refused(
    android_driver: Remote, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidArgumentException, match=problem):
        android_driver.execute_script(SCRIPT, given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"do": "push", "data": "{}", "appId": APP_ID}, "has no active service worker"),
        (
            {"do": "push", "data": "{}", "appId": "com.other"},
            "com.other is not installed",
        ),
        ({"do": "push"}, "data is missing"),
        (
            {"do": "answer", "key": "7"},
            "no notification 7 in the list, available: none",
        ),
        (
            {"do": "dismiss", "key": "7"},
            "no notification 7 in the list, available: none",
        ),
    ],
)
def test_unsupported_actions_are_reported(
    iphone: Remote, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(WebDriverException, match=problem):
        iphone.execute_script(SCRIPT, given)


def test_shown_notifications_are_listed_with_the_current_url(phone: Remote) -> None:
    found = phone.execute_script(SCRIPT, {"do": "list"})

    assert found["shown"] == []
    assert found["address"].startswith("http://127.0.0.1:")


def test_xcuitests_own_script_is_refused_with_the_fix(iphone: Remote) -> None:
    with pytest.raises(
        WebDriverException,
        match="use 'mobile: localNotifications', or the fixture device_push",
    ):
        iphone.execute_script(
            "mobile: pushNotification", {"bundleId": APP_ID, "payload": {}}
        )


def test_a_user_denies_notifications(phone: Remote) -> None:
    post = {"permissions": "android.permission.POST_NOTIFICATIONS"}
    asked = "return Notification.requestPermission()"
    phone.execute_script("mobile: changePermissions", {**post, "action": "revoke"})
    phone.switch_to.context(phone.contexts[-1])
    try:
        assert phone.execute_script(asked) == "denied"
    finally:
        phone.switch_to.context("NATIVE_APP")
        phone.execute_script("mobile: changePermissions", {**post, "action": "grant"})

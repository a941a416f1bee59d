"""An app that leaves the screen and comes back."""

import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import (
    InvalidArgumentException,
    NoSuchElementException,
    WebDriverException,
)

from tests.service.appium_driver.conftest import APP_ID, seen
from tests.waiting import eventually

AWAY_SECONDS = 2
LAUNCHERS = {
    "phone": "com.google.android.apps.nexuslauncher",
    "iphone": "com.apple.springboard",
}


def in_front(driver: Remote) -> str:
    if driver.capabilities["platformName"].lower() == "ios":
        return str(driver.execute_script("mobile: activeAppInfo")["bundleId"])
    return str(driver.current_package)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_an_app_in_the_background_is_not_on_the_screen(
    name: str, request: pytest.FixtureRequest
) -> None:
    driver: Remote = request.getfixturevalue(name)
    title = seen(driver, "title")
    driver.implicitly_wait(0)

    driver.background_app(-1)

    with pytest.raises(NoSuchElementException):
        seen(driver, "title")
    with pytest.raises(WebDriverException, match=r"stale|no such element"):
        title.click()
    assert APP_ID not in driver.page_source
    assert in_front(driver) == LAUNCHERS[name]
    assert driver.query_app_state(APP_ID) == 3
    driver.activate_app(APP_ID)
    assert (title.text, in_front(driver), driver.query_app_state(APP_ID)) == (
        "Notes",
        APP_ID,
        4,
    )


def test_the_app_notices_that_it_is_hidden_and_its_timers_stop(phone: Remote) -> None:
    phone.get("notes:///life")
    assert seen(phone, "title").text == "Life"

    phone.background_app(AWAY_SECONDS)

    assert eventually(lambda: seen(phone, "states").text == "hidden visible")
    assert int(seen(phone, "pause").text) >= AWAY_SECONDS * 900
    assert phone.current_package == APP_ID


def test_the_apps_web_view_is_still_the_app_in_the_background(phone: Remote) -> None:
    phone.background_app(-1)
    phone.switch_to.context(f"WEBVIEW_{APP_ID}")
    assert phone.execute_script(
        "return [document.title, document.visibilityState]"
    ) == ["Notes", "hidden"]


@pytest.mark.parametrize("leave", [Remote.terminate_app, Remote.remove_app])
def test_an_app_can_be_terminated_in_the_background(
    phone: Remote, leave: object
) -> None:
    phone.background_app(-1)
    assert callable(leave)
    leave(phone, APP_ID)
    assert phone.query_app_state(APP_ID) in {0, 1}
    assert phone.current_package == LAUNCHERS["phone"]
    assert "Pixel" in phone.page_source


def test_a_link_brings_the_app_back(phone: Remote) -> None:
    phone.press_keycode(3)
    phone.get("notes://notes/3")
    assert seen(phone, "title").text == "Note 3"


def test_rotation_and_screenshots_work_while_the_app_is_in_the_background(
    phone: Remote,
) -> None:
    phone.background_app(-1)
    phone.orientation = "LANDSCAPE"
    assert phone.get_screenshot_as_png().startswith(b"\x89PNG")
    phone.activate_app(APP_ID)
    sizes = phone.get_window_size()
    phone.orientation = "PORTRAIT"
    assert sizes["width"] > sizes["height"]


def test_after_the_app_ends_the_launcher_is_in_front(phone: Remote) -> None:
    phone.terminate_app(APP_ID)
    assert (phone.current_package, phone.current_activity) == (
        LAUNCHERS["phone"],
        ".NexusLauncherActivity",
    )


@pytest.mark.parametrize("seconds", ["soon", 601])
def test_an_excessive_background_time_is_refused(
    phone: Remote, seconds: object
) -> None:
    with pytest.raises(
        InvalidArgumentException,
        match=f"seconds must be a number up to 600, not {seconds}",
    ):
        phone.execute_script("mobile: backgroundApp", {"seconds": seconds})
    assert phone.query_app_state(APP_ID) == 4

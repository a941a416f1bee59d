"""Alerts and selection lists as views: in the source, in finds, touches and pictures, and what works while they are open."""

import base64
import struct
import zlib
from collections.abc import Generator
from contextlib import suppress

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import (
    NoAlertPresentException,
    NoSuchElementException,
    UnexpectedAlertPresentException,
    WebDriverException,
)

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import (
    WAIT_SECONDS,
    WEBM,
    driven,
    seen,
    without_wait,
)
from tests.service.appium_driver.test_native_context import PAGES, PAGES_ID, first_page
from tests.waiting import eventually

PACKAGE = "android:id/"


@pytest.fixture(scope="module")
def opened(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(PAGES), "appPackage": PAGES_ID}) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        yield driver


@pytest.fixture
def driver(opened: Remote) -> Generator[Remote]:
    yield first_page(opened)
    with suppress(NoAlertPresentException):
        opened.switch_to.alert.dismiss()


@pytest.fixture(scope="module")
def opened_on_ios(ios: Session) -> Generator[Remote]:
    with driven(ios, {"app": str(PAGES), "bundleId": PAGES_ID}) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        yield driver


def part(driver: Remote, name: str) -> str:
    return driver.find_element(By.ID, f"{PACKAGE}{name}").text


def ask(driver: Remote) -> None:
    seen(driver, "confirm").click()


def is_shown(driver: Remote) -> bool:
    return bool(driver.find_elements(By.ID, f"{PACKAGE}message"))


def pixels(png: bytes) -> set[bytes]:
    """Return some rows of a PNG: they differ if the picture does."""
    at, data = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return {zlib.decompress(data)}


def test_an_alert_has_a_title_a_message_and_buttons(driver: Remote) -> None:
    ask(driver)
    assert part(driver, "alertTitle").startswith('The page at "http://127.0.0.1:')
    assert part(driver, "message") == 'Really?\nFor <ever> & "all"'
    assert (part(driver, "button1"), part(driver, "button2")) == ("OK", "Cancel")
    source = driver.page_source
    assert 'resource-id="android:id/alertTitle"' in source
    assert "counter" not in source


def test_views_of_an_alert_have_a_place_and_a_picture(driver: Remote) -> None:
    before = pixels(driver.get_screenshot_as_png())
    ask(driver)
    size, button = (
        driver.get_window_size(),
        driver.find_element(By.ID, f"{PACKAGE}button1"),
    )
    assert (
        0 < button.rect["x"] < button.rect["x"] + button.rect["width"] < size["width"]
    )
    assert button.screenshot_as_png.startswith(b"\x89PNG")
    assert pixels(driver.get_screenshot_as_png()) != before


@pytest.mark.parametrize(("name", "heard"), [("button1", "true"), ("button2", "false")])
def test_a_tap_on_a_button_closes_an_alert(
    driver: Remote, name: str, heard: str
) -> None:
    ask(driver)
    box = driver.find_element(By.ID, f"{PACKAGE}{name}").rect
    driver.tap([(box["x"] + box["width"] // 2, box["y"] + box["height"] // 2)])
    assert seen(driver, "heard").text == heard
    with without_wait(driver):
        assert not driver.find_elements(By.ID, f"{PACKAGE}message")


def test_a_tap_beside_the_buttons_leaves_an_alert_open(driver: Remote) -> None:
    ask(driver)
    driver.tap([(5, 5)])
    assert is_shown(driver)


def test_the_back_key_dismisses_an_alert(driver: Remote) -> None:
    ask(driver)
    driver.press_keycode(4)
    assert seen(driver, "heard").text == "false"


def test_a_text_is_typed_into_a_prompt(driver: Remote) -> None:
    seen(driver, "ask").click()
    field = driver.find_element(By.CLASS_NAME, "android.widget.EditText")
    assert field.text == "nobody"
    field.clear()
    field.send_keys("me")
    driver.find_element(By.ID, f"{PACKAGE}button1").click()
    assert seen(driver, "heard").text == "me"

    seen(driver, "ask").click()
    driver.find_element(By.CLASS_NAME, "android.widget.EditText").send_keys(" else")
    driver.switch_to.alert.accept()
    assert seen(driver, "heard").text == "me nobody else"


def test_the_device_works_while_an_alert_is_open(driver: Remote) -> None:
    ask(driver)
    upright = driver.get_window_size()
    driver.orientation = "LANDSCAPE"
    turned = driver.get_window_size()
    assert is_shown(driver)
    driver.orientation = "PORTRAIT"
    states = [driver.query_app_state(PAGES_ID), driver.current_package]
    driver.background_app(-1)
    with without_wait(driver):
        states += [driver.query_app_state(PAGES_ID), is_shown(driver)]
    driver.activate_app(PAGES_ID)
    states += [driver.query_app_state(PAGES_ID), is_shown(driver)]

    assert (turned["width"], turned["height"]) == (upright["height"], upright["width"])
    assert states == [4, PAGES_ID, 3, False, 4, True]
    driver.switch_to.alert.accept()
    assert seen(driver, "heard").text == "true"
    assert driver.get_window_size() == upright


def test_the_page_is_as_wide_as_the_screen_after_an_alert(driver: Remote) -> None:
    ask(driver)
    driver.orientation = "LANDSCAPE"
    try:
        driver.switch_to.alert.accept()
        assert eventually(
            lambda: (
                driver.get_window_size()["width"] > driver.get_window_size()["height"]
            )
        )
    finally:
        driver.orientation = "PORTRAIT"


def test_the_clipboard_works_while_an_alert_is_open(driver: Remote) -> None:
    driver.set_clipboard_text("before")
    ask(driver)
    assert driver.get_clipboard_text() == "before"
    driver.set_clipboard_text("naïve")
    driver.switch_to.alert.accept()
    assert driver.get_clipboard_text() == "naïve"


def test_a_recording_goes_on_while_an_alert_is_open(driver: Remote) -> None:
    driver.start_recording_screen()
    ask(driver)
    assert part(driver, "message")
    driver.switch_to.alert.accept()
    seen(driver, "counter").click()
    movie = base64.b64decode(driver.stop_recording_screen())
    assert movie.startswith(WEBM)
    assert seen(driver, "counter").text == "1"


def test_an_alert_that_follows_an_alert_is_shown(driver: Remote) -> None:
    seen(driver, "twice").click()
    assert part(driver, "message") == "one"
    driver.find_element(By.ID, f"{PACKAGE}button1").click()
    assert part(driver, "message") == "two"
    driver.switch_to.alert.accept()
    with pytest.raises(NoAlertPresentException):
        driver.switch_to.alert.accept()
    assert seen(driver, "heard").text == "done"


def test_an_alert_of_a_window_that_opens_is_shown(driver: Remote) -> None:
    seen(driver, "open-alert").click()
    assert part(driver, "message") == "At once"
    assert driver.get_screenshot_as_png()
    driver.find_element(By.ID, f"{PACKAGE}button1").click()
    assert seen(driver, "title").text == "After the alert"

    seen(driver, "close").click()
    assert part(driver, "message") == "From the second window"
    driver.switch_to.alert.accept()
    assert eventually(lambda: seen(driver, "title").text == "First")


def test_an_alert_that_opens_during_a_find_is_found(driver: Remote) -> None:
    seen(driver, "busy-alert").click()
    # The app is busy for a second before its alert: a find waits for it meanwhile.
    assert part(driver, "message") == "Finished"
    driver.switch_to.alert.accept()


def test_the_app_is_out_of_reach_behind_an_alert(driver: Remote) -> None:
    counter = seen(driver, "counter")
    ask(driver)
    with without_wait(driver):
        with pytest.raises(NoSuchElementException):
            seen(driver, "counter")
        with pytest.raises(UnexpectedAlertPresentException, match="Really"):
            counter.click()


def test_a_list_opens_and_sets_the_option_that_is_tapped(driver: Remote) -> None:
    seen(driver, "colour").click()
    options = driver.find_elements(By.ID, f"{PACKAGE}text1")
    assert [option.text for option in options] == ["red", "grey", "green", "blue"]
    assert [option.get_attribute("checked") for option in options] == [
        "true",
        "false",
        "false",
        "false",
    ]
    assert [option.is_enabled() for option in options] == [True, False, True, True]
    options[1].click()
    options[2].click()
    assert seen(driver, "heard").text == "green"
    with without_wait(driver):
        assert not driver.find_elements(By.ID, f"{PACKAGE}text1")


def test_several_options_are_chosen_by_ticks_and_a_button(driver: Remote) -> None:
    seen(driver, "colours").click()
    options = driver.find_elements(By.ID, f"{PACKAGE}text1")
    options[0].click()
    options[1].click()
    ticks = [option.get_attribute("checked") for option in options]
    assert ticks == ["true", "false", "true", "false"]

    driver.find_element(By.ID, f"{PACKAGE}button1").click()

    assert seen(driver, "heard").text == "red,grey"
    with without_wait(driver):
        assert not driver.find_elements(By.ID, f"{PACKAGE}text1")


@pytest.mark.parametrize("keycode", [4, 111], ids=["back", "escape"])
def test_the_back_and_the_escape_key_close_a_list(driver: Remote, keycode: int) -> None:
    seen(driver, "colour").click()
    assert driver.find_elements(By.ID, f"{PACKAGE}text1")
    driver.press_keycode(keycode)
    with without_wait(driver):
        assert not driver.find_elements(By.ID, f"{PACKAGE}text1")
    assert seen(driver, "colour").text == "red"


def test_an_alert_because_of_a_choice_is_shown_instead_of_the_list(
    driver: Remote,
) -> None:
    seen(driver, "announced").click()
    driver.find_element(By.XPATH, "//*[@text='south']").click()
    assert part(driver, "message") == "south"
    with without_wait(driver):
        assert not driver.find_elements(By.ID, f"{PACKAGE}text1")

    driver.switch_to.alert.accept()

    assert seen(driver, "announced").text == "south"
    assert seen(driver, "heard").text == "announced"


def test_a_field_that_opens_an_alert_is_filled_and_cleared(driver: Remote) -> None:
    day = seen(driver, "day")
    day.send_keys("2026-01-02")
    assert part(driver, "message") == "2026-01-02"
    driver.switch_to.alert.accept()
    day.clear()
    assert part(driver, "message") == "No day"
    driver.switch_to.alert.accept()

    assert seen(driver, "heard").text == "day day"


def test_an_alert_and_a_list_on_ios(opened_on_ios: Remote) -> None:
    driver = opened_on_ios
    seen(driver, "confirm").click()
    alert = driver.find_element(By.CLASS_NAME, "XCUIElementTypeAlert")
    assert str(alert.get_attribute("label")).startswith("Really?")
    buttons = alert.find_elements(By.CLASS_NAME, "XCUIElementTypeButton")
    assert [button.text for button in buttons] == ["Cancel", "OK"]
    buttons[1].click()
    assert seen(driver, "heard").text == "true"
    seen(driver, "ask").click()
    driver.switch_to.alert.send_keys("me")
    field = driver.find_element(By.CLASS_NAME, "XCUIElementTypeTextField")
    assert field.text == "me"
    driver.switch_to.alert.accept()
    assert seen(driver, "heard").text == "true me"
    seen(driver, "confirm").click()
    with pytest.raises(WebDriverException, match="contains no input fields"):
        driver.switch_to.alert.send_keys("me")
    driver.switch_to.alert.dismiss()


def test_a_wheel_of_ios_sets_the_option_that_it_is_turned_to(
    opened_on_ios: Remote,
) -> None:
    driver = opened_on_ios
    driver.terminate_app(PAGES_ID)
    driver.activate_app(PAGES_ID)
    seen(driver, "colour").click()
    wheel = driver.find_element(By.CLASS_NAME, "XCUIElementTypePickerWheel")
    assert wheel.get_attribute("value") == "red"

    turn(driver, wheel, "next")
    assert wheel.get_attribute("value") == "green"
    wheel.send_keys("blue")
    turn(driver, wheel, "previous")
    with pytest.raises(WebDriverException, match="its options are 'red', 'grey'"):
        wheel.send_keys("pink")
    with pytest.raises(WebDriverException, match="the option 'grey' is disabled"):
        wheel.send_keys("grey")
    wheel.send_keys("red")
    with pytest.raises(WebDriverException, match="no previous value: it is at 'red'"):
        turn(driver, wheel, "previous")
    driver.find_element(By.ACCESSIBILITY_ID, "Done").click()

    with without_wait(driver):
        assert not driver.find_elements(By.CLASS_NAME, "XCUIElementTypePickerWheel")
    assert seen(driver, "heard").text == "green blue green red"
    assert seen(driver, "colour").text == "red"


def turn(driver: Remote, wheel: WebElement, order: str) -> None:
    driver.execute_script(
        "mobile: selectPickerWheelValue", {"elementId": wheel.id, "order": order}
    )


def test_only_a_wheel_can_be_turned(opened_on_ios: Remote) -> None:
    button = seen(opened_on_ios, "counter")
    with pytest.raises(WebDriverException, match="'XCUIElementTypeButton' was given"):
        turn(opened_on_ios, button, "next")
    with pytest.raises(WebDriverException, match="Only 'previous' and 'next' order"):
        turn(opened_on_ios, button, "up")


def test_an_alert_because_of_a_wheel_is_shown_instead_of_it(
    opened_on_ios: Remote,
) -> None:
    driver = opened_on_ios
    driver.terminate_app(PAGES_ID)
    driver.activate_app(PAGES_ID)
    seen(driver, "announced").click()
    wheel = (By.CLASS_NAME, "XCUIElementTypePickerWheel")
    driver.find_element(*wheel).send_keys("south")
    alert = driver.find_element(By.CLASS_NAME, "XCUIElementTypeAlert")
    assert alert.get_attribute("label") == "south"
    with without_wait(driver):
        assert not driver.find_elements(*wheel)

    driver.switch_to.alert.accept()

    assert seen(driver, "heard").text == "announced"

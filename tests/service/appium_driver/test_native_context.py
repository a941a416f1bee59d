"""How the native context drives the page: navigations, windows, frames, dialogs, keys and touches."""

import base64
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from appium.webdriver.extensions.android.nativekey import AndroidKey
from selenium.common.exceptions import (
    InvalidArgumentException,
    NoAlertPresentException,
    StaleElementReferenceException,
    TimeoutException,
    UnexpectedAlertPresentException,
    WebDriverException,
)
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import (
    WAIT_SECONDS,
    WEBM,
    by_test_id,
    driven,
    seen,
    without_wait,
)
from tests.spec.phones.row import Command
from tests.waiting import eventually

PAGES: Final = Path(__file__).parent / "pages"
PAGES_ID: Final = "org.example.pages"
TAPS: Final = 15
IN_FRONT: Final = 4
WEB_VIEW: Final = f"WEBVIEW_{PAGES_ID}"
COLOR_AT_CORNER: Final = """
    const [picture, done] = arguments;
    const image = new Image();
    image.onload = () => {
        const context = document.createElement('canvas').getContext('2d');
        context.drawImage(image, 0, 0);
        done(String(context.getImageData(4, 4, 1, 1).data));
    };
    image.src = `data:image/png;base64,${picture}`;"""
"""Returns the color of an image a few pixels from its corner."""
INSTALL: Final = {"app": str(PAGES), "appPackage": PAGES_ID}


@pytest.fixture(scope="module")
def opened(android: Session) -> Generator[Remote]:
    with driven(android, INSTALL) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        yield driver


def first_page(driver: Remote) -> Remote:
    """Return a driver with the first page of the app on the screen: a link takes half of the time of a restart."""
    driver.switch_to.context("NATIVE_APP")
    link = {"url": "pages:///", "package": PAGES_ID}
    driver.execute_script("mobile: deepLink", link)
    return driver


@pytest.fixture
def driver(opened: Remote) -> Remote:
    return first_page(opened)


def chromedrivers() -> set[int]:
    return {
        process.pid
        for process in psutil.Process().children(recursive=True)
        if "chromedriver" in process.name()
    }


def test_chromedriver_starts_with_the_first_web_context(
    driver: Remote, android: Session
) -> None:
    driver.terminate_app(PAGES_ID)
    before = chromedrivers()

    with driven(android, INSTALL) as other:
        seen(other, "link").click()
        in_native_context = chromedrivers() - before
        other.switch_to.context(WEB_VIEW)
        title = other.title
        other.set_script_timeout(0.2)
        with pytest.raises(TimeoutException):
            other.execute_async_script("")
        in_web_context = chromedrivers() - before
        other.switch_to.context("NATIVE_APP")
        other.switch_to.context(WEB_VIEW)
        in_next_one = chromedrivers() - before

    assert (in_native_context, title) == (set(), "Second")
    assert len(in_web_context) == 1
    assert in_next_one == in_web_context
    assert not in_web_context & chromedrivers()


@pytest.mark.parametrize("begin", ["click", "key", "action"])
def test_a_command_waits_for_the_navigation_before_it(
    driver: Remote, begin: str
) -> None:
    with without_wait(driver):
        if begin == "click":
            seen(driver, "link").click()
        else:
            seen(driver, "query").send_keys("milk")
            if begin == "key":
                driver.press_keycode(AndroidKey.ENTER)
            else:
                action = {"action": "search"}
                driver.execute_script("mobile: performEditorAction", action)
        assert seen(driver, "title").text == "Second"


def test_an_element_of_a_page_that_was_left_is_stale(driver: Remote) -> None:
    (title,) = driver.find_elements(*by_test_id("title"))  # is not found again
    seen(driver, "link").click()
    with pytest.raises(StaleElementReferenceException):
        _ = title.text
    driver.back()
    assert seen(driver, "title").text == "First"
    with pytest.raises(StaleElementReferenceException):
        title.click()


def test_an_element_that_was_removed_is_stale(driver: Remote) -> None:
    title = seen(driver, "title")
    driver.switch_to.context(WEB_VIEW)
    driver.execute_script("document.querySelector('h1').remove()")
    driver.switch_to.context("NATIVE_APP")
    with pytest.raises(StaleElementReferenceException):
        _ = title.text


def test_both_contexts_accept_each_others_elements(driver: Remote) -> None:
    native = seen(driver, "text")
    driver.switch_to.context(WEB_VIEW)
    assert driver.execute_script("return arguments[0].dataset.testid", native) == "text"
    web = driver.find_element(By.CSS_SELECTOR, "[data-testid=query]")
    driver.switch_to.context("NATIVE_APP")
    assert web.get_attribute("content-desc") == "Query"
    web.send_keys("milk")
    assert web.text == "milk"


def test_an_element_of_a_frame_is_not_in_the_native_context(driver: Remote) -> None:
    driver.switch_to.context(WEB_VIEW)
    driver.switch_to.frame(0)
    inner = driver.find_element(By.CSS_SELECTOR, "[data-testid=inner]")
    assert inner.text == "Inside"
    driver.switch_to.context("NATIVE_APP")
    assert seen(driver, "title").text == "First"
    with pytest.raises(WebDriverException, match=r"frame.*web view"):
        _ = inner.text


def test_a_touch_may_close_the_window(driver: Remote) -> None:
    seen(driver, "open").click()
    assert eventually(lambda: seen(driver, "title").text == "Second")
    box = seen(driver, "close").rect
    finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}}
    point = {"x": box["x"] + box["width"] // 2, "y": box["y"] + box["height"] // 2}
    actions: list[dict[str, Any]] = [
        {"type": "pointerMove", "duration": 0, **point},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerUp", "button": 0},
        {"type": "pause", "duration": 300},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerUp", "button": 0},
    ]

    driver.execute("actions", {"actions": [{**finger, "actions": actions}]})

    assert eventually(lambda: seen(driver, "title").text == "First")


def test_a_second_window_is_on_the_screen_until_it_closes(driver: Remote) -> None:
    (title,) = driver.find_elements(*by_test_id("title"))  # is not found again
    seen(driver, "open").click()
    assert eventually(lambda: seen(driver, "title").text == "Second")
    with pytest.raises(WebDriverException, match="not on the screen"):
        _ = title.text
    seen(driver, "close").click()
    assert eventually(lambda: seen(driver, "title").text == "First")
    assert title.text == "First"

    seen(driver, "open").click()
    assert eventually(lambda: seen(driver, "title").text == "Second")
    driver.back()
    assert title.text == "First"


def test_a_document_without_elements_has_none(driver: Remote) -> None:
    seen(driver, "clear").click()
    with without_wait(driver):
        assert driver.find_elements(By.CLASS_NAME, "android.widget.Button") == []
    assert "<hierarchy" in driver.page_source
    with pytest.raises(NoAlertPresentException):
        driver.switch_to.alert.accept()


def test_scripts_of_the_app_do_not_change_the_answers(driver: Remote) -> None:
    assert seen(driver, "title").text == "First"
    driver.switch_to.context(WEB_VIEW)
    names = driver.execute_script("return Object.getOwnPropertyNames(window)")
    assert "pytestDevice" not in names


def test_a_custom_element_has_the_value_that_its_class_defines(driver: Remote) -> None:
    custom = seen(driver, "custom")
    assert custom.text == "first"
    custom.clear()
    driver.switch_to.context(WEB_VIEW)
    script = "return document.querySelector('x-field').value"
    assert driver.execute_script(script) == ""


def test_a_prompt_takes_no_text_by_an_alert_command_on_android(driver: Remote) -> None:
    seen(driver, "ask").click()
    assert driver.switch_to.alert.text == "Who?"
    with pytest.raises(WebDriverException, match=r"not yet been implemented.*EditText"):
        driver.switch_to.alert.send_keys("me")
    driver.switch_to.alert.dismiss()
    assert seen(driver, "heard").text == "null"
    with pytest.raises(NoAlertPresentException):
        _ = driver.switch_to.alert.text


def test_the_default_of_a_prompt_is_accepted(driver: Remote) -> None:
    seen(driver, "ask").click()
    driver.switch_to.alert.accept()
    assert seen(driver, "heard").text == "nobody"


def test_an_element_behind_an_alert_is_out_of_reach(driver: Remote) -> None:
    title = seen(driver, "title")
    seen(driver, "ask").click()
    try:
        with pytest.raises(UnexpectedAlertPresentException, match="Who"):
            title.click()
    finally:
        driver.switch_to.alert.dismiss()
    assert title.text == "First"


@pytest.mark.parametrize(
    ("capabilities", "heard"),
    [
        ({"unhandledPromptBehavior": "accept"}, "nobody"),
        ({"unhandledPromptBehavior": "dismiss"}, "null"),
        ({"unhandledPromptBehavior": "accept and notify"}, "nobody"),
    ],
)
def test_alerts_are_closed_as_the_capabilities_say(
    driver: Remote, android: Session, capabilities: dict[str, Any], heard: str
) -> None:
    driver.terminate_app(PAGES_ID)
    with driven(android, {**INSTALL, **capabilities}) as other:
        other.implicitly_wait(WAIT_SECONDS)
        seen(other, "ask").click()
        if "notify" in capabilities["unhandledPromptBehavior"]:
            with pytest.raises(UnexpectedAlertPresentException, match="Who"):
                seen(other, "heard")
        assert eventually(lambda: seen(other, "heard").text == heard)


def test_a_tap_falls_on_what_covers_the_element(driver: Remote) -> None:
    seen(driver, "covered").click()
    assert seen(driver, "heard").text == "cover"


def test_an_element_is_scrolled_into_view_before_it_is_clicked(driver: Remote) -> None:
    seen(driver, "below").click()
    assert seen(driver, "heard").text == "below"


def test_the_screenshot_of_an_element_is_where_the_page_was_scrolled_to(
    driver: Remote,
) -> None:
    element = seen(driver, "below")
    driver.switch_to.context(WEB_VIEW)
    driver.execute_script("arguments[0].style = 'background: lime'", element)
    driver.switch_to.context("NATIVE_APP")
    picture = element.screenshot_as_base64

    driver.switch_to.context(WEB_VIEW)
    assert driver.execute_script("return scrollY") > 0
    assert driver.execute_async_script(COLOR_AT_CORNER, picture) == "0,255,0,255"


def test_text_arrives_as_the_events_of_its_keys(driver: Remote) -> None:
    seen(driver, "text").send_keys("aB")
    ActionChains(driver).send_keys("é", Keys.ARROW_LEFT, "?").perform()
    assert seen(driver, "text").text == "aB?é"
    assert seen(driver, "heard").text.split() == [
        f"{kind}:{key}"
        for key in (
            "a:KeyA",
            "B:KeyB:shift",
            "é:",
            "ArrowLeft:ArrowLeft",
            "?:Slash:shift",
        )
        for kind in ("keydown", "keyup")
    ]


def test_a_special_key_in_a_text_is_refused(driver: Remote) -> None:
    field = seen(driver, "text")
    with pytest.raises(
        InvalidArgumentException,
        match="would type the key Enter as a character: press it with 'mobile: pressKey'",
    ):
        field.send_keys("milk", Keys.ENTER)


def test_actions_of_a_pointer_and_a_keyboard_reach_the_page(driver: Remote) -> None:
    field = seen(driver, "text")
    ActionChains(driver).move_to_element(field).click().key_down(Keys.SHIFT).send_keys(
        "a"
    ).key_up(Keys.SHIFT).send_keys("b").perform()
    assert field.text == "Ab"
    assert "keydown:A:KeyA:shift keyup:A:KeyA:shift" in seen(driver, "heard").text


def test_two_fingers_touch_at_once(driver: Remote) -> None:
    driver.switch_to.context(WEB_VIEW)
    driver.execute_script(
        "addEventListener('touchstart', ({ touches }) => hear(`${touches.length} fingers`))"
    )
    driver.switch_to.context("NATIVE_APP")
    fingers = [
        {
            "type": "pointer",
            "id": f"finger{x}",
            "parameters": {"pointerType": "touch"},
            "actions": [
                {"type": "pointerMove", "duration": 0, "x": x, "y": 600},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerUp", "button": 0},
            ],
        }
        for x in (50, 90)
    ]
    Command("POST", "/actions", {"actions": fingers})(driver)
    assert "2 fingers" in seen(driver, "heard").text


def test_a_movement_off_the_screen_is_refused(driver: Remote) -> None:
    with pytest.raises(WebDriverException, match=r"not on the screen"):
        driver.tap([(5000, 10)])


def test_timeouts_are_those_that_were_set(driver: Remote) -> None:
    driver.switch_to.context(WEB_VIEW)
    driver.set_page_load_timeout(77)
    driver.set_script_timeout(7)
    timeouts = driver.timeouts
    assert timeouts.page_load == 77
    assert timeouts.script == 7
    assert timeouts.implicit_wait == WAIT_SECONDS


def tap_often(driver: Remote, how: str) -> str:
    """Tap the counter; return what it shows at last."""
    counter = seen(driver, "counter")
    x, y = counter.rect["x"] + 5, counter.rect["y"] + 5
    for _ in range(TAPS):
        if how == "click":
            counter.click()
        elif how == "tap":
            driver.tap([(x, y)])
        else:
            driver.execute_script("mobile: clickGesture", {"elementId": counter.id})
    return counter.text


# `tap` and `gesture` send touches, `click` the events of a mouse: the gate has touches here, a mouse below.
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("click", marks=pytest.mark.nightly),
        "tap",
        pytest.param("gesture", marks=pytest.mark.nightly),
    ],
)
def test_every_tap_arrives_while_the_screen_is_recorded(
    driver: Remote, how: str
) -> None:
    driver.start_recording_screen()
    shown = tap_often(driver, how)
    movie = base64.b64decode(driver.stop_recording_screen())

    assert (shown, movie[:4]) == (str(TAPS), WEBM)


def test_a_recording_adds_no_window(driver: Remote) -> None:
    driver.start_recording_screen()
    assert driver.query_app_state(PAGES_ID) == IN_FRONT
    driver.switch_to.context(WEB_VIEW)
    windows = driver.window_handles
    driver.switch_to.context("NATIVE_APP")

    assert driver.stop_recording_screen()
    assert len(windows) == 1


@pytest.mark.parametrize(
    "how", ["click", pytest.param("tap", marks=pytest.mark.nightly)]
)
def test_every_tap_arrives_while_the_screen_is_watched(
    driver: Remote, android: Session, how: str
) -> None:
    preview = android.remote_config.web_preview_url  # type: ignore[union-attr]
    is_over = threading.Event()
    screens = list[int]()

    def watch() -> None:
        while not is_over.is_set():
            screens.append(httpx.get(f"{preview}/screen", timeout=20).status_code)

    with ThreadPoolExecutor(3) as viewers:
        try:
            watching = [viewers.submit(watch) for _ in range(3)]
            shown = tap_often(driver, how)
        finally:
            is_over.set()
        for viewer in watching:
            viewer.result()

    assert shown == str(TAPS)
    assert set(screens) == {200}

"""What a suite written for Android does on the local device."""

import base64
from typing import Any

import httpx
import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import (
    InvalidArgumentException,
    InvalidSelectorException,
    InvalidSessionIdException,
    NoSuchElementException,
    SessionNotCreatedException,
    UnknownMethodException,
    WebDriverException,
)

from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from tests.service.appium_driver.conftest import (
    APP,
    APP_ID,
    WAIT_SECONDS,
    WEBM,
    driven,
    fresh,
    without_wait,
)
from tests.waiting import eventually

VP8_KEY_FRAME = b"\x9d\x01\x2a"


@pytest.fixture
def driver(android_driver: Remote) -> Remote:
    return fresh(android_driver)


def by_id(driver: Remote, name: str) -> WebElement:
    selector = f'new UiSelector().resourceId("{name}")'
    return driver.find_element(By.ANDROID_UIAUTOMATOR, selector)


def add(driver: Remote, text: str) -> None:
    by_id(driver, "text").send_keys(text)
    driver.find_element(By.ACCESSIBILITY_ID, "Add note").click()


def test_a_locator_of_each_kind_finds_what_it_names(driver: Remote) -> None:
    add(driver, "Buy milk")
    selector = 'new UiSelector().className("android.widget.TextView").textStartsWith("buy").instance(0)'
    locators = {
        By.ANDROID_UIAUTOMATOR: selector,
        By.XPATH: '//android.view.ViewGroup[@resource-id="note-0"]/android.widget.TextView[@text="Buy milk"]',
        By.CSS_SELECTOR: "android.widget.TextView[text^=Buy]",
    }
    assert {driver.find_element(by, value).text for by, value in locators.items()} == {
        "Buy milk"
    }


def test_uiautomator_selectors_have_their_usual_meaning(driver: Remote) -> None:
    add(driver, "Buy milk")
    within = 'new UiSelector().resourceId("notes").childSelector(new UiSelector().className("android.widget.TextView"))'
    selectors = {
        'new UiSelector().textMatches("Buy.*")': "Buy milk",
        'new UiSelector().text("say \\"hi\\"")': None,
        within: "Buy milk",
        'new UiSelector().className("android.widget.TextView").instance(0)': "Notes",
        'new UiSelector().resourceId("count").enabled(true)': "You have 1 notes",
        'new UiSelector().text("Buy milk").fromParent(new UiSelector().index(0));': "Buy milk",
        'new UiScrollable(new UiSelector().scrollable(true)).scrollTextIntoView("Line 9")': "Line 9",
    }
    by_id(driver, "note-0")
    with without_wait(driver):
        found = {
            selector: driver.find_elements(By.ANDROID_UIAUTOMATOR, selector)
            for selector in selectors
        }
    assert {
        selector: hits[0].text if hits else None for selector, hits in found.items()
    } == selectors


@pytest.mark.parametrize(
    ("by", "value", "reason"),
    [
        (By.XPATH, "//*[", "not a valid XPath"),
        (
            By.ANDROID_UIAUTOMATOR,
            "new UiSelector().colour(3)",
            "UiSelector has no `colour` method",
        ),
        (
            By.ANDROID_UIAUTOMATOR,
            'new UiSelector().textMatches("(")',
            "not a regular expression",
        ),
        (
            By.IOS_PREDICATE,
            "label == 'x'",
            "the driver of Android has accessibility id",
        ),
    ],
)
def test_an_unsupported_locator_is_refused_with_the_unsupported_part(
    driver: Remote, by: str, value: str, reason: str
) -> None:
    with pytest.raises(InvalidSelectorException, match=reason):
        driver.find_element(by, value)


def test_an_element_that_is_not_rendered_is_not_found(driver: Remote) -> None:
    by_id(driver, "title")
    driver.implicitly_wait(0.1)
    with pytest.raises(NoSuchElementException, match="accessibility id: ghost"):
        driver.find_element(By.ACCESSIBILITY_ID, "ghost")


def test_the_implicit_wait_lasts_until_the_element_appears(driver: Remote) -> None:
    driver.get("notes://notes/3")
    assert by_id(driver, "title").text == "Note 3"


def test_an_element_is_searched_for_within_another(driver: Remote) -> None:
    add(driver, "Buy milk")
    texts = by_id(driver, "note-0").find_elements(By.XPATH, "//android.widget.TextView")
    assert [text.text for text in texts] == ["Buy milk"]


def test_attributes_are_those_of_a_native_view(driver: Remote) -> None:
    button = driver.find_element(By.ACCESSIBILITY_ID, "Add note")
    names = ("class", "content-desc", "resource-id", "package", "clickable", "text")
    values = {name: button.get_attribute(name) for name in names}
    assert values == {
        "class": "android.widget.Button",
        "content-desc": "Add note",
        "resource-id": "add",
        "package": APP_ID,
        "clickable": "true",
        "text": "",
    }
    assert button.get_attribute("bounds") == "[0,{y}][{width},{below}]".format(
        **button.rect, below=button.rect["y"] + button.rect["height"]
    )


def test_the_page_source_is_the_tree_that_xpath_searches(driver: Remote) -> None:
    add(driver, "Bread & butter")
    assert 'text="Bread &amp; butter"' in driver.page_source
    assert (
        driver.find_element(By.XPATH, '//*[@text="Bread & butter"]/..').get_attribute(
            "resource-id"
        )
        == "note-0"
    )


def test_text_with_inline_markup_is_one_view(driver: Remote) -> None:
    assert by_id(driver, "count").text == "You have 0 notes"
    assert 'text="0"' not in driver.page_source


def test_a_field_shows_its_hint_while_it_is_empty(driver: Remote) -> None:
    field = by_id(driver, "text")
    texts = [field.text, field.send_keys("abc").text, field.clear().text]
    assert texts == ["New note", "abc", "New note"]


def test_the_text_of_a_password_field_is_not_reported(driver: Remote) -> None:
    by_id(driver, "secret").send_keys("hunter2")
    assert by_id(driver, "secret").text == "•" * 7
    assert "hunter2" not in driver.page_source


def test_a_click_reaches_a_switch_below_its_drawing(driver: Remote) -> None:
    switch = driver.find_element(By.CLASS_NAME, "android.widget.Switch")
    switch.click()
    assert switch.get_attribute("checked") == "true"


def test_a_disabled_button_is_reported_as_disabled(driver: Remote) -> None:
    assert not driver.find_element(By.ACCESSIBILITY_ID, "Share").is_enabled()


def test_scrolling_into_view_brings_a_line_onto_the_screen(driver: Remote) -> None:
    line = driver.find_element(By.XPATH, '//*[@text="Line 35"]')
    assert not line.is_displayed()
    scroll = 'new UiScrollable(new UiSelector().scrollable(true)).scrollIntoView(new UiSelector().text("Line 35"))'
    assert driver.find_element(By.ANDROID_UIAUTOMATOR, scroll).is_displayed()


def test_a_swipe_moves_a_list(driver: Remote) -> None:
    box = by_id(driver, "notes").rect
    first = driver.find_element(By.XPATH, '//*[@text="Line 1"]')
    driver.swipe(box["x"] + 50, box["y"] + 220, box["x"] + 50, box["y"] + 20, 300)
    assert eventually(lambda: not first.is_displayed())


def test_scroll_gestures_report_the_end(driver: Remote) -> None:
    area: dict[str, Any] = {"elementId": by_id(driver, "notes").id, "direction": "Down"}
    more = [
        driver.execute_script("mobile: scrollGesture", {**area, "percent": percent})
        for percent in (1.0, 90.0)
    ]
    assert more == [True, False]


@pytest.mark.parametrize(
    ("gesture", "given", "seen"),
    [
        ("longClickGesture", {}, "menu"),
        ("doubleClickGesture", {"x": 1}, "twice"),  # half a point is ignored
        ("pinchOpenGesture", {"percent": 0.7}, "two fingers"),
    ],
)
def test_gestures_arrive_as_touches(
    driver: Remote, gesture: str, given: dict[str, float], seen: str
) -> None:
    driver.execute_script(
        f"mobile: {gesture}", {"elementId": by_id(driver, "title").id, **given}
    )
    assert eventually(lambda: by_id(driver, "touched").text == seen)


def test_an_alert_is_accepted_by_its_native_button(driver: Remote) -> None:
    add(driver, "Buy milk")
    driver.find_element(By.ACCESSIBILITY_ID, "Delete all").click()
    message = driver.find_element(By.ID, "android:id/message")
    assert message.text == "Delete all notes?"
    driver.find_element(By.XPATH, '//android.widget.Button[@text="OK"]').click()
    assert by_id(driver, "count").text == "You have 0 notes"


def test_an_alert_is_dismissed_by_the_webdriver_command(driver: Remote) -> None:
    add(driver, "Buy milk")
    driver.find_element(By.ACCESSIBILITY_ID, "Delete all").click()
    driver.switch_to.alert.dismiss()
    assert by_id(driver, "count").text == "You have 1 notes"


def test_an_app_goes_through_all_states(driver: Remote) -> None:
    states = [driver.query_app_state(APP_ID)]
    assert driver.terminate_app(APP_ID)
    states.append(driver.query_app_state(APP_ID))
    driver.activate_app(APP_ID).background_app(-1)
    states.append(driver.query_app_state(APP_ID))
    driver.activate_app(APP_ID)
    assert [*states, driver.query_app_state(APP_ID)] == [4, 1, 3, 4]


def test_an_app_is_installed_and_removed(driver: Remote) -> None:
    assert driver.is_app_installed(APP_ID)
    driver.remove_app(APP_ID)
    assert not driver.is_app_installed(APP_ID)
    driver.install_app(str(APP)).activate_app(APP_ID)
    assert (driver.current_package, driver.current_activity) == (
        APP_ID,
        ".MainActivity",
    )


def test_a_deep_link_opens_its_path_and_the_back_key_returns(driver: Remote) -> None:
    by_id(driver, "title")
    driver.execute_script(
        "mobile: deepLink", {"url": "notes://notes/7?from=mail", "package": APP_ID}
    )
    assert (by_id(driver, "title").text, by_id(driver, "from").text) == (
        "Note 7",
        "mail",
    )
    driver.press_keycode(4)
    assert eventually(lambda: by_id(driver, "title").text == "Notes")


def test_keys_are_typed_into_the_focused_element(driver: Remote) -> None:
    by_id(driver, "text").click()
    assert driver.is_keyboard_shown()
    for code in (29, 8, 62, 30, 17, 149):
        driver.press_keycode(code)
    for shift in (0x1, 0x80):  # either key, the right one
        driver.press_keycode(31, metastate=shift)
    driver.hide_keyboard()
    assert by_id(driver, "text").text == "a1 b*5CC"
    assert not driver.is_keyboard_shown()


def test_the_screen_rotates(driver: Remote) -> None:
    upright = driver.get_window_size()
    driver.orientation = "LANDSCAPE"
    orientation, turned = driver.orientation, driver.get_window_size()
    driver.switch_to.context(f"WEBVIEW_{APP_ID}")
    in_web_view = driver.get_window_size()
    driver.switch_to.context("NATIVE_APP")
    driver.orientation = "PORTRAIT"
    assert orientation == "LANDSCAPE"
    assert turned == {"width": upright["height"], "height": upright["width"]}
    assert in_web_view == turned


def test_the_clipboard_is_written_and_read(driver: Remote) -> None:
    assert driver.set_clipboard_text("naïve").get_clipboard_text() == "naïve"


def test_the_page_gets_the_location_that_was_set(driver: Remote) -> None:
    driver.set_location(48.1, 11.5)
    allowed = {"permissions": "android.permission.ACCESS_FINE_LOCATION"}
    driver.execute_script("mobile: changePermissions", allowed)
    driver.switch_to.context(driver.contexts[1])
    ask = "navigator.geolocation.getCurrentPosition(({coords}) => arguments[0]([coords.latitude, coords.longitude]))"
    assert driver.execute_async_script(ask) == [48.1, 11.5]
    driver.execute_script("mobile: resetGeolocation")
    with pytest.raises(WebDriverException, match="no location is set"):
        driver.execute_script("mobile: getGeolocation")


def test_an_unused_session_ends(driver: Remote, android: Session) -> None:
    driver.terminate_app(APP_ID)

    def left_alone() -> None:
        with driven(android, {"appPackage": APP_ID, "newCommandTimeout": 1}) as lost:
            assert eventually(lambda: driver.query_app_state(APP_ID) == 1)
            by_id(lost, "title")

    with pytest.raises(InvalidSessionIdException):
        left_alone()


def test_airplane_mode_disables_the_network(driver: Remote) -> None:
    driver.execute_script("mobile: setConnectivity", {"airplaneMode": True})
    driver.switch_to.context(driver.contexts[1])
    offline = driver.execute_script("return navigator.onLine")
    driver.execute_script("mobile: setConnectivity", {"airplaneMode": False})
    assert (offline, driver.execute_script("return navigator.onLine")) == (False, True)


def test_permissions_are_granted_and_revoked(driver: Remote) -> None:
    camera = {"permissions": "android.permission.CAMERA"}
    driver.execute_script("mobile: changePermissions", camera)
    granted = driver.execute_script("mobile: getPermissions", {"type": "granted"})
    driver.execute_script("mobile: changePermissions", {**camera, "action": "revoke"})
    assert "android.permission.CAMERA" in granted
    assert "android.permission.CAMERA" in driver.execute_script(
        "mobile: getPermissions", {"type": "denied"}
    )


def test_the_web_view_is_a_web_page(driver: Remote) -> None:
    assert driver.contexts == ["NATIVE_APP", f"WEBVIEW_{APP_ID}"]
    driver.switch_to.context(f"WEBVIEW_{APP_ID}")
    assert driver.execute_script("return location.pathname") == "/"
    assert driver.find_element(By.CSS_SELECTOR, "#root").tag_name == "div"
    with pytest.raises(
        InvalidArgumentException, match=r'use the CSS selector \[id="root"\]'
    ):
        driver.find_element(By.ID, "root")


def test_the_log_has_the_apps_output_since_the_last_read(driver: Remote) -> None:
    driver.get_log("logcat")
    add(driver, "Buy milk")
    messages = [line["message"] for line in driver.get_log("logcat")]
    assert "added Buy milk" in messages
    assert "added Buy milk" not in [
        line["message"] for line in driver.get_log("logcat")
    ]


def test_the_screenshot_has_the_size_of_the_screen(driver: Remote) -> None:
    header = base64.b64decode(driver.get_screenshot_as_base64())[16:24]
    size = (int.from_bytes(header[:4]), int.from_bytes(header[4:]))
    assert "{}x{}".format(*size) == driver.capabilities["deviceScreenSize"]


def test_a_recording_is_a_movie_of_the_screen(driver: Remote) -> None:
    driver.start_recording_screen(timeLimit=60)
    add(driver, "Buy milk")
    movie = base64.b64decode(driver.stop_recording_screen())
    assert movie.startswith(WEBM)
    # The last frame is repeated at the end; tests/red plays such a video in a browser.
    assert movie.count(VP8_KEY_FRAME) >= 2


def test_a_recording_of_a_moment_has_a_picture(driver: Remote) -> None:
    # Of those of a page that draws nothing meanwhile, two in five had one by chance.
    for _ in range(5):
        driver.start_recording_screen()
        assert base64.b64decode(driver.stop_recording_screen()).startswith(WEBM)


def test_a_new_recording_returns_the_one_before_unless_it_is_forced(
    driver: Remote,
) -> None:
    driver.start_recording_screen()
    add(driver, "Buy milk")
    assert driver.start_recording_screen(forceRestart=True) == ""
    add(driver, "Buy bread")
    assert base64.b64decode(driver.start_recording_screen()).startswith(WEBM)
    driver.stop_recording_screen()


@pytest.mark.parametrize("limit", ["long", 0, 1801])
def test_an_impossible_limit_of_a_recording_is_refused(
    driver: Remote, limit: object
) -> None:
    with pytest.raises(InvalidArgumentException, match=f"up to 1800, not {limit}"):
        driver.start_recording_screen(timeLimit=limit)


def test_missing_device_features_are_refused_with_the_reason(driver: Remote) -> None:
    with pytest.raises(
        UnknownMethodException,
        match=r"does not support 'mobile: shell'.*docs/local-appium.md",
    ):
        driver.execute_script("mobile: shell", {"command": "ls"})
    with pytest.raises(UnknownMethodException, match="'mobile: localNotifications'"):
        driver.open_notifications()


def test_an_unknown_script_is_refused_by_name(driver: Remote) -> None:
    with pytest.raises(UnknownMethodException, match="'mobile: fly' is not supported"):
        driver.execute_script("mobile: fly")


def test_javascript_is_refused_in_the_native_context(driver: Remote) -> None:
    with pytest.raises(
        UnknownMethodException, match="switch to the web view's context"
    ):
        driver.execute_script("return 1")


def test_an_unsupported_key_is_refused(driver: Remote) -> None:
    with pytest.raises(InvalidArgumentException, match="key code 24"):
        driver.press_keycode(24)


def test_a_session_starts_with_an_empty_app_and_the_arguments_of_its_intent(
    driver: Remote, android: Session
) -> None:
    add(driver, "Buy milk")
    arguments = {
        "appium:optionalIntentArguments": '--es place "home now"',
        "appium:noReset": False,
    }
    with driven(android, {"appium:appPackage": APP_ID, **arguments}) as other:
        other.implicitly_wait(WAIT_SECONDS)
        assert by_id(other, "count").text == "You have 0 notes"
        assert by_id(other, "arguments").text == "--es place home now"


def test_a_session_with_no_reset_keeps_the_apps_data(
    driver: Remote, android: Session
) -> None:
    add(driver, "Buy milk")
    with driven(
        android, {"appium:appPackage": APP_ID, "appium:noReset": True}
    ) as other:
        other.implicitly_wait(WAIT_SECONDS)
        assert by_id(other, "count").text == "You have 1 notes"
    # The end of a session leaves the browser running.
    assert driver.activate_app(APP_ID).current_package == APP_ID


def test_a_session_starts_on_the_screen_as_it_was_before_the_last_one(
    driver: Remote, android: Session
) -> None:
    before = driver.get_window_size()
    with driven(android, {"appPackage": APP_ID}) as other:
        other.orientation = "LANDSCAPE"

    with driven(android, {"appPackage": APP_ID}) as next_one:
        assert next_one.orientation == "PORTRAIT"
        assert next_one.get_window_size() == before


def test_a_session_starts_even_if_the_last_one_left_a_page_open(
    driver: Remote, android: Session
) -> None:
    del driver  # which has installed the app
    kept = {"appPackage": APP_ID, "shouldTerminateApp": False}
    with driven(android, kept) as other:
        other.switch_to.context(f"WEBVIEW_{APP_ID}")
        other.execute_script("window.open('about:blank')")

    with driven(android, {"appPackage": APP_ID}) as next_one:
        assert by_id(next_one, "text").is_displayed()


def test_the_page_has_the_requested_language_and_region(
    driver: Remote, android: Session
) -> None:
    driver.terminate_app(APP_ID)
    spoken = {
        "appium:language": "de",
        "appium:locale": "CH",
        "appium:timeZone": "Asia/Tokyo",
    }
    with driven(android, {"appium:appPackage": APP_ID, **spoken}) as other:
        other.switch_to.context(other.contexts[1])
        script = "return [navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone]"
        assert other.execute_script(script) == ["de-CH", "Asia/Tokyo"]


@pytest.mark.parametrize(
    ("capabilities", "reason"),
    [
        ({"app": "/nowhere/app.zip"}, "/nowhere/app.zip"),
        ({"timeZone": "Mars/Base"}, "timeZone must be .*, not Mars/Base"),
        (
            {"pageLoadStrategy": "fast"},
            r"'pageLoadStrategy' must be contained by .*\"eager\"",
        ),
        (
            {"unhandledPromptBehavior": "accept and tell"},
            r"'unhandledPromptBehavior' must be contained by .*\"ignore\"",
        ),
        (
            {"autoGrantPermissions": "maybe"},
            "'autoGrantPermissions' must be of type boolean",
        ),
        ({"otherApps": [str(APP)]}, "'otherApps' must be of type string"),
        ({"otherApps": "[one"}, r"otherApps must be JSON, not \[one"),
        (
            {"appPackage": "org.example.other"},
            f"org.example.other is not installed.*installed: .*{APP_ID}",
        ),
    ],
)
def test_an_unavailable_app_or_value_is_named(
    driver: Remote, android: Session, capabilities: dict[str, Any], reason: str
) -> None:
    assert driver.is_app_installed(APP_ID)
    with (
        pytest.raises(SessionNotCreatedException, match=reason),
        driven(android, capabilities),
    ):
        pass


@pytest.mark.parametrize(
    ("capabilities", "named"),
    [
        ({"appium:logPath": "/tmp/made-up.log"}, "appium:logPath"),
        ({"verbose": True}, "appium:verbose"),
        ({"appium:chromedriverExecutable": "/bin/sh"}, "appium:chromedriverExecutable"),
        ({"appium:executable": "/bin/sh"}, "appium:executable"),
        ({"appium:chromedriverPort": 9515}, "appium:chromedriverPort"),
        ({"appium:options": {"logPath": "/tmp/made-up.log"}}, "appium:logPath"),
        ({"webSocketUrl": True}, "webSocketUrl"),
        ({"goog:chromeOptions": {"binary": "/bin/sh"}}, "goog:chromeOptions.binary"),
        (
            {"goog:chromeOptions": {"debuggerAddress": "127.0.0.1:1"}},
            "goog:chromeOptions.debuggerAddress",
        ),
        (
            {"goog:chromeOptions": {"args": ["--remote-debugging-port=9"]}},
            "goog:chromeOptions.args remote-debugging-port",
        ),
        (
            {"goog:chromeOptions": {"args": ["load-extension=/tmp/x"]}},
            "goog:chromeOptions.args load-extension",
        ),
    ],
)
def test_a_capability_that_affects_the_services_machine_is_refused_by_name(
    android: Session, capabilities: dict[str, Any], named: str
) -> None:
    refused = f"the capability {named} is refused: it would .* of the machine that runs the service. Leave it out"
    with (
        pytest.raises(SessionNotCreatedException, match=refused),
        driven(android, capabilities),
    ):
        pass


def test_a_capability_is_refused_wherever_it_is_nested(android: Session) -> None:
    config = android.remote_config
    assert isinstance(config, AppiumConfig)
    capabilities = {
        "alwaysMatch": config.capabilities,
        "firstMatch": [{"appium:logPath": "/tmp/made-up.log"}],
    }

    reply = httpx.post(
        f"{config.appium_url}/session", json={"capabilities": capabilities}, timeout=20
    )

    assert reply.json()["value"]["error"] == "session not created"
    assert (
        "the capability appium:logPath is refused" in reply.json()["value"]["message"]
    )

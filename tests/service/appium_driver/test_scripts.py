"""What the `mobile:` scripts accept: those of the platform, with their arguments.

A script that is refused does not need the app: these tests use the drivers as they are.
"""

from datetime import datetime
from typing import Any

import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import (
    InvalidArgumentException,
    UnknownMethodException,
    WebDriverException,
)

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import APP, APP_ID, WAIT_SECONDS, driven, seen
from tests.spec.phones.row import Command

PLACE = {"direction": "down", "left": 10, "top": 10, "width": 100, "height": 100}


@pytest.mark.parametrize(
    "script", ["activeAppInfo", "touchAndHold", "alert", "sendBiometricMatch"]
)
def test_an_ios_script_is_refused_on_android(
    android_driver: Remote, script: str
) -> None:
    with pytest.raises(
        UnknownMethodException,
        match=f"'mobile: {script}' is a script of iOS, this is Android",
    ):
        android_driver.execute_script(
            f"mobile: {script}", {"duration": 1, "action": "accept"}
        )


@pytest.mark.parametrize(
    "script", ["getCurrentPackage", "clickGesture", "acceptAlert", "shell"]
)
def test_an_android_script_is_refused_on_ios(ios_driver: Remote, script: str) -> None:
    with pytest.raises(
        UnknownMethodException,
        match=f"'mobile: {script}' is a script of Android, this is iOS",
    ):
        ios_driver.execute_script(f"mobile: {script}", {"x": 1, "y": 1})


@pytest.mark.parametrize(
    ("script", "given", "reason"),
    [
        ("activateApp", {}, "'appId' is missing"),
        ("activateApp", {"bundleId": APP_ID}, "'appId' is missing"),
        ("deepLink", {"package": APP_ID}, "'url' is missing"),
        ("swipeGesture", {**PLACE}, "'percent' is missing"),
        (
            "swipeGesture",
            {"direction": "up", "percent": 0.5},
            r"'elementId' or 'left', 'top', 'width', 'height'",
        ),
        ("clickGesture", {"x": 5}, "'elementId' or 'x', 'y'"),
        ("pressKey", {}, "'keycode' is missing"),
        ("type", {"text": None}, "'text' is missing"),
        ("changePermissions", {"action": "grant"}, "'permissions' is missing"),
    ],
)
def test_mandatory_arguments_of_a_script_are_required(
    android_driver: Remote, script: str, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        InvalidArgumentException, match=rf"'mobile: {script}'.*{reason}"
    ):
        android_driver.execute_script(f"mobile: {script}", given)


@pytest.mark.parametrize(
    ("script", "given", "reason"),
    [
        ("alert", {}, "'action' is missing"),
        ("tap", {"x": 5}, "'y' is missing"),
        ("launchApp", {"arguments": ["-home"]}, "'bundleId' is missing"),
        ("pinch", {"scale": 2}, "'velocity' is missing"),
        ("scroll", {}, "'name' or 'direction' or 'predicateString' or 'toVisible'"),
        (
            "tap",
            {"x": 5, "y": 5, "elementID": "1"},
            "has no argument 'elementID': did you mean 'elementId'",
        ),
        ("isLocked", {"now": True}, r"has no argument 'now': it has no arguments"),
    ],
)
def test_mandatory_arguments_of_an_ios_script_are_required(
    ios_driver: Remote, script: str, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        InvalidArgumentException, match=rf"'mobile: {script}'.*{reason}"
    ):
        ios_driver.execute_script(f"mobile: {script}", given)


@pytest.mark.parametrize(
    ("script", "given", "reason"),
    [
        ("backgroundApp", {"second": 1}, "did you mean 'seconds'"),
        (
            "clickGesture",
            {"x": 1, "y": 1, "elementid": "1"},
            "did you mean 'elementId'",
        ),
        ("getDeviceTime", {"pattern": "HH"}, "its arguments are 'format'"),
        ("acceptAlert", {"label": "OK"}, "did you mean 'buttonLabel'"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_closest_match(
    android_driver: Remote, script: str, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        InvalidArgumentException,
        match=rf"'mobile: {script}' has no argument '\w+': {reason}",
    ):
        android_driver.execute_script(f"mobile: {script}", given)


@pytest.mark.parametrize(
    ("script", "given", "reason"),
    [
        (
            "flingGesture",
            {**PLACE, "direction": "sideways"},
            "direction must be one of up, down, left, right, not sideways",
        ),
        (
            "clickGesture",
            {"x": "left", "y": 1},
            "'x' of 'mobile: clickGesture' must be a number, not \"left\"",
        ),
        (
            "clickGesture",
            {"x": "10", "y": 1},  # UiAutomator2 ignores such coordinates
            "'x' of 'mobile: clickGesture' must be a number, not \"10\"",
        ),
        (
            "deepLink",
            {"url": "notes://notes/3", "package": 5},
            "'package' of 'mobile: deepLink' must be a text, not 5",
        ),
        (
            "getDeviceTime",
            {"format": 7},
            "'format' of 'mobile: getDeviceTime' must be a text, not 7",
        ),
        (
            "longClickGesture",
            {"x": 1, "y": 1, "duration": 90_000},
            "the duration must be from 0 to 60 s, not 90 s",
        ),
        (
            "swipeGesture",
            {**PLACE, "direction": "up", "percent": 75},
            "percent must be from 0 to 1, not 75",
        ),
        (
            "pinchOpenGesture",
            {"left": 1, "top": 1, "width": 9, "height": 9, "percent": -0.5},
            "percent must be from 0 to 1, not -0.5",
        ),
        (
            "scrollGesture",
            {**PLACE, "direction": "up", "percent": -1},
            "percent must be 0 or more, not -1",
        ),
        (
            "flingGesture",
            {**PLACE, "direction": "up", "speed": -500},
            "speed must be 0 or more, not -500",
        ),
    ],
)
def test_a_value_that_a_script_cannot_have_is_refused(
    phone: Remote, script: str, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidArgumentException, match=reason):
        phone.execute_script(f"mobile: {script}", given)


def test_coordinates_of_none_are_left_out(phone: Remote) -> None:
    title = seen(phone, "title")
    phone.switch_to.context(phone.contexts[1])
    phone.execute_script(
        "document.onpointerdown = ({ clientY }) => { window.pressedAt = clientY; }"
    )
    phone.switch_to.context("NATIVE_APP")
    phone.execute_script(
        "mobile: clickGesture", {"elementId": title.id, "x": None, "y": None}
    )
    rect = title.rect
    phone.switch_to.context(phone.contexts[1])
    assert phone.execute_script("return window.pressedAt") == pytest.approx(
        rect["y"] + rect["height"] / 2, abs=1
    )


def test_a_misspelled_script_is_refused_with_the_closest_match(
    android_driver: Remote,
) -> None:
    with pytest.raises(
        UnknownMethodException,
        match=r"'mobile: clickGestures' .* did you mean 'mobile: clickGesture'",
    ):
        android_driver.execute_script("mobile: clickGestures", {"x": 1, "y": 1})


def test_arguments_must_be_an_object(android_driver: Remote) -> None:
    with pytest.raises(
        InvalidArgumentException,
        match="arguments of 'mobile: deepLink' must be an object",
    ):
        android_driver.execute_script("mobile: deepLink", "notes:///life")


@pytest.mark.parametrize(
    "given",
    [
        {"intent": f"{APP_ID}/.MainActivity"},
        {"component": f"{APP_ID}/{APP_ID}.MainActivity", "stop": True, "wait": True},
        {"intent": APP_ID, "action": "android.intent.action.MAIN"},
    ],
)
def test_the_activity_of_the_app_is_started(
    phone: Remote, given: dict[str, Any]
) -> None:
    phone.terminate_app(APP_ID)
    phone.execute_script("mobile: startActivity", given)
    assert seen(phone, "title").text == "Notes"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"intent": f"{APP_ID}/.SettingsActivity"},
            "no activity .SettingsActivity: .* is .MainActivity.*deepLink",
        ),
        (
            {"intent": "org.example.other/.MainActivity"},
            "org.example.other is not installed",
        ),
        ({"intent": f"{APP_ID}/.MainActivity", "flags": "0x10"}, "flags"),
        (
            {
                "intent": f"{APP_ID}/.MainActivity",
                "action": "android.intent.action.SEND",
            },
            "action android.intent.*SEND",
        ),
        ({}, "'intent' or 'component' or 'uri'"),
    ],
)
def test_an_activity_of_another_app_is_refused(
    phone: Remote, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WebDriverException, match=reason):
        phone.execute_script("mobile: startActivity", given)


def test_the_extras_of_an_activity_are_the_apps_arguments(phone: Remote) -> None:
    extras = [["s", "place", "home now"], ["i", "number", 3], ["sn", "nothing"]]
    phone.execute_script(
        "mobile: startActivity",
        {"component": f"{APP_ID}/.MainActivity", "extras": extras},
    )
    assert (
        seen(phone, "arguments").text
        == "--es place home now --ei number 3 --esn nothing"
    )


def test_an_activity_that_views_a_link_opens_it(phone: Remote) -> None:
    view = {
        "action": "android.intent.action.VIEW",
        "uri": "notes://notes/5",
        "package": APP_ID,
    }
    phone.execute_script("mobile: startActivity", view)
    assert seen(phone, "title").text == "Note 5"


def test_the_capabilities_can_name_the_apps_activity(
    phone: Remote, android: Session
) -> None:
    phone.terminate_app(APP_ID)
    with driven(android, {"appPackage": APP_ID, "appActivity": ".Start"}) as other:
        other.implicitly_wait(WAIT_SECONDS)
        other.execute_script("mobile: startActivity", {"intent": f"{APP_ID}/.Start"})
        assert (other.current_activity, seen(other, "title").text) == (
            ".Start",
            "Notes",
        )


def test_a_process_environment_is_refused(iphone: Remote) -> None:
    with pytest.raises(
        UnknownMethodException, match="a web app has no environment: give it arguments"
    ):
        iphone.execute_script(
            "mobile: launchApp", {"bundleId": APP_ID, "environment": {"STAGE": "test"}}
        )


def test_a_key_can_be_pressed_long(phone: Remote) -> None:
    seen(phone, "text").click()
    phone.switch_to.context(phone.contexts[1])
    phone.execute_script(
        "for (const type of ['keydown', 'keyup']) addEventListener(type, () => { window[type] = Date.now(); })"
    )
    phone.switch_to.context("NATIVE_APP")
    phone.long_press_keycode(29)
    assert seen(phone, "text").text == "a"
    with pytest.raises(
        InvalidArgumentException,
        match="a long press of the key code 4 has no equivalent",
    ):
        phone.long_press_keycode(4)
    phone.switch_to.context(phone.contexts[1])
    assert phone.execute_script("return window.keyup - window.keydown") >= 450


def test_scrolling_to_an_element_brings_it_onto_the_screen(phone: Remote) -> None:
    line = {
        "strategy": "-android uiautomator",
        "selector": 'new UiSelector().text("Line 33")',
    }
    phone.execute_script("mobile: scroll", line)
    assert phone.find_element(line["strategy"], line["selector"]).is_displayed()


def test_an_app_without_its_own_id_keeps_the_assigned_one(
    phone: Remote, android: Session
) -> None:
    phone.terminate_app(APP_ID)
    named = "org.example.renamed"
    with driven(android, {"app": str(APP), "appPackage": named}) as other:
        other.remove_app(named)
        assert other.query_app_state(named) == 0
        other.install_app(f"file://{APP}")
        assert (other.is_app_installed(named), other.query_app_state(named)) == (
            True,
            1,
        )
        other.activate_app(named)
        assert other.current_package == named
        other.remove_app(named)


def test_a_plugins_command_is_refused_by_name(phone: Remote) -> None:
    with pytest.raises(
        UnknownMethodException,
        match=r"does not support execute_driver: .* plugin 'execute-driver'",
    ):
        phone.execute_driver("return 1")  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("context", ["NATIVE_APP", f"WEBVIEW_{APP_ID}"])
def test_a_clouds_status_scripts_have_no_effect(phone: Remote, context: str) -> None:
    phone.switch_to.context(context)

    for script in (
        "lambda-status=passed",
        'lambda-hook: {"action": "setTestStatus", "arguments": {"status": "passed"}}',
        "sauce:job-result=failed",
        "sauce:context=opens the note",
        'browserstack_executor: {"action": "setSessionStatus", "arguments": {}}',
        'browserstack_executor: {"action": "annotate", "arguments": {}}',
    ):
        assert phone.execute_script(script) is None, script


@pytest.mark.parametrize(
    "script",
    [
        'browserstack_executor: {"action": "fileExists", "arguments": {}}',
        "sauce:intercept",
        "lambda-file-exists=a.txt",
    ],
)
def test_other_scripts_of_a_cloud_are_refused(phone: Remote, script: str) -> None:
    with pytest.raises(UnknownMethodException, match=f"the script {script[:12]}"):
        phone.execute_script(script)


def test_a_time_has_the_format_of_the_drivers_of_phones(phone: Remote) -> None:
    text = phone.get_device_time("x [at] ddd, Do MMMM YY, h:mm a, DDDD Z")

    epoch, _, written = text.partition(" at ")
    zone = datetime.strptime(written[-6:], "%z").tzinfo
    time = datetime.fromtimestamp(int(epoch) / 1000, zone)
    ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    day = f"{time.day}{ending.get(time.day, 'th')}"
    hour = f"{time.hour % 12 or 12}:{time:%M} {time:%p}".lower()
    assert written[:-7] == f"{time:%a}, {day} {time:%B} {time:%y}, {hour}, {time:%j}"


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/goog/cdp/execute", {"cmd": "Page.enable", "params": []}, "params an object"),
        ("/execute/sync", {"script": None, "args": []}, "script must be a text"),
        ("/actions", {"actions": 5}, "actions must be a list"),
        (
            "/location",
            {"location": {"latitude": 149, "longitude": 8}},
            "latitude must be a number from -90 to 90, not 149",
        ),
        ("/appium/device/install_app", {"appPath": None}, "must be a path or a URL"),
    ],
)
def test_an_invalid_request_is_refused_and_the_session_goes_on(
    phone: Remote, path: str, body: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidArgumentException, match=reason):
        Command("POST", path, body)(phone)

    assert seen(phone, "title").text == "Notes"

"""What a suite written for iOS does on the local device."""

import json

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidArgumentException,
    NoSuchElementException,
    UnknownMethodException,
)

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import APP_ID, WAIT_SECONDS, driven, fresh
from tests.waiting import eventually


@pytest.fixture
def driver(ios_driver: Remote) -> Remote:
    return fresh(ios_driver)


def add(driver: Remote, text: str) -> None:
    driver.find_element(By.ACCESSIBILITY_ID, "text").send_keys(text)
    driver.find_element(By.ACCESSIBILITY_ID, "add").click()


def test_a_locator_of_each_kind_finds_what_it_names(driver: Remote) -> None:
    add(driver, "Buy milk")
    locators = {
        By.IOS_PREDICATE: "type == 'XCUIElementTypeStaticText' AND label CONTAINS[c] 'MILK'",
        By.IOS_CLASS_CHAIN: "**/XCUIElementTypeCell[`name == 'note-0'`]/XCUIElementTypeStaticText[-1]",
        By.XPATH: '//XCUIElementTypeCell[@name="note-0"]/XCUIElementTypeStaticText[@label="Buy milk"]',
    }
    assert {driver.find_element(by, value).text for by, value in locators.items()} == {
        "Buy milk"
    }


def test_predicates_have_their_usual_meaning(driver: Remote) -> None:
    add(driver, "Buy milk")
    predicates = {
        "name == 'title'": "Notes",
        "label LIKE 'B?y*' && visible == 1": "Buy milk",
        "type IN {'XCUIElementTypeSearchField', 'XCUIElementTypeSwitch'}": "Pinned",
        "NOT (enabled == true) AND label != nil": "Share",
        "label MATCHES[c] 'line 1[01]' AND NOT label ENDSWITH '0'": "Line 11",
    }
    driver.find_element(By.ACCESSIBILITY_ID, "note-0")
    found = {
        predicate: driver.find_element(By.IOS_PREDICATE, predicate)
        for predicate in predicates
    }
    labels = {predicate: hit.get_attribute("label") for predicate, hit in found.items()}
    assert labels == predicates


def test_class_chains_count_from_both_ends(driver: Remote) -> None:
    add(driver, "Buy milk")
    chains = {
        "**/XCUIElementTypeScrollView/XCUIElementTypeCell[1]/XCUIElementTypeStaticText": "Buy milk",
        "**/XCUIElementTypeCell[$label == 'Buy milk'$][-1]/*": "Buy milk",
        "**/XCUIElementTypeStaticText[`label BEGINSWITH 'Line'`][-1]": "Line 40",
    }
    driver.find_element(By.ACCESSIBILITY_ID, "note-0")
    assert {
        chain: driver.find_element(By.IOS_CLASS_CHAIN, chain).text for chain in chains
    } == chains


def test_an_unsupported_predicate_is_refused_with_the_unsupported_part(
    driver: Remote,
) -> None:
    with pytest.raises(NoSuchElementException, match="unknown attribute colour"):
        driver.find_element(By.IOS_PREDICATE, "colour == 'red'")


def test_attributes_are_those_of_a_native_element(driver: Remote) -> None:
    field = driver.find_element(By.ACCESSIBILITY_ID, "text")
    names = ("type", "name", "label", "value", "placeholderValue", "enabled", "visible")
    assert {name: field.get_attribute(name) for name in names} == {
        "type": "XCUIElementTypeTextField",
        "name": "text",
        "label": "Text of the note",
        "value": "New note",
        "placeholderValue": "New note",
        "enabled": "true",
        "visible": "true",
    }


def test_the_label_of_a_button_is_the_text_in_it(driver: Remote) -> None:
    button = driver.find_element(
        By.IOS_CLASS_CHAIN, "**/XCUIElementTypeButton[`label == 'Delete all'`]"
    )
    assert (button.text, button.get_attribute("name")) == ("Delete all", "delete")


def test_an_alert_is_an_element_with_buttons(driver: Remote) -> None:
    add(driver, "Buy milk")
    driver.find_element(By.ACCESSIBILITY_ID, "delete").click()
    alert = driver.find_element(By.CLASS_NAME, "XCUIElementTypeAlert")
    assert alert.get_attribute("name") == "Delete all notes?"
    driver.find_element(By.ACCESSIBILITY_ID, "OK").click()
    assert driver.find_element(By.ACCESSIBILITY_ID, "count").text == "You have 0 notes"


def test_an_alert_is_accepted_by_a_script(driver: Remote) -> None:
    add(driver, "Buy milk")
    driver.find_element(By.ACCESSIBILITY_ID, "delete").click()
    driver.execute_script("mobile: alert", {"action": "accept"})
    assert driver.find_element(By.ACCESSIBILITY_ID, "count").text == "You have 0 notes"


def test_the_value_of_a_switch_is_one_or_zero(driver: Remote) -> None:
    switch = driver.find_element(By.CLASS_NAME, "XCUIElementTypeSwitch")
    before = switch.get_attribute("value")
    switch.click()
    assert (before, switch.get_attribute("value")) == ("0", "1")


def test_an_app_has_the_documented_states(driver: Remote) -> None:
    driver.terminate_app(APP_ID)
    assert driver.query_app_state(APP_ID) == 1
    driver.execute_script(
        "mobile: launchApp", {"bundleId": APP_ID, "arguments": ["-home", "now"]}
    )
    assert driver.find_element(By.ACCESSIBILITY_ID, "arguments").text == "-home now"


def test_a_deep_link_opens_its_path(driver: Remote) -> None:
    driver.execute_script(
        "mobile: deepLink", {"url": "notes://notes/7?from=mail", "bundleId": APP_ID}
    )
    assert driver.find_element(By.ACCESSIBILITY_ID, "from").text == "mail"


def test_scrolling_to_a_name_brings_it_onto_the_screen(driver: Remote) -> None:
    line = driver.find_element(By.IOS_PREDICATE, "label == 'Line 30'")
    driver.execute_script("mobile: scroll", {"elementId": line.id, "toVisible": True})
    assert line.is_displayed()


def test_scrolling_in_a_direction_moves_by_a_page(driver: Remote) -> None:
    notes = driver.find_element(By.ACCESSIBILITY_ID, "notes")
    line = driver.find_element(By.IOS_PREDICATE, "label == 'Line 1'")
    before = line.rect["y"]

    page = {"elementId": notes.id, "direction": "down"}
    driver.execute_script("mobile: scroll", page)

    borders = 2
    moved = before - line.rect["y"]
    assert moved == pytest.approx(notes.rect["height"] - borders, abs=1)


def test_a_direction_that_webdriveragent_ignores_is_refused(driver: Remote) -> None:
    with pytest.raises(InvalidArgumentException, match="in lower case, not Down"):
        driver.execute_script("mobile: scroll", {"direction": "Down"})


def test_half_a_point_is_refused(driver: Remote) -> None:
    title = driver.find_element(By.ACCESSIBILITY_ID, "title")
    with pytest.raises(InvalidArgumentException, match="Both x and y"):
        driver.execute_script("mobile: doubleTap", {"elementId": title.id, "x": 5})


@pytest.mark.parametrize(
    ("gesture", "given", "seen"),
    [
        ("touchAndHold", {"duration": 1}, "held click"),
        ("doubleTap", {}, "twice"),
        ("tapWithNumberOfTaps", {"numberOfTaps": 2, "numberOfTouches": 1}, "twice"),
    ],
)
def test_gestures_arrive_as_touches(
    driver: Remote, gesture: str, given: dict[str, int], seen: str
) -> None:
    title = driver.find_element(By.ACCESSIBILITY_ID, "title")
    driver.execute_script(f"mobile: {gesture}", {"elementId": title.id, **given})
    assert eventually(
        lambda: driver.find_element(By.ACCESSIBILITY_ID, "touched").text == seen, 10
    )


def test_keys_have_names_and_modifiers(driver: Remote) -> None:
    field = driver.find_element(By.ACCESSIBILITY_ID, "text")
    shifted = {"key": "a", "modifierFlags": 1 << 1}
    keys = ["m", "x", "XCUIKeyboardKeyDelete", shifted, "b"]
    driver.execute_script("mobile: keys", {"keys": keys, "elementId": field.id})
    assert field.text == "mAb"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("abc", 'keys must be a list, not "abc"'),
        ([{"modifierFlags": 2}], "have a text as its key"),
        (["XCUIKeyboardKeyF19"], "F19 has no equivalent in a web page"),
    ],
)
def test_keys_that_cannot_be_typed_are_refused(
    driver: Remote, keys: object, reason: str
) -> None:
    with pytest.raises(InvalidArgumentException, match=reason):
        driver.execute_script("mobile: keys", {"keys": keys})


def test_a_missing_fingerprint_sensor_is_reported(driver: Remote) -> None:
    with pytest.raises(UnknownMethodException, match="it has no biometric sensor"):
        driver.touch_id(match=True)


def test_a_session_starts_with_the_arguments_of_its_process(
    driver: Remote, ios: Session
) -> None:
    driver.terminate_app(APP_ID)
    with driven(
        ios,
        {"bundleId": APP_ID, "processArguments": {"args": ["-home", "now"], "env": {}}},
    ) as other:
        other.implicitly_wait(WAIT_SECONDS)
        assert other.find_element(By.ACCESSIBILITY_ID, "arguments").text == "-home now"


def test_the_language_and_the_region_of_an_iphone_may_differ(
    driver: Remote, ios: Session
) -> None:
    driver.terminate_app(APP_ID)
    spoken = {"language": "en", "locale": "zh_Hant_TW"}
    with driven(ios, {"bundleId": APP_ID, **spoken}) as other:
        other.switch_to.context(other.contexts[1])
        assert other.execute_script("return navigator.language") == "en-TW"


def test_permissions_and_the_time_zone_are_set_by_the_capabilities_of_ios(
    driver: Remote, ios: Session
) -> None:
    driver.terminate_app(APP_ID)
    of_ios = {
        "permissions": json.dumps({APP_ID: {"location": "YES", "contacts": "NO"}}),
        "appTimeZone": "Asia/Tokyo",
        "autoAcceptAlerts": "false",
    }
    of_android = {"autoGrantPermissions": True, "timeZone": "Europe/Vienna"}
    with driven(ios, {"bundleId": APP_ID, **of_ios, **of_android}) as other:
        permissions = [
            other.execute_script(
                "mobile: getPermission", {"bundleId": APP_ID, "service": service}
            )
            for service in ("location", "camera")
        ]
        assert (permissions, other.get_device_time("Z")) == (
            ["yes", "unset"],
            "+09:00",
        )
        assert other.capabilities["autoAcceptAlerts"] is False


def test_a_session_of_the_browser_is_a_web_session(
    driver: Remote, ios: Session
) -> None:
    driver.terminate_app(APP_ID)
    with driven(ios, {"browserName": "Safari"}) as other:
        other.get("data:text/html,<h1 id=here>Hello</h1>")
        assert other.find_element(By.ID, "here").text == "Hello"

"""Questions for permissions as views: the page asks, the dialog of the platform is shown, and the page gets the answer."""

from collections.abc import Generator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidElementStateException,
    NoAlertPresentException,
    NoSuchElementException,
)
from selenium.webdriver.common.alert import Alert
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.wait import WebDriverWait

import tests.spec.phones
from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import (
    WAIT_SECONDS,
    driven,
    seen,
    without_wait,
)
from tests.spec.phones.row import APP_ID

APP: Final = Path(tests.spec.phones.__file__).parent / "app"
CONTROLLER: Final = "com.android.permissioncontroller:id/permission"
HEAR: Final = "(heard => { document.querySelector('p').textContent += heard + ' '; })"
POSITION: Final = (
    f"navigator.geolocation.getCurrentPosition(() => {HEAR}('here'),"
    f" (problem) => {HEAR}('no' + problem.code))"
)
WATCH: Final = POSITION.replace("getCurrentPosition", "watchPosition")
CAMERA: Final = (
    "navigator.mediaDevices.getUserMedia({video: true, audio: true})"
    f".catch((problem) => {HEAR}(problem.name))"
)
NOTIFY: Final = f"Notification.requestPermission().then({HEAR})"
CONFIRM: Final = f"{HEAR}(confirm('Sure?'))"


def page(script: str, text: str = "") -> str:
    """Return HTML with a button that runs a script."""
    return f"""<button data-testid="ask" onclick="{script}">Ask</button>{text}
      <p data-testid="heard">-</p>"""


def ask(driver: Remote, script: str) -> None:
    driver.get(f"table:///?page={quote(page(script))}")
    seen(driver, "ask").click()


def next_alert(driver: Remote) -> Alert:
    """Return the alert that is open, or opens soon."""
    return WebDriverWait(driver, WAIT_SECONDS).until(alert_is_present())


def heard(driver: Remote, text: str) -> bool:
    found = driver.find_elements(By.XPATH, f"//*[@text='{text}' or @value='{text}']")
    return bool(found)


@pytest.fixture(scope="module")
def on_android(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(APP), "appium:appPackage": APP_ID}) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        driver.set_location(48.1, 11.5)
        yield driver
        driver.remove_app(APP_ID)


@pytest.fixture
def phone(on_android: Remote) -> Remote:
    return undecided(on_android)


@pytest.fixture(scope="module")
def on_ios(ios: Session) -> Generator[Remote]:
    with driven(ios, {"app": str(APP), "appium:bundleId": APP_ID}) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        driver.set_location(48.1, 11.5)
        yield driver
        driver.remove_app(APP_ID)


@pytest.fixture
def iphone(on_ios: Remote) -> Remote:
    return undecided(on_ios)


def undecided(driver: Remote) -> Remote:
    """Return a driver with the app in front, which has no permission yet."""
    ios = driver.capabilities["platformName"].lower() == "ios"
    name = "bundleId" if ios else "appId"
    driver.execute_script("mobile: clearApp", {name: APP_ID})
    driver.activate_app(APP_ID)
    return driver


@pytest.mark.parametrize(
    ("script", "button", "answer"),
    [
        (POSITION, "allow_foreground_only", "-here"),
        (WATCH, "allow_one_time", "-here"),
        (POSITION, "deny", "-no1"),
        (NOTIFY, "allow", "-granted"),
        (NOTIFY, "deny", "-denied"),
    ],
    ids=["position", "watch", "no-position", "notifications", "no-notifications"],
)
def test_a_page_gets_what_a_user_pressed(
    phone: Remote, script: str, button: str, answer: str
) -> None:
    ask(phone, script)
    question = phone.find_element(By.ID, f"{CONTROLLER}_message")
    assert question.text.startswith("Allow Table to ")
    assert question.get_attribute("package") == phone.current_package != APP_ID
    assert 'resource-id="ask"' not in phone.page_source

    phone.find_element(By.ID, f"{CONTROLLER}_{button}_button").click()

    assert heard(phone, answer)
    assert phone.current_package == APP_ID
    seen(phone, "ask").click()
    assert seen(phone, "heard").text.startswith(answer)  # it is not asked again


def test_two_permissions_are_asked_for_one_after_the_other(phone: Remote) -> None:
    ask(phone, CAMERA)
    texts = []
    for _ in range(2):
        texts.append(next_alert(phone).text)
        phone.switch_to.alert.accept()
    assert ["video" in texts[0], "audio" in texts[1]] == [True, True]
    assert heard(phone, "-NotFoundError")  # the device has no camera


def test_an_alert_waits_behind_a_question_and_a_question_behind_an_alert(
    phone: Remote,
) -> None:
    ask(phone, f"{POSITION}; setTimeout(() => {CONFIRM}, 300); {NOTIFY}")
    asked = []
    for _ in range(3):
        asked.append(next_alert(phone).text)
        phone.switch_to.alert.accept()
    assert sorted(text.split()[-1] for text in asked) == [
        "Sure?",
        "location?",
        "notifications?",
    ]
    with pytest.raises(NoAlertPresentException):
        phone.switch_to.alert.accept()


def test_alert_commands_press_the_buttons_of_a_question(phone: Remote) -> None:
    ask(phone, POSITION)
    next_alert(phone)
    with pytest.raises(
        InvalidElementStateException,
        match="'While using the app', 'Only this time', 'Don\u2019t allow'",
    ):
        phone.execute_script("mobile: acceptAlert", {"buttonLabel": "Later"})
    phone.back()  # leaves it open
    phone.switch_to.alert.dismiss()
    assert heard(phone, "-no1")


def test_a_question_of_a_page_that_was_left_is_gone(phone: Remote) -> None:
    ask(phone, POSITION)
    assert next_alert(phone).text
    phone.terminate_app(APP_ID)
    phone.activate_app(APP_ID)
    with pytest.raises(NoAlertPresentException):
        _ = phone.switch_to.alert.text


def test_a_permission_that_was_changed_is_not_asked_for(phone: Remote) -> None:
    changed = {"permissions": "android.permission.ACCESS_FINE_LOCATION"}
    phone.execute_script("mobile: changePermissions", changed)
    ask(phone, POSITION)
    assert heard(phone, "-here")


def test_a_question_works_in_mid_recording(phone: Remote) -> None:
    phone.start_recording_screen()
    ask(phone, POSITION)
    next_alert(phone).accept()
    assert heard(phone, "-here")
    assert phone.stop_recording_screen()


def test_finds_of_ios_see_the_app_behind_a_question(iphone: Remote) -> None:
    ask(iphone, NOTIFY)
    next_alert(iphone)
    with without_wait(iphone):
        with pytest.raises(NoSuchElementException):
            iphone.find_element(By.ACCESSIBILITY_ID, "Allow")
        assert seen(iphone, "heard").text == "-"
        iphone.update_settings({"respectSystemAlerts": True})
        try:
            allow = iphone.find_element(By.ACCESSIBILITY_ID, "Allow")
            assert allow.get_attribute("type") == "XCUIElementTypeButton"
            allow.click()
        finally:
            iphone.update_settings({"respectSystemAlerts": False})
    assert heard(iphone, "-granted")


def test_the_last_button_of_ios_accepts(iphone: Remote) -> None:
    ask(iphone, POSITION)
    next_alert(iphone)
    buttons = iphone.execute_script("mobile: alert", {"action": "getButtons"})
    assert buttons == ["Allow Once", "Allow While Using App", "Don\u2019t Allow"]
    assert iphone.switch_to.alert.text == "Allow “Table” to use your location?"
    iphone.switch_to.alert.accept()
    assert heard(iphone, "-no1")


def test_a_named_button_of_ios_is_pressed(iphone: Remote) -> None:
    ask(iphone, POSITION)
    next_alert(iphone)
    pressed = {"action": "accept", "buttonLabel": "Allow Once"}
    iphone.execute_script("mobile: alert", pressed)
    assert heard(iphone, "-here")


@pytest.mark.parametrize(
    ("platform", "capability", "answer"),
    [
        ("android", "autoGrantPermissions", "-here"),
        ("ios", "autoAcceptAlerts", "-no1"),  # the last button: "Don't Allow"
        ("ios", "autoDismissAlerts", "-here"),
    ],
)
def test_capabilities_answer_questions(
    request: pytest.FixtureRequest, platform: str, capability: str, answer: str
) -> None:
    session: Session = request.getfixturevalue(platform)
    named = {"android": "appPackage", "ios": "bundleId"}[platform]
    wanted = {"app": str(APP), named: APP_ID, capability: True}
    with driven(session, wanted) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        driver.set_location(48.1, 11.5)
        ask(driver, POSITION)
        assert heard(driver, answer)
        driver.remove_app(APP_ID)

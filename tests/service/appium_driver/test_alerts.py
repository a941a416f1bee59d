"""The buttons of an alert, by their labels."""

from typing import Any

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy
from selenium.common.exceptions import (
    InvalidElementStateException,
    NoAlertPresentException,
)

from tests.service.appium_driver.conftest import seen


# In the gate, buttons of iOS are pressed by their labels in `test_permissions`, and by scripts in `test_ios`.
@pytest.fixture(
    params=["phone", pytest.param("iphone", marks=pytest.mark.nightly)],
)
def driver(request: pytest.FixtureRequest) -> Remote:
    driver: Remote = request.getfixturevalue(request.param)
    seen(driver, "text").send_keys("Buy milk")
    seen(driver, "add").click()
    seen(driver, "delete").click()
    return driver


def press(driver: Remote, action: str, **label: str) -> None:
    if driver.capabilities["platformName"].lower() == "ios":
        driver.execute_script("mobile: alert", {"action": action, **label})
    else:
        driver.execute_script(f"mobile: {action}Alert", label)


@pytest.mark.parametrize(
    ("action", "label", "left"),
    [
        ("accept", "Cancel", 1),
        ("dismiss", "OK", 0),
        # With the label of the other action, nothing but the label can have chosen the button.
        pytest.param("accept", "OK", 0, marks=pytest.mark.nightly),
        pytest.param("dismiss", "Cancel", 1, marks=pytest.mark.nightly),
    ],
)
def test_the_named_button_is_pressed(
    driver: Remote, action: str, label: str, left: int
) -> None:
    press(driver, action, buttonLabel=label)
    assert seen(driver, "count").text == f"You have {left} notes"


def test_a_missing_button_is_refused_with_the_existing_ones(driver: Remote) -> None:
    for action in ("accept", "dismiss"):
        with pytest.raises(
            InvalidElementStateException,
            match=r"no button 'Later': its buttons are 'OK', 'Cancel'",
        ):
            press(driver, action, buttonLabel="Later")
        assert driver.switch_to.alert.text == "Delete all notes?"
    driver.switch_to.alert.dismiss()


def test_an_informational_alert_has_one_button(driver: Remote) -> None:
    driver.switch_to.alert.dismiss()
    driver.switch_to.context(driver.contexts[1])
    driver.execute_script("setTimeout(() => alert('Saved'), 0)")
    driver.switch_to.context("NATIVE_APP")
    button = {"ios": "XCUIElementTypeButton"}.get(
        driver.capabilities["platformName"].lower(), "android.widget.Button"
    )
    assert [one.text for one in driver.find_elements(AppiumBy.CLASS_NAME, button)] == [
        "OK"
    ]
    with pytest.raises(
        InvalidElementStateException,
        match=r"no button 'Cancel': its buttons are 'OK'\n",
    ):
        press(driver, "accept", buttonLabel="Cancel")
    press(driver, "accept", buttonLabel="OK")
    assert seen(driver, "title").text == "Notes"


def test_without_an_alert_there_is_no_button(driver: Remote) -> None:
    driver.switch_to.alert.dismiss()
    arguments: dict[str, Any] = {"buttonLabel": "OK"}
    with pytest.raises(NoAlertPresentException):
        press(driver, "accept", **arguments)

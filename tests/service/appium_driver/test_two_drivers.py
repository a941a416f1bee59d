"""Several drivers of one device: they share what it shows over the app, and the newest one decides about dialogs."""

from collections.abc import Generator
from typing import Any, Final

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import NoAlertPresentException

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import WAIT_SECONDS, driven, seen
from tests.service.appium_driver.test_permissions import (
    APP,
    CONFIRM,
    CONTROLLER,
    POSITION,
    ask,
    heard,
    next_alert,
    undecided,
)
from tests.spec.phones.row import APP_ID

MESSAGE: Final = "android:id/message"
ATTACHED: Final = {
    "appium:appPackage": APP_ID,
    "noReset": True,
    "autoLaunch": False,
    "shouldTerminateApp": False,
}
"""Capabilities of a driver that leaves the app as it is."""
ACCEPTS: Final = {"unhandledPromptBehavior": "accept"}


@pytest.fixture(scope="module")
def opened(android: Session) -> Generator[Remote]:
    with driven(android, {"app": str(APP), "appium:appPackage": APP_ID}) as driver:
        driver.implicitly_wait(WAIT_SECONDS)
        driver.set_location(48.1, 11.5)
        yield driver
        driver.remove_app(APP_ID)


@pytest.fixture
def older(opened: Remote) -> Remote:
    return undecided(opened)


def test_both_see_and_answer_one_alert(older: Remote, android: Session) -> None:
    with driven(android, ATTACHED) as newer:
        for shows, presses in ((older, newer), (newer, older)):
            ask(shows, CONFIRM)
            texts = [
                (driver.find_element(By.ID, MESSAGE).text, driver.switch_to.alert.text)
                for driver in (shows, presses)
            ]
            assert texts == [("Sure?", "Sure?")] * 2

            presses.find_element(By.ID, "android:id/button1").click()

            assert seen(presses, "heard").text == seen(shows, "heard").text == "-true"
            with pytest.raises(NoAlertPresentException):
                shows.switch_to.alert.accept()


def test_both_see_and_answer_one_question(older: Remote, android: Session) -> None:
    with driven(android, ATTACHED) as newer:
        newer.set_location(48.1, 11.5)
        ask(older, POSITION)
        for driver in (newer, older):
            driver.implicitly_wait(WAIT_SECONDS)
            question = driver.find_element(By.ID, f"{CONTROLLER}_message")
            assert question.text.startswith("Allow Table to ")

        older.find_element(By.ID, f"{CONTROLLER}_deny_button").click()

        assert heard(older, "-no1")
        assert heard(newer, "-no1")
        with pytest.raises(NoAlertPresentException):
            newer.switch_to.alert.accept()


@pytest.mark.parametrize(
    ("capabilities", "newer_capabilities", "answer"),
    [
        ({}, ACCEPTS, "-true"),
        (ACCEPTS, {"unhandledPromptBehavior": "dismiss"}, "-false"),
        (ACCEPTS, {"autoAcceptAlerts": True}, None),  # a capability of iOS
    ],
    ids=["newer-accepts", "newer-dismisses", "newer-leaves-it-open"],
)
def test_the_capabilities_of_the_newest_driver_apply(
    older: Remote,
    android: Session,
    capabilities: dict[str, Any],
    newer_capabilities: dict[str, Any],
    answer: str | None,
) -> None:
    with (
        driven(android, {**ATTACHED, **capabilities}),
        driven(android, {**ATTACHED, **newer_capabilities}),
    ):
        ask(older, CONFIRM)
        if answer is None:
            assert next_alert(older).text == "Sure?"
            older.switch_to.alert.accept()
        else:
            assert heard(older, answer)


def test_a_driver_starts_without_the_alert_that_is_open(
    older: Remote, android: Session
) -> None:
    ask(older, CONFIRM)
    assert older.find_element(By.ID, MESSAGE).text == "Sure?"

    with driven(android, ATTACHED) as newer:
        assert seen(newer, "heard").text == "-false"
        assert seen(older, "heard").text == "-false"


def test_a_question_ends_with_the_driver_that_asks_it(
    older: Remote, android: Session
) -> None:
    with driven(android, ATTACHED):
        ask(older, POSITION)
        assert older.find_element(By.ID, f"{CONTROLLER}_message").is_displayed()

    assert heard(older, "-no1")

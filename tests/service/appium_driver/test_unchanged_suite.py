"""One page object, driven as an Android app and as an iOS app without a change."""

from collections.abc import Callable
from typing import Final

import pytest
from appium.webdriver import Remote
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from tests.service.appium_driver.conftest import by_test_id, fresh

TEXT: Final = by_test_id("text")
ADD: Final = by_test_id("add")
COUNT: Final = by_test_id("count")


class NotesScreen:
    """What a person does with the notes."""

    def __init__(self, driver: Remote) -> None:
        self.driver = driver
        self.wait = WebDriverWait(driver, 20)

    def add(self, text: str) -> "NotesScreen":
        field = self.wait.until(expected_conditions.presence_of_element_located(TEXT))
        field.clear()
        field.send_keys(text)
        self.wait.until(expected_conditions.element_to_be_clickable(ADD)).click()
        return self

    def count(self) -> str:
        return str(
            self.wait.until(
                expected_conditions.visibility_of_element_located(COUNT)
            ).text
        )


@pytest.fixture(params=["android_driver", "ios_driver"])
def screen(request: pytest.FixtureRequest) -> NotesScreen:
    return NotesScreen(fresh(request.getfixturevalue(request.param)))


def relaunched(driver: Remote) -> None:
    package = driver.capabilities.get("appPackage") or driver.capabilities["bundleId"]
    driver.terminate_app(package)
    driver.activate_app(package)


def rotated(driver: Remote) -> None:
    driver.orientation = "LANDSCAPE"
    driver.orientation = "PORTRAIT"


@pytest.mark.parametrize("event", [relaunched, rotated])
def test_notes_survive_restarts_of_the_app(
    screen: NotesScreen, event: Callable[[Remote], None]
) -> None:
    screen.add("Buy milk").add("Bake bread")
    event(screen.driver)
    assert screen.count() == "You have 2 notes"

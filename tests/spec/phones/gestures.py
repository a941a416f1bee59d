"""W3C actions: each pointer is a finger."""

from dataclasses import replace
from typing import Final

from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.webdriver import ActionChains

from tests.spec.phones.row import ANDROID, IOS, UIAUTOMATOR2, XCUITEST, Row, Source

PAGE: Final = """
    <button data-testid="view" onpointerdown="textContent = event.pointerType">Go</button>"""


def pressed_by_default_pointer(driver: Remote) -> str:
    """Press a view with the client's default pointer, a mouse; return what pressed it."""
    locator = (By.XPATH, "//*[@resource-id='view' or @name='view']")
    ActionChains(driver).move_to_element(
        driver.find_element(*locator)
    ).click().perform()
    return driver.find_element(*locator).text


ON_ANDROID: Final = Row(
    name="a-pointer-is-a-finger",
    platforms=(ANDROID,),
    rule="A pointer of any type touches the screen.",
    source=Source(*UIAUTOMATOR2, "build/lib/commands/actions.js"),
    page=PAGE,
    example=pressed_by_default_pointer,
    answer="touch",
)

ROWS: Final = (
    ON_ANDROID,
    replace(
        ON_ANDROID,
        platforms=(IOS,),
        source=Source(*XCUITEST, "build/lib/commands/gesture.js"),
    ),
)

"""W3C actions: each pointer is a finger."""

from dataclasses import replace
from typing import Final

from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains

from tests.spec.phones.row import (
    ANDROID,
    IOS,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    XCUITEST,
    Error,
    Row,
    Source,
    server,
)

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

WHEEL: Final = Row(
    name="no-wheel",
    platforms=(ANDROID,),
    rule="A source of actions is a pointer or a keyboard.",
    source=server("utils/w3c/ActionsPreprocessor.java", "74b09cb1"),
    page=PAGE,
    example=lambda driver: ActionChains(driver).scroll_by_amount(0, 10).perform(),
    answer=Error(WebDriverException, 'not "wheel"'),
)

ROWS: Final = (
    WHEEL,
    replace(
        WHEEL,
        platforms=(IOS,),
        source=Source(
            *WEBDRIVERAGENT, "WebDriverAgentLib/Utilities/FBW3CActionsSynthesizer.m"
        ),
    ),
    ON_ANDROID,
    replace(
        ON_ANDROID,
        platforms=(IOS,),
        source=Source(*XCUITEST, "build/lib/commands/gesture.js"),
    ),
)

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
    NOT_READ,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    XCUITEST,
    Error,
    Row,
    Source,
    server,
)

VIEW: Final = (By.XPATH, "//*[@resource-id='view' or @name='view']")
PAGE: Final = """
    <button data-testid="view" onpointerdown="textContent = event.pointerType">Go</button>"""

TOUCHES: Final = """
    <button data-testid="view" ontouchstart="textContent = event.touches.length"
        onclick="textContent += ' click'">Go</button>"""

WINDOW: Final = """
    <button data-testid="view">Go</button>
    <button data-testid="open" onclick="window.open('about:blank').document.write(
        '<button data-testid=view onclick=this.textContent=1>New</button>')">Open</button>"""
OPENS: Final = (By.XPATH, "//*[@resource-id='open']")
ASKS: Final = """
    <button data-testid="view" oncontextmenu="confirm('Delete?'); outerHTML =
        '<button data-testid=view onclick=this.textContent=1>Deleted</button>'">Go</button>"""


def fingers_after_one_was_left(driver: Remote) -> str:
    """Leave a finger on a view, then press it; return how many touched it."""
    view = driver.find_element(*VIEW)
    ActionChains(driver).click_and_hold(view).perform()
    driver.execute_script("mobile: clickGesture", {"elementId": view.id})
    return view.text


def text_in_another_window(driver: Remote) -> str:
    """Leave a finger on a view, and press one in a window that opens; return its text."""
    ActionChains(driver).click_and_hold(driver.find_element(*VIEW)).perform()
    driver.find_element(*OPENS).click()
    ActionChains(driver).click(driver.find_element(*VIEW)).perform()
    return driver.find_element(*VIEW).text


def text_after_a_question(driver: Remote) -> str:
    """Press a view for long, answer its question, and tap what replaces it; return its text."""
    pressed = {"elementId": driver.find_element(*VIEW).id}
    driver.execute_script("mobile: longClickGesture", pressed)
    driver.switch_to.alert.accept()

    ActionChains(driver).click(driver.find_element(*VIEW)).perform()
    return driver.find_element(*VIEW).text


def pressed_by_default_pointer(driver: Remote) -> str:
    """Press a view with the client's default pointer, a mouse; return what pressed it."""
    ActionChains(driver).move_to_element(driver.find_element(*VIEW)).click().perform()
    return driver.find_element(*VIEW).text


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

TOKENIZER: Final = server("utils/w3c/ActionsTokenizer.java", "74b09cb1")
SYNTHESIZER: Final = Source(
    *WEBDRIVERAGENT, "WebDriverAgentLib/Utilities/FBW3CActionsSynthesizer.m"
)

LEFT_DOWN: Final = Row(
    name="a-finger-that-was-left-down",
    platforms=(ANDROID,),
    rule="Actions begin anew: a finger of earlier ones is not on the screen.",
    source=server("utils/w3c/ActionsExecutor.java", "5f42f0e2"),
    page=TOUCHES,
    example=fingers_after_one_was_left,
    answer="1 click",
)
PLACELESS: Final = Row(
    name="a-touch-without-a-place",
    platforms=(ANDROID,),
    rule="Actions know no place of earlier ones: a touch needs a movement before it.",
    source=TOKENIZER,
    page=PAGE,
    example=lambda driver: ActionChains(driver).click_and_hold().perform(),
    answer=Error(WebDriverException, "pointerMove"),
)
RELATIVE: Final = replace(
    PLACELESS,
    name="a-first-movement-by-an-offset",
    example=lambda driver: ActionChains(driver).move_by_offset(9, 9).click().perform(),
)

ROWS: Final = (
    LEFT_DOWN,
    replace(
        LEFT_DOWN,
        name="a-finger-that-was-left-in-another-window",
        page=WINDOW,
        example=text_in_another_window,
        answer="1",
    ),
    Row(
        name="a-long-press-that-opens-a-dialog",
        platforms=(ANDROID,),
        rule="A touch that opens a dialog ends, and the next one counts.",
        source=NOT_READ,
        page=ASKS,
        example=text_after_a_question,
        answer="1",
    ),
    PLACELESS,
    replace(PLACELESS, platforms=(IOS,), source=SYNTHESIZER),
    RELATIVE,
    replace(RELATIVE, platforms=(IOS,), source=SYNTHESIZER),
    Row(
        name="a-finger-that-is-not-down",
        platforms=(ANDROID,),
        rule="Only a finger that is down is lifted.",
        source=TOKENIZER,
        page=PAGE,
        example=lambda driver: (
            ActionChains(driver).move_to_element(driver.find_element(*VIEW)).release()
        ).perform(),
        answer=Error(WebDriverException, "pointerDown"),
    ),
    Row(
        name="a-double-click-without-a-pause",
        platforms=(ANDROID,),
        rule="Two touches of a finger have a pause between them.",
        source=TOKENIZER,
        page=PAGE,
        example=lambda driver: (
            ActionChains(driver).double_click(driver.find_element(*VIEW))
        ).perform(),
        answer=Error(WebDriverException, "pause"),
    ),
    WHEEL,
    replace(WHEEL, platforms=(IOS,), source=SYNTHESIZER),
    ON_ANDROID,
    replace(
        ON_ANDROID,
        platforms=(IOS,),
        source=Source(*XCUITEST, "build/lib/commands/gesture.js"),
    ),
)

"""What is in front: modal windows, and what the command ``back`` is for."""

from typing import Final

from appium.webdriver import Remote
from appium.webdriver.applicationstate import ApplicationState
from appium.webdriver.common.appiumby import AppiumBy as By

from tests.spec.phones.row import (
    ANDROID,
    APP_ID,
    IOS,
    NOT_READ,
    UIAUTOMATOR2,
    XCUITEST,
    Click,
    Command,
    FindAll,
    Row,
    Source,
    Then,
    server,
)

WINDOWS: Final = server("utils/AXWindowHelpers.java", "8d5012e8")
NAVIGATION: Final = Source(*XCUITEST, "lib/commands/navigation.js")

BACK: Final = Command("POST", "/back")
TEXTS: Final = FindAll(By.CLASS_NAME, "android.widget.TextView")
LABELS: Final = FindAll(By.CLASS_NAME, "XCUIElementTypeStaticText")
OPEN: Final = (By.XPATH, "//*[@text='Open' or @label='Open']")

MODAL: Final = """
    <p>Behind</p>
    <button onclick="document.querySelector('dialog').showModal()">Open</button>
    <dialog><p>In front</p></dialog>"""
REACT_NATIVE_MODAL: Final = """
    <p>Behind</p>
    <div role="dialog" aria-modal="true"><p>In front</p></div>"""
"""As React Native for Web renders a Modal."""
BAR: Final = """
    <div role="navigation">
      <button onclick="document.querySelector('p').textContent = 'went back'">List</button>
    </div>
    <p>Details</p>"""
DETAILS: Final = "<details><summary>More</summary><p>Hidden</p></details><p>Shown</p>"
INERT: Final = "<div inert><p>Hidden</p></div><p>Shown</p>"

FIELD: Final = '<input data-testid="view" placeholder="Name">'
VIEW: Final = (By.XPATH, "//*[@resource-id='view']")


def keyboard_and_text(driver: Remote) -> tuple[object, str]:
    """Return whether the keyboard is shown, and the text of the view."""
    return driver.is_keyboard_shown(), driver.find_element(*VIEW).text


def state_after_back(driver: Remote) -> object:
    """Press Back in an app that has just started; return the app's state."""
    driver.terminate_app(APP_ID)
    driver.activate_app(APP_ID)
    driver.back()
    return driver.query_app_state(APP_ID)


ROWS: Final = (
    Row(
        name="views-behind-a-modal",
        platforms=(ANDROID,),
        rule="Only the views of the active window are found.",
        source=WINDOWS,
        page=MODAL,
        example=Click(OPEN, TEXTS),
        answer=["In front"],
    ),
    Row(
        name="views-behind-a-modal-of-react-native",
        platforms=(ANDROID,),
        rule="Only the views of the active window are found.",
        source=WINDOWS,
        page=REACT_NATIVE_MODAL,
        example=TEXTS,
        answer=["In front"],
    ),
    Row(
        name="back-hides-the-keyboard",
        platforms=(ANDROID,),
        rule="While the keyboard is shown, the Back key hides it, and does nothing else.",
        source=Source(*UIAUTOMATOR2, "lib/commands/navigation.ts"),
        page=FIELD,
        example=Click(VIEW, Then(BACK, keyboard_and_text)),
        answer=(False, "Name"),
    ),
    Row(
        name="back-from-the-first-place",
        platforms=(ANDROID,),
        rule="From its first place, the Back key moves an app to the background.",
        source=Source(
            "Android",
            "12",
            "services/core/java/com/android/server/wm/ActivityClientController.java (onBackPressed)",
        ),
        page=FIELD,
        example=state_after_back,
        answer=ApplicationState.RUNNING_IN_BACKGROUND,
    ),
    Row(
        name="back-closes-a-modal",
        platforms=(ANDROID,),
        rule="The Back key is for the window in front.",
        source=NOT_READ,
        page=MODAL,
        example=Click(OPEN, Then(BACK, TEXTS)),
        answer=["Behind"],
    ),
    Row(
        name="back-presses-the-button-of-the-navigation-bar",
        platforms=(IOS,),
        rule="back presses the first button of the navigation bar.",
        source=NAVIGATION,
        page=BAR,
        example=Then(BACK, LABELS),
        answer=["went back"],
    ),
    Row(
        name="back-without-a-navigation-bar",
        platforms=(IOS,),
        rule="Without a navigation bar, back does nothing.",
        source=NAVIGATION,
        page="<p>Details</p>",
        example=Then(BACK, LABELS),
        answer=["Details"],
    ),
    Row(
        name="closed-details",
        platforms=(ANDROID,),
        rule="What is not drawn is no view.",
        source=NOT_READ,
        page=DETAILS,
        example=TEXTS,
        answer=["Shown"],
    ),
    Row(
        name="an-inert-view",
        platforms=(IOS,),
        rule="What cannot be reached by accessibility services is no element.",
        source=NOT_READ,
        page=INERT,
        example=LABELS,
        answer=["Shown"],
    ),
)

"""Alerts, the commands for them, and picker wheels."""

from dataclasses import replace
from typing import Final

from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidArgumentException,
    InvalidElementStateException,
    NoAlertPresentException,
    UnknownMethodException,
    WebDriverException,
)

from tests.spec.phones.row import (
    ANDROID,
    BOTH,
    IOS,
    NOT_READ,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    Click,
    Command,
    Error,
    Find,
    FindAll,
    OfAlert,
    Row,
    Script,
    Source,
    Then,
    Turn,
    server,
)

HELPERS: Final = server("utils/AlertHelpers.java", "5ddf241f")
WINDOWS: Final = server("utils/AXWindowHelpers.java", "8d5012e8")
ANDROID_ALERT: Final = Source(*UIAUTOMATOR2, "lib/commands/alert.ts")
WDA_ALERT: Final = Source(*WEBDRIVERAGENT, "WebDriverAgentLib/FBAlert.m")
WDA_ERRORS: Final = Source(
    *WEBDRIVERAGENT, "WebDriverAgentLib/Routing/FBExceptionHandler.m"
)
WDA_ELEMENT: Final = Source(
    *WEBDRIVERAGENT, "WebDriverAgentLib/Commands/FBElementCommands.m"
)

HEARD: Final = Find(
    By.XPATH, "//*[starts-with(@text, 'heard') or starts-with(@value, 'heard')]"
)
VIEW: Final = (By.XPATH, "//*[@resource-id='view' or @name='view']")


def button(label: str) -> str:
    shown = f"document.body.innerHTML = '<p>heard {label}</p>'"
    return f'<button onclick="{shown}">{label}</button>'


def alert(*labels: str, title: str = "Discard?", more: str = "") -> str:
    """Return an alert that the app draws."""
    made = "".join(map(button, labels))
    name = title.rstrip("?").lower()
    return f"""<div role="alertdialog" aria-labelledby="{name}" aria-describedby="of-{name}">
      <h2 id="{name}">{title}</h2><p id="of-{name}">It isn't saved.</p>{more}{made}</div>"""


THREE: Final = alert("Later", "Cancel", "Discard")
TWO: Final = alert("Cancel", "Discard")
ONE: Final = alert("Fine")
SHEET: Final = TWO.replace('role="alertdialog"', 'data-class="XCUIElementTypeSheet"')
FIELD: Final = '<input data-testid="view">'
CONFIRM: Final = (
    '<button data-testid="view" onclick="confirm(&quot;Sure?&quot;)">x</button>'
)


def row(name: str, rule: str, source: Source, page: str, **rest: object) -> Row:
    made = Row(name, (ANDROID,), rule, source, page, Find(*VIEW), None)
    return replace(made, **rest)  # type: ignore[arg-type]


ANDROID_ROWS: Final = (
    row(
        "the-title-of-an-alert",
        "The title of an alert has the ID alertTitle of the system.",
        HELPERS,
        THREE,
        example=Find(By.ID, "android:id/alertTitle"),
        answer="Discard?",
    ),
    row(
        "the-message-of-an-alert",
        "The message of an alert has the ID message of the system.",
        NOT_READ,
        THREE,
        example=Find(By.ID, "android:id/message"),
        answer="It isn't saved.",
    ),
    row(
        "the-buttons-of-an-alert",
        "An alert has up to three buttons, numbered from the positive one.",
        NOT_READ,
        THREE,
        example=FindAll(By.CLASS_NAME, "android.widget.Button", "resource-id"),
        answer=[f"android:id/button{number}" for number in (3, 2, 1)],
    ),
    row(
        "a-button-with-a-test-id-is-the-apps-own",
        "A view of the app has the ID that the app gave it.",
        NOT_READ,
        ONE.replace("<button", '<button data-testid="fine"'),
        example=FindAll(By.CLASS_NAME, "android.widget.Button", "resource-id"),
        answer=["fine"],
    ),
    row(
        "the-text-of-an-alert",
        "The text of an alert is that of its views with an ID, without the buttons.",
        HELPERS,
        THREE,
        example=OfAlert(),
        answer="Discard?\nIt isn't saved.",
    ),
    row(
        "accept-presses-the-button-with-the-lowest-number",
        "Accepting an alert presses the button with the lowest number.",
        HELPERS,
        THREE,
        example=OfAlert("accept", HEARD),
        answer="heard Discard",
    ),
    row(
        "dismiss-presses-the-button-with-the-next-number",
        "Dismissing an alert presses the button after that.",
        HELPERS,
        THREE,
        example=OfAlert("dismiss", HEARD),
        answer="heard Cancel",
    ),
    row(
        "dismiss-presses-the-only-button",
        "Dismissing an alert with one button presses it.",
        HELPERS,
        ONE,
        example=OfAlert("dismiss", HEARD),
        answer="heard Fine",
    ),
    row(
        "a-missing-button",
        "A button that the alert hasn't is an invalid state.",
        HELPERS,
        THREE,
        example=Script("mobile: acceptAlert", {"buttonLabel": "Never"}),
        answer=Error(InvalidElementStateException, "button cannot be detected"),
    ),
    row(
        "a-named-button",
        "A button is found by its text.",
        HELPERS,
        THREE,
        example=Then(Script("mobile: dismissAlert", {"buttonLabel": "Later"}), HEARD),
        answer="heard Later",
    ),
    row(
        "a-dialog-without-an-alert-title",
        "A dialog without the title of an alert is none.",
        HELPERS,
        '<div role="dialog"><h2>Discard?</h2></div>',
        example=OfAlert(),
        answer=Error(NoAlertPresentException),
    ),
    row(
        "views-behind-an-alert",
        "Only the views of the active window are found.",
        WINDOWS,
        f"<p>Behind</p>{TWO}",
        example=FindAll(By.XPATH, "//*[@text='Behind']"),
        answer=[],
    ),
    row(
        "an-alert-over-an-alert",
        "Of two alerts, the one on top is found.",
        WINDOWS,
        alert("Cancel") + alert("Go", title="Leave?"),
        example=FindAll(By.ID, "android:id/alertTitle"),
        answer=["Leave?"],
    ),
    row(
        "an-alert-in-an-alert",
        "Of two alerts, the one on top is found.",
        WINDOWS,
        alert("Cancel", more=alert("Go", title="Leave?")),
        example=OfAlert("accept", HEARD),
        answer="heard Go",
    ),
    row(
        "typing-into-an-alert",
        "The driver has no command that types into an alert.",
        ANDROID_ALERT,
        TWO,
        example=Command("POST", "/alert/text", {"text": "me"}),
        answer=Error(UnknownMethodException, "not yet been implemented"),
    ),
    row(
        "the-text-of-a-browsers-alert",
        "The text of an alert is that of its views with an ID, without the buttons.",
        HELPERS,
        CONFIRM,
        example=Click(VIEW, OfAlert("dismiss")),
        answer='The page at "http://127.0.0.1" says:\nSure?',
        difference="The text of an alert of a web page begins with its title",
        local_answer="Sure?",
    ),
)

IOS_ROWS: Final = (
    row(
        "the-label-of-an-alert",
        "The label of an alert is its title.",
        NOT_READ,
        THREE,
        example=Find(By.CLASS_NAME, "XCUIElementTypeAlert", "label"),
        answer="Discard?",
    ),
    row(
        "the-text-of-an-alert",
        "The text of an alert is that of its texts, one per line.",
        WDA_ALERT,
        THREE,
        example=OfAlert(),
        answer="Discard?\nIt isn't saved.",
    ),
    row(
        "accept-presses-the-last-button",
        "Accepting an alert presses the last button.",
        WDA_ALERT,
        THREE,
        example=OfAlert("accept", HEARD),
        answer="heard Discard",
    ),
    row(
        "dismiss-presses-the-first-button",
        "Dismissing an alert presses the first button.",
        WDA_ALERT,
        THREE,
        example=OfAlert("dismiss", HEARD),
        answer="heard Later",
    ),
    row(
        "accept-presses-the-first-button-of-a-sheet",
        "Accepting a sheet presses the first button.",
        WDA_ALERT,
        SHEET,
        example=OfAlert("accept", HEARD),
        answer="heard Cancel",
    ),
    row(
        "dismiss-presses-the-last-button-of-a-sheet",
        "Dismissing a sheet presses the last button.",
        WDA_ALERT,
        SHEET,
        example=OfAlert("dismiss", HEARD),
        answer="heard Discard",
    ),
    row(
        "the-buttons-of-an-alert",
        "The buttons of an alert are listed in their order.",
        WDA_ALERT,
        THREE,
        example=Script("mobile: alert", {"action": "getButtons"}),
        answer=["Later", "Cancel", "Discard"],
    ),
    row(
        "a-missing-button",
        "A button that the alert hasn't is an invalid state.",
        WDA_ERRORS,
        THREE,
        example=Script("mobile: alert", {"action": "accept", "buttonLabel": "Never"}),
        answer=Error(InvalidElementStateException, "Failed to find"),
    ),
    row(
        "typing-into-an-alert",
        "A text is typed into the only field of an alert.",
        WDA_ALERT,
        alert("Cancel", more=FIELD),
        example=Then(
            Command("POST", "/alert/text", {"text": "me", "value": ["m", "e"]}),
            Find(*VIEW, "value"),
        ),
        answer="me",
    ),
    row(
        "typing-into-an-alert-without-a-field",
        "An alert without a field takes no text.",
        WDA_ALERT,
        TWO,
        example=Command("POST", "/alert/text", {"text": "me", "value": ["m", "e"]}),
        answer=Error(WebDriverException, "contains no input fields"),
    ),
    row(
        "typing-into-an-alert-with-two-fields",
        "An alert with more than one field takes no text.",
        WDA_ALERT,
        alert("Cancel", more=FIELD + FIELD.replace("view", "other")),
        example=Command("POST", "/alert/text", {"text": "me", "value": ["m", "e"]}),
        answer=Error(WebDriverException, "more than one input field"),
    ),
    row(
        "views-behind-an-alert",
        "The application of an alert is one element with all of its views.",
        NOT_READ,
        f"<p>Behind</p>{TWO}",
        example=FindAll(By.XPATH, "//*[@value='Behind']"),
        answer=["Behind"],
    ),
    row(
        "only-a-picker-wheel-is-turned",
        "Turning an element that is no picker wheel is an invalid argument.",
        WDA_ELEMENT,
        FIELD,
        example=Turn(VIEW),
        answer=Error(InvalidArgumentException, "valid Picker Wheel control"),
    ),
    row(
        "a-picker-wheel-has-two-orders",
        "A picker wheel is turned to the next or to the previous value.",
        WDA_ELEMENT,
        FIELD,
        example=Turn(VIEW, order="up"),
        answer=Error(InvalidArgumentException, "Only 'previous' and 'next'"),
    ),
    row(
        "the-offset-of-a-picker-wheel",
        "The offset of a turn is at most a half.",
        WDA_ELEMENT,
        FIELD,
        example=Turn(VIEW, offset=0.6),
        answer=Error(InvalidArgumentException, r"in range \(0.0, 0.5\]"),
    ),
)

NO_ALERT: Final = row(
    "no-alert",
    "Without an alert, its commands fail.",
    HELPERS,
    "<p>Milk</p>",
    platforms=BOTH,
    example=OfAlert(),
    answer=Error(NoAlertPresentException),
)

ROWS: Final = (
    NO_ALERT,
    *ANDROID_ROWS,
    *(replace(one, platforms=(IOS,)) for one in IOS_ROWS),
)

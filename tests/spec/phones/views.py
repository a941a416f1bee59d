"""Native classes, attributes and states of views."""

import re
from dataclasses import replace
from typing import Final

from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidElementStateException,
    NoSuchElementException,
    StaleElementReferenceException,
    WebDriverException,
)

from tests.spec.phones.row import (
    ANDROID,
    APP_ID,
    BOTH,
    IOS,
    NOT_READ,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    XCUITEST,
    Clear,
    Click,
    Error,
    Find,
    FindAll,
    Keys,
    Rendered,
    Row,
    Script,
    Source,
    State,
    Then,
    server,
)

ANDROID_ELEMENT: Final = Source(*UIAUTOMATOR2, "lib/commands/element.ts")
IOS_ELEMENT: Final = Source(*XCUITEST, "lib/commands/element.ts")
ATTRIBUTES: Final = server("utils/Attribute.java", "0d659a27")
RANGE: Final = server("core/AxNodeInfoHelper.java", "0f5e339c")
CACHE: Final = server("model/ElementsCache.java", "019cdee0")
TAG_NAME: Final = server("handler/GetName.java", "3620a24c")
LIBRARY: Final = "WebDriverAgentLib"
WDA_ATTRIBUTES: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Categories/XCUIElement+FBWebDriverAttributes.m"
)
WDA_ELEMENT: Final = Source(*WEBDRIVERAGENT, f"{LIBRARY}/Commands/FBElementCommands.m")
WDA_NAMES: Final = Source(*WEBDRIVERAGENT, f"{LIBRARY}/Routing/FBElementUtils.m")
WDA_TYPES: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Utilities/FBElementTypeTransformer.m"
)

REACT_NATIVE: Final = Source(
    "react-native",
    "44d42cd6",
    "ReactAndroid/src/main/java/com/facebook/react/views/text/TextTransform.java",
)
NESTED: Final = Source(
    "react-native",
    "05cd5972",
    "ReactAndroid/src/main/java/com/facebook/react/views/text/ReactVirtualTextViewManager.kt",
)
VISIBLE: Final = Source(
    "Android", "15", "core/java/android/view/View.java (isVisibleToUser)"
)
FOCUS: Final = Source(
    "appium-uiautomator2-server", "10.6.6", "handler/ActiveElement (in the APK)"
)
WDA_TESTS: Final = Source(
    *WEBDRIVERAGENT,
    "WebDriverAgentTests/IntegrationTests/FBElementAttributeTests.m",
)
WDA_KEYBOARD: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Categories/XCUIApplication+FBHelpers.m"
)
WDA_FOCUS: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Commands/FBFindElementCommands.m"
)

CHECKED: Final = '<input type="checkbox" role="switch" aria-label="Loud" checked>'
VIEW: Final = (By.XPATH, "//*[@resource-id='view' or @name='view']")
LIST: Final = '<select data-testid="view"><option>red<option>green</select>'
FIELD: Final = '<input data-testid="view" placeholder="Name">'
LINES: Final = """<textarea data-testid="view" onkeydown="if (event.key === 'Enter') this.value = 'sent'"></textarea>"""
SENT: Final = """<input data-testid="view" onkeydown="if (event.key === 'Enter') this.value = 'sent ' + this.value">"""
MOVE_HOME: Final = 122
DISABLED: Final = '<input data-testid="view" value="Ada" disabled>'
NOT_EDITABLE: Final = '<input data-testid="view" value="Ada" readonly>'
"""As React Native for Web renders a TextInput that is not editable."""

RENDER: Final = (By.XPATH, "//*[@text='Render' or @label='Render']")
RENDERED: Final = """
    <div id="box"><p data-testid="view">First</p></div>
    <button onclick="document.getElementById('box').innerHTML =
      '<p data-testid=view>Second</p>'">Render</button>"""
REMOVED: Final = RENDERED.replace("<p data-testid=view>Second</p>", "")


def attributes_left(driver: Remote) -> list[bool]:
    """Return which of three attributes the source has if two are left out."""
    excluded = {"excludedAttributes": "visible, accessible"}
    source = Script("mobile: source", excluded)(driver)
    return [f'{name}="' in str(source) for name in ("enabled", "visible", "accessible")]


def displayed_after_click(driver: Remote) -> bool:
    """Click a view; return whether it is displayed then."""
    view = driver.find_element(*VIEW)
    view.click()
    return view.is_displayed()


def replaced_text(driver: Remote) -> str:
    """Return the text of a field that is filled, then replaced."""
    field = driver.find_element(*VIEW).send_keys("Ada")
    Script("mobile: replaceElementValue", {"elementId": field.id, "text": "Ben"})(
        driver
    )
    return field.text


def active_text(driver: Remote) -> str:
    """Return the text of the active element."""
    return driver.switch_to.active_element.text


CLASSES: Final = (
    ('<ul data-testid="view"><li>One</li></ul>', "android.widget.ListView", "Table"),
    (
        '<div role="feed" data-testid="view"></div>',
        "androidx.recyclerview.widget.RecyclerView",
        "CollectionView",
    ),
    (
        '<div role="grid" data-testid="view"></div>',
        "android.widget.GridView",
        "CollectionView",
    ),
    (
        '<div role="table" data-testid="view"></div>',
        "android.widget.TableLayout",
        "Table",
    ),
    (
        '<div role="list"><div role="listitem" data-testid="view"><p>x</p></div></div>',
        "android.view.ViewGroup",
        "Cell",
    ),
    (
        '<header data-testid="view"><p>x</p></header>',
        "android.widget.Toolbar",
        "NavigationBar",
    ),
    (
        '<div role="tablist" data-testid="view"></div>',
        "android.widget.TabWidget",
        "TabBar",
    ),
    (
        '<div role="toolbar" data-testid="view"></div>',
        "android.widget.Toolbar",
        "Toolbar",
    ),
    (
        '<div role="spinbutton" data-testid="view"></div>',
        "android.widget.NumberPicker",
        "PickerWheel",
    ),
    (
        '<div style="overflow-y: auto" data-testid="view"></div>',
        "android.widget.ScrollView",
        "ScrollView",
    ),
    (
        '<div style="overflow: auto hidden" data-testid="view"></div>',
        "android.widget.HorizontalScrollView",
        "ScrollView",
    ),
    ('<div data-testid="view"></div>', "android.view.ViewGroup", "Other"),
    (
        """<div data-testid="view"
          data-class="android.widget.CalendarView XCUIElementTypeDatePicker"></div>""",
        "android.widget.CalendarView",
        "DatePicker",
    ),
)


def class_rows() -> tuple[Row, ...]:
    rows: list[Row] = []
    for page, android, ios in CLASSES:
        shown = android.rpartition(".")[2]
        rows += (
            Row(
                name=f"class-{len(rows) // 2}-{shown}",
                platforms=(ANDROID,),
                rule=f"A native {android} has this class.",
                source=NOT_READ,
                page=page,
                example=Find(*VIEW, "class"),
                answer=android,
            ),
            Row(
                name=f"class-{len(rows) // 2}-{ios}",
                platforms=(IOS,),
                rule=f"A native {ios} has this type.",
                source=WDA_TYPES,
                page=page,
                example=Find(*VIEW, "type"),
                answer=f"XCUIElementType{ios}",
            ),
        )
    return tuple(rows)


def ios_rows() -> tuple[Row, ...]:
    return (
        Row(
            name="the-application-is-an-element",
            platforms=(IOS,),
            rule="The application is an element of its own, and the name is its own.",
            source=WDA_TYPES,
            page="<p>Milk</p>",
            example=Find(By.CLASS_NAME, "XCUIElementTypeApplication", "type"),
            answer="XCUIElementTypeApplication",
        ),
        Row(
            name="the-root-of-the-page-source",
            platforms=(IOS,),
            rule="The page source has the application in an element of the driver.",
            source=Source(*XCUITEST, "lib/commands/source.ts"),
            page=FIELD,
            example=lambda driver: re.findall(r"<(\w+)", driver.page_source)[:2],
            answer=["AppiumAUT", "XCUIElementTypeApplication"],
        ),
        Row(
            name="a-source-without-an-attribute",
            platforms=(IOS,),
            rule="The script for the source takes the names of attributes to leave out.",
            source=Source(*XCUITEST, "lib/commands/source.ts"),
            page=FIELD,
            example=attributes_left,
            answer=[True, False, False],
        ),
        Row(
            name="the-window-is-an-element",
            platforms=(IOS,),
            rule="The window is an element of its own.",
            source=WDA_TYPES,
            page="<p>Milk</p>",
            example=FindAll(By.CLASS_NAME, "XCUIElementTypeWindow", "type"),
            answer=["XCUIElementTypeWindow"],
        ),
        Row(
            name="no-keyboard-without-a-field",
            platforms=(IOS,),
            rule="The keyboard is an element while a field has the focus.",
            source=NOT_READ,
            page=FIELD,
            example=FindAll(By.CLASS_NAME, "XCUIElementTypeKeyboard", "type"),
            answer=[],
        ),
        Row(
            name="a-keyboard-with-a-field",
            platforms=(IOS,),
            rule="The keyboard is an element while a field has the focus.",
            source=NOT_READ,
            page=FIELD,
            example=Click(
                VIEW, Find(By.CLASS_NAME, "XCUIElementTypeKeyboard", "visible")
            ),
            answer="true",
        ),
        Row(
            name="a-labelled-text-has-the-text-of-its-label",
            platforms=(IOS,),
            rule="The text of a static text is its value, which is its label.",
            source=WDA_ATTRIBUTES,
            page='<p data-testid="view" aria-label="Message">Milk</p>',
            example=Find(*VIEW),
            answer="Message",
        ),
        Row(
            name="the-tag-name-is-the-type",
            platforms=(IOS,),
            rule="The tag name is the type.",
            source=WDA_ELEMENT,
            page=FIELD,
            example=State(VIEW, "name"),
            answer="XCUIElementTypeTextField",
        ),
        Row(
            name="a-switch-is-not-selected",
            platforms=(IOS,),
            rule="A switch that is on isn't selected; its value is 1.",
            source=WDA_ATTRIBUTES,
            page=CHECKED,
            example=State((By.ID, "Loud"), "selected"),
            answer=False,
        ),
        *(
            Row(
                name=f"the-value-of-a-{shown}",
                platforms=(IOS,),
                rule="The position of a slider or a progress bar is a percentage.",
                source=WDA_TESTS,
                page=page,
                example=Find(*VIEW, "value"),
                answer="25%",
            )
            for shown, page in (
                (
                    "slider",
                    '<input type="range" max="200" value="50" data-testid="view">',
                ),
                (
                    "progress-bar",
                    '<progress value="0.25" data-testid="view"></progress>',
                ),
                (
                    "progress-bar-of-react-native",
                    """<div role="progressbar" aria-valuenow="15" aria-valuemin="10"
                      aria-valuemax="30" data-testid="view"></div>""",
                ),
            )
        ),
        Row(
            name="delete-is-backspace",
            platforms=(IOS,),
            rule="Delete deletes the character before the caret, as Backspace does.",
            source=IOS_ELEMENT,
            page=FIELD,
            example=Then(Keys(VIEW, "Adm\ue017a"), Find(*VIEW)),
            answer="Ada",
        ),
        Row(
            name="a-list-takes-no-keys",
            platforms=(IOS,),
            rule="Keys for a view that takes no text are an invalid state.",
            source=WDA_ELEMENT,
            page=LIST,
            example=Keys(VIEW, "green"),
            answer=Error(InvalidElementStateException),
        ),
        Row(
            name="a-field-that-is-not-editable",
            platforms=(IOS,),
            rule="A TextInput of React Native that is not editable is disabled.",
            source=NOT_READ,
            page=NOT_EDITABLE,
            example=State(VIEW, "enabled"),
            answer=False,
        ),
        Row(
            name="clearing-a-disabled-field",
            platforms=(IOS,),
            rule="A field that can't be cleared is in an invalid state.",
            source=WDA_ELEMENT,
            page=DISABLED,
            example=Clear(VIEW),
            answer=Error(InvalidElementStateException),
        ),
        Row(
            name="the-value-of-a-selected-button",
            platforms=(IOS,),
            rule="A selected button has the value 1.",
            source=WDA_ATTRIBUTES,
            page='<button data-testid="view" aria-selected="true">Go</button>',
            example=Find(*VIEW, "value"),
            answer="1",
        ),
        Row(
            name="index-0-is-false",
            platforms=(IOS,),
            rule="The numbers 0 and 1 are false and true.",
            source=IOS_ELEMENT,
            page=FIELD,
            example=Find(*VIEW, "index"),
            answer="false",
        ),
        Row(
            name="hiding-a-keyboard-by-another-key",
            platforms=(IOS,),
            rule="Only a key that is named, or done, hides the keyboard of an iPhone.",
            source=WDA_KEYBOARD,
            page=FIELD,
            example=Click(VIEW, Script("mobile: hideKeyboard")),
            answer=Error(InvalidElementStateException, "Did not know how to dismiss"),
        ),
        Row(
            name="hiding-a-keyboard-of-digits",
            platforms=(IOS,),
            rule="The keyboard of an iPhone for digits has no key that hides it.",
            source=WDA_KEYBOARD,
            page='<input data-testid="view" inputmode="numeric">',
            example=Click(VIEW, Script("mobile: hideKeyboard", {"keys": ["return"]})),
            answer=Error(InvalidElementStateException, "Did not know how to dismiss"),
        ),
        Row(
            name="hiding-a-keyboard-by-its-key",
            platforms=(IOS,),
            rule="The driver looks for the key done by itself.",
            source=WDA_KEYBOARD,
            page='<input data-testid="view" enterkeyhint="done">',
            example=Click(
                VIEW,
                Then(Script("mobile: hideKeyboard"), Script("mobile: isKeyboardShown")),
            ),
            answer=False,
        ),
        Row(
            name="the-active-element",
            platforms=(IOS,),
            rule="The active element has the keyboard.",
            source=WDA_FOCUS,
            page=FIELD,
            example=Click(VIEW, active_text),
            answer="Name",
        ),
        Row(
            name="no-active-element",
            platforms=(IOS,),
            rule="Without a keyboard, no element is active.",
            source=WDA_FOCUS,
            page=FIELD,
            example=active_text,
            answer=Error(NoSuchElementException, "has the focus"),
        ),
        Row(
            name="no-label",
            platforms=(IOS,),
            rule="An attribute without a value is null.",
            source=WDA_ATTRIBUTES,
            page='<div data-testid="view"></div>',
            example=Find(*VIEW, "label"),
            answer=None,
        ),
        Row(
            name="an-unknown-attribute",
            platforms=(IOS,),
            rule="An unknown attribute is refused.",
            source=WDA_NAMES,
            page=FIELD,
            example=Find(*VIEW, "class"),
            answer=Error(WebDriverException, "attribute 'class' is unknown"),
        ),
        Row(
            name="device-info-locale",
            platforms=(IOS,),
            rule="The locale has an underscore.",
            source=Source(*WEBDRIVERAGENT, f"{LIBRARY}/Commands/FBCustomCommands.m"),
            page=FIELD,
            example=Script("mobile: deviceInfo", key="currentLocale"),
            answer="en_US",
        ),
        Row(
            name="an-element-that-is-gone",
            platforms=(IOS,),
            rule="An element is bound to its view: a new view is another element.",
            source=Source(
                *WEBDRIVERAGENT, f"{LIBRARY}/Utilities/FBXCodeCompatibility.m"
            ),
            page=RENDERED,
            example=Rendered(VIEW, RENDER),
            answer=Error(StaleElementReferenceException),
        ),
    )


def android_rows() -> tuple[Row, ...]:
    return (
        Row(
            name="the-tag-name-is-content-desc",
            platforms=(ANDROID,),
            rule="The tag name is the content description.",
            source=TAG_NAME,
            page='<button data-testid="view" aria-label="Sign in">Go</button>',
            example=State(VIEW, "name"),
            answer="Sign in",
        ),
        Row(
            name="a-checked-view-is-not-selected",
            platforms=(ANDROID,),
            rule="is_selected is the attribute selected, not checked.",
            source=ANDROID_ELEMENT,
            page=CHECKED,
            example=State((By.ACCESSIBILITY_ID, "Loud"), "selected"),
            answer=False,
        ),
        Row(
            name="checked",
            platforms=(ANDROID,),
            rule="checked says whether a switch is on.",
            source=ATTRIBUTES,
            page=CHECKED,
            example=Find(By.ACCESSIBILITY_ID, "Loud", "checked"),
            answer="true",
        ),
        Row(
            name="a-missing-attribute-is-the-text-null",
            platforms=(ANDROID,),
            rule="An attribute without a value is the text null.",
            source=ANDROID_ELEMENT,
            page=FIELD,
            example=Find(*VIEW, "content-desc"),
            answer="null",
        ),
        Row(
            name="names-of-attributes-ignore-case",
            platforms=(ANDROID,),
            rule="Attributes have several names, in any case.",
            source=ATTRIBUTES,
            page=FIELD,
            example=Find(*VIEW, "resourceID"),
            answer="view",
        ),
        Row(
            name="name-is-text",
            platforms=(ANDROID,),
            rule="The attribute name is another name of text.",
            source=ATTRIBUTES,
            page='<button data-testid="view" aria-label="Sign in">Go</button>',
            example=Find(*VIEW, "name"),
            answer="Go",
        ),
        Row(
            name="an-unknown-attribute",
            platforms=(ANDROID,),
            rule="An unknown attribute is refused.",
            source=ATTRIBUTES,
            page=FIELD,
            example=Find(*VIEW, "value"),
            answer=Error(WebDriverException, "Only the following attributes"),
        ),
        Row(
            name="a-list-takes-no-keys",
            platforms=(ANDROID,),
            rule="Keys for a view that takes no text are an invalid state.",
            source=server("handler/SendKeysToElement.java", "2e904aca"),
            page=LIST,
            example=Keys(VIEW, "green"),
            answer=Error(InvalidElementStateException, "Cannot set the element to"),
        ),
        Row(
            name="keys-for-a-disabled-field",
            platforms=(ANDROID,),
            rule="A field that doesn't take its text is in an invalid state.",
            source=server("handler/SendKeysToElement.java", "2e904aca"),
            page=DISABLED,
            example=Keys(VIEW, "b"),
            answer=Error(InvalidElementStateException, "Cannot set the element to 'b'"),
        ),
        Row(
            name="a-field-that-is-not-editable",
            platforms=(ANDROID,),
            rule="A TextInput of React Native that is not editable is disabled.",
            source=NOT_READ,
            page=NOT_EDITABLE,
            example=State(VIEW, "enabled"),
            answer=False,
        ),
        Row(
            name="clearing-a-disabled-field",
            platforms=(ANDROID,),
            rule="Clearing doesn't check whether the field takes its text.",
            source=server("handler/Clear.java", "2e904aca"),
            page=DISABLED,
            example=Clear(VIEW),
            answer="Ada",
        ),
        Row(
            name="keys-go-to-the-end-of-a-field",
            platforms=(ANDROID,),
            rule="Keys are added to the text of a field, wherever its caret is.",
            source=server("handler/SendKeysToElement.java", "2e904aca"),
            page=FIELD,
            example=Then(
                Keys(VIEW, "Ad"),
                Then(
                    Script("mobile: pressKey", {"keycode": MOVE_HOME}),
                    Then(Keys(VIEW, "a"), Find(*VIEW)),
                ),
            ),
            answer="Ada",
        ),
        Row(
            name="a-transparent-view",
            platforms=(ANDROID,),
            rule="A view is not there if it, or one around it, is entirely transparent.",
            source=VISIBLE,
            page=f'<div style="opacity: 0">{FIELD}</div>',
            example=FindAll(*VIEW),
            answer=[],
        ),
        Row(
            name="a-control-that-the-app-draws",
            platforms=(ANDROID,),
            rule="A control that an app draws itself, as a switch, is a view.",
            source=NOT_READ,
            page='<input type="date" style="opacity: 0" data-testid="view">',
            example=Find(*VIEW, "class"),
            answer="android.widget.EditText",
        ),
        Row(
            name="a-view-that-becomes-transparent",
            platforms=(ANDROID,),
            rule="A view is not displayed while it is entirely transparent.",
            source=VISIBLE,
            page='<button data-testid="view" onclick="style.opacity = 0">Go</button>',
            example=displayed_after_click,
            answer=False,
        ),
        Row(
            name="the-active-element",
            platforms=(ANDROID,),
            rule="The active element has the focus.",
            source=FOCUS,
            page=FIELD,
            example=Click(VIEW, active_text),
            answer="Name",
        ),
        Row(
            name="no-active-element",
            platforms=(ANDROID,),
            rule="Without the focus, no element is active.",
            source=FOCUS,
            page=FIELD,
            example=active_text,
            answer=Error(NoSuchElementException, "has the focus"),
        ),
        Row(
            name="the-text-of-a-field-is-replaced",
            platforms=(ANDROID,),
            rule="A script replaces the text of a field, to which send_keys appends.",
            source=ANDROID_ELEMENT,
            page=FIELD,
            example=replaced_text,
            answer="Ben",
        ),
        Row(
            name="a-line-break-is-no-key",
            platforms=(ANDROID,),
            rule="The driver sets the text of a field: a line break in it is no Enter key.",
            source=server("handler/SendKeysToElement.java", "2e904aca"),
            page=LINES,
            example=Then(Keys(VIEW, "Ada\nBen"), Find(*VIEW)),
            answer="Ada\nBen",
        ),
        Row(
            name="keys-with-the-mark-of-enter",
            platforms=(ANDROID,),
            rule="A text that ends with a backslash and an n, which stay in it, is followed by the Enter key.",
            source=Source(
                "appium-uiautomator2-server",
                "10.6.6",
                "handler/SendKeysToElement (in the APK)",
            ),
            page=SENT,
            example=Then(Keys(VIEW, r"Ada\n"), Find(*VIEW)),
            answer=r"sent Ada\n",
        ),
        Row(
            name="the-text-of-a-slider",
            platforms=(ANDROID,),
            rule="The text of a view with a range is its position, a float.",
            source=RANGE,
            page='<input type="range" max="200" value="50" data-testid="view">',
            example=Find(*VIEW),
            answer="50.0",
        ),
        Row(
            name="the-text-of-a-progress-bar",
            platforms=(ANDROID,),
            rule="The text of a view with a range is its position, a float.",
            source=RANGE,
            page='<progress value="0.7" data-testid="view"></progress>',
            example=FindAll(By.XPATH, "//*[@text='0.7']"),
            answer=["0.7"],
        ),
        Row(
            name="device-info-locale",
            platforms=(ANDROID,),
            rule="The locale has an underscore.",
            source=NOT_READ,
            page=FIELD,
            example=Script("mobile: deviceInfo", key="locale"),
            answer="en_US",
        ),
        Row(
            name="package-of-a-view",
            platforms=(ANDROID,),
            rule="A view has the package of its app.",
            source=ATTRIBUTES,
            page=FIELD,
            example=Find(*VIEW, "package"),
            answer=APP_ID,
        ),
        Row(
            name="an-element-is-found-again",
            platforms=(ANDROID,),
            rule="The server looks for an element of find_element again by its locator.",
            source=CACHE,
            page=RENDERED,
            example=Rendered(VIEW, RENDER),
            answer="Second",
        ),
        Row(
            name="one-of-several-elements-is-not-found-again",
            platforms=(ANDROID,),
            rule="It doesn't look again for an element of find_elements.",
            source=CACHE,
            page=RENDERED,
            example=Rendered(VIEW, RENDER, of_several=True),
            answer=Error(StaleElementReferenceException),
        ),
        Row(
            name="an-element-that-is-gone",
            platforms=(ANDROID,),
            rule="An element whose locator finds nothing is stale.",
            source=CACHE,
            page=REMOVED,
            example=Rendered(VIEW, RENDER),
            answer=Error(StaleElementReferenceException),
        ),
    )


def text_rows() -> tuple[Row, ...]:
    """Return the rows about the texts of both platforms."""
    return (*style_rows(), *nested_text_rows())


def nested_text_rows() -> tuple[Row, ...]:
    """Return the rows about a text of React Native with others in it, as they are on the web."""
    nested = Row(
        name="a-text-with-others-in-it",
        platforms=BOTH,
        rule="A text of React Native is one view with the texts in it.",
        source=NESTED,
        page="""<div dir="auto" class="css-text" data-testid="view">Total:
            <span class="css-text" data-testid="inner">12 <a href="#x">EUR</a></span></div>""",
        example=Find(*VIEW),
        answer="Total: 12 EUR",
    )
    of_others = """<div dir="auto" class="css-text" data-testid="view"
        ><span class="css-text">To</span><span class="css-text" data-testid="inner">tal</span></div>"""

    return (
        nested,
        replace(nested, name="a-text-of-others-alone", page=of_others, answer="Total"),
        replace(
            nested,
            name="a-text-in-another",
            example=FindAll(By.XPATH, "//*[@resource-id='inner' or @name='inner']"),
            answer=[],
        ),
    )


def style_rows() -> tuple[Row, ...]:
    """Return the rows about styles of a text, one for each."""
    styles = {
        "text-transform: uppercase": ("is this it?", "IS THIS IT?"),
        "text-transform: capitalize": ("is this it?", "Is This It?"),
        "white-space: pre-wrap": ("In  all: ", "In  all: "),
        "white-space: normal": (" In\n  all: ", "In all:"),
    }

    return tuple(
        Row(
            name=f"the-text-of-{style.replace(': ', '-')}",
            platforms=BOTH,
            rule="A text is what is shown; React Native has the texts of its styles itself.",
            source=REACT_NATIVE,
            page=f'<p data-testid="view" style="{style}">{text}</p>',
            example=Find(*VIEW),
            answer=shown,
        )
        for style, (text, shown) in styles.items()
    )


ROWS: Final = (*class_rows(), *ios_rows(), *android_rows(), *text_rows())

"""CSS selectors in the native context, which the drivers translate."""

from typing import Final

from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidSelectorException,
    NoSuchElementException,
)

from tests.spec.phones.row import (
    ANDROID,
    BOTH,
    IOS,
    UIAUTOMATOR2,
    XCUITEST,
    Error,
    Find,
    FindAll,
    Row,
    Source,
)

SELECTOR: Final = Source(*UIAUTOMATOR2, "build/lib/css/ui-automator-emitter.js")
NAMES: Final = Source(*UIAUTOMATOR2, "build/lib/css/schema.js")
CHAIN: Final = Source(*XCUITEST, "build/lib/css/class-chain-emitter.js")
TYPES: Final = Source(*XCUITEST, "build/lib/css/schema.js")
TRANSLATOR: Final = Source(
    "@appium/css-locator-to-native", "1.0.7", "build/lib/public/normalize.js"
)
PAGE: Final = (
    '<button data-testid="sign-in" aria-label="Sign in">Go</button>'
    '<button id="other">Other</button>'
)


def _android(
    name: str,
    css: str,
    answer: object,
    rule: str,
    source: Source = SELECTOR,
) -> Row:
    return Row(
        name=f"css-{name}",
        platforms=(ANDROID,),
        rule=rule,
        source=source,
        page=PAGE,
        example=Find(By.CSS_SELECTOR, css, "text"),
        answer=answer,
    )


def _ios(name: str, css: str, answer: object, rule: str, source: Source = CHAIN) -> Row:
    return Row(
        name=f"css-{name}",
        platforms=(IOS,),
        rule=rule,
        source=source,
        page=PAGE,
        example=Find(By.CSS_SELECTOR, css, "label"),
        answer=answer,
    )


NONE: Final = Error(NoSuchElementException)

ROWS: Final = (
    _android(
        "class",
        'android.widget.Button[text="Other"]',
        "Other",
        "A tag with classes is a class name.",
    ),
    _android(
        "tag-of-html",
        "button",
        NONE,
        "A tag alone is a pattern for the class name.",
    ),
    _android(
        "classes-without-a-tag",
        ".android.widget.Button",
        "Go",
        "Classes alone are a pattern for the class name.",
    ),
    _android("id", "#other", "Other", "An ID gets the package of the app."),
    _android("bare-id", "#sign-in", NONE, "An ID gets the package of the app."),
    _android(
        "description",
        '[content-desc="Sign in"]',
        "Go",
        "Some attributes have other names.",
        NAMES,
    ),
    _android("starts-with", '[text^="Oth"]', "Other", "^= is textStartsWith."),
    _android("contains", '[text*="the"]', "Other", "*= is textContains."),
    _android(
        "ends-with", '[text$="ther"]', NONE, "$= is a pattern for the whole text."
    ),
    _android("word", '[text~="the"]', "Other", "~= is a pattern for a word."),
    _android("pseudo-class", ":clickable", "Go", "A pseudo-class is an attribute."),
    _android(
        "instance",
        "android.widget.Button:instance(1)",
        "Other",
        "A pseudo-class may have a number.",
    ),
    _android(
        "attribute-of-html",
        "[data-testid=sign-in]",
        Error(InvalidSelectorException, "Unsupported CSS selector.*data-testid"),
        "The driver knows the attributes of views only.",
        NAMES,
    ),
    _ios("type", "button", "Sign in", "A tag gets the prefix of types."),
    _ios(
        "full-type",
        'XCUIElementTypeButton[label="Other"]',
        "Other",
        "A tag may be a type.",
    ),
    _ios("id", "#sign-in", "Sign in", "An ID is a name."),
    _ios("label", '[label$="ther"]', "Other", "$= is ENDSWITH."),
    _ios("starts-with", '[label^="Oth"]', "Other", "^= is BEGINSWITH."),
    _ios("contains", '[label*="the"]', NONE, "*= is MATCHES, for the whole value."),
    _ios("word", '[label~="the"]', "Other", "~= is CONTAINS."),
    _ios("position", "button:nth-child(2)", "Other", "A position is an index."),
    _ios(
        "class",
        ".XCUIElementTypeButton",
        Error(InvalidSelectorException, "is not a valid class"),
        "A type is a tag, not a class.",
    ),
    _ios(
        "attribute-of-html",
        "[data-testid=sign-in]",
        Error(InvalidSelectorException, "Unsupported CSS selector.*data-testid"),
        "The driver knows the attributes of views only.",
        TYPES,
    ),
    Row(
        name="css-of-one-rule",
        platforms=BOTH,
        rule="Of several selectors with commas, only the first counts.",
        source=TRANSLATOR,
        page=PAGE,
        example=FindAll(By.CSS_SELECTOR, "#nothing, #other"),
        answer=[],
    ),
    Row(
        name="css-siblings",
        platforms=BOTH,
        rule="Only children and descendants have a native counterpart.",
        source=TRANSLATOR,
        page=PAGE,
        example=FindAll(By.CSS_SELECTOR, "a + b"),
        answer=Error(InvalidSelectorException, "Unsupported CSS selector"),
    ),
    Row(
        name="invalid-css",
        platforms=BOTH,
        rule="A selector that is no CSS is invalid.",
        source=TRANSLATOR,
        page=PAGE,
        example=FindAll(By.CSS_SELECTOR, "[["),
        answer=Error(InvalidSelectorException, "Invalid CSS selector"),
    ),
)

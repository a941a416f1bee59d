"""Locator strategies, and what they compare."""

from typing import Final

from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidArgumentException,
    InvalidSelectorException,
    NoSuchElementException,
)

from tests.spec.phones.row import (
    ANDROID,
    APP_ID,
    BASE_DRIVER,
    BOTH,
    IOS,
    NOT_READ,
    UIAUTOMATOR2,
    WEBDRIVERAGENT,
    XCUITEST,
    Error,
    Find,
    FindAll,
    FindWithin,
    Row,
    Script,
    Source,
    Then,
    server,
)

FIND: Final = server("handler/FindElement.java", "071ab34b")
REWRITTEN_ID: Final = server("utils/ElementLocationHelpers.java", "354c94f1")
EXPRESSION: Final = server("utils/UiExpressionParser.java", "2b64f712")
SELECTOR: Final = server("utils/UiSelectorParser.java", "2b64f712")
SCROLLABLE: Final = server("utils/UiScrollableParser.java", "78210d51")
STATEMENTS: Final = server("utils/UiAutomatorParser.java", "5d1455b4")
SCROLL_TO: Final = server("handler/ScrollTo.java", "3620a24c")
FINDER: Final = server("utils/ByUiAutomatorFinder.java", "0c67492e")
DUMPER: Final = server("core/AccessibilityNodeInfoDumper.java", "0effec51")
SNAPSHOT: Final = server("model/UiElementSnapshot.java", "057389f5")

AUTOCOMPLETION: Final = Source(
    *UIAUTOMATOR2, "README.md, disableIdLocatorAutocompletion"
)
ANDROID_STRATEGIES: Final = Source(*UIAUTOMATOR2, "lib/driver.ts")
IOS_FIND: Final = Source(*XCUITEST, "lib/commands/find.ts")
IOS_STRATEGIES: Final = Source(*XCUITEST, "lib/driver.ts")
VALIDATION: Final = Source(*BASE_DRIVER, "lib/basedriver/core.ts")

LIBRARY: Final = "WebDriverAgentLib"
WDA_FIND: Final = Source(*WEBDRIVERAGENT, f"{LIBRARY}/Categories/XCUIElement+FBFind.m")
WDA_NAME: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Categories/XCUIElement+FBWebDriverAttributes.m"
)
WDA_ATTRIBUTES: Final = Source(*WEBDRIVERAGENT, f"{LIBRARY}/Routing/FBElementUtils.m")
WDA_TYPES: Final = Source(
    *WEBDRIVERAGENT, f"{LIBRARY}/Utilities/FBElementTypeTransformer.m"
)

UI: Final = By.ANDROID_UIAUTOMATOR

NAMED: Final = '<button data-testid="sign-in" aria-label="Sign in">Go</button>'
WITH_ID: Final = '<p id="note">Milk</p>'
LIST: Final = """
    <div data-testid="outer"><p>One</p><p>Two</p><p data-testid="third">Three</p></div>
    <p>Four</p>"""
QUOTED: Final = "<p>say &quot;hi&quot;</p><p>Ask</p>"
TALL: Final = f"""
    <div data-testid="list" style="height: 200px; overflow-y: auto">
      {"".join(f"<p>Line {number}</p>" for number in range(1, 31))}
    </div>"""

ENDLESS: Final = """
    <div style="height: 100px; overflow-y: auto" onscroll="
      for (let added = 0; added < 3 && children.length < 40; added += 1) {
        this.append(Object.assign(document.createElement('p'), {textContent: `Line ${children.length + 1}`}));
      }"><p>Line 1</p><p>Line 2</p><p>Line 3</p><p>Line 4</p></div>"""
"""A list that renders more lines only when it is scrolled."""


def android_ids() -> tuple[Row, ...]:
    return (
        Row(
            name="accessibility-id-is-content-desc",
            platforms=(ANDROID,),
            rule="accessibility id compares content-desc only.",
            source=FIND,
            page=NAMED,
            example=Find(By.ACCESSIBILITY_ID, "Sign in", "resource-id"),
            answer="sign-in",
        ),
        Row(
            name="accessibility-id-is-no-test-id",
            platforms=(ANDROID,),
            rule="accessibility id doesn't compare resource-id.",
            source=FIND,
            page=NAMED,
            example=Find(By.ACCESSIBILITY_ID, "sign-in"),
            answer=Error(
                NoSuchElementException,
                r"resource-id 'sign-in' without a package: "
                r'use new UiSelector\(\).resourceId\("sign-in"\)',
            ),
        ),
        Row(
            name="accessibility-id-is-no-text",
            platforms=(ANDROID,),
            rule="accessibility id doesn't compare text.",
            source=FIND,
            page=WITH_ID,
            example=Find(By.ACCESSIBILITY_ID, "Milk"),
            answer=Error(NoSuchElementException, r'UiSelector\(\).text\("Milk"\)'),
        ),
        Row(
            name="id-is-completed",
            platforms=(ANDROID,),
            rule="A short ID gets the package of the session's app.",
            source=REWRITTEN_ID,
            page=WITH_ID,
            example=Find(By.ID, "note", "resource-id"),
            answer=f"{APP_ID}:id/note",
        ),
        Row(
            name="id-with-package",
            platforms=(ANDROID,),
            rule="A full ID is compared as it is.",
            source=REWRITTEN_ID,
            page=WITH_ID,
            example=Find(By.ID, f"{APP_ID}:id/note"),
            answer="Milk",
        ),
        Row(
            name="id-with-another-package",
            platforms=(ANDROID,),
            rule="An ID with another package doesn't match.",
            source=REWRITTEN_ID,
            page=WITH_ID,
            example=Find(By.ID, "com.example:id/note"),
            answer=Error(NoSuchElementException, f"resource-id '{APP_ID}:id/note'"),
        ),
        Row(
            name="id-misses-a-bare-one",
            platforms=(ANDROID,),
            rule="A completed ID doesn't match a resource-id without a package.",
            source=AUTOCOMPLETION,
            page=NAMED,
            example=Find(By.ID, "sign-in"),
            answer=Error(
                NoSuchElementException,
                r"resource-id 'sign-in' without a package: "
                r'use new UiSelector\(\).resourceId\("sign-in"\)',
            ),
        ),
        Row(
            name="id-without-autocompletion",
            platforms=(ANDROID,),
            rule="With disableIdLocatorAutocompletion, IDs are compared as they are.",
            source=AUTOCOMPLETION,
            page=NAMED,
            example=Find(By.ID, "sign-in"),
            answer="Go",
            settings=(("disableIdLocatorAutocompletion", True),),
        ),
        Row(
            name="id-without-autocompletion-misses-a-full-one",
            platforms=(ANDROID,),
            rule="With disableIdLocatorAutocompletion, a short ID is no full one.",
            source=AUTOCOMPLETION,
            page=WITH_ID,
            example=Find(By.ID, "note"),
            answer=Error(NoSuchElementException),
            settings=(("disableIdLocatorAutocompletion", True),),
        ),
    )


def android_expressions() -> tuple[Row, ...]:
    return (
        Row(
            name="resource-id-is-compared-as-a-whole",
            platforms=(ANDROID,),
            rule="UiSelector.resourceId completes nothing.",
            source=NOT_READ,
            page=WITH_ID,
            example=Find(UI, 'new UiSelector().resourceId("note")'),
            answer=Error(NoSuchElementException, f"{APP_ID}:id/note"),
        ),
        Row(
            name="resource-id-without-a-package",
            platforms=(ANDROID,),
            rule="UiSelector.resourceId finds a resource-id without a package.",
            source=NOT_READ,
            page=NAMED,
            example=Find(UI, 'new UiSelector().resourceId("sign-in")'),
            answer="Go",
        ),
        Row(
            name="resource-id-matches-as-a-whole",
            platforms=(ANDROID,),
            rule="resourceIdMatches compares the whole resource-id.",
            source=NOT_READ,
            page=WITH_ID,
            example=FindAll(UI, 'new UiSelector().resourceIdMatches("note")'),
            answer=[],
        ),
        Row(
            name="resource-id-matches",
            platforms=(ANDROID,),
            rule="resourceIdMatches compares the whole resource-id.",
            source=NOT_READ,
            page=WITH_ID,
            example=Find(UI, 'new UiSelector().resourceIdMatches(".*:id/n.te")'),
            answer="Milk",
        ),
        Row(
            name="a-regular-expression-that-ignores-case",
            platforms=(ANDROID,),
            rule="A regular expression is one of Java: (?i) ignores case.",
            source=NOT_READ,
            page=QUOTED,
            example=Find(UI, 'textMatches("(?i)aSK")'),
            answer="Ask",
        ),
        Row(
            name="a-regular-expression-with-a-quotation",
            platforms=(ANDROID,),
            rule=r"A regular expression is one of Java: \Q and \E quote a part of it.",
            source=NOT_READ,
            page="<p>1+1 (sum)</p>",
            example=Find(UI, r'textMatches("\Q1+1 (\E.*m\)")'),
            answer="1+1 (sum)",
        ),
        Row(
            name="a-regular-expression-with-escaped-punctuation",
            platforms=(ANDROID,),
            rule="A regular expression is one of Java: any punctuation may be escaped.",
            source=NOT_READ,
            page="<p>to-do: 1</p>",
            example=Find(UI, r'textMatches("to\-do\: \d")'),
            answer="to-do: 1",
        ),
        Row(
            name="xpath-compares-the-whole-resource-id",
            platforms=(ANDROID,),
            rule="XPath compares the attribute that the source shows.",
            source=DUMPER,
            page=WITH_ID,
            example=FindAll(By.XPATH, f"//*[@resource-id='{APP_ID}:id/note']"),
            answer=["Milk"],
        ),
        Row(
            name="xpath-completes-nothing",
            platforms=(ANDROID,),
            rule="XPath compares the attribute that the source shows.",
            source=DUMPER,
            page=WITH_ID,
            example=FindAll(By.XPATH, "//*[@resource-id='note']"),
            answer=[],
        ),
        Row(
            name="xpath-without-a-value",
            platforms=(ANDROID,),
            rule="A view without content-desc has no such attribute in the source.",
            source=SNAPSHOT,
            page=WITH_ID,
            example=FindAll(By.XPATH, "//*[@text='Milk'][@content-desc]"),
            answer=[],
        ),
        Row(
            name="xpath-finds-no-hierarchy",
            platforms=(ANDROID,),
            rule="The root of the source is no view.",
            source=DUMPER,
            page=WITH_ID,
            example=FindAll(By.XPATH, "/hierarchy"),
            answer=[],
        ),
        Row(
            name="xpath-of-a-view-has-no-parents",
            platforms=(ANDROID,),
            rule="By default, XPath below a view sees nothing outside the view.",
            source=Source(*UIAUTOMATOR2, "README.md, limitXPathContextScope"),
            page=LIST,
            example=FindWithin(
                (UI, 'new UiSelector().resourceId("outer")'), (By.XPATH, "//*[@text]")
            ),
            answer=["", "One", "Two", "Three"],
        ),
        Row(
            name="an-invalid-xpath",
            platforms=(ANDROID,),
            rule="An invalid XPath is an invalid selector.",
            source=DUMPER,
            page=WITH_ID,
            example=Find(By.XPATH, "//*["),
            answer=Error(InvalidSelectorException),
        ),
        Row(
            name="an-empty-xpath",
            platforms=(ANDROID,),
            rule="An invalid XPath is an invalid selector.",
            source=DUMPER,
            page=WITH_ID,
            example=Find(By.XPATH, ""),
            answer=Error(InvalidSelectorException),
        ),
        Row(
            name="an-xpath-with-a-variable",
            platforms=(ANDROID,),
            rule="An invalid XPath is an invalid selector.",
            source=DUMPER,
            page=WITH_ID,
            example=Find(By.XPATH, "//*[@text = $name]"),
            answer=Error(InvalidSelectorException, r"\$name is not defined"),
        ),
        Row(
            name="xpath-2",
            platforms=(ANDROID,),
            rule="XPath is that of version 2, unless the setting enforceXPath1 is on.",
            source=DUMPER,
            page=WITH_ID,
            example=Find(By.XPATH, "//*[matches(@text, 'M.lk')]"),
            answer="Milk",
            difference="XPath 2.0 on Android",
            local_answer=Error(InvalidSelectorException, "not a valid XPath"),
        ),
        Row(
            name="selector-without-constructor",
            platforms=(ANDROID,),
            rule="The constructor of a UiSelector may be left out.",
            source=SELECTOR,
            page=QUOTED,
            example=Find(UI, 'text("Ask")'),
            answer="Ask",
        ),
        Row(
            name="selector-with-a-dot",
            platforms=(ANDROID,),
            rule="The constructor of a UiSelector may be left out.",
            source=SELECTOR,
            page=QUOTED,
            example=Find(UI, '.text("Ask").enabled(true)'),
            answer="Ask",
        ),
        Row(
            name="nested-selector-without-constructor",
            platforms=(ANDROID,),
            rule="The constructor of a nested UiSelector may be left out.",
            source=EXPRESSION,
            page=LIST,
            example=Find(UI, 'resourceId("outer").childSelector(text("Two"))'),
            answer="Two",
        ),
        Row(
            name="selector-without-new",
            platforms=(ANDROID,),
            rule="`new` may be left out.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, 'UiSelector().text("Ask");'),
            answer="Ask",
        ),
        Row(
            name="escaped-quotes",
            platforms=(ANDROID,),
            rule="A backslash escapes a quote in a string.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, r'new UiSelector().text("say \"hi\"")'),
            answer='say "hi"',
        ),
        Row(
            name="backslashes",
            platforms=(ANDROID,),
            rule="All other backslashes in a string are characters.",
            source=EXPRESSION,
            page=r"<p>C:\new</p>",
            example=Find(UI, r'new UiSelector().text("C:\new")'),
            answer=r"C:\new",
        ),
        Row(
            name="single-quotes",
            platforms=(ANDROID,),
            rule="A string has double quotes.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, "new UiSelector().text('Ask')"),
            answer=Error(InvalidSelectorException, "double quotes"),
        ),
        Row(
            name="an-unknown-method",
            platforms=(ANDROID,),
            rule="An unknown method is a syntax error.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, 'new UiSelector().texts("Ask")'),
            answer=Error(
                InvalidSelectorException,
                "UiSelector has no `texts` method: did you mean `text`?",
            ),
        ),
        Row(
            name="a-wrong-number-of-arguments",
            platforms=(ANDROID,),
            rule="The arguments must fit a method.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, "new UiSelector().enabled()"),
            answer=Error(
                InvalidSelectorException,
                r"suitable method `enabled`.*Actual:0. Expected:1",
            ),
        ),
        Row(
            name="a-wrong-type-of-argument",
            platforms=(ANDROID,),
            rule="The arguments must fit a method.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, 'new UiSelector().instance("1")'),
            answer=Error(InvalidSelectorException, "is not an integer"),
        ),
        Row(
            name="a-class-without-quotes",
            platforms=(ANDROID,),
            rule="A class of the framework needs no quotes.",
            source=EXPRESSION,
            page=NAMED,
            example=Find(UI, "new UiSelector().className(android.widget.Button)"),
            answer="Go",
        ),
        Row(
            name="a-class-that-does-not-exist",
            platforms=(ANDROID,),
            rule="A class without quotes must exist on the server's class path.",
            source=EXPRESSION,
            page=NAMED,
            example=Find(UI, "new UiSelector().className(android.widget.Buton)"),
            answer=Error(
                InvalidSelectorException,
                "android.widget.Buton class could not be found: write the name in quotes",
            ),
        ),
        Row(
            name="a-class-literal",
            platforms=(ANDROID,),
            rule="A class literal of Java is no class name.",
            source=EXPRESSION,
            page=NAMED,
            example=Find(UI, "new UiSelector().className(android.widget.Button.class)"),
            answer=Error(InvalidSelectorException, "class could not be found.*quotes"),
        ),
        Row(
            name="a-class-that-no-view-has",
            platforms=(ANDROID,),
            rule="A class name finds the views of that class only.",
            source=FIND,
            page=NAMED,
            example=Find(By.CLASS_NAME, "android.widget.Buton"),
            answer=Error(
                NoSuchElementException,
                "the classes on the screen are android.widget.Button, ",
            ),
        ),
        Row(
            name="neither-selector-nor-scrollable",
            platforms=(ANDROID,),
            rule="An expression is a UiSelector or a UiScrollable.",
            source=EXPRESSION,
            page=QUOTED,
            example=Find(UI, "new UiObject()"),
            answer=Error(InvalidSelectorException, "neither UiSelector nor"),
        ),
        Row(
            name="of-several-selectors-all",
            platforms=(ANDROID,),
            rule="find_elements looks for the elements of each expression, once each.",
            source=FINDER,
            page=LIST,
            example=FindAll(UI, 'text("Four"); text("One"); text("Four")'),
            answer=["Four", "One"],
        ),
        Row(
            name="of-several-selectors-the-first",
            platforms=(ANDROID,),
            rule="find_element takes the first expression.",
            source=REWRITTEN_ID,
            page=LIST,
            example=Find(UI, 'text("Five"); text("One")'),
            answer=Error(NoSuchElementException),
        ),
        Row(
            name="text-contains-ignores-case",
            platforms=(ANDROID,),
            rule="textContains and textStartsWith ignore case, text doesn't.",
            source=NOT_READ,
            page=QUOTED,
            example=FindAll(UI, 'textContains("ASK"); text("ASK")'),
            answer=["Ask"],
        ),
        Row(
            name="instance-and-child",
            platforms=(ANDROID,),
            rule="instance counts matches from 0.",
            source=NOT_READ,
            page=LIST,
            example=Find(
                UI,
                'new UiSelector().resourceId("outer").childSelector('
                'new UiSelector().className("android.widget.TextView").instance(1))',
            ),
            answer="Two",
        ),
        Row(
            name="from-parent",
            platforms=(ANDROID,),
            rule="fromParent looks below the parent.",
            source=NOT_READ,
            page=LIST,
            example=Find(UI, 'text("Two").fromParent(resourceId("third"))'),
            answer="Three",
        ),
        Row(
            name="scroll-into-view",
            platforms=(ANDROID,),
            rule="scrollIntoView scrolls, then finds the element.",
            source=SCROLLABLE,
            page=TALL,
            example=Find(
                UI,
                "new UiScrollable(new UiSelector().scrollable(true))"
                '.scrollIntoView(text("Line 29"))',
                "displayed",
            ),
            answer="true",
        ),
        Row(
            name="a-script-scrolls-until-a-view-is-there",
            platforms=(ANDROID,),
            rule="mobile: scroll scrolls step by step until the locator matches.",
            source=SCROLL_TO,
            page=ENDLESS,
            example=Then(
                Script(
                    "mobile: scroll",
                    {"strategy": UI, "selector": 'text("Line 29")'},
                ),
                Find(UI, 'text("Line 29")', "displayed"),
            ),
            answer="true",
        ),
        Row(
            name="a-script-scrolls-as-often-as-it-may",
            platforms=(ANDROID,),
            rule="mobile: scroll ends after maxSwipes.",
            source=SCROLL_TO,
            page=ENDLESS,
            example=Script(
                "mobile: scroll",
                {"strategy": UI, "selector": 'text("Line 29")', "maxSwipes": 1},
            ),
            answer=Error(NoSuchElementException),
        ),
        Row(
            name="a-script-scrolls-to-few-kinds-of-locators",
            platforms=(ANDROID,),
            rule="mobile: scroll has three strategies.",
            source=SCROLL_TO,
            page=ENDLESS,
            example=Script(
                "mobile: scroll",
                {"strategy": "xpath", "selector": "//*[@text='Line 29']"},
            ),
            answer=Error(InvalidArgumentException, "Unsupported strategy: 'xpath'"),
        ),
        Row(
            name="scroll-forward-is-no-element",
            platforms=(ANDROID,),
            rule="The last method of a UiScrollable must return an element.",
            source=SCROLLABLE,
            page=TALL,
            example=Find(
                UI,
                "new UiScrollable(new UiSelector().scrollable(true)).scrollForward()",
            ),
            answer=Error(
                InvalidSelectorException,
                "Last method called on a UiScrollable object must return a UiObject",
            ),
        ),
        Row(
            name="a-scrollable-without-a-selector",
            platforms=(ANDROID,),
            rule="The constructor of UiScrollable needs a UiSelector.",
            source=EXPRESSION,
            page=TALL,
            example=Find(UI, 'new UiScrollable().scrollTextIntoView("Line 9")'),
            answer=Error(InvalidSelectorException, "no suitable constructor"),
        ),
        Row(
            name="a-scrollable-without-a-view",
            platforms=(ANDROID,),
            rule="Without a view that scrolls, nothing is found.",
            source=SCROLLABLE,
            page=QUOTED,
            example=Find(
                UI,
                "new UiScrollable(new UiSelector().scrollable(true))"
                '.scrollTextIntoView("Line 9")',
            ),
            answer=Error(NoSuchElementException),
        ),
        Row(
            name="a-view-outside-the-screen",
            platforms=(ANDROID,),
            rule="What isn't visible is not in the tree.",
            source=SNAPSHOT,
            page=TALL,
            example=FindAll(UI, 'text("Line 29")'),
            answer=[],
            difference="Android views outside the visible area",
            local_answer=["Line 29"],
        ),
    )


def refused_strategies() -> tuple[Row, ...]:
    refused = (
        (ANDROID, By.NAME, ANDROID_STRATEGIES),
        (ANDROID, By.TAG_NAME, ANDROID_STRATEGIES),
        (ANDROID, By.LINK_TEXT, ANDROID_STRATEGIES),
        (ANDROID, By.IOS_PREDICATE, ANDROID_STRATEGIES),
        (ANDROID, By.IOS_CLASS_CHAIN, ANDROID_STRATEGIES),
        (IOS, By.TAG_NAME, IOS_STRATEGIES),
        (IOS, By.PARTIAL_LINK_TEXT, IOS_STRATEGIES),
        (IOS, UI, IOS_STRATEGIES),
    )
    return tuple(
        Row(
            name=f"no-{strategy.strip('-').replace(' ', '-')}",
            platforms=(platform,),
            rule="A strategy that the driver lacks is an invalid selector.",
            source=source,
            page=NAMED,
            example=FindAll(strategy, "sign-in"),
            answer=Error(
                InvalidSelectorException,
                f"Locator Strategy '{strategy}' is not supported for this session",
            ),
        )
        for platform, strategy, source in refused
    )


def ios_names() -> tuple[Row, ...]:
    by_name = tuple(
        Row(
            name=f"{strategy.replace(' ', '-')}-is-the-identifier",
            platforms=(IOS,),
            rule="accessibility id, id and name compare the identifier.",
            source=WDA_FIND,
            page=NAMED,
            example=Find(strategy, "sign-in", "label"),
            answer="Sign in",
        )
        for strategy in (By.ACCESSIBILITY_ID, By.ID, By.NAME)
    )
    return (
        *by_name,
        Row(
            name="an-identifier-hides-the-label",
            platforms=(IOS,),
            rule="The name is the label only if there is no identifier.",
            source=WDA_NAME,
            page=NAMED,
            example=Find(By.ACCESSIBILITY_ID, "Sign in"),
            answer=Error(NoSuchElementException, r'predicate label == "Sign in"'),
        ),
        Row(
            name="the-label-is-the-name",
            platforms=(IOS,),
            rule="The name is the label if there is no identifier.",
            source=WDA_NAME,
            page='<button aria-label="Sign in">Go</button><p>Milk</p>',
            example=FindAll(By.XPATH, "//*[@name='Sign in' or @name='Milk']", "name"),
            answer=["Sign in", "Milk"],
        ),
        Row(
            name="an-id-is-an-identifier",
            platforms=(IOS,),
            rule="An identifier has no package.",
            source=WDA_NAME,
            page=WITH_ID,
            example=Find(By.ID, "note"),
            answer="Milk",
        ),
        Row(
            name="a-predicate-of-a-view-that-can-be-hit",
            platforms=(IOS,),
            rule="Predicates have all attributes of an element, also with the prefix wd.",
            source=WDA_ATTRIBUTES,
            page=NAMED,
            example=FindAll(
                By.IOS_PREDICATE, "hittable == 1 AND wdName == 'sign-in'", "label"
            ),
            answer=["Sign in"],
        ),
        *(
            Row(
                name=f"a-predicate-of-{attribute}",
                platforms=(IOS,),
                rule="Predicates have no attributes of XCUIElement, nor those of XPath.",
                source=WDA_ATTRIBUTES,
                page=NAMED,
                example=Find(By.IOS_PREDICATE, f"{attribute} != 'nothing'"),
                answer=Error(NoSuchElementException, f"unknown attribute {attribute}:"),
            )
            for attribute in ("identifier", "isEnabled", "width")
        ),
        Row(
            name="a-predicate-that-ignores-diacritics",
            platforms=(IOS,),
            rule="[c] ignores case and [d] diacritics.",
            source=NOT_READ,
            page="<p>Café au lait</p>",
            example=FindAll(
                By.IOS_PREDICATE, "label BEGINSWITH[cd] 'CAFE' AND label LIKE[d] 'C*é*'"
            ),
            answer=["Café au lait"],
        ),
        Row(
            name="class-name-is-completed",
            platforms=(IOS,),
            rule="A class name gets the prefix of XCUITest.",
            source=IOS_FIND,
            page=NAMED,
            example=Find(By.CLASS_NAME, "Button", "name"),
            answer="sign-in",
        ),
        Row(
            name="class-name-of-uiautomation",
            platforms=(IOS,),
            rule="A class name of UIAutomation is rewritten.",
            source=IOS_FIND,
            page="<input>",
            example=Find(By.CLASS_NAME, "UIATextField", "type"),
            answer="XCUIElementTypeTextField",
        ),
        Row(
            name="xpath-of-uiautomation",
            platforms=(IOS,),
            rule="A class name of UIAutomation is rewritten in XPath, too.",
            source=IOS_FIND,
            page=NAMED,
            example=Find(By.XPATH, "//UIAButton", "name"),
            answer="sign-in",
        ),
        Row(
            name="xpath-of-any-type",
            platforms=(IOS,),
            rule="In XPath, XCUIElementTypeAny is any type.",
            source=WDA_FIND,
            page=NAMED,
            example=FindAll(By.XPATH, "//XCUIElementTypeAny[@name='sign-in']", "label"),
            answer=["Sign in"],
        ),
        Row(
            name="an-unknown-class-is-other",
            platforms=(IOS,),
            rule="An unknown type is XCUIElementTypeOther.",
            source=WDA_TYPES,
            page='<div data-testid="box"><p>Milk</p></div>',
            example=Find(By.CLASS_NAME, "XCUIElementTypeButon", "name"),
            answer="box",
        ),
        Row(
            name="the-element-itself-matches",
            platforms=(IOS,),
            rule="Predicates, names and class names include the element itself.",
            source=WDA_FIND,
            page=NAMED,
            example=FindWithin(
                (By.ID, "sign-in"), (By.IOS_PREDICATE, "label == 'Sign in'")
            ),
            answer=["Sign in"],
        ),
        Row(
            name="an-invalid-predicate-finds-nothing",
            platforms=(IOS,),
            rule="The driver takes any error of a look-up for no match.",
            source=IOS_FIND,
            page=NAMED,
            example=Find(By.IOS_PREDICATE, "colour == 'red'"),
            answer=Error(NoSuchElementException, "unknown attribute colour"),
        ),
        Row(
            name="an-invalid-chain-finds-nothing",
            platforms=(IOS,),
            rule="The driver takes any error of a look-up for no match.",
            source=IOS_FIND,
            page=NAMED,
            example=FindAll(By.IOS_CLASS_CHAIN, "**/XCUIElementTypeButton["),
            answer=[],
        ),
        Row(
            name="an-invalid-xpath-finds-nothing",
            platforms=(IOS,),
            rule="The driver takes any error of a look-up for no match.",
            source=IOS_FIND,
            page=NAMED,
            example=Find(By.XPATH, "//*["),
            answer=Error(NoSuchElementException, "not a valid XPath"),
        ),
    )


def both_names() -> tuple[Row, ...]:
    return (
        Row(
            name="a-label-alone-holds-on-both",
            platforms=BOTH,
            rule="A label without an ID is found by accessibility id on both platforms.",
            source=FIND,
            page='<button aria-label="Sign in">Go</button>',
            example=FindAll(By.ACCESSIBILITY_ID, "Sign in", "enabled"),
            answer=["true"],
        ),
        Row(
            name="a-test-id-by-xpath-holds-on-both",
            platforms=BOTH,
            rule="An XPath finds a test ID on both platforms.",
            source=DUMPER,
            page=NAMED,
            example=FindAll(
                By.XPATH, "//*[@resource-id='sign-in' or @name='sign-in']", "enabled"
            ),
            answer=["true"],
        ),
    )


ROWS: Final = (
    *android_ids(),
    *android_expressions(),
    *refused_strategies(),
    *ios_names(),
    *both_names(),
)

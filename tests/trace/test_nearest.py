"""The elements closest to a locator that found nothing, for every strategy."""

import pytest

from pytest_device.trace.nearest import MAX_NEAREST, nearest, sentence
from pytest_device.trace.screen import Dialect, Element, Screen
from pytest_device.trace.values import Locator
from tests.trace.screens import SCREENS

UIAUTOMATOR = "-android uiautomator"
PREDICATE = "-ios predicate string"
CHAIN = "-ios class chain"
SCROLLED = (
    "new UiScrollable(new UiSelector().text('Milk')).scrollIntoView("
    'new UiSelector().text("Breads").className("android.widget.TextView"))'
)


@pytest.mark.parametrize(
    ("screen", "using", "value", "near"),
    [
        ("android", "accessibility id", "sign-out", "'sign-in'"),
        ("android", "accessibility id", "signin", "'sign-in'"),
        ("android", "accessibility id", "passwrd", "'password'"),
        ("android", "id", "com.other:id/sign_in", "'com.example:id/signin'"),
        ("android", "id", "signIn", "'com.example:id/signin'"),
        (
            "android",
            "xpath",
            '//android.widget.Button[@text="Help"]',
            "id 'com.example:id/help'",
        ),
        (
            "android",
            "xpath",
            "//*[contains(@text, 'Breads')]/..",
            "-android uiautomator 'new UiSelector().text(\"Bread\")'",
        ),
        (
            "android",
            "xpath",
            "//android.widget.FrameLayout[@text='Help']//*[@content-desc='usernames']",
            "accessibility id 'username'",
        ),
        (
            "android",
            UIAUTOMATOR,
            SCROLLED,
            "'new UiSelector().text(\"Bread\")'",
        ),
        (
            "ios",
            PREDICATE,
            "label == 'sign-out' AND type == 'XCUIElementTypeButton'",
            '\'type == "XCUIElementTypeButton" AND label == "sign-in"\'',
        ),
        (
            "ios",
            CHAIN,
            '**/XCUIElementTypeWindow[`name == "a"`]/XCUIElementTypeButton[`label CONTAINS[c] "sign-out"`]',
            "accessibility id 'signin'",
        ),
        ("web", "css selector", "form > #sign-in", "'[id=\"signin\"]'"),
        ("web", "css selector", 'button[id="sign_in"]', "'[id=\"signin\"]'"),
        ("agent-device", "selector", 'role=button label="Help"', "'label=\"Help me\"'"),
        ("argent", "selector", '{"text": "Sign out"}', '\'{"identifier": "signin"}\''),
    ],
)
def test_the_nearest_element_of_each_strategy(
    screen: str, using: str, value: str, near: str
) -> None:
    locator = Locator(using, value)
    matches = nearest(locator, SCREENS[screen])

    line = sentence(locator, SCREENS[screen], matches)
    assert line.startswith(f"{locator}: no match; nearest {near}")


def test_the_closest_comes_first_and_a_hidden_one_behind_a_visible_one() -> None:
    texts = ("pay", "pay-now", "pay-later", "help")
    hidden = Element("b", "pay-now", is_displayed=False)
    elements = (hidden, *(Element("b", text) for text in texts))

    matches = nearest(
        Locator("accessibility id", "pay-nou"), Screen(Dialect.ANDROID, elements)
    )

    ids = [match.element.accessibility_id for match in matches]
    assert ids[:2] == ["pay-now", "pay-now"]
    assert matches[0].element.is_displayed
    assert "help" not in ids


def test_the_same_text_in_another_attribute_is_nearly_a_match() -> None:
    locator = Locator("accessibility id", "com.example:id/help")

    (match, *_) = nearest(locator, SCREENS["android"])

    assert match.element.text == "Help me"
    assert match.score > 0.9


def test_there_are_at_most_five() -> None:
    elements = tuple(Element("b", f"row-{number}") for number in range(50))

    matches = nearest(Locator("id", "row"), Screen(Dialect.ANDROID, elements))

    assert len(matches) == MAX_NEAREST == 5


def test_nothing_similar_is_said_with_the_number_of_elements() -> None:
    locator = Locator("accessibility id", "zzzz")

    line = sentence(locator, SCREENS["web"], nearest(locator, SCREENS["web"]))

    assert line == (
        "accessibility id 'zzzz': no match; none of the 15 elements on the screen is similar"
    )


def test_an_element_that_is_there_now_is_said_to_be_there_with_its_states() -> None:
    locator = Locator("id", "help")
    screen = SCREENS["android"]

    assert sentence(locator, screen, nearest(locator, screen)) == (
        "id 'help': on the screen now (disabled)"
    )


@pytest.mark.parametrize(
    "locator",
    [
        Locator("xpath", "//*[@text='" + "x" * 100_000),
        Locator(UIAUTOMATOR, "\\" * 10_000 + '"'),
        Locator("selector", '"' + "\\" * 50_000),
        Locator("selector", "@e3"),
        Locator("", ""),
        Locator("-custom", "ai:help"),
    ],
    ids=range(6),
)
def test_a_locator_that_cannot_be_read_finds_what_it_can(locator: Locator) -> None:
    assert len(nearest(locator, SCREENS["android"])) <= MAX_NEAREST

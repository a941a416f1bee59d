"""Each controller's tree becomes the same elements, with locators that find exactly these."""

import doctest
from importlib import import_module

import pytest

from pytest_device.redact import MASK
from pytest_device.trace.locators import Locators, tap_point
from pytest_device.trace.screen import Bounds, Dialect, Element, Screen
from pytest_device.trace.screen_parsers import (
    MAX_ELEMENTS,
    ScreenError,
    from_description,
    from_page_source,
    from_snapshot,
)
from pytest_device.trace.screen_text import screen_text
from tests.trace.screens import ANDROID, SCREENS


def element(screen: str, text: str) -> Element:
    """Return the only element of a screen with a text in any field."""
    (only,) = [one for one in SCREENS[screen].elements if text in one.texts()]
    return only


@pytest.mark.parametrize(
    ("screen", "text", "type_name", "bounds"),
    [
        ("android", "sign-in", "android.widget.Button", Bounds(376, 81, 60, 21)),
        ("ios", "sign-in", "XCUIElementTypeButton", Bounds(376, 81, 60, 21)),
        ("web", "Sign in", "button", None),
        ("agent-device", "sign-in", "button", Bounds(376, 81, 60, 21)),
        ("argent", "sign-in", "button", Bounds(0.384, 0.038, 0.061, 0.010)),
    ],
)
def test_each_controllers_tree_has_the_type_and_bounds_of_an_element(
    screen: str, text: str, type_name: str, bounds: Bounds | None
) -> None:
    button = element(screen, text)

    assert (button.type, button.bounds) == (type_name, bounds)


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_has_the_text_of_a_password_field(screen: str) -> None:
    assert "hunter2" not in repr(SCREENS[screen])
    fields = [one for one in SCREENS[screen].elements if one.is_password]
    assert [one.text for one in fields] == [MASK] * len(fields)
    assert len(fields) == 1


@pytest.mark.parametrize(
    ("screen", "text", "locators"),
    [
        (
            "android",
            "sign-in",
            [
                "accessibility id 'sign-in'",
                "id 'com.example:id/signin'",
                "-android uiautomator 'new UiSelector().text(\"Sign in\")'",
                "xpath '//android.widget.Button[@text=\"Sign in\"]'",
            ],
        ),
        (
            "ios",
            "sign-in",
            [
                "accessibility id 'signin'",
                '-ios predicate string \'type == "XCUIElementTypeButton" AND label == "sign-in"\'',
                "xpath '//XCUIElementTypeButton[@label=\"sign-in\"]'",
            ],
        ),
        (
            "web",
            "Sign in",
            [
                "css selector '[id=\"signin\"]'",
                "xpath '//button[normalize-space()=\"Sign in\"]'",
            ],
        ),
        (
            "web",
            "amount",
            [
                "css selector '[data-testid=\"amount\"]'",
                "css selector '[name=\"quantity\"]'",
                "xpath '//input[@value=\"12\"]'",
            ],
        ),
        ("web", "Total:", ["xpath '//p[text()[normalize-space()=\"Total:\"]]'"]),
        (
            "web",
            "Hello A\N{NO-BREAK SPACE}B",
            ["xpath '//h2[normalize-space()=\"Hello A\\xa0B\"]'"],
        ),
        ("web", "Red", ["xpath '//option[normalize-space()=\"Red\"]'"]),
        (
            "agent-device",
            "sign-in",
            [
                "selector 'id=\"signin\"'",
                "selector 'label=\"sign-in\"'",
                "selector 'role=button label=\"sign-in\"'",
            ],
        ),
        (
            "argent",
            "sign-in",
            [
                'selector \'{"identifier": "signin"}\'',
                'selector \'{"text": "sign-in"}\'',
                'selector \'{"text": "sign-in", "role": "button"}\'',
            ],
        ),
    ],
)
def test_an_element_has_the_locators_of_its_controller_the_best_first(
    screen: str, text: str, locators: list[str]
) -> None:
    made = Locators(SCREENS[screen]).of(element(screen, text))

    assert [str(locator) for locator in made] == locators


def test_a_resource_id_without_a_package_is_no_id_because_appium_would_add_one() -> (
    None
):
    screen = from_page_source(
        '<hierarchy><android.widget.Button resource-id="sign-in"/></hierarchy>'
    )

    made = Locators(screen).of(screen.elements[0])

    assert list(map(str, made)) == [
        "-android uiautomator 'new UiSelector().resourceId(\"sign-in\")'"
    ]


def test_a_string_of_uiautomator_escapes_only_quotes() -> None:
    screen = from_page_source(
        r"""<hierarchy><android.widget.Button text='C:\new "a"&#10;b'/></hierarchy>"""
    )

    made = Locators(screen).of(screen.elements[0])[0]

    assert made.value == 'new UiSelector().text("C:\\new \\"a\\"\nb")'


def test_an_id_of_a_web_page_may_have_quotes() -> None:
    screen = from_page_source("<html><body><p id='a\"b'></p></body></html>")

    (made, *_) = Locators(screen).of(screen.elements[-1])

    assert made.value == '[id="a\\"b"]'


def test_a_locator_that_finds_several_elements_is_no_locator_of_one() -> None:
    screen = SCREENS["android"]
    twins = [one for one in screen.elements if one.text == "Milk"]

    made = [Locators(screen).of(one) for one in twins]

    assert [str(locator) for (locator,) in made] == [
        "xpath '(//android.widget.TextView)[3]'",
        "xpath '(//android.widget.TextView)[4]'",
    ]


def test_a_drawing_of_a_web_page_has_no_elements() -> None:
    screen = from_page_source(
        "<html><body><svg><a>Zoom</a><path/></svg><a>Help</a></body></html>"
    )

    assert [one.type for one in screen.elements] == ["html", "body", "a"]
    assert screen.elements[-1].text == "Help"


def test_a_text_with_both_quotes_is_spelled_as_xpath_needs_it() -> None:
    source = (
        '<hierarchy><android.widget.Button text="say &quot;it\'s&quot;"/></hierarchy>'
    )
    screen = from_page_source(source)

    *_, xpath = Locators(screen).of(screen.elements[0])

    assert xpath.value == (
        '//android.widget.Button[@text=concat("say ", \'"\', "it\'s", \'"\', "")]'
    )


def test_argent_taps_the_middle_of_an_element_and_other_controllers_use_locators() -> (
    None
):
    argent = element("argent", "sign-in")

    assert tap_point(SCREENS["argent"], argent) == "gesture-tap x=0.414 y=0.043"
    assert tap_point(SCREENS["android"], element("android", "sign-in")) == ""


def test_the_text_of_a_screen_has_a_line_for_each_element_that_means_something() -> (
    None
):
    text = screen_text(SCREENS["android"])

    assert (
        text
        == f"""\
android.widget.TextView 'title' 'Shop' [8,21 964x38] → accessibility id 'title'
android.widget.EditText 'username' 'com.example:id/user' 'User name' [8,81 179x21] → accessibility id 'username'
android.widget.EditText 'password' 'com.example:id/pw' '{MASK}' [192,81 179x21] (focused, password) → accessibility id \
'password'
android.widget.Button 'sign-in' 'com.example:id/signin' 'Sign in' [376,81 60x21] → accessibility id 'sign-in'
android.widget.Button 'com.example:id/help' 'Help me' [441,81 71x21] (disabled) → id 'com.example:id/help'
android.widget.TextView 'Bread' [48,118 924x19] → -android uiautomator 'new UiSelector().text("Bread")'
android.widget.TextView 'Milk' [48,137 924x19] → xpath '(//android.widget.TextView)[3]'
android.widget.TextView 'Milk' [48,156 924x19] → xpath '(//android.widget.TextView)[4]'"""
    )


def test_the_text_of_a_screen_is_bounded_and_says_what_is_left_out() -> None:
    text = screen_text(SCREENS["android"], max_lines=2)

    assert text.splitlines()[2:] == ["… 6 more elements"]


def test_the_text_indents_elements_below_those_that_are_shown() -> None:
    lines = screen_text(SCREENS["ios"]).splitlines()

    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 2, 2]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "the page source is not XML"),
        ("<a><b></a>", "the page source is not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares a document type"),
        ("<a>" + "x" * 10_000_000 + "</a>", "has 10000007 characters"),
    ],
)
def test_a_source_that_is_no_tree_is_refused_with_the_reason(
    source: str, reason: str
) -> None:
    with pytest.raises(ScreenError, match=reason):
        from_page_source(source)


def test_a_deep_tree_and_a_long_one_are_read_up_to_a_limit() -> None:
    deep = "<a>" * 6000 + "</a>" * 6000
    long = f"<hierarchy>{'<b/>' * 6000}</hierarchy>"

    for screen in (
        from_page_source(deep),
        from_page_source(long),
        from_snapshot([{"label": "x"}] * 6000),
        from_description("b (0, 0, 1, 1)\n" * 6000),
        from_page_source(f"<html>{'<p>x</p>' * 6000}"),
    ):
        assert (len(screen.elements), screen.is_truncated) == (MAX_ELEMENTS, True)


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"label": None, "depth": "1"},
        {"rect": {"x": "a"}},
        {"rect": [1]},
        {"rect": {"x": None, "y": 1, "width": 1, "height": 1}},
    ],
)
def test_a_node_without_usable_values_is_an_element_without_them(
    node: dict[str, object],
) -> None:
    (only,) = from_snapshot([node]).elements

    assert (only.label, only.depth, only.bounds) == ("", 0, None)


def test_android_bounds_that_cannot_be_read_are_no_bounds() -> None:
    screen = from_page_source(ANDROID.replace("[376,81][436,102]", "[376,81]"))

    (button,) = [one for one in screen.elements if "sign-in" in one.texts()]
    assert button.bounds is None


def test_a_screen_without_elements_has_no_text() -> None:
    assert screen_text(Screen(Dialect.ANDROID, ())) == ""


@pytest.mark.parametrize(
    "module", ["locators", "nearest", "screen_parsers", "screen_text"]
)
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    ran = doctest.testmod(import_module(f"pytest_device.trace.{module}"))

    assert ran.attempted
    assert not ran.failed

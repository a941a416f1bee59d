"""Ready-made locators: how a suite can find an element of a screen."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from pytest_device.trace.screen import Dialect, Element, Screen
from pytest_device.trace.values import Locator

ACCESSIBILITY_ID: Final = "accessibility id"
_UIAUTOMATOR: Final = "-android uiautomator"
_PREDICATE: Final = "-ios predicate string"
_MAX_VALUE_LENGTH: Final = 80
"""Characters of a text that makes a usable locator: longer ones are content."""


class Locators:
    """The locators of one screen's elements, those that find exactly this element, the best first.

    The order is the one that Appium's documentation recommends: an accessibility ID, an ID, the platform's own
    strategy, and an XPath last.
    """

    def __init__(self, screen: Screen) -> None:
        self._dialect = screen.dialect
        self._parents = {
            id(element)
            for element, following in pairwise(screen.elements)
            if following.depth > element.depth
        }
        """The elements with others in them, by identity."""
        self._counts = Counter(
            locator
            for element in screen.elements
            for locator in self._candidates(element)
        )
        self._numbers: dict[int, int] = {}
        """The number of each element among those of its type, by identity: equal ones have different numbers."""
        counts: Counter[str] = Counter()
        for element in screen.elements:
            counts[element.type] += 1
            self._numbers[id(element)] = counts[element.type]

    def of(self, element: Element) -> tuple[Locator, ...]:
        """Return the locators of an element of this screen, the best first; empty if none finds it alone.

        >>> from pytest_device.trace.screen_parsers import from_page_source
        >>> screen = from_page_source(
        ...     '<hierarchy><android.widget.Button content-desc="sign-in"/></hierarchy>'
        ... )
        >>> print(Locators(screen).of(screen.elements[0])[0])
        accessibility id 'sign-in'
        """
        unique = tuple(
            locator
            for locator in self._candidates(element)
            if self._counts[locator] == 1
        )

        return unique or tuple(self._by_number(element))

    def _candidates(self, element: Element) -> Iterator[Locator]:
        """Yield the locators that match an element, whether or not they match others, too."""
        if self._dialect is Dialect.WEB:
            candidates = _web(element, is_parent=id(element) in self._parents)
        else:
            candidates = _BY_DIALECT[self._dialect](element)

        for locator in candidates:
            if len(locator.value) <= _MAX_VALUE_LENGTH:
                yield locator

    def _by_number(self, element: Element) -> Iterator[Locator]:
        """Yield an XPath that counts the elements of a type: the last resort, it breaks with the layout."""
        number = self._numbers.get(id(element))
        # The other controllers have selectors of their own.
        has_xpath = self._dialect not in {Dialect.AGENT_DEVICE, Dialect.ARGENT}
        if number and has_xpath and element.type:
            yield Locator("xpath", f"(//{element.type})[{number}]")


def tap_point(screen: Screen, element: Element) -> str:
    """Return the arguments of argent's ``gesture-tap`` in the middle of an element; empty for other controllers."""
    if screen.dialect is not Dialect.ARGENT or element.bounds is None:
        return ""

    bounds = element.bounds
    x = bounds.x + bounds.width / 2
    y = bounds.y + bounds.height / 2

    return f"gesture-tap x={x:.3f} y={y:.3f}"


def _android(element: Element) -> Iterator[Locator]:
    if element.accessibility_id:
        yield Locator(ACCESSIBILITY_ID, element.accessibility_id)

    if ":id/" in element.id:
        yield Locator("id", element.id)
    elif element.id:
        # Such as React Native's testID: Appium would complete it by a package.
        quoted = _for_uiautomator(element.id)
        yield Locator(_UIAUTOMATOR, f"new UiSelector().resourceId({quoted})")

    if element.text and not element.is_password:
        quoted = _for_uiautomator(element.text)
        yield Locator(_UIAUTOMATOR, f"new UiSelector().text({quoted})")
        yield _xpath(element.type, "text", element.text)


def _ios(element: Element) -> Iterator[Locator]:
    if element.accessibility_id:
        yield Locator(ACCESSIBILITY_ID, element.accessibility_id)

    for attribute, value in (("label", element.label), ("value", element.text)):
        if value and not element.is_password:
            quoted = _in_double_quotes(value)
            condition = f'type == "{element.type}" AND {attribute} == {quoted}'
            yield Locator(_PREDICATE, condition)
            yield _xpath(element.type, attribute, value)


def _web(element: Element, *, is_parent: bool) -> Iterator[Locator]:
    if element.id:
        # By its attribute: after "#", characters such as a colon would have a meaning.
        yield Locator("css selector", f"[id={_in_double_quotes(element.id)}]")

    for attribute, value in (
        ("data-testid", element.test_id),
        ("aria-label", element.accessibility_id),
        ("name", element.label),
    ):
        if value:
            yield Locator("css selector", f"[{attribute}={_in_double_quotes(value)}]")

    if element.text and not element.is_password:
        text = _xpath_text(element.text)
        if element.type == "input":
            condition = f"@value={text}"
        elif is_parent:
            # The text is the first one in it: its whole content has those of the others, too.
            condition = f"text()[normalize-space()={text}]"
        else:
            condition = f"normalize-space()={text}"
        yield Locator("xpath", f"//{element.type}[{condition}]")


def _agent_device(element: Element) -> Iterator[Locator]:
    if element.id:
        yield Locator("selector", f"id={_in_double_quotes(element.id)}")

    if element.label:
        quoted = _in_double_quotes(element.label)
        yield Locator("selector", f"label={quoted}")
        yield Locator("selector", f"role={element.type} label={quoted}")


def _argent(element: Element) -> Iterator[Locator]:
    if element.id:
        yield _argent_selector(identifier=element.id)

    text = element.label or element.text
    if text and not element.is_password:
        yield _argent_selector(text=text)
        yield _argent_selector(text=text, role=element.type)


_BY_DIALECT: Final = {
    Dialect.ANDROID: _android,
    Dialect.IOS: _ios,
    Dialect.AGENT_DEVICE: _agent_device,
    Dialect.ARGENT: _argent,
}


def _argent_selector(**parts: str) -> Locator:
    """Return a selector of argent's ``await-ui-element``."""
    return Locator("selector", json.dumps(parts, ensure_ascii=False))


def _xpath(type_name: str, attribute: str, value: str) -> Locator:
    return Locator("xpath", f"//{type_name}[@{attribute}={_xpath_text(value)}]")


def _in_double_quotes(text: str) -> str:
    """Return a text as a string of NSPredicate, CSS and agent-device: all escape quotes by a backslash."""
    return json.dumps(text, ensure_ascii=False)


def _for_uiautomator(text: str) -> str:
    r"""Return a text as a string of UiAutomator2, which unescapes quotes only.

    A line break or a backslash stays as it is: ``\n`` would be two characters.
    """
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'


def _xpath_text(text: str) -> str:
    """Return a text as XPath 1.0 spells it, which has no escapes."""
    if '"' not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"

    parts = ", '\"', ".join(f'"{part}"' for part in text.split('"'))
    return f"concat({parts})"

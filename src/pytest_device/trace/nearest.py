"""Which elements of a screen are closest to a locator that found nothing."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from pytest_device.trace.locators import ACCESSIBILITY_ID, Locators
from pytest_device.trace.screen import Element, Screen
from pytest_device.trace.values import Locator

MAX_NEAREST: Final = 5
MIN_SCORE: Final = 0.55
"""Below it, two texts share little more than single letters."""
_MAX_TEXT_LENGTH: Final = 120
"""Characters of a text that are compared: a longer one is content, and would take long."""
_OTHER_CASE: Final = 0.98
_HIDDEN: Final = 0.95
_FIELDS: Final[Mapping[str, str]] = {
    ACCESSIBILITY_ID: "accessibility_id",
    "id": "id",
    "label": "label",
}
"""The field of an element that a strategy compares; others compare several, or have a language of their own."""
_QUOTED: Final = re.compile(r"""(["'])((?:(?!\1)[^\\]|\\.?)*)(\1?)(\s*:)?""", re.DOTALL)
"""A string in a locator, also one that does not end; a colon follows the names of an object."""


@dataclass(frozen=True, slots=True)
class Match:
    """An element that is close to a locator. ``score`` is at most 1; ``locators`` find it, the best first."""

    element: Element
    score: float
    locators: tuple[Locator, ...] = ()


def nearest(
    locator: Locator, screen: Screen, *, limit: int = MAX_NEAREST
) -> tuple[Match, ...]:
    """Return the elements of a screen that are closest to a locator, the closest first.

    Compares the locator's value, or the last string in it, with the texts of the elements: of an XPath, that string
    mostly belongs to the element. Types and positions are left out.

    >>> from pytest_device.trace.screen_parsers import from_page_source
    >>> screen = from_page_source(
    ...     '<hierarchy><android.widget.Button content-desc="sign-in"/></hierarchy>'
    ... )
    >>> nearest(Locator("accessibility id", "sign-out"), screen)[0].element.accessibility_id
    'sign-in'
    """
    types = {element.type for element in screen.elements}
    sought = list(_sought(locator, types))
    scores: list[tuple[float, bool, int]] = []
    for index, element in enumerate(screen.elements):
        score = _score(sought, element)
        if not element.is_displayed:
            score *= _HIDDEN
        if score >= MIN_SCORE:
            scores.append((-score, not _is_found(locator, element), index))

    # Of equal ones, those that the locator finds come first, such as by an ID, else in the order of the screen.
    scores.sort()

    locators = Locators(screen)
    matches: list[Match] = []
    for score, _, index in scores[:limit]:
        element = screen.elements[index]
        matches.append(Match(element, round(-score, 3), locators.of(element)))

    return tuple(matches)


def sentence(locator: Locator, screen: Screen, matches: Sequence[Match]) -> str:
    """Return one line about a locator that failed: what is nearest, or that nothing is.

    >>> from pytest_device.trace.screen_parsers import from_page_source
    >>> screen = from_page_source(
    ...     '<hierarchy><android.widget.Button content-desc="sign-in"/></hierarchy>'
    ... )
    >>> sign_out = Locator("accessibility id", "sign-out")
    >>> sentence(sign_out, screen, nearest(sign_out, screen))
    "accessibility id 'sign-out': no match; nearest 'sign-in'"
    """
    if not matches:
        count = len(screen.elements)
        return f"{locator}: no match; none of the {count} elements on the screen is similar"

    first = matches[0]
    # It was not there when the locator failed, or is hidden.
    if _is_found(locator, first.element):
        states = ", ".join(first.element.states())
        return f"{locator}: on the screen now" + (f" ({states})" if states else "")

    return f"{locator}: no match; nearest {_shown(locator, first)}"


def _shown(locator: Locator, match: Match) -> str:
    """Return the locator of a match, without the strategy if that is the same.

    For an XPath, it is the best locator instead: another XPath would break as easily.
    """
    for ready_made in match.locators:
        if ready_made.using == locator.using and locator.using != "xpath":
            return repr(ready_made.value)

    if match.locators:
        return str(match.locators[0])

    texts = ", ".join(map(repr, match.element.texts()))
    return f"{match.element.type} {texts}".strip()


def _sought(locator: Locator, types: Collection[str]) -> Iterator[str]:
    """Yield the texts that the element of a locator may have: its value, and the last string in it that is no type."""
    yield _without_package(locator.value)

    strings = [
        re.sub(r"\\(.)", r"\1", quoted[2])
        for quoted in _QUOTED.finditer(locator.value)
        if quoted[3] and not quoted[4]
    ]
    named = [string for string in strings if string and string not in types]
    if named:
        yield _without_package(named[-1])


def _without_package(resource_id: str) -> str:
    """Return an Android ID without its package: ``pay`` of ``com.example:id/pay``."""
    return resource_id.rpartition(":id/")[2]


def _is_found(locator: Locator, element: Element) -> bool:
    """Return whether a locator finds an element; False for strategies that compare more than one text."""
    field = _FIELDS.get(locator.using)
    if field is None:
        return False

    text: str = getattr(element, field)
    return _without_package(text) == _without_package(locator.value)


def _score(sought: Sequence[str], element: Element) -> float:
    """Return how well an element fits what a locator looks for, from 0 to 1."""
    texts = [_without_package(text) for text in element.texts()]
    scores = [_similarity(wanted, text) for wanted in sought for text in texts]
    return max(scores, default=0.0)


# A screen repeats its texts, and a report compares one locator several times.
@lru_cache(maxsize=16_384)
def _similarity(sought: str, actual: str) -> float:
    """Return how alike two texts are, from 0 to 1: the better of their letters and their words."""
    if sought == actual:
        return 1.0

    left = sought[:_MAX_TEXT_LENGTH].casefold()
    right = actual[:_MAX_TEXT_LENGTH].casefold()
    if left == right:
        return _OTHER_CASE

    return max(_letters(left, right), _words(sought, actual)) * _OTHER_CASE


def _letters(left: str, right: str) -> float:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    # Both are upper bounds, and much cheaper.
    if matcher.real_quick_ratio() < MIN_SCORE or matcher.quick_ratio() < MIN_SCORE:
        return 0.0
    return matcher.ratio()


def _words(left: str, right: str) -> float:
    """Return the share of words that two names have in common: ``pay-now`` and ``nowPay`` have all."""
    left_words = _words_of(left)
    right_words = _words_of(right)
    if not left_words or not right_words:
        return 0.0

    shared = len(left_words & right_words)
    return 2 * shared / (len(left_words) + len(right_words))


def _words_of(text: str) -> frozenset[str]:
    """Return the words of a name, however it joins them: ``pay-now``, ``pay_now`` or ``payNow``."""
    spaced: list[str] = []
    for character in text[:_MAX_TEXT_LENGTH]:
        if character.isupper():
            spaced.append(f" {character}")
        elif character.isalnum():
            spaced.append(character)
        else:
            spaced.append(" ")

    return frozenset("".join(spaced).casefold().split())

"""Which elements of a screen are closest to a locator that found nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from pytest_device.trace.locators import Locators
from pytest_device.trace.screen import Element, Screen
from pytest_device.trace.sought import Sought, Term, sought_by, without_package
from pytest_device.trace.values import Locator

MAX_NEAREST: Final = 5
MIN_SCORE: Final = 0.55
"""Below it, two texts share little more than single letters."""
_MAX_TEXT_LENGTH: Final = 120
"""Characters of a text that are compared: a longer one is content, and would take long."""
_OTHER_FIELD: Final = 0.97
"""Factor for a text in another attribute than the locator names, such as an ID used as an accessibility ID."""
_OTHER_CASE: Final = 0.98
_OTHER_TYPE: Final = 0.95
_HIDDEN: Final = 0.95


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

    Compares texts and types, not positions: what an XPath says about parents is left out.

    >>> from pytest_device.trace.screen_parsers import from_page_source
    >>> screen = from_page_source(
    ...     '<hierarchy><android.widget.Button content-desc="sign-in"/></hierarchy>'
    ... )
    >>> nearest(Locator("accessibility id", "sign-out"), screen)[0].element.accessibility_id
    'sign-in'
    """
    alternatives = sought_by(locator)
    scores: list[tuple[float, int]] = []
    for index, element in enumerate(screen.elements):
        score = max(_score(sought, element) for sought in alternatives)
        if score >= MIN_SCORE:
            scores.append((score, index))

    # Equal ones in the order of the screen.
    scores.sort(key=lambda scored: (-scored[0], scored[1]))

    locators = Locators(screen)
    matches: list[Match] = []
    for score, index in scores[:limit]:
        element = screen.elements[index]
        matches.append(Match(element, round(score, 3), locators.of(element)))

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
    if any(_is_exact(sought, first.element) for sought in sought_by(locator)):
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


def _is_exact(sought: Sought, element: Element) -> bool:
    """Return whether an element has everything that a locator names, where it names it."""
    has_type = not sought.type or sought.type == element.type
    return has_type and all(_has(element, term) for term in sought.terms)


def _has(element: Element, term: Term) -> bool:
    return any(term.is_in(text, term.text) for text in _texts(element, term.fields))


def _score(sought: Sought, element: Element) -> float:
    """Return how well an element fits what a locator looks for, from 0 to 1."""
    if sought.terms:
        scores = [_term_score(term, element) for term in sought.terms]
        score = sum(scores) / len(scores)
        if sought.type and _type_score(sought.type, element.type) < 1:
            score *= _OTHER_TYPE
    elif sought.type:
        score = _type_score(sought.type, element.type)
    else:
        score = 0.0

    return score if element.is_displayed else score * _HIDDEN


def _type_score(sought: str, actual: str) -> float:
    return _similarity(_short_type(sought), _short_type(actual))


def _short_type(type_name: str) -> str:
    """Return a type without its package or prefix: ``Button`` for all platforms."""
    return type_name.rpartition(".")[2].removeprefix("XCUIElementType")


def _term_score(term: Term, element: Element) -> float:
    if _has(element, term):
        return 1.0

    in_place = [_similarity(term.text, text) for text in _texts(element, term.fields)]
    elsewhere = [
        _similarity(term.text, text) * _OTHER_FIELD for text in element.texts()
    ]

    return max([*in_place, *elsewhere], default=0.0)


def _texts(element: Element, fields: frozenset[str]) -> Iterator[str]:
    """Yield the texts of an element's fields, an ID without its package, as in terms."""
    for field in sorted(fields):
        text: str = getattr(element, field)
        if text:
            yield without_package(text) if field == "id" else text


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

"""A screen as text: one line for each element that means something, with its bounds and its best locator."""

from collections.abc import Iterator
from typing import Final

from pytest_device.escape import escaped
from pytest_device.trace.locators import Locators, tap_point
from pytest_device.trace.screen import Element, Screen

MAX_LINES: Final = 200
_MAX_TEXT_LENGTH: Final = 80


def screen_text(screen: Screen, *, max_lines: int = MAX_LINES) -> str:
    """Return the elements of a screen, indented as they are nested.

    Elements without a text, an ID or a state are left out: they are layout. The last line says how many follow.

    >>> from pytest_device.trace.screen_parsers import from_description
    >>> print(screen_text(from_description('button "Go"  (0.1, 0.2, 0.4, 0.1)')))
    button 'Go' [0.1,0.2 0.4x0.1] gesture-tap x=0.300 y=0.250
    """
    locators = Locators(screen)
    lines = [
        f"{'  ' * level}{_line(screen, element, locators)}"
        for element, level in _shown(screen)
    ]

    left_out = len(lines) - max_lines
    del lines[max_lines:]

    if left_out > 0:
        lines.append(f"… {left_out} more elements")
    if screen.is_truncated:
        lines.append("… the controller returned only a part of the screen")

    return escaped("\n".join(lines))


def _is_telling(element: Element) -> bool:
    return any(element.texts()) or element.is_password or element.is_focused


def _shown(screen: Screen) -> Iterator[tuple[Element, int]]:
    """Yield the elements that mean something, each with the number of those that contain it."""
    above: list[tuple[int, int]] = []
    """The depth of each element that contains the next one, and the level of those that it contains."""
    for element in screen.elements:
        while above and above[-1][0] >= element.depth:
            above.pop()

        level = above[-1][1] if above else 0
        is_telling = _is_telling(element)
        if is_telling:
            yield element, level

        above.append((element.depth, level + is_telling))


def _line(screen: Screen, element: Element, locators: Locators) -> str:
    words = [element.type or "element"]
    words += [repr(_shortened(text)) for text in element.texts()]

    if element.bounds:
        words.append(str(element.bounds))

    states = ", ".join(element.states())
    if states:
        words.append(f"({states})")

    # Argent taps points; its selectors only wait.
    point = tap_point(screen, element)
    ready_made = locators.of(element)
    if point:
        words.append(point)
    elif ready_made:
        words.append(f"→ {ready_made[0]}")

    return " ".join(words)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _MAX_TEXT_LENGTH:
        return line

    return f"{line[:_MAX_TEXT_LENGTH]}…"

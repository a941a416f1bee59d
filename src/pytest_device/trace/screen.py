"""What a device shows, as elements: the same values whichever controller read them."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """Whose words a tree uses, and so which locators fit its elements."""

    ANDROID = "android"
    """The page source of Appium for Android: UiAutomator's attributes."""
    IOS = "ios"
    """The page source of Appium for iOS: XCUITest's attributes."""
    WEB = "web"
    """HTML: the page source in a web context."""
    AGENT_DEVICE = "agent-device"
    ARGENT = "argent"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where an element is, in the units of its tree: pixels, points, or for argent fractions of the screen."""

    x: float
    y: float
    width: float
    height: float

    def __str__(self) -> str:
        return f"[{self.x:g},{self.y:g} {self.width:g}x{self.height:g}]"


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a screen. Texts are empty if the element has none.

    ``type`` is the class (``android.widget.Button``, ``XCUIElementTypeButton``), the tag or the role.
    ``accessibility_id`` is what Appium's strategy of this name compares: ``content-desc`` on Android, ``name`` on iOS.
    ``test_id`` is the ``data-testid`` of a web page.
    """

    type: str
    accessibility_id: str = ""
    id: str = ""
    test_id: str = ""
    label: str = ""
    text: str = ""
    hint: str = ""
    depth: int = 0
    bounds: Bounds | None = None
    is_enabled: bool = True
    is_displayed: bool = True
    is_focused: bool = False
    is_selected: bool = False
    is_password: bool = False

    def texts(self) -> Iterator[str]:
        """Yield what identifies it to a reader, each text once."""
        seen = {""}
        for text in (
            self.accessibility_id,
            self.id,
            self.test_id,
            self.label,
            self.text,
            self.hint,
        ):
            if text not in seen:
                seen.add(text)
                yield text

    def states(self) -> Iterator[str]:
        """Yield the names of its states that are not the usual ones."""
        if not self.is_displayed:
            yield "not displayed"
        if not self.is_enabled:
            yield "disabled"
        if self.is_focused:
            yield "focused"
        if self.is_selected:
            yield "selected"
        if self.is_password:
            yield "password"


@dataclass(frozen=True, slots=True)
class Screen:
    """The elements of a screen in document order. ``is_truncated``: there were more than were read."""

    dialect: Dialect
    elements: tuple[Element, ...]
    is_truncated: bool = False

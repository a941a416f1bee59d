"""Parses the trees of each controller into a screen."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

from pytest_device.redact import MASK
from pytest_device.trace.screen import Bounds, Dialect, Element, Screen
from pytest_device.trace.tree import is_secret_field, without_marked_sections

MAX_ELEMENTS: Final = 5_000
"""Elements of a screen that are read: the rest of a longer list is not on the display."""
MAX_SOURCE_LENGTH: Final = 10_000_000
"""Characters of a page source that is parsed."""

_ANDROID_BOUNDS: Final = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
_DECLARATION: Final = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_HTML: Final = re.compile(r"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_IOS_PREFIX: Final = "XCUIElementType"

_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_FRAME: Final = re.compile(rf"{_NUMBER}, {_NUMBER}, {_NUMBER}, {_NUMBER}\)")
"""The frame at the end of a line of argent's ``describe``, behind its parenthesis."""
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.?)*+)("?)')
"""A quoted text, also one that does not end: without those, the next look for one would begin inside of it."""
_FLAGS: Final = re.compile(r"\[([\w, -]+)\]")


class ScreenError(ValueError):
    """The text is no tree that can be read; the message says why, without the text itself."""


def from_page_source(source: str) -> Screen:
    """Return the screen of an Appium page source: Android's, iOS's, or HTML.

    The text of password fields is replaced by ``***``. Raises ScreenError for a source that is neither XML nor HTML,
    or too long.

    >>> screen = from_page_source('<hierarchy><android.widget.Button text="Go"/></hierarchy>')
    >>> screen.elements[0].text
    'Go'
    """
    if len(source) > MAX_SOURCE_LENGTH:
        raise ScreenError(f"the page source has {len(source)} characters")

    if _HTML.match(source):
        return _from_html(source)

    # No driver declares entities: their expansion could use any amount of memory.
    if _DECLARATION.search(source):
        raise ScreenError("the page source declares a document type")

    try:
        root = ET.fromstring(source)  # noqa: S314  # without declarations, see above
    except ET.ParseError as error:
        raise ScreenError(f"the page source is not XML: {error}") from None

    is_ios = _is_of_ios(root)
    dialect = Dialect.IOS if is_ios else Dialect.ANDROID
    parse = _ios_element if is_ios else _android_element
    elements: list[Element] = []

    for node, depth in _walk(root):
        if len(elements) == MAX_ELEMENTS:
            return Screen(dialect, tuple(elements), is_truncated=True)
        # The root of Android's tree is no element: it can't be found by its class.
        if node.tag != "hierarchy":
            elements.append(parse(node, depth))

    return Screen(dialect, tuple(elements))


def from_snapshot(nodes: Iterable[Mapping[str, Any]]) -> Screen:
    """Return the screen of agent-device's ``snapshot``: the ``nodes`` of its response.

    >>> from_snapshot([{"role": "button", "label": "Go"}]).elements[0].label
    'Go'
    """
    elements: list[Element] = []

    for node in nodes:
        if len(elements) == MAX_ELEMENTS:
            return Screen(Dialect.AGENT_DEVICE, tuple(elements), is_truncated=True)

        elements.append(_agent_device_element(node))

    return Screen(Dialect.AGENT_DEVICE, tuple(elements))


def from_response(data: Mapping[str, Any]) -> Screen:
    """Return the screen of agent-device's response to ``snapshot``; what is no node is left out."""
    nodes = data.get("nodes")
    listed = cast("list[object]", nodes) if isinstance(nodes, list) else []
    return from_snapshot(
        cast("Mapping[str, Any]", node) for node in listed if isinstance(node, Mapping)
    )


def from_description(description: str) -> Screen:
    """Return the screen of argent's ``describe``: its text, with one element a line.

    Lines without a frame, such as the introduction, are left out.

    >>> from_description('  button "Go" id="go"  (0.1, 0.2, 0.3, 0.1)').elements[0].id
    'go'
    """
    elements: list[Element] = []

    for line in description.splitlines():
        # From the end: a look for the frame from each space of a line would take quadratic time.
        words, _, rest = line.rstrip().rpartition("(")
        frame = _FRAME.fullmatch(rest)
        if frame is None or words.isspace() or not words[-1:].isspace():
            continue
        if len(elements) == MAX_ELEMENTS:
            return Screen(Dialect.ARGENT, tuple(elements), is_truncated=True)

        bounds = Bounds(*map(float, frame.groups()))
        elements.append(_argent_element(words, bounds))

    return Screen(Dialect.ARGENT, tuple(elements))


def _walk(root: ET.Element) -> Iterator[tuple[ET.Element, int]]:
    """Yield each node and its depth in document order, without recursion: a tree may be deep."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        # The last one is taken first.
        waiting.extend((child, depth + 1) for child in reversed(node))


def _is_of_ios(root: ET.Element) -> bool:
    # XCUITest's source is inside of an element of this name.
    return root.tag == "AppiumAUT" or root.tag.startswith(_IOS_PREFIX)


def _android_element(node: ET.Element, depth: int) -> Element:
    type_name = node.get("class") or node.tag
    is_password = is_secret_field(node.attrib, type_name)
    text = node.get("text", "")

    return Element(
        type=type_name,
        accessibility_id=node.get("content-desc", ""),
        id=node.get("resource-id", ""),
        text=MASK if is_password and text else text,
        hint=node.get("hint", ""),
        depth=depth,
        bounds=_android_bounds(node.get("bounds", "")),
        is_enabled=node.get("enabled") != "false",
        is_displayed=node.get("displayed") != "false",
        is_focused=node.get("focused") == "true",
        is_selected="true" in {node.get("selected"), node.get("checked")},
        is_password=is_password,
    )


def _android_bounds(text: str) -> Bounds | None:
    corners = _ANDROID_BOUNDS.fullmatch(text)
    if corners is None:
        return None
    left, top, right, bottom = map(int, corners.groups())
    return Bounds(left, top, right - left, bottom - top)


def _ios_element(node: ET.Element, depth: int) -> Element:
    type_name = node.get("type") or node.tag
    is_password = is_secret_field(node.attrib, type_name)
    value = node.get("value", "")

    return Element(
        type=type_name,
        accessibility_id=node.get("name", ""),
        label=node.get("label", ""),
        text=MASK if is_password and value else value,
        hint=node.get("placeholderValue", ""),
        depth=depth,
        bounds=_bounds(node.attrib),
        is_enabled=node.get("enabled") != "false",
        is_displayed=node.get("visible") != "false",
        is_focused=node.get("focused") == "true",
        is_selected=node.get("selected") == "true",
        is_password=is_password,
    )


def _bounds(rect: Mapping[str, Any]) -> Bounds | None:
    try:
        return Bounds(
            float(rect.get("x", rect.get("left", 0))),
            float(rect.get("y", rect.get("top", 0))),
            float(rect["width"]),
            float(rect["height"]),
        )
    # No rectangle, or not of numbers.
    except (KeyError, TypeError, ValueError):
        return None


def _agent_device_element(node: Mapping[str, Any]) -> Element:
    role = str(node.get("role") or node.get("type") or "")
    value = str(node.get("value") or "")
    rect = node.get("rect")
    depth = node.get("depth")
    identifier = str(node.get("identifier") or "")
    label = str(node.get("label") or "")
    is_password = is_secret_field({"label": label, "id": identifier}, role)

    return Element(
        type=role,
        id=identifier,
        label=label,
        text=MASK if is_password and value else value,
        depth=depth if isinstance(depth, int) else 0,
        bounds=_bounds(rect) if isinstance(rect, Mapping) else None,  # pyright: ignore[reportUnknownArgumentType]  # checked by _bounds
        is_enabled=node.get("enabled") is not False,
        is_focused=node.get("focused") is True,
        is_selected=node.get("selected") is True,
        is_password=is_password,
    )


def _argent_element(words: str, bounds: Bounds) -> Element:
    texts, unquoted = _quoted_texts(words)
    flags: set[str] = set()
    # A text may have brackets, too.
    bracketed = _FLAGS.search(unquoted)
    if bracketed:
        flags = {flag.strip() for flag in bracketed[1].split(",")}

    described = words.lstrip()
    role = described.split(maxsplit=1)[0]
    identifier = texts.get("id", "")
    label = texts.get("", "")
    value = texts.get("value", "")
    is_secret = is_secret_field({"label": label, "id": identifier}, role)
    is_password = is_secret or "password" in flags

    return Element(
        type=role,
        id=identifier,
        label=label,
        text=MASK if is_password and value else value,
        depth=(len(words) - len(described)) // 2,
        bounds=bounds,
        is_enabled="disabled" not in flags,
        is_focused="focused" in flags,
        is_selected="selected" in flags,
        is_password=is_password,
    )


def _quoted_texts(words: str) -> tuple[Mapping[str, str], str]:
    """Return the quoted texts of a line by the name before each, and the line without both.

    The name of the label is empty.
    """
    texts: dict[str, str] = {}
    rest: list[str] = []
    end = 0
    for quoted in _QUOTED.finditer(words):
        content, closing = quoted.groups()
        if not closing:
            break

        before = words[end : quoted.start()]
        end = quoted.end()
        name = ""
        if before.endswith("="):
            name = re.split(r"\W+", before[:-1])[-1]
            before = before.removesuffix(f"{name}=" if name else "")

        rest.append(before)
        texts.setdefault(name, re.sub(r"\\(.)", r"\1", content))

    rest.append(words[end:])

    return texts, "".join(rest)


def _from_html(source: str) -> Screen:
    reader = _HtmlReader()
    # Without close(): what it adds is the rest behind a tag that never ends. It
    # looks for that end from each "<" of the rest, which takes quadratic time.
    reader.feed(without_marked_sections(source))
    elements = tuple(map(_with_content, reader.elements, reader.contents))
    is_truncated = len(elements) > MAX_ELEMENTS

    return Screen(Dialect.WEB, elements[:MAX_ELEMENTS], is_truncated=is_truncated)


def _with_content(element: Element, parts: list[str]) -> Element:
    """Return an element with the parts of its text, if it has no value."""
    # The characters that normalize-space() of XPath removes: a space that does not break stays.
    text = " ".join(re.findall(r"[^ \t\r\n]+", "".join(parts)))
    if element.text or not text:
        return element

    return replace(element, text=MASK if element.is_password else text)


class _HtmlReader(HTMLParser):
    """Reads the elements of a page's body, without SVG and MathML. A web page has no bounds in its source."""

    _VOID: Final = frozenset(
        {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"}
        | {"source", "track", "wbr"}
    )
    _INVISIBLE: Final = frozenset(
        {"script", "style", "head", "template", "svg", "math"}
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.contents: list[list[str]] = []
        """The parts of the text of each element, up to the first element within it that follows a text."""
        self._open: list[tuple[str, int | None]] = []
        """Tags that are open, each with the index of its element."""
        self._open_counts: Counter[str] = Counter()
        """How often each tag is open: a page may never close any, so that looking through them takes quadratic time."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        is_invisible = tag in self._INVISIBLE or any(
            self._open_counts[name] for name in self._INVISIBLE
        )
        # One more than is kept, by which the screen is known to be truncated.
        has_room = len(self.elements) <= MAX_ELEMENTS

        index = None
        if not is_invisible and has_room:
            index = len(self.elements)
            self.elements.append(_html_element(tag, values, len(self._open)))
            self.contents.append([])

        if tag not in self._VOID:
            self._open.append((tag, index))
            self._open_counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        # An end without a beginning ends nothing; else, so do the elements within that have no end.
        is_ended = not self._open_counts[tag]
        while not is_ended:
            name, _ = self._open.pop()
            self._open_counts[name] -= 1
            is_ended = name == tag

    def handle_data(self, data: str) -> None:
        index = self._open[-1][1] if self._open else None
        if index is None or (not data.strip() and not self.contents[index]):
            return

        # A comment may divide a text, as React's do; what follows an element is another text.
        is_same_text = index == len(self.elements) - 1
        if is_same_text or not self.contents[index]:
            self.contents[index].append(data)


def _html_element(tag: str, values: Mapping[str, str], depth: int) -> Element:
    is_password = is_secret_field(values, tag)
    # Other elements show their content, not their value: an option, for example.
    value = values.get("value", "") if tag == "input" else ""

    return Element(
        type=tag,
        accessibility_id=values.get("aria-label", ""),
        id=values.get("id", ""),
        test_id=values.get("data-testid", ""),
        label=values.get("name", ""),
        text=MASK if is_password and value else value,
        hint=values.get("placeholder", ""),
        depth=depth,
        is_enabled="disabled" not in values,
        is_displayed="hidden" not in values,
        is_password=is_password,
    )

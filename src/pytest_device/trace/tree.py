"""The elements of a screen, from the XML of an Appium driver; what password fields contain is left out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from pytest_device.redact import MASK, is_secret_name
from pytest_device.trace.values import Box, Element

MAX_SOURCE: Final = 2 * 1024 * 1024
"""Characters of a source that is read; longer ones are kept as text without elements."""
MAX_ELEMENTS: Final = 5_000
_MAX_DEPTH: Final = 100

_NAMES: Final = (
    "content-desc",
    "accessibility-id",
    "aria-label",
    "name",
    "label",
    "resource-id",
    "id",
)
_TEXTS: Final = ("text", "value", "label")
_CONTENTS: Final = ("text", "value", "label", "content-desc", "name")
"""Attributes that may show what was typed."""
_BOUNDS: Final = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
_INPUT: Final = re.compile(r"input|edit|textfield|textarea|searchfield", re.IGNORECASE)
_SECURE: Final = re.compile(r"secure|password", re.IGNORECASE)


def elements_of(source: str) -> list[Element]:
    """Return the elements of a source, none if it is not XML or too long."""
    root = _parsed(source)
    if root is None:
        return []
    left = iter(range(MAX_ELEMENTS))
    return [element for element in [_element(root, left, 0)] if element]


def without_typed_secrets(source: str) -> str:
    """Return a source without the contents of its password fields."""
    root = _parsed(source)
    if root is None:
        return source
    is_changed = False
    for node in root.iter():
        if _is_secret(node):
            is_changed = True
            for name in _CONTENTS[:2]:
                if node.get(name):
                    node.set(name, MASK)
    return ET.tostring(root, encoding="unicode") if is_changed else source


def is_secret_field(attributes: Mapping[str, str], role: str) -> bool:
    """Return whether an element is an input for a secret: by its own word for it, else by its name."""
    if attributes.get("password") == "true" or attributes.get("type") == "password":
        return True
    if _SECURE.search(role) or _SECURE.search(attributes.get("type", "")):
        return True
    names = [attributes.get(name, "") for name in _NAMES]
    return bool(_INPUT.search(role)) and any(map(is_secret_name, filter(None, names)))


def _parsed(source: str) -> ET.Element | None:
    if len(source) > MAX_SOURCE:
        return None
    try:
        return ET.fromstring(source)  # noqa: S314  # expat limits the expansion of entities
    except (ET.ParseError, ValueError):
        return None


def _role_of(node: ET.Element) -> str:
    kind = node.get("class") or node.tag
    return kind.rpartition(".")[2].removeprefix("XCUIElementType")


def _is_secret(node: ET.Element) -> bool:
    return is_secret_field(node.attrib, _role_of(node))


def _element(node: ET.Element, left: Iterator[int], depth: int) -> Element | None:
    if next(left, None) is None or depth > _MAX_DEPTH:
        return None
    attributes = dict(node.attrib)
    if _is_secret(node):
        attributes |= {name: MASK for name in _CONTENTS[:2] if attributes.get(name)}
    name = next((attributes[key] for key in _NAMES if attributes.get(key)), "")
    own = (node.text or "").strip()
    text = next((attributes[key] for key in _TEXTS if attributes.get(key)), own)
    children = [_element(child, left, depth + 1) for child in node]
    return Element(
        _role_of(node),
        name,
        text,
        _box_of(attributes),
        attributes,
        [child for child in children if child],
    )


def _box_of(attributes: Mapping[str, str]) -> Box | None:
    if bounds := _BOUNDS.fullmatch(attributes.get("bounds", "")):
        left, top, right, bottom = map(float, bounds.groups())
        return Box(left, top, right - left, bottom - top)
    x = attributes.get("x") or attributes.get("left") or "0"
    y = attributes.get("y") or attributes.get("top") or "0"
    try:
        size = float(attributes["width"]), float(attributes["height"])
        return Box(float(x), float(y), *size)
    except (KeyError, ValueError):
        return None


def text_of(elements: Sequence[Element], indent: str = "") -> Iterator[str]:
    """Yield a line for each element: role, name, text, states and bounds."""
    for element in elements:
        words = [element.role]
        if element.name:
            words.append(f'"{element.name}"')
        if element.text not in {"", element.name}:
            words.append(f"text={element.text!r}")
        words += _states(element)
        if box := element.box:
            words.append(f"[{box.x:g},{box.y:g} {box.width:g}x{box.height:g}]")
        yield indent + " ".join(words)
        yield from text_of(element.children, f"{indent}  ")


def _states(element: Element) -> list[str]:
    """Return the states that differ from the usual ones."""
    attributes = element.attributes
    states = {
        "disabled": attributes.get("enabled") == "false",
        "hidden": attributes.get("displayed", attributes.get("visible")) == "false",
        "focused": attributes.get("focused") == "true",
        "selected": attributes.get("selected") == "true",
        "checked": attributes.get("checked") == "true",
    }
    return [state for state, holds in states.items() if holds]

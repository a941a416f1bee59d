"""Describes the calls of argent's tools for a recorder."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pytest_device.redact import MASK, is_secret_name
from pytest_device.trace.recorder import Command, masked_typed
from pytest_device.trace.tree import is_secret_field
from pytest_device.trace.values import Box, Element, Locator

_TITLES: Final[Mapping[str, str]] = {
    "gesture-tap": "Tap at {x}, {y}",
    "keyboard": "Type {text}",
    "launch-app": "Open {bundleId}",
    "open-url": "Open {url}",
    "describe": "Get tree",
    "screenshot": "Take screenshot",
}
_READS: Final = ("list-", "describe", "screenshot", "await-", "get-", "find-")
_GETTERS: Final = ("list-", "describe", "screenshot")
_HIDDEN: Final = frozenset({"udid"})
_TYPING: Final = ("keyboard", "paste", "type", "clipboard")
"""Beginnings of tools that type: nobody says into which field, so that no text of theirs is recorded."""
_MAX_LINES: Final = 2_000
_MAX_INDENT: Final = 100
_LINE: Final = re.compile(r"( *)(\S+)(.*?)\((-?[\d.]+(?:, -?[\d.]+){3})\)")
_NAME: Final = re.compile(r'\s+"([^"]*)"')
_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')
_TEXTS: Final = frozenset({"text", "value", "content"})


def call_of(tool: str, arguments: Mapping[str, Any]) -> Command:
    """Return the call of a tool for the recorder."""
    is_typing = tool.startswith(_TYPING)
    typed = [
        str(value)
        for name, value in arguments.items()
        if is_secret_name(name) or (is_typing and name in _TEXTS)
    ]
    params = {name: value for name, value in arguments.items() if name not in _HIDDEN}
    return Command(
        "Device",
        tool,
        _TITLES.get(tool, tool.replace("-", " ").capitalize()),
        cast("dict[str, Any]", masked_typed(params, typed)),
        "getter" if tool.startswith(_GETTERS) else "",
        is_acting=not tool.startswith(_READS),
        locator=_locator(arguments.get("selector")),
        typed=typed,
    )


def _locator(selector: object) -> Locator | None:
    """Return what a tool looks for: an object of text, identifier and role."""
    if not isinstance(selector, Mapping):
        return None
    return Locator("selector", json.dumps(selector, default=str, ensure_ascii=False))


def elements_of(description: str) -> list[Element]:
    """Return the elements of a description: a line each, indented by depth, with bounds as fractions."""
    lines = [
        found for line in description.splitlines() if (found := _LINE.fullmatch(line))
    ]
    elements, _ = _nested(lines[:_MAX_LINES], 0, -1)
    return elements


def _nested(
    lines: Sequence[re.Match[str]], place: int, indent: int
) -> tuple[list[Element], int]:
    """Return the elements from a place on that are indented more, and the place after them."""
    elements: list[Element] = []
    while place < len(lines) and len(lines[place][1]) > indent:
        line = lines[place]
        inner, place = _nested(lines, place + 1, min(len(line[1]), _MAX_INDENT))
        elements.append(_element(line, inner))
    return elements, place


def _element(line: re.Match[str], children: Sequence[Element]) -> Element:
    attributes = dict(_ATTRIBUTE.findall(line[3]))
    name = _NAME.match(line[3])
    label = name[1] if name else attributes.get("id", "")
    text = attributes.get("value", "")
    if is_secret_field({"name": label, **attributes}, line[2]):
        text = text and MASK
    box = Box(*(float(side) for side in line[4].split(",")))
    return Element(line[2], label, text, box, attributes, children)

"""Describes the calls of argent's tools for a recorder."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from pytest_device.redact import is_secret_name
from pytest_device.trace.recorder import Command, masked_typed
from pytest_device.trace.values import Locator

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
"""Arguments that say no more than which device it is."""
_TYPING: Final = ("keyboard", "paste", "type", "clipboard")
"""Beginnings of tools that type: nobody says into which field, so that no text of theirs is recorded."""
_TEXTS: Final = frozenset({"text", "value", "content"})


def call_of(tool: str, arguments: Mapping[str, Any]) -> Command:
    """Return the call of a tool for the recorder."""
    passwords = [
        str(value) for name, value in arguments.items() if is_secret_name(name)
    ]
    typed = list(passwords)
    if tool.startswith(_TYPING):
        typed += [str(value) for name, value in arguments.items() if name in _TEXTS]

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
        passwords=passwords,
    )


def _locator(selector: object) -> Locator | None:
    """Return what a tool looks for: an object of text, identifier and role."""
    if not isinstance(selector, Mapping):
        return None

    return Locator("selector", json.dumps(selector, default=str, ensure_ascii=False))

"""Describes the commands of agent-device for a recorder, and the screens that they return."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from pytest_device.redact import is_secret_name
from pytest_device.trace.recorder import Command, masked_typed
from pytest_device.trace.tree import is_secret_field
from pytest_device.trace.values import Locator

_TITLES: Final[Mapping[str, str]] = {
    "open": "Open {target}",
    "press": "Tap {target}",
    "longpress": "Tap and hold {target}",
    "fill": "Type {text} into {target}",
    "type": "Type {text}",
    "scroll": "Scroll {target}",
    "back": "Go back",
    "alert": "Alert: {target}",
    "wait": "Wait for {target}",
    "get": "Get {target}",
    "find": "Find {target}",
    "is": "Is {target}",
    "snapshot": "Get tree",
    "screenshot": "Take screenshot",
}
_READS: Final = frozenset(
    {"get", "find", "is", "snapshot", "screenshot", "wait", "logs"}
)
"""Commands that change nothing on the device; so does ``alert``, unless it accepts or dismisses."""
_GETTERS: Final = frozenset({"get", "snapshot", "screenshot", "logs"})
_TYPING: Final = frozenset({"fill", "type"})
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_KEY: Final = re.compile(r"\s\w+=")
"""The name of a further condition of a selector."""

Attributes: TypeAlias = Callable[[Sequence[str]], Mapping[str, Any]]
"""Returns the attributes of a target; empty if there are none."""


def command_of(
    name: str,
    positionals: Sequence[str],
    flags: Mapping[str, Any],
    *,
    masks_all: bool,
    attributes_of: Attributes,
) -> Command:
    """Return a command for the recorder.

    Arguments:
        name: The command.
        positionals: Its arguments, such as a selector and a text.
        flags: Its flags.
        masks_all: Whether all typed texts are masked.
        attributes_of: Asks the device what a target is, to see whether it is a field for a password.
    """
    target = list(positionals)
    params: dict[str, Any] = {}
    typed: list[str] = []

    if name in _TYPING and target:
        text = target.pop()
        params["text"] = text

        # The command "type" names no field.
        if masks_all or name == "type" or _is_secret(target, attributes_of):
            typed.append(text)

    if target:
        params["target"] = " ".join(target)

    # As they are sent.
    params |= {
        flag: value
        for flag, value in flags.items()
        if value is not None and value is not False
    }

    return Command(
        "Device",
        name,
        _TITLES.get(name, name.replace("-", " ").capitalize()),
        cast("dict[str, Any]", masked_typed(params, typed)),
        "getter" if name in _GETTERS else "",
        is_acting=_is_acting(name, target),
        locator=_locator(name, target),
        typed=typed,
        passwords=typed if name == "fill" else (),
    )


def _is_acting(name: str, target: Sequence[str]) -> bool:
    if name == "alert":
        return bool(target) and target[0] in {"accept", "dismiss"}

    return name not in _READS


def _locator(name: str, target: Sequence[str]) -> Locator | None:
    """Return what a command acts on, if that is a selector: ``label="Add"``, or a text to find."""
    if not target or name in {"open", "scroll", "alert", "logs"}:
        return None

    # What is read of it, or whether it is so, comes first.
    words = target[1:] if name in {"get", "is"} and len(target) > 1 else target
    if words[0] == "text" and len(words) > 1:
        return Locator("text", words[1])

    using, is_selector, value = words[0].partition("=")
    if not is_selector:
        return Locator("text" if name == "find" else "target", words[0])
    # Of several conditions, or alternatives.
    if _KEY.search(value):
        return Locator("selector", words[0])

    return Locator(using, value.strip("\"'"))


def _is_secret(target: Sequence[str], attributes_of: Attributes) -> bool:
    """Return whether a target is a field for a password; True if the device does not say."""
    if any(is_secret_name(word) for word in _WORD.findall(" ".join(target))):
        return True

    attributes = attributes_of(target)
    if not attributes:
        return True

    role = str(attributes.get("role") or attributes.get("type") or "")
    names = {
        "name": str(attributes.get("label") or ""),
        "id": str(attributes.get("identifier") or ""),
        "type": str(attributes.get("type") or ""),
    }

    return is_secret_field(names, role)

"""The boundary between a recorder and its values: nothing that a writer sees has a secret in it."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pytest_device.redact import MASK, MIN_SECRET_LENGTH, Redactor, is_secret_name
from pytest_device.trace.screen import Screen
from pytest_device.trace.values import Attachment, Device, Frame, Locator

T = TypeVar("T")

MAX_TEXT: Final = 64 * 1024
"""Maximum characters of one text; the rest is left out."""
_MAX_ITEMS: Final = 1_000
"""Maximum items of a mapping or a list; the rest is left out."""
_ABSOLUTE: Final = re.compile(
    r"(?<![\w/.])/(?:home|Users|root|tmp|var|private|opt|usr|mnt|srv|etc|builds|workspace|work|Volumes|Library)"
    r"/(?:[\w.@+-]+/){0,40}([\w.@+-]+)"
)
"""A path of a file of this machine: below the directories that machines have, not a route of an app."""
_WINDOWS: Final = re.compile(r"(?<![\w])[A-Za-z]:\\(?:[^\\/:*?\"<>|\s]+\\)+")
_OUR_OWN: Final = frozenset({"key", "parent", "action", "kind", "class_name", "group"})
"""Fields whose texts this package makes itself."""
_MAX_CACHED: Final = 4_096
_MAX_CACHED_LENGTH: Final = 200
_MIN_PART: Final = 4
"""Length from which a short password is masked inside of a text, as a word of its own."""
_ATOMS: Final = frozenset({type(None), bool, int, float, bytes})
_TEXTS: Final = ("text/", "application/xml", "application/json")


class Masker:
    """Masks known secrets, typed passwords and absolute paths in values of any shape.

    Arguments:
        redactor: Masks what the run knows to be secret.
        root: Paths below this directory are shown relative to it.
    """

    def __init__(self, redactor: Redactor, root: Path) -> None:
        self._redactor = redactor
        self._typed: Redactor | None = None
        self._short: set[str] = set()
        """Typed passwords that are too short to be masked inside of words."""
        self._short_pattern: re.Pattern[str] | None = None
        self._roots = _roots(root)
        self._cache: dict[object, Any] = {}
        """What was masked already: most texts of a test occur in it again and again."""
        self._revision = 0
        """That of the known secrets by which the cache was made."""

    def learn(self, *typed: str) -> None:
        """Mask a typed text, or an ID that gives access, in everything that is recorded from now on."""
        if not any(typed):
            return

        self._cache.clear()

        for text in typed:
            if len(text) >= MIN_SECRET_LENGTH:
                self._typed = self._typed or Redactor()
                self._typed.add(text)
            elif len(text) > 1:
                self._short.add(text)

        parts = [re.escape(text) for text in self._short if len(text) >= _MIN_PART]
        if parts:
            self._short_pattern = re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")

    def text(self, text: str, *, max_length: int = MAX_TEXT) -> str:
        """Return a text without secrets and without absolute paths, of limited length."""
        key = text, max_length
        masked = self._cached(key)
        if masked is None:
            masked = self._new_text(text, max_length)
            if len(text) <= _MAX_CACHED_LENGTH:
                self._cache[key] = masked

        return str(masked)

    def _cached(self, key: object) -> Any:
        """Return what a key was masked to; None if it was not, or before a secret became known."""
        if self._revision != self._redactor.revision or len(self._cache) > _MAX_CACHED:
            self._cache.clear()
            self._revision = self._redactor.revision

        return self._cache.get(key)

    def _new_text(self, text: str, max_length: int) -> str:
        if text in self._short:
            return MASK
        # Cut first: masking takes time. The redactor also masks the beginning of a secret before an ellipsis.
        if len(text) > max_length:
            text = f"{text[:max_length]}… ({len(text)} characters)"

        text = self._redactor.text(text)
        if self._typed:
            text = self._typed.text(text)
        if self._short_pattern:
            text = self._short_pattern.sub(MASK, text)

        return self._without_paths(text) if "/" in text or "\\" in text else text

    def _without_paths(self, text: str) -> str:
        for path, replacement in self._roots:
            text = text.replace(path, replacement)

        return _WINDOWS.sub("…\\\\", _ABSOLUTE.sub(r"…/\1", text))

    def value(self, value: T) -> T:
        """Return a value of the same shape with masked texts; values of secret names are masked whole."""
        return cast("T", self._masked(value))

    def _masked(self, value: Any) -> Any:
        # Most values are one of these, and a pattern of an abstract class is slow.
        if type(value) is str:
            return self.text(value)
        if type(value) in _ATOMS:
            return value

        match value:
            # Such as a member of an enumeration.
            case str():
                masked: Any = self.text(value)
            case bool() | int() | float() | None | bytes():
                masked = value
            case Mapping():
                pairs = list(cast("Mapping[object, object]", value).items())
                masked = dict(
                    self._pair(str(key), item) for key, item in pairs[:_MAX_ITEMS]
                )
            case Sequence():
                items = list(cast("Sequence[object]", value))
                masked = [self._masked(item) for item in items[:_MAX_ITEMS]]
            case _ if is_dataclass(value) and not isinstance(value, type):
                masked = self._of_values(value)
            case _:
                masked = self.text(repr(value))

        return masked

    def _of_values(self, value: Any) -> Any:
        match value:
            case Attachment():
                masked: Any = self._attachment(value)
            case Screen():
                # All its elements: a screen may have more than other values have items.
                elements = tuple(map(self._dataclass, value.elements))
                masked = replace(value, elements=elements)
            case Device() | Frame() | Locator():
                # Each command has the same ones.
                masked = self._cached(value)
                if masked is None:
                    masked = self._dataclass(value)
                    self._cache[value] = masked
            case _:
                masked = self._dataclass(value)

        return masked

    def _pair(self, name: str, value: object) -> tuple[str, object]:
        # Such as "password": true, which says only that there is one.
        is_flag = value is None or isinstance(value, bool)
        if is_secret_name(name) and not is_flag and value != "":
            return self.text(name), MASK

        return self.text(name), self._masked(value)

    def _attachment(self, attachment: Attachment) -> Attachment:
        content = attachment.content
        if attachment.content_type.startswith(_TEXTS):
            text = self.text(content.decode(errors="replace"))
            content = text.encode(errors="replace")

        return replace(attachment, name=self.text(attachment.name), content=content)

    def _dataclass(self, value: Any) -> Any:
        changed: dict[str, Any] = {}
        for name in _fields_of(cast("Hashable", type(value))):
            before = getattr(value, name)
            # Most fields of most values: numbers, and what is empty.
            if not before or type(before) in _ATOMS:
                continue

            masked = self._masked(before)
            if masked is not before and masked != before:
                changed[name] = masked

        return replace(value, **changed) if changed else value


@cache
def _fields_of(kind: Hashable) -> Sequence[str]:
    """Return the fields of a value that may have a text of somebody else."""
    return [
        field.name for field in fields(cast("Any", kind)) if field.name not in _OUR_OWN
    ]


def _roots(root: Path) -> Sequence[tuple[str, str]]:
    """Return the directories that texts are shown relative to, and what replaces each.

    The longest come first: the tests are often below the home directory. ``/`` would replace every slash.
    """
    replacements = {str(root): "", str(root.resolve()): "", str(Path.home()): "~/"}
    paths = [path for path in replacements if len(path) > 1]
    paths.sort(key=len, reverse=True)
    return [(f"{path}/", replacements[path]) for path in paths]

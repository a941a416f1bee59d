"""Fields for passwords in the trees of controllers, whose contents are left out."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Final
from xml.etree import ElementTree as ET

from pytest_device.redact import MASK, is_secret_name

MAX_SOURCE: Final = 2 * 1024 * 1024
"""Characters of a source that is read; longer ones are kept as text without elements."""

_NAMES: Final = (
    "content-desc",
    "accessibility-id",
    "aria-label",
    "name",
    "label",
    "resource-id",
    "id",
)
_CONTENTS: Final = ("text", "value")
"""Attributes that may show what was typed."""
_INPUT: Final = re.compile(r"input|edit|textfield|textarea|searchfield", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(
    r"""(?<![\w.:-])([\w.:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)"""
)
_SECURE: Final = re.compile(r"secure|password", re.IGNORECASE)


def without_typed_secrets(source: str) -> str:
    """Return a source without the contents of its password fields.

    >>> without_typed_secrets('<node class="android.widget.EditText" password="true" text="abc" />')
    '<node class="android.widget.EditText" password="true" text="***" />'
    """
    root = _parsed(source)
    if root is None:
        # HTML, too long to parse, or damaged: what it shows of a password is no less secret.
        return _without_contents(source)

    is_changed = False
    for node in root.iter():
        if not _is_secret_node(node.tag, node.attrib):
            continue

        for name in _CONTENTS:
            if node.get(name):
                node.set(name, MASK)
                is_changed = True

    return ET.tostring(root, encoding="unicode") if is_changed else source


def is_secret_field(attributes: Mapping[str, str], role: str) -> bool:
    """Return whether an element is an input for a secret: by its own word for it, else by its name.

    Arguments:
        attributes: The attributes of the element.
        role: Its class, tag or role, without a package.
    """
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


def without_marked_sections(source: str) -> str:
    """Return HTML of the same length without ``<![…``: Python's parser raises AssertionError for those it does not know."""
    return source.replace("<![", "<!-[")


class _SecretTags(HTMLParser):
    """Finds the tags of password fields in HTML, and in what is left of a damaged tree."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        """The tags as they are written, in order."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        text = self.get_starttag_text()
        if text and _is_secret_node(tag, attributes):
            self.texts.append(text)


def _without_contents(source: str) -> str:
    """Return a source that is not XML, without the contents of its password fields."""
    # Not closed: for a tag that never ends, that takes quadratic time.
    parser = _SecretTags()
    readable = without_marked_sections(source)
    parser.feed(readable)

    parts: list[str] = []
    end = 0
    for text in parser.texts:
        start = readable.index(text, end)
        parts.append(source[end:start])
        end = start + len(text)
        parts.append(_ATTRIBUTE.sub(_masked_content, source[start:end]))

    parts.append(source[end:])
    return "".join(parts)


def _masked_content(attribute: re.Match[str]) -> str:
    name = attribute[1]
    value = attribute[2].strip("\"'")
    if name.lower() in _CONTENTS and value:
        return f'{name}="{MASK}"'

    return attribute[0]


def _is_secret_node(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether a node is an input for a secret, by its class or its tag.

    On Android, the class is the kind of element; in HTML, it is one of a stylesheet, and the tag is the kind.
    """
    kinds = (attributes.get("class", ""), tag)
    return any(is_secret_field(attributes, _role(kind)) for kind in kinds if kind)


def _role(kind: str) -> str:
    return kind.rpartition(".")[2].removeprefix("XCUIElementType")

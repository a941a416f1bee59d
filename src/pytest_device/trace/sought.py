"""What a locator looks for, read from its text: values of attributes, and a type."""

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pytest_device.trace.values import Locator

ANY: Final = frozenset({"accessibility_id", "id", "test_id", "label", "text", "hint"})
"""The fields of an element that have a text."""

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "content-desc": frozenset({"accessibility_id"}),
    "aria-label": frozenset({"accessibility_id"}),
    "name": frozenset({"accessibility_id", "label"}),
    "label": frozenset({"label", "accessibility_id"}),
    "resource-id": frozenset({"id"}),
    "id": frozenset({"id"}),
    "identifier": frozenset({"id", "accessibility_id"}),
    "data-testid": frozenset({"test_id", "id"}),
    "text": frozenset({"text", "label"}),
    "value": frozenset({"text"}),
    "hint": frozenset({"hint"}),
    "placeholder": frozenset({"hint"}),
    "placeholderValue": frozenset({"hint"}),
}
"""The fields that an attribute of a tree is read into; any other attribute may be in any of them."""
_TYPES: Final = frozenset({"class", "type", "role", "tag"})

_STRING: Final = r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
_XPATH_TERMS: Final = re.compile(
    r"(?:(contains|starts-with|ends-with)\(\s*)?"
    r"(?:@([\w:-]+)|(?:text\(\)|normalize-space\(\)|\.))"
    rf"\s*\)?\s*(?:=|,)\s*{_STRING}"  # the parenthesis is that of normalize-space(…)
)
_XPATH_TYPE: Final = re.compile(r"/{1,2}(?:[\w-]+::)?([\w.-]+|\*)\s*(?=\[|$)")
_PARENTS: Final = re.compile(r"(?:/(?:\.\.|parent::\*))+$")
"""Steps to a parent: what is below it is what the locator names."""
_SIGNS: Final = re.compile(
    rf"{_STRING}|[\[\]()|]|(?<![\w:@./-])or(?![\w:.-])", re.IGNORECASE
)
"""Separators of alternatives, what nests them, and the strings in which they separate nothing."""
_MAX_ALTERNATIVES: Final = 10
"""Alternatives that are compared: each takes the time of a locator of its own."""
_UIAUTOMATOR_TERMS: Final = re.compile(rf"\.(\w+)\(\s*{_STRING}")
_PREDICATE_TERMS: Final = re.compile(
    rf"\b(\w+)\s*(==?|CONTAINS|BEGINSWITH|ENDSWITH|LIKE|MATCHES)(?:\[\w+\])?\s*{_STRING}",
    re.IGNORECASE,
)
_CSS_TERMS: Final = re.compile(r"#([\w-]+)|\[([\w-]+)[~|^$*]?=\s*[\"']?([^\"'\]]+)")
_CSS_TYPE: Final = re.compile(r"(?:^|[\s>+~])([a-zA-Z][\w-]*)[^\s>+~]*$")
_SELECTOR_TERMS: Final = re.compile(r"(\w+)=(\"(?:[^\"\\]|\\.)*\"|[^\s\"|]+)")
_ANY_TYPE: Final = frozenset({"*", "XCUIElementTypeAny"})
"""Types of a class chain that all elements have."""

Comparison: TypeAlias = Callable[[str, str], bool]
"""Returns whether an element's text, the first argument, is what a term asks for."""

_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "contains": operator.contains,
    "starts-with": str.startswith,
    "beginswith": str.startswith,
    "ends-with": str.endswith,
    "endswith": str.endswith,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A text to look for, the fields of an element that may have it, and how they are compared."""

    text: str
    fields: frozenset[str] = ANY
    is_in: Comparison = operator.eq


@dataclass(frozen=True, slots=True)
class Sought:
    """What a locator looks for. Without terms and type, nothing could be read from it."""

    terms: tuple[Term, ...] = ()
    type: str = ""


def sought_by(locator: Locator) -> tuple[Sought, ...]:
    """Return what a locator looks for, from its strategy and value: one or more alternatives.

    Of an expression with several steps, such as an XPath, the last step counts: that is the element. What it can't
    read, such as a position, it leaves out.

    >>> sought_by(Locator("id", "com.example:id/pay"))[0].terms[0].text
    'pay'
    """
    match locator.using:
        case "xpath":
            steps = _xpath_alternatives(locator.value)
            return tuple(_xpath(step) for step in steps[:_MAX_ALTERNATIVES])
        case "-ios predicate string":
            conditions = _split(locator.value, "or")
            return tuple(_predicate(text) for text in conditions[:_MAX_ALTERNATIVES])
        case using if using in _READERS:
            return (_READERS[using](locator.value),)
        # Of another strategy, nothing is known but the value.
        case _:
            return (Sought((Term(locator.value),)),)


def _accessibility_id(value: str) -> Sought:
    return Sought((Term(value, frozenset({"accessibility_id"})),))


def _id(value: str) -> Sought:
    return Sought((Term(without_package(value), frozenset({"id"})),))


def without_package(resource_id: str) -> str:
    """Return an Android ID without its package: ``pay`` of ``com.example:id/pay``."""
    return resource_id.rpartition(":id/")[2]


def _type(value: str) -> Sought:
    return Sought(type=value)


def _link(value: str) -> Sought:
    return Sought((Term(value, frozenset({"text", "label"})),))


def _xpath_alternatives(value: str) -> list[str]:
    """Return the last steps of the paths that an XPath unites, once for each alternative of their first predicate."""
    steps: list[str] = []
    for path in _split(value, "|")[:_MAX_ALTERNATIVES]:
        step = _last_step(_PARENTS.sub("", path.strip()), "/")
        head, bracket, rest = step.partition("[")
        condition, *others = _split(rest, "]")
        # Further predicates stay whole: all of their terms are expected, which never says too much.
        tail = "]".join(["", *others])
        steps += [f"{head}{bracket}{part}{tail}" for part in _split(condition, "or")]

    return steps


def _split(expression: str, separator: str) -> list[str]:
    """Split an expression where its separator is not in a string, brackets or parentheses."""
    parts: list[str] = []
    start = 0
    depth = 0

    for match in _SIGNS.finditer(expression):
        sign = match[0].lower()
        if sign == separator and depth == 0:
            parts.append(expression[start : match.start()])
            start = match.end()
        elif sign in {"[", "("}:
            depth += 1
        elif sign in {"]", ")"}:
            depth -= 1

    parts.append(expression[start:])
    return parts


def _xpath(step: str) -> Sought:
    terms = [
        (attribute or "text", _unquoted(text), _COMPARISONS.get(function, operator.eq))
        for function, attribute, text in _XPATH_TERMS.findall(step)
    ]
    types = _XPATH_TYPE.findall(f"/{step.lstrip('/(')}".rstrip(")"))
    type_name = types[0] if types and types[0] != "*" else ""

    return _sought(terms, type_name)


def _uiautomator(value: str) -> Sought:
    # The last selector is that of the element: the others are of what scrolls, or of its parents.
    selector = value.rpartition("UiSelector()")[2]
    return _sought(
        (
            _uiautomator_attribute(method),
            text[1:-1].replace('\\"', '"'),  # the server unescapes nothing else
            _uiautomator_comparison(method),
        )
        for method, text in _UIAUTOMATOR_TERMS.findall(selector)
    )


def _uiautomator_attribute(method: str) -> str:
    for start, attribute in (
        ("text", "text"),
        ("description", "content-desc"),
        ("resourceId", "resource-id"),
        ("className", "class"),
    ):
        if method.startswith(start):
            return attribute

    return method


def _uiautomator_comparison(method: str) -> Comparison:
    if method.endswith("Contains"):
        return operator.contains
    if method.endswith("StartsWith"):
        return str.startswith
    return operator.eq


def _predicate(value: str) -> Sought:
    return _sought(
        (attribute, _unquoted(text), _COMPARISONS.get(sign.lower(), operator.eq))
        for attribute, sign, text in _PREDICATE_TERMS.findall(value)
    )


def _class_chain(value: str) -> Sought:
    step = _last_step(value, "/")
    type_name = re.match(r"[\w*]*", step)
    sought = _predicate(step)
    name = type_name[0] if type_name else ""
    if sought.type or name in _ANY_TYPE:
        return sought

    return Sought(sought.terms, name)


def _css(value: str) -> Sought:
    terms: list[tuple[str, str, Comparison]] = []
    for identifier, attribute, text in _CSS_TERMS.findall(value):
        if identifier:
            terms.append(("id", identifier, operator.eq))
        else:
            terms.append((attribute, text, operator.eq))

    type_name = _CSS_TYPE.search(value)
    return _sought(terms, type_name[1] if type_name else "")


def _selector(value: str) -> Sought:
    """Read a selector of agent-device (``role=button label="Go"``) or argent (an object with these names)."""
    try:
        parsed: object = json.loads(value)
    except (ValueError, RecursionError):
        parsed = None

    if isinstance(parsed, dict):
        named = cast("dict[str, Any]", parsed)
        return _sought((name, str(text), operator.eq) for name, text in named.items())

    # The first of several alternatives is the one that the suite means.
    first = value.partition("||")[0].strip()
    terms = [
        (name, _unquoted(text), operator.eq)
        for name, text in _SELECTOR_TERMS.findall(first)
    ]
    if terms:
        return _sought(terms)
    # A reference such as @e5 says nothing of the element.
    if not first or first.startswith("@"):
        return Sought()

    return Sought((Term(first),))


_READERS: Final[Mapping[str, Callable[[str], Sought]]] = {
    "accessibility id": _accessibility_id,
    "id": _id,
    "class name": _type,
    "role": _type,
    "tag name": _type,
    "link text": _link,
    "partial link text": _link,
    "-android uiautomator": _uiautomator,
    "-ios class chain": _class_chain,
    "css selector": _css,
    "selector": _selector,
}


def _sought(
    named_texts: Iterable[tuple[str, str, Comparison]], type_name: str = ""
) -> Sought:
    """Return what attributes with a text and its comparison look for; one of them may be the type."""
    terms: list[Term] = []
    for name, text, is_in in named_texts:
        if name in _TYPES:
            type_name = text
        elif name in {"resource-id", "id"}:
            terms.append(Term(without_package(text), _FIELDS[name], is_in))
        elif text:
            terms.append(Term(text, _FIELDS.get(name, ANY), is_in))

    return Sought(tuple(terms), type_name)


def _last_step(expression: str, separator: str) -> str:
    """Return what follows the last separator that is not in quotes, brackets or backticks."""
    start = 0
    depth = 0
    quote = ""

    for index, character in enumerate(expression):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == separator and depth == 0:
            start = index + 1

    return expression[start:]


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    if not is_quoted:
        return text

    return re.sub(r"\\(.)", r"\1", text[1:-1])

"""Checks arguments against a tool's JSON schema, as far as tools use it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def problems_of(
    value: object, schema: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield the problems of a value, each with the argument's name; other parts of the schema are ignored."""
    kind = schema.get("type")
    if isinstance(kind, str) and not _is_of(value, kind):
        yield f"{path or 'the arguments'}={value!r} must be of type {kind}"
        return

    choices = schema.get("enum")
    if not choices and "const" in schema:
        choices = [schema["const"]]
    if choices and value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        yield f"{path}={value!r} must be one of {listed}"

    match value:
        case dict():
            yield from _problems_of_object(
                cast("dict[str, object]", value), schema, path
            )
        case list() | tuple():
            yield from _problems_of_items(cast("Sequence[object]", value), schema, path)
        case str():
            yield from _problems_of_text(value, schema, path)
        case int() | float():
            yield from _problems_of_number(value, schema, path)
        case _:
            pass


def _is_of(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind not in _KINDS or isinstance(value, _KINDS[kind])


def _problems_of_object(
    value: Mapping[str, object], schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    known: Mapping[str, Any] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{_joined(path, name)} is missing"

    is_closed = bool(known) and schema.get("additionalProperties", False) is False
    for name, argument in value.items():
        if name in known:
            yield from problems_of(argument, known[name], _joined(path, name))
        elif is_closed:
            # The server would ignore a misspelled argument.
            yield f"{_joined(path, name)} is unknown, must be one of {', '.join(known)}"


def _problems_of_items(
    value: Sequence[object], schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    length = len(value)
    if length < schema.get("minItems", 0) or length > schema.get("maxItems", length):
        yield f"{path} has too few or too many items ({length})"

    for index, item in enumerate(value):
        yield from problems_of(item, schema.get("items") or {}, f"{path}[{index}]")


def _problems_of_text(
    value: str, schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{path}={value!r} is too short"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        yield f"{path}={value!r} must match {pattern}"


def _problems_of_number(
    value: float, schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    is_too_low = minimum is not None and value < minimum
    is_too_high = maximum is not None and value > maximum
    if is_too_low or is_too_high:
        yield f"{path}={value!r} must be between {minimum} and {maximum}"

    lower_bound = schema.get("exclusiveMinimum")
    if lower_bound is not None and value <= lower_bound:
        yield f"{path}={value!r} must be greater than {lower_bound}"


def _matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, True for one in JavaScript's syntax only: the server checks it."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

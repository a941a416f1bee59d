"""Table of the app config keys, derived from the section types, and typed parsing of a configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pytest_device.app.document import Json, Object, at, object_at
from pytest_device.app.sections import NEWEST_SDK, OLDEST_SDK, AppConfig, Key, Section
from pytest_device.errors import ProjectError
from pytest_device.spelling import in_camel_case

_KINDS: Final[Mapping[object, str]] = {
    str: "string",
    Literal: "string",
    bool: "boolean",
    float: "number",
    int: "integer",
    tuple: "array",
    Mapping: "object",
}
"""Kinds of JSON values, by the type of a section's field."""
_Section = TypeVar("_Section", bound=Section)


class _Field(NamedTuple):
    """A section's field with its key and, if its value is an object, the type of the nested section."""

    attribute: str
    key: Key
    inner: type[Section] | None
    optional: bool


def _fields(section: type[Section]) -> tuple[_Field, ...]:
    """Return the fields of a section, with the keys that their types describe."""
    hints = get_type_hints(section, include_extras=True)

    return tuple(
        _field(field.name, hints[field.name], field.default)
        for field in fields(section)
    )


def _field(attribute: str, hint: Any, default: Any) -> _Field:
    rules = Key()
    if get_origin(hint) is Annotated:
        rules = hint.__metadata__[0]
        hint = hint.__origin__

    is_union = get_origin(hint) in (Union, UnionType)
    members = [
        member
        for member in (get_args(hint) if is_union else (hint,))
        if member is not NoneType
    ]
    sections = [member for member in members if _is_section(member)]
    elements = [
        get_args(member)[0] for member in members if get_origin(member) is tuple
    ]
    values: list[str] = []
    for part in (*members, *elements):
        if get_origin(part) is Literal:
            values += get_args(part)

    if sections:
        default_value = None
    elif isinstance(default, tuple):
        default_value = list(cast("tuple[Json, ...]", default))
    else:
        default_value = default
    key = replace(
        rules,
        name=rules.name or in_camel_case(attribute),
        kinds=_kinds(members),
        items=_kinds(elements),
        values=tuple(values),
        default=default_value,
    )

    return _Field(attribute, key, sections[0] if sections else None, default is None)


def _is_section(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, Section)


def _kinds(members: list[Any]) -> tuple[str, ...]:
    """Return the kinds of a union's members, or none if any value is allowed."""
    # The reference gives such keys no type.
    if object in members:
        return ()

    return tuple(
        "object" if _is_section(member) else _KINDS[get_origin(member) or member]
        for member in members
    )


_NO_PARENT: Final = Key()


def _keys(
    section: type[Section], above: str = "", parent: Key = _NO_PARENT
) -> Iterator[Key]:
    """Yield the keys of a section and those below it, with their whole names."""
    for field in _fields(section):
        key = replace(
            field.key,
            name=f"{above}{field.key.name}",
            older=parent.older or field.key.older,
            in_new_projects=parent.in_new_projects or field.key.in_new_projects,
        )
        yield key
        if field.inner:
            yield from _keys(field.inner, f"{key.name}.", key)


KEYS: Final[Mapping[str, Key]] = {key.name: key for key in _keys(AppConfig)}


BACKEND: Final = ("web", "config")
"""Section with an object, of any name, that has the settings of the backend service."""

_PATCHES: Final[Mapping[int, bool | None]] = {55: None, 56: None}
"""Whether binary patches are on by default, in the SDK versions between the known references: unknown."""


def _backend(config: Json) -> Json:
    """Return the object in ``web.config`` with the settings of the backend service, whatever its name."""
    for value in object_at(config, *BACKEND).values():
        if isinstance(value, dict):
            return value

    return None


def setting(config: Json, name: str, sdk: int = NEWEST_SDK) -> Json:
    """Return a value of the configuration, or the default from an SDK version's reference."""
    trail = name.split(".")
    value = at(config, *trail)
    if value is None and tuple(trail[:2]) == BACKEND:
        value = at(_backend(config), *trail[2:])
    if value is not None or name not in KEYS:
        return value

    if name == "updates.enableBsdiffPatchSupport":
        return _PATCHES.get(sdk, sdk > OLDEST_SDK)
    # The default depends on another key: light text needs a dark background.
    if name == "androidStatusBar.backgroundColor":
        style = at(config, "androidStatusBar", "barStyle")
        if style == "light-content":
            return "#00000088"

    return KEYS[name].default


def typed_config(config: Object, sdk: int = NEWEST_SDK) -> AppConfig:
    """Return the configuration as typed values. Raises ProjectError listing every invalid key."""
    problems: list[str] = []
    for key in KEYS.values():
        value = at(config, *key.trail)
        problem = key.problem(value) if value is not None else None
        if problem:
            problems.append(f"{key.name} {problem}")
    if problems:
        raise ProjectError(*problems)

    return _typed(AppConfig, config, sdk)


def _typed(
    section: type[_Section], config: Object, sdk: int, above: str = ""
) -> _Section:
    values: dict[str, object] = {}
    for attribute, key, inner, optional in _fields(section):
        name = f"{above}{key.name}"
        value = setting(config, name, sdk)
        is_section = isinstance(value, dict) or (value is None and not optional)
        if inner is not None and is_section:
            values[attribute] = _typed(inner, config, sdk, f"{name}.")
        else:
            values[attribute] = _frozen(value)

    return replace(section(), **values)


def _frozen(value: Json) -> object:
    if isinstance(value, dict):
        return MappingProxyType(
            {name: _frozen(member) for name, member in value.items()}
        )
    if isinstance(value, list):
        return tuple(_frozen(element) for element in value)

    return value

"""Table of the app config keys, derived from the section types, and typed parsing of a configuration."""

import re
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

from pytest_device.app.document import Json, Object, at
from pytest_device.app.sections import NEWEST_SDK, OLDEST_SDK, AppConfig, Key, Section
from pytest_device.errors import ProjectError

_KINDS: Final[Mapping[object, str]] = {
    str: "string", Literal: "string", bool: "boolean", float: "number", int: "integer", tuple: "array",
    Mapping: "object",
}  # fmt: skip
_Section = TypeVar("_Section", bound=Section)


class _Field(NamedTuple):
    """A section's field with its key and, if its value is an object, the type of the nested section."""

    attribute: str
    key: Key
    inner: type[Section] | None
    optional: bool


def _fields(section: type[Section]) -> tuple[_Field, ...]:
    hints = get_type_hints(section, include_extras=True)
    return tuple(
        _field(one.name, hints[one.name], one.default) for one in fields(section)
    )


def _field(attribute: str, hint: Any, default: Any) -> _Field:
    hint, rules = (
        (hint.__origin__, hint.__metadata__[0])
        if get_origin(hint) is Annotated
        else (hint, Key())
    )
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    parts = [one for one in alternatives if one is not NoneType]
    inner = next(
        (one for one in parts if isinstance(one, type) and issubclass(one, Section)),
        None,
    )
    elements = [get_args(one)[0] for one in parts if get_origin(one) is tuple]
    literals = [one for one in (*parts, *elements) if get_origin(one) is Literal]
    key = replace(
        rules,
        name=rules.name or re.sub(r"_(\w)", lambda found: found[1].upper(), attribute),
        kinds=_kinds(parts),
        items=_kinds(elements),
        values=tuple(value for one in literals for value in get_args(one)),
        default=None
        if inner
        else list(cast("tuple[Json, ...]", default))
        if isinstance(default, tuple)
        else default,
    )
    return _Field(attribute, key, inner, default is None)


def _kinds(parts: list[Any]) -> tuple[str, ...]:
    """Return the kinds of a union's members, or none if any value is allowed."""
    if object in parts:
        return ()
    return tuple("object" if isinstance(one, type) and issubclass(one, Section) else _KINDS[get_origin(one) or one]
                 for one in parts)  # fmt: skip


_NO_PARENT: Final = Key()


def _keys(
    section: type[Section], above: str = "", parent: Key = _NO_PARENT
) -> Iterator[Key]:
    for one in _fields(section):
        key = replace(
            one.key,
            name=f"{above}{one.key.name}",
            older=parent.older or one.key.older,
            in_new_projects=parent.in_new_projects or one.key.in_new_projects,
        )
        yield key
        if one.inner:
            yield from _keys(one.inner, f"{key.name}.", key)


KEYS: Final[Mapping[str, Key]] = {key.name: key for key in _keys(AppConfig)}


BACKEND: Final = ("web", "config")
"""Section with an object, of any name, that has the settings of the backend service."""

_PATCHES: Final[Mapping[int, bool | None]] = {55: None, 56: None}
"""Whether binary patches are on by default, in the SDK versions between the known references: unknown."""


def _backend(config: Json) -> Json:
    """Return the object in ``web.config`` with the settings of the backend service, whatever its name."""
    section = at(config, *BACKEND)
    inner = section.values() if isinstance(section, dict) else ()
    return next((one for one in inner if isinstance(one, dict)), None)


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
    if (
        name == "androidStatusBar.backgroundColor"
        and at(config, "androidStatusBar", "barStyle") == "light-content"
    ):
        return "#00000088"
    return KEYS[name].default


def typed_config(config: Object, sdk: int = NEWEST_SDK) -> AppConfig:
    """Return the configuration as typed values. Raises ProjectError listing every invalid key."""
    given = ((key, at(config, *key.trail)) for key in KEYS.values())
    problems = [
        (key.name, key.problem(value)) for key, value in given if value is not None
    ]
    if broken := [f"{name} {problem}" for name, problem in problems if problem]:
        raise ProjectError(*broken)
    return _typed(AppConfig, config, sdk)


def _typed(
    section: type[_Section], config: Object, sdk: int, above: str = ""
) -> _Section:
    values: dict[str, object] = {}
    for attribute, key, inner, optional in _fields(section):
        name = f"{above}{key.name}"
        value = setting(config, name, sdk)
        nested = (
            inner
            if isinstance(value, dict) or (value is None and not optional)
            else None
        )
        values[attribute] = (
            _typed(nested, config, sdk, f"{name}.") if nested else _frozen(value)
        )
    return replace(section(), **values)


def _frozen(value: Json) -> object:
    if isinstance(value, dict):
        return MappingProxyType({name: _frozen(one) for name, one in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value

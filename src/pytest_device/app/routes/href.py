"""Paths of routes with their parameters, as strict as the router's types."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode

from pytest_device.app.routes.match import Match
from pytest_device.app.routes.names import NOT_FOUND, Parameter, parameter
from pytest_device.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Linkable:
    """Routes that links can target, with their parameters; ``special`` files are no valid targets."""

    routes: Mapping[str, tuple[Parameter, ...]]
    special: tuple[str, ...]
    match: Callable[[str], Match | None]


def href(
    known: Linkable,
    route: str,
    params: Mapping[str, object],
    query: Mapping[str, object],
) -> str:
    """Build the path of a route. Raises ConfigError with the fix."""
    __tracebackhide__ = True
    path, tail = _split(route)
    if path not in known.routes:
        raise ConfigError(_unknown(known, route, path))
    _check_names(route, known.routes[path], params)
    written = "/" + "/".join(
        part
        for segment in path[1:].split("/")
        if (part := _written(route, segment, params))
    )
    return f"{written}{_with_query(tail, query)}"


def _split(route: str) -> tuple[str, str]:
    """Split a route from its query and fragment."""
    found = re.search(r"[?#]", route)
    return (route[: found.start()], route[found.start() :]) if found else (route, "")


def _with_query(tail: str, query: Mapping[str, object]) -> str:
    given = {name: _text(value) for name, value in query.items() if value is not None}
    pairs = urlencode(given, doseq=True, quote_via=quote)
    if not pairs:
        return tail
    before, hash_sign, fragment = tail.partition("#")
    return f"{before or '?'}{'&' if before[1:] else ''}{pairs}{hash_sign}{fragment}"


def _text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return [
            _text(one) for one in cast("Sequence[object]", value) if one is not None
        ]
    # 7, as JavaScript writes 7.0.
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _check_names(
    route: str, wanted: tuple[Parameter, ...], params: Mapping[str, object]
) -> None:
    __tracebackhide__ = True
    names = {one.name for one in wanted}
    problems = [
        f"lacks the parameter {name!r}" for name in sorted(names - params.keys())
    ]
    fix = "pass other values as query={…}"
    problems += [
        f"has no parameter {name!r}: {fix}" for name in sorted(params.keys() - names)
    ]
    if problems:
        raise ConfigError(*(f"route {route!r} {problem}" for problem in problems))


def _written(route: str, segment: str, params: Mapping[str, object]) -> str:
    found = parameter(segment)
    if not found:
        return quote(segment, safe="!'()*@:$&+,;=")
    value = params[found.name]
    if not found.catch_all:
        return _segment(route, found.name, value)
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"parameter {found.name!r} of route {route!r} must be a list, not {value!r}"
        )
    return "/".join(
        _segment(route, found.name, one) for one in cast("Sequence[object]", value)
    )


def _segment(route: str, name: str, value: object) -> str:
    of = f"parameter {name!r} of route {route!r}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{of} must be a string or a number, not {value!r}")
    text = str(_text(value))
    if text in ("", ".", ".."):
        raise ConfigError(f"{of} must not be {text!r}: a URL has no such segment")
    try:
        return quote(text, safe="!'()*")
    except UnicodeEncodeError:
        raise ConfigError(f"{of} cannot be encoded in a URL: {text!r}") from None


def _unknown(known: Linkable, route: str, path: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", route):
        return f"route {route!r} is an external address: pass it to open_url"
    if not route.startswith("/"):
        return f"route {route!r} must be an absolute path, such as {closest(known.routes, '/' + path.lstrip('./'))!r}"
    if path in known.special or path.rpartition("/")[2] in (
        NOT_FOUND,
        "_sitemap",
        "_layout",
    ):
        return f"route {route!r} is a special file, which cannot be linked to"
    found = known.match(path) if "[" not in path else None
    if found and found.kind == "html" and found.params:
        values = ", ".join(f"{name!r}: …" for name in found.params)
        return f"route {route!r} is a path of {found.route!r}: use {found.route!r} with params={{{values}}}"
    return f"route {route!r} is unknown: did you mean {closest(known.routes, path)!r}?"


def closest(routes: Mapping[str, object], path: str) -> str | None:
    """Return the route that looks most like a path: first as many segments as a route has, then equal letters."""
    trimmed = "/" + path.removesuffix("/index").strip("/")
    if trimmed in routes:
        return trimmed
    return next(iter(difflib.get_close_matches(path, routes, 1, 0.0)), None)

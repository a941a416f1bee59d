"""Paths of routes with their parameters, as strict as the router's types."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote, urlencode

from pytest_device.app.routes.match import Match
from pytest_device.app.routes.names import LAYOUT, NOT_FOUND, Parameter, parameter
from pytest_device.errors import ConfigError

_SPECIAL: Final = (NOT_FOUND, "_sitemap", LAYOUT)


@dataclass(frozen=True, slots=True)
class Linkable:
    """Routes that links can target, with their parameters; ``special`` files are no valid targets."""

    routes: Mapping[str, tuple[Parameter, ...]]
    special: tuple[str, ...]
    match: Callable[[str], Match | None]


def href(
    linkable: Linkable,
    route: str,
    params: Mapping[str, object],
    query: Mapping[str, object],
) -> str:
    """Build the path of a route. Raises ConfigError with the fix."""
    __tracebackhide__ = True
    path, tail = _split(route)
    if path not in linkable.routes:
        raise ConfigError(_unknown(linkable, route, path))
    _check_names(route, linkable.routes[path], params)

    segments: list[str] = []
    for segment in path[1:].split("/"):
        text = _encoded(route, segment, params)
        # A catch-all without values leaves no segment.
        if text:
            segments.append(text)

    return "/" + "/".join(segments) + _with_query(tail, query)


def _split(route: str) -> tuple[str, str]:
    """Split a route from its query and fragment."""
    match = re.search(r"[?#]", route)
    if match is None:
        return route, ""

    return route[: match.start()], route[match.start() :]


def _with_query(tail: str, query: Mapping[str, object]) -> str:
    """Return the query and fragment of a route with further parameters. Raises ConfigError."""
    texts = {name: _text(value) for name, value in query.items() if value is not None}
    try:
        pairs = urlencode(texts, doseq=True, quote_via=quote)
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"query {error.object!r} cannot be encoded in a URL"
        ) from None
    if not pairs:
        return tail

    own_query, hash_sign, fragment = tail.partition("#")
    if own_query in ("", "?"):
        return f"?{pairs}{hash_sign}{fragment}"

    return f"{own_query}&{pairs}{hash_sign}{fragment}"


def _text(value: object) -> object:
    """Return a value as JavaScript writes it in a URL; a list keeps its items, for a parameter each."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return [_text(item) for item in items if item is not None]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))

    return str(value)


def _check_names(
    route: str, parameters: tuple[Parameter, ...], params: Mapping[str, object]
) -> None:
    """Raise ConfigError unless exactly the parameters of a route are given ("Typed routes")."""
    __tracebackhide__ = True
    names = {parameter.name for parameter in parameters}
    missing = sorted(names - params.keys())
    unknown = sorted(params.keys() - names)
    problems = [f"route {route!r} lacks the parameter {name!r}" for name in missing]
    problems += [
        f"route {route!r} has no parameter {name!r}: pass other values as query={{…}}"
        for name in unknown
    ]

    if problems:
        raise ConfigError(*problems)


def _encoded(route: str, segment: str, params: Mapping[str, object]) -> str:
    """Return a segment of a route as the URL contains it: for a parameter, its value."""
    dynamic = parameter(segment)
    if dynamic is None:
        return quote(segment, safe="!'()*@:$&+,;=")

    name = dynamic.name
    value = params[name]
    if not dynamic.catch_all:
        return _segment(route, name, value)
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"parameter {name!r} of route {route!r} must be a list, not {value!r}"
        )

    values = cast("Sequence[object]", value)

    return "/".join(_segment(route, name, item) for item in values)


def _segment(route: str, name: str, value: object) -> str:
    """Return the value of a parameter as one segment. Raises ConfigError."""
    label = f"parameter {name!r} of route {route!r}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{label} must be a string or a number, not {value!r}")

    text = str(_text(value))
    if text in ("", ".", ".."):
        raise ConfigError(f"{label} must not be {text!r}: a URL has no such segment")

    try:
        return quote(text, safe="!'()*")
    except UnicodeEncodeError:
        raise ConfigError(f"{label} cannot be encoded in a URL: {text!r}") from None


def _unknown(linkable: Linkable, route: str, path: str) -> str:
    """Return the error for a route that links cannot target: what it is instead, and the fix."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", route):
        return f"route {route!r} is an external address: pass it to open_url"
    if not route.startswith("/"):
        example = closest(linkable.routes, "/" + path.lstrip("./"))
        return f"route {route!r} must be an absolute path, such as {example!r}"
    if path in linkable.special or path.rpartition("/")[2] in _SPECIAL:
        return f"route {route!r} is a special file, which cannot be linked to"

    # A path with brackets is a misspelled route, although a dynamic one may match it.
    match = None if "[" in path else linkable.match(path)
    if match and match.kind == "html" and match.params:
        values = ", ".join(f"{name!r}: …" for name in match.params)
        return f"route {route!r} is a path of {match.route!r}: use {match.route!r} with params={{{values}}}"

    return (
        f"route {route!r} is unknown: did you mean {closest(linkable.routes, path)!r}?"
    )


def closest(routes: Mapping[str, object], path: str) -> str | None:
    """Return the route that looks most like a path: first as many segments as a route has, then equal letters."""
    trimmed = "/" + path.removesuffix("/index").strip("/")
    if trimmed in routes:
        return trimmed

    close_names = difflib.get_close_matches(path, routes, n=1, cutoff=0.0)

    return close_names[0] if close_names else None

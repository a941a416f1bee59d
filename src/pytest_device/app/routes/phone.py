"""Matching of URLs to screens, as the router in the app does: its order is not the server's."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Final, NamedTuple, cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote

from pytest_device.app.routes.match import Kind, Match, checked_split
from pytest_device.app.routes.names import (
    NOT_FOUND,
    Parameter,
    Route,
    alternatives,
    is_group,
    parameter,
)

_WEB: Final = ("", "http", "https")
_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]^_|~"
"""What a URL's path holds without percent-encoding."""
_IN_FRAGMENT: Final = f"{_IN_PATH}?#{{}}"
_MALFORMED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_DOT: Final = re.compile("%2e", re.IGNORECASE)

_LITERAL, _SINGLE, _SEVERAL, _NOT_FOUND, _END = range(5)
"""How a part of a pattern ranks: the first in this list comes first."""

_Start = range | frozenset[int]
"""Indexes of the segments from which the rest of a pattern matches."""


class PhoneMatcher:
    """The screens of an app, in the order in which its router tries them on a cold start.

    Once the app runs, the router also prefers the group that is open, which no URL tells.
    """

    def __init__(self, routes: Sequence[Route], navigators: Sequence[Route]) -> None:
        self._screens = sorted(
            _screens(routes, navigators), key=cmp_to_key(_Screen.compared)
        )

    def match(self, url: str) -> Match | None:
        """Return the screen that a URL opens, or None if no screen matches."""
        found = _in_app(checked_split(url))
        segments = tuple(filter(None, _resolved(found.path)))
        taken = self._at_root() if not segments else self._first(segments)
        if taken is None:
            return None
        screen, spans = taken
        raw = {one.name: "/".join(segments[a:b]) for one, a, b in spans}
        params = {one.name: _value(one, raw[one.name]) for one, _, _ in spans}
        route = screen.route
        return Match(
            cast("Kind", route.kind),
            route.name,
            route.page,
            route.file,
            _with_query(params, found),
            raw,
            screen.names,
        )

    def _first(self, segments: tuple[str, ...]) -> "_Taken | None":
        for screen in self._screens:
            if (spans := _spans(screen.parts, segments)) is not None:
                return _Taken(screen, spans)
        return None

    def _at_root(self) -> "_Taken | None":
        """Return the page at the root: an index, or else a catch-all, which then has no value."""
        pages = [one for one in self._screens if not one.has_children]
        for fits in (_Screen.is_root, _Screen.is_root_catch_all):
            if found := next(filter(fits, pages), None):
                return _Taken(found, ())
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Screen:
    """A page or a layout; ``names`` are its layouts and itself, each relative to the one before."""

    route: Route
    names: tuple[str, ...]
    has_children: bool
    is_first: bool
    """Whether its group has its name, which makes it the group's first screen."""

    parts: tuple[str, ...] = field(init=False)
    pattern: str = field(init=False)
    order: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = tuple(one for one in self.route.segments if one != "index")
        ranks = [_rank(one) for one in parts if not is_group(one)]
        if self.is_index:
            ranks.append(_LITERAL)
        is_static = not self.has_children and set(ranks) <= {_LITERAL}
        order = (
            not is_static,
            -ranks.count(_LITERAL),
            (*ranks, _END),
            not self.is_first,
        )
        for name, value in (
            ("parts", parts),
            ("pattern", "/".join(map(_written, parts))),
            ("order", order),
        ):
            object.__setattr__(self, name, value)

    @property
    def is_index(self) -> bool:
        return self.names[-1].rpartition("/")[2] == "index"

    def is_root(self) -> bool:
        return all(map(is_group, self.parts))

    def is_root_catch_all(self) -> bool:
        visible = [one for one in self.parts if not is_group(one)]
        return (
            len(visible) == 1
            and _rank(visible[0]) >= _SEVERAL
            and visible[0] in self.names[-1].split("/")
        )

    def compared(self, other: "_Screen") -> int:
        """Return which of two screens is tried first, negative for this one."""
        if self.pattern == other.pattern:
            return _sign(other.names, self.names)
        # What is below a layout comes before it.
        if self.pattern.startswith(other.pattern) and not other.is_index:
            return -1
        if other.pattern.startswith(self.pattern) and not self.is_index:
            return 1
        return _sign(self.order, other.order)


class _Taken(NamedTuple):
    """A matching screen, and each parameter with the indexes where its segments start and stop."""

    screen: _Screen
    spans: tuple[tuple[Parameter, int, int], ...]


def _sign(first: tuple[object, ...], second: tuple[object, ...]) -> int:
    return (first > second) - (first < second)


def _rank(part: str) -> int:
    if part == NOT_FOUND:
        return _NOT_FOUND
    found = parameter(part)
    return _LITERAL if found is None else _SEVERAL if found.catch_all else _SINGLE


def _written(part: str) -> str:
    """Return a part with a mark for its kind, as patterns are compared."""
    found = parameter(part)
    return f"{'*' if found.catch_all else ':'}{found.name}" if found else part


def _screens(routes: Sequence[Route], navigators: Sequence[Route]) -> Iterator[_Screen]:
    """Yield all screens in the order of the files, those of a directory before those of its subdirectories."""
    root = _Directory()
    pages = (one for one in routes if one.kind != "api")
    for route in sorted((*pages, *navigators), key=_place):
        root.add(route)
    return root.screens()


def _place(route: Route) -> tuple[str, tuple[int, ...]]:
    """Return a sort key: the file, then which of its combinations of groups."""
    directories = route.file.removeprefix("./").split("/")[:-1]
    chosen = zip(directories, route.segments, strict=False)
    return route.file, tuple(alternatives(many).index(one) for many, one in chosen)


@dataclass
class _Directory:
    """A directory with its pages, and the layout that they are opened in."""

    layout: Route | None = None
    pages: list[Route] = field(default_factory=list[Route])
    below: dict[str, "_Directory"] = field(default_factory=dict[str, "_Directory"])

    def add(self, route: Route) -> None:
        is_layout = route.kind == "layout"
        at = self
        for part in route.segments if is_layout else route.segments[:-1]:
            at = at.below.setdefault(part, _Directory())
        if is_layout:
            at.layout = route
        else:
            at.pages.append(route)

    def screens(self, above: tuple[str, ...] = (), depth: int = 0) -> Iterator[_Screen]:
        """Yield the screens; names are relative to the layout above, at ``depth``."""
        if self.layout:
            screen = _screen(self.layout, above, depth, self._has_children())
            yield screen
            above, depth = screen.names, len(self.layout.segments)
        for page in self.pages:
            yield _screen(page, above, depth)
        for directory in self.below.values():
            yield from directory.screens(above, depth)

    def _has_children(self) -> bool:
        return bool(self.pages) or any(
            one.layout or one._has_children()  # noqa: SLF001  # of the same class
            for one in self.below.values()
        )


def _screen(
    route: Route,
    above: tuple[str, ...],
    depth: int,
    has_children: bool = False,  # noqa: FBT001, FBT002
) -> _Screen:
    name = "/".join(route.segments[depth:])
    groups = [one for one in above[-1].split("/") if is_group(one)] if above else []
    is_first = groups[:1] == [f"({name.removesuffix('/index')})"]
    return _Screen(route, (*above, name), has_children, is_first)


def _in_app(found: SplitResult) -> SplitResult:
    """Return a URL as the path and query that the router gets: a custom scheme's host is part of the path."""
    if found.scheme in _WEB:
        return found
    path = f"{found.netloc.rpartition('@')[2]}{found.path}"
    # A link to the development client names an address.
    path = path.partition("/--/")[2] if "/--/" in path else path
    # The router decodes the query of such a link once more and drops its fragment.
    query = "&".join(
        f"{name}={_decoded(value)}"
        for name, value in parse_qsl(found.query, keep_blank_values=True)
    )
    query, _, fragment = query.partition("#")
    return SplitResult("", "", path, query, fragment)


def _resolved(path: str) -> list[str]:
    """Return the segments of a path as a URL parser writes them, without dots."""
    segments: list[str] = []
    for one in quote(path, safe=_IN_PATH).replace("\\", "/").split("/"):
        match _ENCODED_DOT.sub(".", one):
            case ".":
                continue
            case "..":
                segments[-1:] = []
            case _:
                segments.append(one)
    return segments


def _spans(
    parts: tuple[str, ...], segments: tuple[str, ...]
) -> tuple[tuple[Parameter, int, int], ...] | None:
    """Return where each parameter's segments are, or None if the parts don't match; the first takes the most."""
    starts: list[_Start] = [frozenset((len(segments),))]
    for part in reversed(parts):
        starts.append(_before(part, starts[-1], segments))
        if not starts[-1]:
            return None
    starts.reverse()
    if 0 not in starts[0]:
        return None
    at, spans = 0, list[tuple[Parameter, int, int]]()
    for part, following in zip(parts, starts[1:], strict=True):
        stop = _stop(part, at, following, segments)
        if found := parameter(part):
            spans.append((found, at, stop))
        at = stop
    return tuple(spans)


def _before(part: str, following: _Start, segments: tuple[str, ...]) -> _Start:
    """Return the indexes from which a part matches so that the following ones can."""
    match _rank(part):
        case _ if is_group(part):
            return frozenset((*following, *_literal(part, following, segments)))
        case 0:
            return _literal(part, following, segments)
        case 1:
            return frozenset(at - 1 for at in following if at)
        case _:  # at least one segment
            return range(max(following))


def _literal(part: str, following: _Start, segments: tuple[str, ...]) -> frozenset[int]:
    written = part.replace(" ", "%20")
    return frozenset(at - 1 for at in following if at and segments[at - 1] == written)


def _stop(part: str, at: int, following: _Start, segments: tuple[str, ...]) -> int:
    if _rank(part) >= _SEVERAL:
        return max(following)
    if is_group(part):
        return at + (segments[at : at + 1] == (part,) and at + 1 in following)
    return at + 1


def _value(one: Parameter, raw: str) -> str | list[str]:
    value = _decoded(raw)
    return list(filter(None, value.split("/"))) if one.catch_all else value


def _decoded(text: str) -> str:
    """Decode a text, or return it unchanged if it can't be decoded as a whole."""
    if _MALFORMED.search(text):
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _with_query(
    params: Mapping[str, str | list[str]], found: SplitResult
) -> dict[str, str | list[str]]:
    """Return the parameters of a screen: also the query's, unless the path has them, and the fragment as ``#``."""
    added: dict[str, list[str]] = {}
    for name, value in parse_qsl(found.query, keep_blank_values=True):
        if not params.get(name):
            added.setdefault(name, []).append(value)
    fragment = {"#": quote(found.fragment, _IN_FRAGMENT)} if found.fragment else {}
    query = {name: one[0] if len(one) == 1 else one for name, one in added.items()}
    return {**params, **fragment, **query}

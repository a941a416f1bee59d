"""Matching of URLs to screens, as the router in the app does: its order is not the server's."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, cmp_to_key
from typing import Final, NamedTuple, cast
from urllib.parse import SplitResult, parse_qs, parse_qsl, quote, unquote, urlunsplit

from pytest_device.app.routes.match import (
    Kind,
    Match,
    Span,
    checked_split,
    spans_of,
    without_address,
)
from pytest_device.app.routes.names import (
    NOT_FOUND,
    Parameter,
    Route,
    alternatives,
    is_group,
    parameter,
)

_OTHER_SCHEME: Final = re.compile(r"^[^:]+://")
"""A scheme that no URL has, such as ``my_app``: the router drops it, and reads the rest as it is."""
_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]^_|~"
"""What a URL's path holds without percent-encoding."""
_IN_FRAGMENT: Final = f"{_IN_PATH}?#{{}}"
_MALFORMED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_DOT: Final = re.compile("%2e", re.IGNORECASE)

_LITERAL, _SINGLE, _SEVERAL, _NOT_FOUND, _END = range(5)
"""How a part of a pattern ranks: the first in this list comes first."""


class PhoneMatcher:
    """The screens of an app, in the order in which its router tries them on a cold start.

    Once the app runs, the router also prefers the group that is open, which no URL tells.
    """

    def __init__(
        self, routes: Sequence[Route], navigators: Sequence[Route], vendor: str
    ) -> None:
        self._client_host = f"{vendor}-development-client"
        self._screens = sorted(
            _screens(routes, navigators), key=cmp_to_key(_Screen.compared)
        )

    def match(self, url: str) -> Match | None:
        """Return the screen that a URL opens, or None if no screen matches. Raises ConfigError if it is no URL."""
        address = _in_app(_unwrapped(url, self._client_host))
        segments = tuple(segment for segment in _resolved(address.path) if segment)
        opened = self._first(segments) if segments else self._at_root()
        if opened is None:
            return None

        raw_params: dict[str, str | None] = {}
        params: dict[str, str | list[str]] = {}
        for item, start, stop in opened.spans:
            raw = "/".join(segments[start:stop])
            raw_params[item.name] = raw
            params[item.name] = _value(item, raw)

        screen = opened.screen
        route = screen.route

        return Match(
            cast("Kind", route.kind),
            route.name,
            route.page,
            route.file,
            _with_query(params, address),
            raw_params,
            screen.names,
        )

    def _first(self, segments: tuple[str, ...]) -> "_Opened | None":
        """Return the first screen that matches the segments of a path."""
        for screen in self._screens:
            spans = spans_of(screen.parts, segments, _stops)
            if spans is not None:
                return _Opened(screen, spans)

        return None

    def _at_root(self) -> "_Opened | None":
        """Return the page at the root: an index, or else a catch-all, which then has no value."""
        pages = [screen for screen in self._screens if not screen.has_children]

        for page in pages:
            if page.is_root:
                return _Opened(page, ())
        for page in pages:
            if page.is_root_catch_all:
                return _Opened(page, ())

        return None


@dataclass(frozen=True, eq=False)
class _Screen:
    """A page or a layout; ``names`` are its layouts and itself, each relative to the one before."""

    route: Route
    names: tuple[str, ...]
    has_children: bool
    is_first: bool
    """Whether its group has its name, which makes it the group's first screen."""

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The segments of the pattern that URLs are compared with."""
        return tuple(part for part in self.route.segments if part != "index")

    @cached_property
    def pattern(self) -> str:
        """The pattern as a text, in which two screens are compared."""
        return "/".join(_pattern(part) for part in self.parts)

    @cached_property
    def order(self) -> tuple[object, ...]:
        """A sort key: static pages first, then those with more literal parts, then by the kinds of parts."""
        ranks = [_rank(part) for part in self.parts if not is_group(part)]
        if self.is_index:
            ranks.append(_LITERAL)
        is_static = not self.has_children and all(rank == _LITERAL for rank in ranks)

        return (
            not is_static,
            -ranks.count(_LITERAL),
            (*ranks, _END),
            not self.is_first,
        )

    @property
    def is_index(self) -> bool:
        return self.names[-1].rpartition("/")[2] == "index"

    @property
    def is_root(self) -> bool:
        return all(is_group(part) for part in self.parts)

    @property
    def is_root_catch_all(self) -> bool:
        visible = [part for part in self.parts if not is_group(part)]
        if len(visible) != 1 or _rank(visible[0]) < _SEVERAL:
            return False

        # One that a layout above the page is named after has to match a segment.
        return visible[0] in self.names[-1].split("/")

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


class _Opened(NamedTuple):
    """A matching screen, and where the segments of its parameters are."""

    screen: _Screen
    spans: tuple[Span, ...]


def _sign(first: tuple[object, ...], second: tuple[object, ...]) -> int:
    """Compare two tuples as ``cmp_to_key`` expects it: -1, 0 or 1."""
    return (first > second) - (first < second)


def _rank(part: str) -> int:
    if part == NOT_FOUND:
        return _NOT_FOUND

    dynamic = parameter(part)
    if dynamic is None:
        return _LITERAL

    return _SEVERAL if dynamic.catch_all else _SINGLE


def _pattern(part: str) -> str:
    """Return a part with a mark for its kind, as patterns are compared."""
    dynamic = parameter(part)
    if dynamic is None:
        return part

    mark = "*" if dynamic.catch_all else ":"

    return mark + dynamic.name


def _screens(routes: Sequence[Route], navigators: Sequence[Route]) -> Iterator[_Screen]:
    """Yield all screens in the order of the files, those of a directory before those of its subdirectories."""
    pages = [route for route in routes if route.kind != "api"]

    root = _Directory()
    for route in sorted((*pages, *navigators), key=_file_order):
        root.add(route)

    return root.screens()


def _file_order(route: Route) -> tuple[str, tuple[int, ...]]:
    """Return a sort key: the file, then which of its combinations of groups."""
    directories = route.file.removeprefix("./").split("/")[:-1]
    combination: list[int] = []
    for directory, segment in zip(directories, route.segments, strict=False):
        combination.append(alternatives(directory).index(segment))

    return route.file, tuple(combination)


@dataclass
class _Directory:
    """A directory with its pages, and the layout that they are opened in."""

    layout: Route | None = None
    pages: list[Route] = field(default_factory=list[Route])
    below: dict[str, "_Directory"] = field(default_factory=dict[str, "_Directory"])

    def add(self, route: Route) -> None:
        """Add a page or a layout below this directory."""
        is_layout = route.kind == "layout"
        # The last segment of a page is its file, that of a layout its directory.
        directories = route.segments if is_layout else route.segments[:-1]

        directory = self
        for name in directories:
            directory = directory.below.setdefault(name, _Directory())

        if is_layout:
            directory.layout = route
        else:
            directory.pages.append(route)

    def screens(self, above: tuple[str, ...] = (), depth: int = 0) -> Iterator[_Screen]:
        """Yield the screens; names are relative to the layout above, at ``depth``."""
        if self.layout:
            screen = _screen(
                self.layout, above, depth, has_children=self.has_children()
            )
            yield screen
            above, depth = screen.names, len(self.layout.segments)

        for page in self.pages:
            yield _screen(page, above, depth, has_children=False)
        for directory in self.below.values():
            yield from directory.screens(above, depth)

    def has_children(self) -> bool:
        """Return whether the layout of this directory has something to open in it."""
        if self.pages:
            return True

        return any(
            directory.layout or directory.has_children()
            for directory in self.below.values()
        )


def _screen(
    route: Route, above: tuple[str, ...], depth: int, *, has_children: bool
) -> _Screen:
    """Return the screen of a page or layout that is opened in the layouts ``above``."""
    name = "/".join(route.segments[depth:])

    is_first = False
    if above:
        groups = [part for part in above[-1].split("/") if is_group(part)]
        is_first = bool(groups) and groups[0] == f"({name.removesuffix('/index')})"

    return _Screen(route, (*above, name), has_children, is_first)


def _unwrapped(url: str, client_host: str) -> str:
    """Return the URL that a link to a development build carries: such a build opens it, and its router too."""
    address = checked_split(url)
    if not address.scheme or address.netloc != client_host:
        return url

    return parse_qs(address.query).get("url", [""])[0]


def _in_app(url: str) -> SplitResult:
    """Return a URL as the path and query that the router gets: a custom scheme's host is part of the path."""
    address = checked_split(url)
    if address.scheme in ("http", "https"):
        path = urlunsplit(address._replace(scheme="", netloc=""))
    elif address.scheme:
        path = _of_custom_scheme(address)
    elif address.netloc:
        return address
    else:
        path = url if url.startswith("/") else _OTHER_SCHEME.sub("", url)

    # The router reads the rest as a URL once more: "a:b" has a scheme then.
    return checked_split(path.removeprefix("/"))


def _of_custom_scheme(url: SplitResult) -> str:
    host = url.netloc.rpartition("@")[2]
    path = without_address(f"{host}{url.path}")

    # The router decodes the query of such a link once more and drops its fragment.
    pairs = parse_qsl(url.query, keep_blank_values=True)
    query = "&".join(f"{name}={_decoded(value)}" for name, value in pairs)

    return f"{path}?{query}"


def _resolved(path: str) -> list[str]:
    """Return the segments of a path as a URL parser writes them, without dots.

    >>> _resolved("/x/../orders/./ü")
    ['', 'orders', '%C3%BC']
    """
    segments: list[str] = []
    for segment in quote(path, safe=_IN_PATH).replace("\\", "/").split("/"):
        # URL parsers take encoded dots for dots.
        match _ENCODED_DOT.sub(".", segment):
            case ".":
                continue
            case "..":
                if segments:
                    segments.pop()
            case _:
                segments.append(segment)

    return segments


def _stops(part: str, segments: tuple[str, ...], start: int) -> Iterable[int]:
    """Return where a part may stop: a catch-all takes as much as possible, at least one segment."""
    after = start + 1
    segment = segments[start] if start < len(segments) else None
    rank = _rank(part)
    if rank >= _SEVERAL:
        return range(len(segments), start, -1)

    # The router encodes the spaces of a file's name and nothing else.
    is_named = segment == part.replace(" ", "%20")
    # A URL may name a group or leave it out.
    if is_group(part):
        return (after, start) if is_named else (start,)

    fits = is_named if rank == _LITERAL else segment is not None

    return (after,) if fits else ()


def _value(item: Parameter, raw: str) -> str | list[str]:
    """Return the decoded value of a parameter."""
    value = _decoded(raw)
    if not item.catch_all:
        return value

    # Decoded before it is split: "%2F" separates segments, too.
    return [segment for segment in value.split("/") if segment]


def _decoded(text: str) -> str:
    """Decode a text, or return it unchanged if it can't be decoded as a whole.

    >>> _decoded("a%20b"), _decoded("a%20b%FF")
    ('a b', 'a%20b%FF')
    """
    if _MALFORMED.search(text):
        return text

    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _with_query(
    params: Mapping[str, str | list[str]], address: SplitResult
) -> dict[str, str | list[str]]:
    """Return the parameters of a screen: also the query's, unless the path has them, and the fragment as ``#``."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(address.query, keep_blank_values=True):
        if not params.get(name):
            values.setdefault(name, []).append(value)

    result = dict(params)
    if address.fragment:
        result["#"] = quote(address.fragment, _IN_FRAGMENT)
    for name, texts in values.items():
        result[name] = texts[0] if len(texts) == 1 else texts

    return result

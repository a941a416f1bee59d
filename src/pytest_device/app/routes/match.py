"""Matching of URLs to routes, as the server of a web build does."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.app.routes.names import Route, is_group, parameter
from pytest_device.errors import ConfigError

MAX_LENGTH: Final = 8192

Kind: TypeAlias = Literal["html", "api", "not_found", "layout"]


@dataclass(frozen=True, slots=True)
class Match:
    """A matched route; ``route`` is its name in links, ``page`` its path with groups and ``index``.

    ``params`` are decoded, with a list for a catch-all; ``raw_params`` are as in the URL, None without a segment.
    On the phone, ``params`` also hold the query and, as ``#``, the fragment; ``screens`` are the layouts that the
    router opens and the page in them, and the kind is ``layout`` if the URL names a layout without an index.
    """

    kind: Kind
    route: str
    page: str
    file: str
    params: Mapping[str, str | list[str]]
    raw_params: Mapping[str, str | None]
    screens: tuple[str, ...] = ()


class _Step:
    """A node of the route tree, with children for literal segments, groups, parameters and catch-alls."""

    def __init__(self) -> None:
        self.literal: dict[str, _Step] = {}
        self.group: dict[str, _Step] = {}
        self.single: dict[str, _Step] = {}
        self.several: dict[str, _Step] = {}
        self.ends: list[int] = []

    def next(self, segment: str) -> "_Step":
        found = parameter(segment)
        if found:
            kind, name = self.several if found.catch_all else self.single, found.name
        else:
            kind, name = self.group if is_group(segment) else self.literal, segment
        return kind.setdefault(name, _Step())


class Matcher:
    """A tree of routes with shared prefixes; of several that match, the first wins."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._root = _Step()
        for number, route in enumerate(routes):
            step = self._root
            for segment in route.visible:
                step = step.next(segment)
            step.ends.append(number)

    def match(self, url: str) -> Match | None:
        path = path_of(url).lstrip("/").removesuffix("/")
        segments = tuple(path.split("/")) if path else ()
        best = _Search(segments).best(self._root, 0)
        if best is None:
            return None
        route = self._routes[best.number]
        raw = {
            name: "/".join(segments[start:stop]) or None
            for name, start, stop in best.spans
        }
        catch_alls = {one.name for one in route.parameters if one.catch_all}
        params = {
            name: _decoded(value, name in catch_alls) for name, value in raw.items()
        }
        return Match(
            cast("Kind", route.kind), route.name, route.page, route.file, params, raw
        )


def checked_split(url: str) -> SplitResult:
    """Split a URL. Raises ConfigError if it is none, or longer than 8,192 characters."""
    if len(url) > MAX_LENGTH:
        raise ConfigError(
            f"a URL of {len(url)} characters cannot be matched: {MAX_LENGTH} are the maximum"
        )
    try:
        return urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{url!r} is not a valid URL: {error}") from None


def path_of(url: str) -> str:
    """Return the path of a URL; with a custom scheme, the path starts at the host."""
    found = checked_split(url)
    if not found.scheme and found.netloc:
        return f"//{found.netloc}{found.path}"
    if found.scheme in ("", "http", "https"):
        return found.path
    path = f"{found.netloc}{found.path}"
    # A link to the development client names an address.
    return path.partition("/--/")[2] if "/--/" in path else path


def _decoded(value: str | None, several: bool) -> str | list[str]:  # noqa: FBT001
    if several:
        return [unquote(part) for part in value.split("/")] if value else []
    return unquote(value or "")


class _Found(NamedTuple):
    """The number of a matching route, and each parameter with the indexes where its segments start and stop."""

    number: int
    spans: tuple[tuple[str, int, int], ...] = ()


class _Search:
    """A search that tries each node once with each rest of the segments, so that catch-alls don't multiply the work."""

    def __init__(self, segments: tuple[str, ...]) -> None:
        self._segments = segments
        self._best: dict[tuple[_Step, int], _Found | None] = {}
        self._stops: dict[_Step, list[int]] = {}

    def best(self, step: _Step, at: int) -> _Found | None:
        """Return the first route under a node that matches all segments from an index."""
        if (step, at) not in self._best:
            found = (one for one in self._candidates(step, at) if one)
            self._best[step, at] = min(found, default=None, key=lambda one: one.number)
        return self._best[step, at]

    def _candidates(self, step: _Step, at: int) -> "Iterator[_Found | None]":
        head = self._segments[at] if at < len(self._segments) else None
        if head is None:
            yield from map(_Found, step.ends)
        else:
            for literal in {head, unquote(head)} & step.literal.keys():
                yield self.best(step.literal[literal], at + 1)
        for name, child in step.single.items() if head else ():
            yield self._taken(name, child, at, at + 1)
        for name, child in step.group.items():
            if head == name:
                yield self.best(child, at + 1)
            yield self.best(child, at)
        for name, child in step.several.items():
            yield from (
                self._taken(name, child, at, stop)
                for stop in (*self._stops_of(child)[at + 1 : at + 2], at)
            )

    def _taken(self, name: str, step: _Step, at: int, stop: int) -> _Found | None:
        rest = self.best(step, stop)
        return rest and _Found(rest.number, ((name, at, stop), *rest.spans))

    def _stops_of(self, step: _Step) -> list[int]:
        """Return, for each index, the best of the indexes from there where the segments of a catch-all can stop."""
        if step not in self._stops:
            stops: list[int] = []
            for at in range(len(self._segments), -1, -1):
                stops.append(
                    min((at, *stops[-1:]), key=lambda stop: self._rank(step, stop))
                )
            self._stops[step] = stops[::-1]
        return self._stops[step]

    def _rank(self, step: _Step, at: int) -> float:
        found = self.best(step, at)
        return math.inf if found is None else found.number

"""Matching of URLs to routes, as the server of a web build does."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.app.routes.names import Route, is_group, parameter
from pytest_device.errors import ConfigError
from pytest_device.redact import shown

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
        """Numbers of the routes that end here, in the order of precedence."""

    def next(self, segment: str) -> "_Step":
        """Return the child for a segment of a route's name; create it if needed."""
        dynamic = parameter(segment)
        if dynamic is not None:
            children = self.several if dynamic.catch_all else self.single
            return children.setdefault(dynamic.name, _Step())

        children = self.group if is_group(segment) else self.literal

        return children.setdefault(segment, _Step())


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
        """Return the first route that matches a path or URL, or None. Raises ConfigError if it is no URL."""
        path = path_of(url).lstrip("/").removesuffix("/")
        segments = tuple(path.split("/")) if path else ()
        best = _Search(segments).best(self._root, 0)
        if best is None:
            return None

        route = self._routes[best.number]
        raw_params: dict[str, str | None] = {}
        for name, start, stop in best.spans:
            raw_params[name] = "/".join(segments[start:stop]) or None

        params: dict[str, str | list[str]] = {}
        catch_alls = {item.name for item in route.parameters if item.catch_all}
        for name, value in raw_params.items():
            if name not in catch_alls:
                params[name] = unquote(value or "")
            elif value is None:
                params[name] = []
            else:
                params[name] = [unquote(part) for part in value.split("/")]

        return Match(
            cast("Kind", route.kind),
            route.name,
            route.page,
            route.file,
            params,
            raw_params,
        )


def checked_split(url: str) -> SplitResult:
    """Split a URL. Raises ConfigError if it is none, or longer than 8,192 characters."""
    if len(url) > MAX_LENGTH:
        raise ConfigError(
            f"a URL of {len(url)} characters cannot be matched: {MAX_LENGTH} are the maximum"
        )

    return split(url)


def split(url: str) -> SplitResult:
    """Split a URL of any length. Raises ConfigError if it is none."""
    try:
        url.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{shown(url)!r} cannot be encoded in a URL") from None

    try:
        return urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{shown(url)!r} is not a valid URL: {error}") from None


def path_of(url: str) -> str:
    """Return the path of a URL; with a custom scheme, the path starts at the host.

    >>> path_of("https://example.com/orders/7")
    '/orders/7'
    >>> path_of("shop://orders/7")
    'orders/7'
    """
    parts = checked_split(url)
    if not parts.scheme and parts.netloc:
        # "//orders/7" is a path with an empty segment here, not an address.
        return f"//{parts.netloc}{parts.path}"
    if parts.scheme in ("", "http", "https"):
        return parts.path

    return without_address(f"{parts.netloc}{parts.path}")


def without_address(path: str) -> str:
    """Leave out the development server's address, which a link to the development client has before ``/--/``.

    >>> without_address("192.168.1.5:8081/--/orders/7")
    'orders/7'
    """
    _, separator, path_in_app = path.partition("/--/")

    return path_in_app if separator else path


class _Candidate(NamedTuple):
    """The number of a matching route, and each parameter with the indexes where its segments start and stop."""

    number: int
    spans: tuple[tuple[str, int, int], ...] = ()


class _Search:
    """A search that tries each node once with each rest of the segments, so that catch-alls don't multiply the work."""

    def __init__(self, segments: tuple[str, ...]) -> None:
        self._segments = segments
        self._best: dict[tuple[_Step, int], _Candidate | None] = {}
        self._stops: dict[_Step, list[int]] = {}

    def best(self, step: _Step, at: int) -> _Candidate | None:
        """Return the first route under a node that matches all segments from an index."""
        key = step, at
        if key not in self._best:
            best: _Candidate | None = None
            for candidate in self._candidates(step, at):
                if candidate is None:
                    continue
                if best is None or candidate.number < best.number:
                    best = candidate
            self._best[key] = best

        return self._best[key]

    def _candidates(self, step: _Step, at: int) -> Iterator[_Candidate | None]:
        """Yield the best match for each way to continue from a node, None if there is none."""
        if at == len(self._segments):
            for number in step.ends:
                yield _Candidate(number)
        else:
            yield from self._after_segment(step, at)

        # Groups need no segment, and catch-alls match also without any.
        for child in step.group.values():
            yield self.best(child, at)
        for name, child in step.several.items():
            if at < len(self._segments):
                stop = self._stops_of(child)[at + 1]
                yield self._with_parameter(name, child, at, stop)
            yield self._with_parameter(name, child, at, at)

    def _after_segment(self, step: _Step, at: int) -> Iterator[_Candidate | None]:
        """Yield the best match for each child that takes one segment."""
        segment = self._segments[at]
        # A file's name may itself contain percent-encoded characters.
        for text in {segment, unquote(segment)}:
            if text in step.literal:
                yield self.best(step.literal[text], at + 1)

        # An empty segment, as in "/orders//", is no value.
        if segment:
            for name, child in step.single.items():
                yield self._with_parameter(name, child, at, at + 1)

        if segment in step.group:
            yield self.best(step.group[segment], at + 1)

    def _with_parameter(
        self, name: str, step: _Step, at: int, stop: int
    ) -> _Candidate | None:
        """Return the best match in which a parameter takes the segments from ``at`` to ``stop``."""
        rest = self.best(step, stop)
        if rest is None:
            return None

        return _Candidate(rest.number, ((name, at, stop), *rest.spans))

    def _stops_of(self, step: _Step) -> list[int]:
        """Return, for each index, the best of the indexes from there where the segments of a catch-all can stop."""
        if step not in self._stops:
            # From the end, each index is compared with the best one behind it only.
            stop = len(self._segments)
            stops = [stop]
            for at in range(stop - 1, -1, -1):
                if self._rank(step, at) <= self._rank(step, stop):
                    stop = at
                stops.append(stop)
            self._stops[step] = stops[::-1]

        return self._stops[step]

    def _rank(self, step: _Step, at: int) -> float:
        """Return the number of the best route from an index, infinite without one."""
        best = self.best(step, at)

        return math.inf if best is None else best.number

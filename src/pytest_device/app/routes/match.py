"""Matching of URLs to routes, as the server of a web build does."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.app.routes.names import Parameter, Route, is_group, parameter
from pytest_device.errors import ConfigError
from pytest_device.redact import shown

MAX_LENGTH: Final = 8192

Kind: TypeAlias = Literal["html", "api", "not_found", "layout"]
Span: TypeAlias = tuple[Parameter, int, int]
"""A parameter with the indexes where its segments start and stop."""
Stops: TypeAlias = Callable[[str, tuple[str, ...], int], Iterable[int]]
"""The indexes where a part may stop, by part, segments and the index where it starts."""


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


class Matcher:
    """The routes in the order of precedence; of several that match, the first wins."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes

    def match(self, url: str) -> Match | None:
        """Return the first route that matches a path or URL, or None. Raises ConfigError if it is no URL."""
        path = path_of(url).lstrip("/").removesuffix("/")
        segments = tuple(path.split("/")) if path else ()
        for route in self._routes:
            spans = spans_of(route.visible, segments, _stops)
            if spans is not None:
                return _match(route, spans, segments)

        return None


def _match(route: Route, spans: Sequence[Span], segments: tuple[str, ...]) -> Match:
    raw_params: dict[str, str | None] = {}
    params: dict[str, str | list[str]] = {}
    for item, start, stop in spans:
        raw = "/".join(segments[start:stop]) or None
        raw_params[item.name] = raw
        values = [unquote(part) for part in (raw or "").split("/")]
        if item.catch_all:
            params[item.name] = values if raw else []
        else:
            params[item.name] = values[0]

    return Match(
        cast("Kind", route.kind),
        route.name,
        route.page,
        route.file,
        params,
        raw_params,
    )


def spans_of(
    parts: tuple[str, ...], segments: tuple[str, ...], stops: Stops, start: int = 0
) -> tuple[Span, ...] | None:
    """Return where each parameter's segments are, or None if the parts don't match the segments from an index.

    ``stops`` returns the indexes where a part may stop, in the order in which they are tried.
    """
    if not parts:
        return () if start == len(segments) else None

    part, *others = parts
    for stop in stops(part, segments, start):
        spans = spans_of(tuple(others), segments, stops, stop)
        if spans is None:
            continue

        item = parameter(part)

        return spans if item is None else ((item, start, stop), *spans)

    return None


def _stops(part: str, segments: tuple[str, ...], start: int) -> Iterable[int]:
    """Return where a part may stop: a catch-all takes as little as possible, and rather a segment than none."""
    after = start + 1
    segment = segments[start] if start < len(segments) else None
    item = parameter(part)
    if item and item.catch_all:
        return (*range(after, len(segments) + 1), start)
    # A URL may name a group or leave it out.
    if is_group(part):
        return (after, start) if segment == part else (start,)
    if segment is None:
        return ()

    # An empty segment, as in "/orders//", is no value. A file's name may itself contain percent-encoded characters.
    fits = segment != "" if item else part in (segment, unquote(segment))

    return (after,) if fits else ()


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

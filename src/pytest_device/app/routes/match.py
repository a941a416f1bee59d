"""Matching of URLs to routes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from pytest_device.app.routes.names import is_group, parameter
from pytest_device.errors import ConfigError

MAX_LENGTH: Final = 8192

Kind: TypeAlias = Literal["html", "api", "not_found"]
Raw: TypeAlias = "tuple[tuple[str, str | None], ...]"


@dataclass(frozen=True, slots=True)
class Match:
    """A matched route; ``route`` is its name in links, ``page`` its path with groups and ``index``.

    ``params`` are decoded, with a list for a catch-all; ``raw_params`` are as in the URL, None without a segment.
    """

    kind: Kind
    route: str
    page: str
    file: str
    params: Mapping[str, str | list[str]]
    raw_params: Mapping[str, str | None]


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


@dataclass(frozen=True)
class Matcher:
    """A tree of routes with shared prefixes, in order of precedence."""

    routes: tuple[tuple[str, str, str, str], ...]
    root: _Step

    @classmethod
    def of(cls, routes: Iterable[tuple[str, str, str, str, tuple[str, ...]]]) -> "Matcher":
        known: list[tuple[str, str, str, str]] = []
        root = _Step()
        for kind, file, page, name, segments in routes:
            step = root
            for segment in segments:
                step = step.next(segment)
            step.ends.append(len(known))
            known.append((kind, file, page, name))
        return cls(tuple(known), root)

    def match(self, url: str) -> Match | None:
        if len(url) > MAX_LENGTH:
            raise ConfigError(f"a URL of {len(url)} characters cannot be matched: {MAX_LENGTH} are the maximum")
        path = _path(url).removeprefix("/").removesuffix("/")
        best = min(_found(self.root, tuple(path.split("/")) if path else ()), default=None, key=lambda one: one[0])
        if best is None:
            return None
        kind, file, page, name = self.routes[best[0]]
        raw = dict(best[1])
        catch_alls = {found.name for segment in page.split("/") if (found := parameter(segment)) and found.catch_all}
        params = {one: _decoded(value, one in catch_alls) for one, value in raw.items()}
        return Match(cast("Kind", kind), name, page, file, params, raw)


def _path(url: str) -> str:
    """Return the path of a URL; with a custom scheme, the path starts at the host."""
    try:
        found = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{url!r} is not a valid URL: {error}") from None
    if found.scheme in ("", "http", "https"):
        return found.path
    path = f"{found.netloc}{found.path}"
    return path.partition("/--/")[2] if "/--/" in path else path  # a link to the development client names an address


def _decoded(value: str | None, several: bool) -> str | list[str]:  # noqa: FBT001
    if several:
        return [unquote(part) for part in value.split("/")] if value else []
    return unquote(value or "")


def _found(step: _Step, segments: tuple[str, ...], raw: "Raw" = ()) -> "Iterator[tuple[int, Raw]]":
    """Yield the routes under a node that match all segments, each with its parameters."""
    if not segments:
        yield from ((index, raw) for index in step.ends)
    else:
        yield from _by_one(step, segments, raw)
    for name, child in step.group.items():
        if segments and segments[0] == name:
            yield from _found(child, segments[1:], raw)
        yield from _found(child, segments, raw)
    for name, child in step.several.items():
        yield from _by_several(name, child, segments, raw)


def _by_one(step: _Step, segments: tuple[str, ...], raw: "Raw") -> "Iterator[tuple[int, Raw]]":
    head, rest = segments[0], segments[1:]
    for literal in {head, unquote(head)} & step.literal.keys():
        yield from _found(step.literal[literal], rest, raw)
    if head:
        for name, child in step.single.items():
            yield from _found(child, rest, (*raw, (name, head)))


def _by_several(name: str, step: _Step, segments: tuple[str, ...], raw: "Raw") -> "Iterator[tuple[int, Raw]]":
    everything = (*raw, (name, "/".join(segments) or None))
    yield from ((index, everything) for index in step.ends)
    if step.literal or step.group or step.single or step.several:
        for count in (*range(1, len(segments) + 1), 0):
            taken = (*raw, (name, "/".join(segments[:count]) or None))
            yield from (one for one in _found(step, segments[count:], taken) if one[0] not in step.ends)

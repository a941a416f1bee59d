"""Routes of an app, scanned from its routes directory in the router's order of precedence."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_device.app.routes import href as hrefs
from pytest_device.app.routes.declarations import typescript_declaration
from pytest_device.app.routes.match import Match, Matcher, path_of
from pytest_device.app.routes.names import (
    PLATFORMS,
    Parameter,
    Route,
    RouteFile,
    is_group,
    parameter,
    route_file,
    spread,
)
from pytest_device.app.routes.phone import PhoneMatcher
from pytest_device.errors import ConfigError, ProjectError

MAX_FILES: Final = 100_000
MAX_DEPTH: Final = 50
_SKIPPED: Final = frozenset(("node_modules", ".git"))


@dataclass(frozen=True, slots=True)
class RouteProblem:
    """A file that is not a valid route."""

    file: str
    problem: str


@dataclass(frozen=True)
class Routes:
    """Routes of an app, in the order in which URLs are matched."""

    directory: Path
    all: tuple[Route, ...]
    layouts: tuple[str, ...] = ()
    problems: tuple[RouteProblem, ...] = ()
    vendor: str = "vendor"
    navigators: tuple[Route, ...] = ()
    """The layouts below the root, one for each combination of their groups."""

    @classmethod
    def scan(
        cls, app_dir: str | Path, *, platform: str | None = None, vendor: str = "vendor"
    ) -> "Routes":
        """Scan a routes directory; without ``platform``, platform files only count if a shared file exists.

        Raises ProjectError if the directory can't be read, or has more than 100,000 files or 50 levels.
        """
        directory = Path(app_dir)
        return cls.of_files(
            _files(directory), platform=platform, directory=directory, vendor=vendor
        )

    @classmethod
    def of_files(
        cls,
        files: Iterable[str],
        *,
        platform: str | None = None,
        directory: Path = Path("app"),  # immutable
        vendor: str = "vendor",
    ) -> "Routes":
        """Return the routes for a list of files, with paths relative to the routes directory."""
        if platform not in (None, *PLATFORMS):
            raise ConfigError(
                f"platform {platform!r} must be one of {', '.join(PLATFORMS)}"
            )
        tree = _Tree(platform)
        for path in sorted(files, key=_in_tree):
            if found := route_file(path):
                tree.add(found)
        navigators = tuple(tree.navigators())
        within = frozenset(one.segments for one in navigators)
        routes = sorted(tree.routes(), key=lambda route: _precedence(route, within))
        return cls(
            directory,
            tuple(routes),
            tuple(tree.layouts),
            tuple(tree.problems),
            vendor,
            navigators,
        )

    def match(self, url: str) -> Match | None:
        """Return the screen that a path or URL opens in the app on a phone, or None if no screen matches."""
        return self._on_phone.match(url)

    def match_on_server(self, url: str) -> Match | None:
        """Return the route that the server of a web build answers with, or None if no route matches."""
        return self._on_server.match(url)

    def closest(self, url: str) -> str | None:
        """Return the name of the route that looks most like a path or URL, or None without routes."""
        return hrefs.closest(self.linkable, path_of(url))

    def href(
        self,
        route: str,
        params: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, object] | None = None,
    ) -> str:
        """Build the path of a route. Raises ConfigError unless the route exists and its parameters match."""
        __tracebackhide__ = True  # show the error at the test's line
        return hrefs.href(self._linkable, route, params or {}, query or {})

    def typescript_declaration(self) -> str:
        """Return the TypeScript declaration that makes invalid links type errors."""
        return typescript_declaration(self.linkable, self.vendor)

    @cached_property
    def linkable(self) -> dict[str, tuple[Parameter, ...]]:
        """Parameters of the routes that links can target, by name, with and without groups."""
        pages = sorted(
            (one for one in self.all if one.kind == "html"),
            key=lambda one: _in_tree(one.page),
        )
        return {
            name: one.parameters
            for one in pages
            for name in (one.grouped_name, one.name)
        }

    @cached_property
    def _linkable(self) -> hrefs.Linkable:
        special = tuple(one.page for one in self.all if one.kind != "html")
        return hrefs.Linkable(self.linkable, special, self.match)

    @cached_property
    def _on_phone(self) -> PhoneMatcher:
        return PhoneMatcher(self.all, self.navigators)

    @cached_property
    def _on_server(self) -> Matcher:
        return Matcher(self.all)


def _in_tree(path: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders files before sibling directories."""
    *directories, name = path.split("/")
    return (*((1, one) for one in directories), (0, name))


def _precedence(
    route: Route, layouts: frozenset[tuple[str, ...]]
) -> tuple[object, ...]:
    """Return the router's sort key: static before dynamic, more parameters first, catch-alls late.

    Of static routes, an index and routes in groups come first, then the shortest: as seen from the nearest layout.
    """
    kind = ("html", "api", "not_found").index(route.kind)
    shape = tuple(
        (segment == "+not-found", found.catch_all)
        for segment in route.segments
        if (found := parameter(segment))
    )
    above = max(
        (
            depth
            for depth in range(len(route.segments))
            if route.segments[:depth] in layouts
        ),
        default=0,
    )
    path = route.segments[above:]
    first = path == ("index",) or any(map(is_group, path))
    static = () if shape else (not first, len("/".join(path)))
    return kind, bool(shape), -len(shape), shape, static


@dataclass
class _Tree:
    """Collector of route files, resolving duplicates as the bundler does."""

    platform: str | None
    layouts: list[str] = field(default_factory=list[str])
    _layout_files: dict[str, RouteFile] = field(default_factory=dict[str, RouteFile])
    problems: list[RouteProblem] = field(default_factory=list[RouteProblem])
    _found: dict[tuple[str, str], dict[str | None, RouteFile]] = field(
        default_factory=dict[tuple[str, str], dict[str | None, RouteFile]]
    )

    def add(self, found: RouteFile) -> None:
        if found.problem:
            self.problems.append(RouteProblem(found.path, found.problem))
        elif found.kind == "layout":
            self.layouts.append(found.name)
            best = self._layout_files.setdefault(found.name, found)
            if self._level(found) > self._level(best):
                self._layout_files[found.name] = found
        else:
            self._add_route(found)

    def _add_route(self, found: RouteFile) -> None:
        kind = "html" if found.kind == "not_found" else found.kind
        for name in spread(found.name):
            files = self._found.setdefault((kind, name), {})
            if (first := files.setdefault(found.platform, found)) is not found:
                problem = (
                    f"is the same route as {first.path}: remove or rename one of them"
                )
                self.problems.append(RouteProblem(found.path, problem))

    def _level(self, found: RouteFile) -> int:
        """Return how well a file fits the platform; the highest value wins, negative ones are unused."""
        if found.platform is None:
            return 0
        if found.platform == self.platform:
            return 2
        return (
            1
            if found.platform == "native" and self.platform in ("android", "ios")
            else -1
        )

    def navigators(self) -> Iterator[Route]:
        """Yield the layouts below the root, which no URL names."""
        for name, found in self._layout_files.items():
            for one in spread(name):
                if segments := tuple(one.split("/")[:-1]):
                    yield Route(f"./{found.path}", "layout", segments)

    def routes(self) -> Iterator[Route]:
        """Yield the routes; of routes with equal precedence, the deepest comes first."""
        apis: set[str] = set()
        for (_, name), files in reversed(self._found.items()):
            best = max(files.values(), key=self._level)
            if None not in files:
                self.problems.append(
                    RouteProblem(
                        best.path, "needs a file of the same name without a platform"
                    )
                )
            elif best.kind != "api" or best.path not in apis:
                apis |= {best.path} if best.kind == "api" else set()
                yield Route(f"./{best.path}", best.kind, tuple(name.split("/")))


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of all files under a directory; links to directories are not followed and end in a slash."""
    pending, count = [("", 0)], 0
    while pending:
        below, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ProjectError(
                f"has more than {MAX_DEPTH} levels of directories",
                path=directory / below,
            )
        for entry in _entries(directory / below):
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending += (
                    [(f"{path}/", depth + 1)] if entry.name not in _SKIPPED else []
                )
                continue
            count += 1
            if count > MAX_FILES:
                raise ProjectError(f"has more than {MAX_FILES} files", path=directory)
            yield f"{path}/" if entry.is_symlink() and entry.is_dir() else path


def _entries(directory: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        raise ProjectError(
            f"cannot be read: {error.strerror or error}", path=directory
        ) from None

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
    NOT_FOUND,
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

        Raises ProjectError if the directory can't be read.
        """
        directory = Path(app_dir)
        files = _files(directory)

        return cls.of_files(
            files, platform=platform, directory=directory, vendor=vendor
        )

    @classmethod
    def of_files(
        cls,
        files: Iterable[str],
        *,
        platform: str | None = None,
        directory: Path = Path("app"),
        vendor: str = "vendor",
    ) -> "Routes":
        """Return the routes for a list of files, with paths relative to the routes directory."""
        if platform not in (None, *PLATFORMS):
            raise ConfigError(
                f"platform {platform!r} must be one of {', '.join(PLATFORMS)}"
            )

        tree = _Tree(platform)
        for path in sorted(files, key=_in_tree):
            file = route_file(path)
            if file is not None:
                tree.add(file)

        navigators = tuple(tree.navigators())
        layouts = frozenset(navigator.segments for navigator in navigators)
        routes = sorted(tree.routes(), key=lambda route: _precedence(route, layouts))

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
        # The error belongs to the line of the test.
        __tracebackhide__ = True

        return hrefs.href(self._linkable, route, params or {}, query or {})

    def typescript_declaration(self) -> str:
        """Return the TypeScript declaration that makes invalid links type errors."""
        return typescript_declaration(self.linkable, self.vendor)

    @cached_property
    def linkable(self) -> dict[str, tuple[Parameter, ...]]:
        """Parameters of the routes that links can target, by name, with and without groups."""
        pages = [route for route in self.all if route.kind == "html"]
        pages.sort(key=lambda page: _in_tree(page.page))

        parameters: dict[str, tuple[Parameter, ...]] = {}
        for page in pages:
            parameters[page.grouped_name] = page.parameters
            parameters[page.name] = page.parameters

        return parameters

    @cached_property
    def _linkable(self) -> hrefs.Linkable:
        special = tuple(route.page for route in self.all if route.kind != "html")

        return hrefs.Linkable(self.linkable, special, self.match)

    @cached_property
    def _on_phone(self) -> PhoneMatcher:
        return PhoneMatcher(self.all, self.navigators, self.vendor)

    @cached_property
    def _on_server(self) -> Matcher:
        return Matcher(self.all)


def _in_tree(path: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders files before sibling directories."""
    *directories, name = path.split("/")

    return (*((1, directory) for directory in directories), (0, name))


def _precedence(
    route: Route, layouts: frozenset[tuple[str, ...]]
) -> tuple[object, ...]:
    """Return the router's sort key: static before dynamic, more parameters first, catch-alls late.

    Of static routes, an index and routes in groups come first, then the shortest: as seen from the nearest layout.
    """
    kind = ("html", "api", "not_found").index(route.kind)
    parameters: list[tuple[bool, bool]] = []
    for segment in route.segments:
        dynamic = parameter(segment)
        if dynamic is not None:
            parameters.append((segment == NOT_FOUND, dynamic.catch_all))
    if parameters:
        return kind, True, -len(parameters), tuple(parameters)

    layout_depth = 0
    for depth in range(len(route.segments)):
        if route.segments[:depth] in layouts:
            layout_depth = depth
    path = route.segments[layout_depth:]
    is_first = path == ("index",) or any(is_group(segment) for segment in path)

    return kind, False, not is_first, len("/".join(path))


@dataclass
class _Tree:
    """Collector of route files, resolving duplicates as the bundler does."""

    platform: str | None
    layouts: list[str] = field(default_factory=list[str])
    _layout_files: dict[str, RouteFile] = field(default_factory=dict[str, RouteFile])
    problems: list[RouteProblem] = field(default_factory=list[RouteProblem])
    _route_files: dict[tuple[str, str], dict[str | None, RouteFile]] = field(
        default_factory=dict[tuple[str, str], dict[str | None, RouteFile]]
    )
    """The files of each kind and name, by platform."""

    def add(self, file: RouteFile) -> None:
        """Add a file, of a layout or of a route for each combination of its groups."""
        if file.problem:
            self.problems.append(RouteProblem(file.path, file.problem))
        elif file.kind == "layout":
            self._add_layout(file)
        else:
            self._add_route(file)

    def _add_layout(self, file: RouteFile) -> None:
        self.layouts.append(file.name)
        best = self._layout_files.get(file.name)
        if best is None or self._level(file) > self._level(best):
            self._layout_files[file.name] = file

    def _add_route(self, file: RouteFile) -> None:
        kind = "html" if file.kind == "not_found" else file.kind
        for name in spread(file.name):
            files = self._route_files.setdefault((kind, name), {})
            first = files.setdefault(file.platform, file)
            if first is not file:
                problem = (
                    f"is the same route as {first.path}: remove or rename one of them"
                )
                self.problems.append(RouteProblem(file.path, problem))

    def _level(self, file: RouteFile) -> int:
        """Return how well a file fits the platform; the highest value wins, negative ones are unused."""
        if file.platform is None:
            return 0
        if file.platform == self.platform:
            return 2
        if file.platform == "native" and self.platform in ("android", "ios"):
            return 1

        return -1

    def navigators(self) -> Iterator[Route]:
        """Yield the layouts below the root, which no URL names."""
        for name, file in self._layout_files.items():
            for page in spread(name):
                segments = tuple(page.split("/")[:-1])
                if segments:
                    yield Route(f"./{file.path}", "layout", segments)

    def routes(self) -> Iterator[Route]:
        """Yield the routes; of routes with equal precedence, the deepest comes first."""
        api_paths: set[str] = set()
        for (_, name), files in reversed(self._route_files.items()):
            best = max(files.values(), key=self._level)
            if None not in files:
                problem = "needs a file of the same name without a platform"
                self.problems.append(RouteProblem(best.path, problem))
                continue

            # An API route counts once, however many combinations of groups it has.
            if best.kind == "api":
                if best.path in api_paths:
                    continue
                api_paths.add(best.path)

            yield Route(f"./{best.path}", best.kind, tuple(name.split("/")))


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of all files under a directory; links to directories are not followed and end in a slash."""
    for parent, names, files in os.walk(directory, onerror=_unread):
        # In place: that is how os.walk learns which directories to enter.
        names[:] = [name for name in names if name not in _SKIPPED]
        below = Path(parent).relative_to(directory)

        for name in files:
            yield (below / name).as_posix()
        for name in names:
            if Path(parent, name).is_symlink():
                yield f"{(below / name).as_posix()}/"


def _unread(error: OSError) -> None:
    raise ProjectError(
        f"cannot be read: {error.strerror or error}", path=Path(error.filename)
    ) from None

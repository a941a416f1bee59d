"""The routes of an app: read from its directory, in the order in which the router tries them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_device.app.routes import href as hrefs
from pytest_device.app.routes.match import Match, Matcher
from pytest_device.app.routes.names import (
    PLATFORMS,
    Parameter,
    RouteFile,
    is_group,
    parameter,
    route_file,
    spread,
    without_groups,
)
from pytest_device.app.routes.typescript import declaration
from pytest_device.errors import ConfigError, ProjectError

MAX_FILES: Final = 100_000
MAX_DEPTH: Final = 50
_SKIPPED: Final = frozenset(("node_modules", ".git"))


@dataclass(frozen=True, slots=True)
class Route:
    """A route: ``segments`` of its file's path, arrays of groups spread and a last ``index`` kept."""

    file: str
    """Relative to the directory of routes, with a leading ``./``."""
    kind: str
    """``html``, ``api`` or ``not_found``."""
    segments: tuple[str, ...]

    @property
    def page(self) -> str:
        return "/" + "/".join(self.segments)

    @property
    def visible(self) -> tuple[str, ...]:
        """The segments without a last ``index``."""
        return self.segments[:-1] if self.segments[-1] == "index" else self.segments

    @property
    def name(self) -> str:
        """The name that links use: without groups and ``/index``."""
        return "/" + "/".join(without_groups(self.visible))

    @property
    def grouped_name(self) -> str:
        """The name with its groups."""
        return "/" + "/".join(self.visible)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(found for segment in self.segments if (found := parameter(segment)))


@dataclass(frozen=True, slots=True)
class RouteProblem:
    """A file that cannot be a route."""

    file: str
    problem: str


@dataclass(frozen=True)
class Routes:
    """The routes of an app, in the order in which URLs are matched."""

    directory: Path
    all: tuple[Route, ...]
    layouts: tuple[str, ...] = ()
    problems: tuple[RouteProblem, ...] = ()
    vendor: str = "vendor"

    @classmethod
    def scan(cls, app_dir: str | Path, *, platform: str | None = None, vendor: str = "vendor") -> "Routes":
        """Read a directory of routes; without a platform, files of a platform only count with those of all.

        Raises ProjectError if it cannot be read, or has more than 100,000 files or 50 levels.
        """
        directory = Path(app_dir)
        return cls.of_files(_files(directory), platform=platform, directory=directory, vendor=vendor)

    @classmethod
    def of_files(
        cls,
        files: Iterable[str],
        *,
        platform: str | None = None,
        directory: Path = Path("app"),  # a value
        vendor: str = "vendor",
    ) -> "Routes":
        """Return the routes of files, whose paths are relative to the directory of routes."""
        if platform not in (None, *PLATFORMS):
            raise ConfigError(f"platform {platform!r} must be one of {', '.join(PLATFORMS)}")
        tree = _Tree(platform)
        for path in sorted(files, key=_in_tree):
            if found := route_file(path):
                tree.add(found)
        return cls(
            directory, tuple(sorted(tree.routes(), key=_precedence)), tuple(tree.layouts), tuple(tree.problems), vendor
        )

    def match(self, url: str) -> Match | None:
        """Return the route that a path or URL opens; None for one that no route matches."""
        return self._matcher.match(url)

    def href(
        self,
        route: str,
        params: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, object] | None = None,
    ) -> str:
        """Return the path of a route. Raises ConfigError for anything but a route with exactly its parameters."""
        __tracebackhide__ = True  # an error stands at the line of the test
        return hrefs.href(self._linkable, route, params or {}, query or {})

    def typescript_declaration(self) -> str:
        """Return the declaration that makes wrong links type errors."""
        return declaration(tuple(self.linkable.items()), self.vendor)

    @cached_property
    def linkable(self) -> dict[str, tuple[Parameter, ...]]:
        """The names of the routes that links may use, with their parameters; groups may be given or left out."""
        pages = sorted((one for one in self.all if one.kind == "html"), key=lambda one: _in_tree(one.page))
        return {name: one.parameters for one in pages for name in (one.grouped_name, one.name)}

    @cached_property
    def _linkable(self) -> hrefs.Linkable:
        return hrefs.Linkable(self.linkable, tuple(one.page for one in self.all if one.kind != "html"), self.layouts)

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher.of((one.kind, one.file, one.page, one.name, one.visible) for one in self.all)


def _in_tree(path: str) -> tuple[tuple[int, str], ...]:
    """Order files before the directories next to them."""
    *directories, name = path.split("/")
    return (*((1, one) for one in directories), (0, name))


def _precedence(route: Route) -> tuple[object, ...]:
    """Sort as the router does: static before dynamic, the more parameters the earlier, catch-alls late."""
    kind = ("html", "api", "not_found").index(route.kind)
    shape = tuple(
        (segment == "+not-found", found.catch_all) for segment in route.segments if (found := parameter(segment))
    )
    first = route.segments == ("index",) or any(map(is_group, route.segments))
    static = () if shape else (not first, len(route.page))
    return kind, bool(shape), -len(shape), shape, static


@dataclass
class _Tree:
    """Collects files as routes; equal ones are settled as the bundler does."""

    platform: str | None
    layouts: list[str] = field(default_factory=list[str])
    problems: list[RouteProblem] = field(default_factory=list[RouteProblem])
    _found: dict[tuple[str, str], dict[str | None, RouteFile]] = field(
        default_factory=dict[tuple[str, str], dict[str | None, RouteFile]]
    )

    def add(self, found: RouteFile) -> None:
        if found.problem:
            self.problems.append(RouteProblem(found.path, found.problem))
        elif found.kind == "layout":
            self.layouts.append(found.name)
        elif found.kind != "ignored":
            self._add_route(found)

    def _add_route(self, found: RouteFile) -> None:
        kind = "html" if found.kind == "not_found" else found.kind
        for name in spread(found.name):
            files = self._found.setdefault((kind, name), {})
            if (first := files.setdefault(found.platform, found)) is not found:
                problem = f"is the same route as {first.path}: remove or rename one of them"
                self.problems.append(RouteProblem(found.path, problem))

    def _level(self, found: RouteFile) -> int:
        """Return how well a file fits the platform: the highest wins, those below 0 are not used."""
        if found.platform is None:
            return 0
        if found.platform == self.platform:
            return 2
        return 1 if found.platform == "native" and self.platform in ("android", "ios") else -1

    def routes(self) -> Iterator[Route]:
        """Yield the routes, equal ones in the order in which they are tried: the deepest first."""
        apis: set[str] = set()
        for (_, name), files in reversed(self._found.items()):
            best = max(files.values(), key=self._level)
            if None not in files:
                self.problems.append(RouteProblem(best.path, "needs a file of the same name without a platform"))
            elif best.kind != "api" or best.path not in apis:
                apis |= {best.path} if best.kind == "api" else set()
                yield Route(f"./{best.path}", best.kind, tuple(name.split("/")))


def _files(directory: Path) -> Iterator[str]:
    """Yield the paths of all files below a directory; links to directories are not followed, and end in a slash."""
    pending, count = [("", 0)], 0
    while pending:
        below, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ProjectError(f"has more than {MAX_DEPTH} directories within each other", path=directory / below)
        for entry in _entries(directory / below):
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending += [(f"{path}/", depth + 1)] if entry.name not in _SKIPPED else []
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
        raise ProjectError(f"cannot be read: {error.strerror or error}", path=directory) from None

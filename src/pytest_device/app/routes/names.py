"""Routes and the naming conventions of their files: segments, groups, parameters, platforms and special files."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

PLATFORMS: Final = ("android", "ios", "native", "web")
NOT_FOUND: Final = "+not-found"
LAYOUT: Final = "_layout"
NATIVE_INTENT: Final = "+native-intent"
"""A file whose code rewrites the links that open the app."""

_EXTENSION: Final = re.compile(r"\.[jt]sx?$")
_ROOT_FILES: Final = ("+html", NATIVE_INTENT, "+middleware")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, ``[name]`` or, matching any number of segments, ``[...name]``."""

    name: str
    catch_all: bool = False


@dataclass(frozen=True, slots=True)
class RouteFile:
    """A file in the routes directory; ``name`` is its path without extensions, platform and ``+api``."""

    path: str
    name: str
    kind: str
    """One of ``html``, ``api``, ``not_found`` and ``layout``."""
    platform: str | None
    problem: str = ""


def route_file(path: str) -> RouteFile | None:
    """Classify a file; return None if it is not the source of a route or layout."""
    # The mark of a link to a directory, see `Routes.scan`.
    if path.endswith("/"):
        return RouteFile(
            path[:-1],
            path,
            "html",
            None,
            "links to directories are not followed: move it here",
        )
    if not _EXTENSION.search(path):
        return None

    bare = _EXTENSION.sub("", path)
    is_api = bare.endswith("+api")
    name, platform = _without_platform(bare.removesuffix("+api"))
    if name in _ROOT_FILES and not is_api:
        return None

    last = name.rpartition("/")[2]
    if is_api:
        kind = "api"
    elif last == LAYOUT:
        kind = "layout"
    elif last == NOT_FOUND:
        kind = "not_found"
    else:
        kind = "html"

    return RouteFile(path, name, kind, platform, _problem(name, kind, platform))


def _without_platform(name: str) -> tuple[str, str | None]:
    bare, _, ending = name.rpartition(".")
    if ending in PLATFORMS:
        return bare, ending

    return name, None


def _problem(name: str, kind: str, platform: str | None) -> str:
    last = name.rpartition("/")[2]
    if not name.isprintable():
        return "a URL cannot hold its name: use printable characters in UTF-8"
    if kind == "api":
        return (
            "an API route has no platform: remove it from the name" if platform else ""
        )
    if last.startswith("(") and last.endswith(")"):
        return "a file cannot be a group: move it into a directory of this name"
    if kind == "html" and last.startswith("+"):
        return (
            f"only {NOT_FOUND} and API routes have a plus sign: rename it to {last[1:]}"
        )
    return ""


def parameter(segment: str) -> Parameter | None:
    """Parse a segment as a parameter; return None for other segments.

    >>> parameter("[...rest]")
    Parameter(name='rest', catch_all=True)
    """
    # The router matches it as a catch-all of this name.
    if segment == NOT_FOUND:
        return Parameter("not-found", catch_all=True)
    if not segment.startswith("[") or not segment.endswith("]"):
        return None

    name = segment[1:-1]
    if name in ("", "...") or "[" in name or "]" in name:
        return None

    return Parameter(name.removeprefix("..."), name.startswith("..."))


def unique(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Leave out repeated names, which a type or a function can't have; `check` reports them."""
    by_name = {parameter.name: parameter for parameter in parameters}

    return tuple(by_name.values())


def is_group(segment: str) -> bool:
    """Return whether a segment groups files without being a part of their paths."""
    return segment.startswith("(") and segment.endswith(")") and segment != "()"


def alternatives(segment: str) -> list[str]:
    """Split an array of groups such as ``(a,b)`` into segments; return other segments unchanged.

    >>> alternatives("(home,search)"), alternatives("profile")
    (['(home)', '(search)'], ['profile'])
    """
    if not is_group(segment) or "," not in segment:
        return [segment]

    names = [name.strip() for name in segment[1:-1].split(",")]

    return [f"({name})" for name in names if name] or [segment]


def spread(name: str) -> Iterator[str]:
    """Expand arrays of groups, and yield a name for each combination.

    >>> list(spread("(home,search)/user"))
    ['(home)/user', '(search)/user']
    """
    choices = [alternatives(segment) for segment in name.split("/")]
    for segments in itertools.product(*choices):
        yield "/".join(segments)


@dataclass(frozen=True, slots=True)
class Route:
    """A route; ``segments`` is the file's path with arrays of groups expanded, including a trailing ``index``."""

    file: str
    """Path relative to the routes directory, with a leading ``./``."""
    kind: str
    """One of ``html``, ``api`` and ``not_found``."""
    segments: tuple[str, ...]

    @property
    def page(self) -> str:
        return "/" + "/".join(self.segments)

    @property
    def visible(self) -> tuple[str, ...]:
        """Segments without a trailing ``index``."""
        if self.segments[-1] == "index":
            return self.segments[:-1]

        return self.segments

    @property
    def name(self) -> str:
        """Name for links, without groups and ``/index``."""
        visible = [segment for segment in self.visible if not is_group(segment)]

        return "/" + "/".join(visible)

    @property
    def grouped_name(self) -> str:
        """Name for links, including groups."""
        return "/" + "/".join(self.visible)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        parameters = [parameter(segment) for segment in self.segments]

        return tuple(item for item in parameters if item is not None)

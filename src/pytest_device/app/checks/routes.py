"""Checks of the routes, and of the entries that their types need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_device.app.checks.finding import Finding, failed
from pytest_device.app.document import Document, at
from pytest_device.app.files import read_text
from pytest_device.app.project import Project

TSCONFIG: Final = "tsconfig.json"


def declaration_name(project: Project) -> str:
    """Return the name of the generated declaration, which is also what git ignores and TypeScript includes."""
    return f"{project.vendor.word}-env.d.ts"


def includes(project: Project) -> tuple[str, str]:
    """Return the entries that the TypeScript configuration has to include."""
    return f".{project.vendor.word}/types/**/*.ts", declaration_name(project)


def check_routes(project: Project) -> Iterator[Finding]:
    """Yield the files that are no routes, and what keeps the types of routes from working."""
    directory = project.app_directory
    if directory is None:
        return
    for problem in project.routes.problems:
        yield failed("routes-file", directory / problem.file, problem.problem, "rename or move the file")
    for route in project.routes.all:
        names = [one.name for one in route.parameters]
        if len(set(names)) < len(names):
            yield failed("routes-parameter", directory / route.file, route.page, "rename one of the parameters")
    if at(project.config, "experiments", "typedRoutes") is True:
        yield from _typed(project)


def _typed(project: Project) -> Iterator[Finding]:
    name, ignore = declaration_name(project), project.root / ".gitignore"
    if name not in _lines(ignore):
        yield failed("typed-routes-ignored", ignore, name, f"add the line {name}")
    path = project.root / TSCONFIG
    try:
        document = Document.read(path)
    except FileNotFoundError:
        yield failed("typed-routes-included", path, "no file", f"add it with include: {list(includes(project))}")
        return
    include = at(document.value, "include")
    for entry in includes(project):
        if not isinstance(include, list) or entry not in include:
            yield failed("typed-routes-included", path, entry, f"add {entry!r} to include", document.place("include"))


def _lines(path: Path) -> set[str]:
    try:
        return {line.strip().removeprefix("/") for line in read_text(path).splitlines()}
    except FileNotFoundError:
        return set()

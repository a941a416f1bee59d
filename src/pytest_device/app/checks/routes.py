"""Checks of the routes, and of the entries that their types need."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_device.app.checks.finding import Finding, failed
from pytest_device.app.document import Document, at
from pytest_device.app.files import read_text
from pytest_device.app.project import Project

TSCONFIG: Final = "tsconfig.json"


def check_routes(project: Project, declaration: str | None, include: Sequence[str] | None) -> Iterator[Finding]:
    """Yield the files that are no routes, and what keeps the types of routes from working.

    ``declaration`` is the name of the generated declaration, ``include`` what the TypeScript configuration includes.
    """
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
        name = declaration or f"{project.vendor.word}-env.d.ts"
        yield from _typed(project, name, include or (f".{project.vendor.word}/types/**/*.ts", name))


def _typed(project: Project, name: str, include: Sequence[str]) -> Iterator[Finding]:
    ignore = project.root / ".gitignore"
    if name not in _lines(ignore):
        yield failed("typed-routes-ignored", ignore, name, f"add the line {name}")
    path = project.root / TSCONFIG
    try:
        document = Document.read(path)
    except FileNotFoundError:
        yield failed("typed-routes-included", path, "no file", f"add it with include: {list(include)}")
        return
    included = at(document.value, "include")
    for entry in include:
        if not isinstance(included, list) or entry not in included:
            yield failed("typed-routes-included", path, entry, f"add {entry!r} to include", document.place("include"))


def _lines(path: Path) -> set[str]:
    try:
        return {line.strip().removeprefix("/") for line in read_text(path).splitlines()}
    except FileNotFoundError:
        return set()

"""Checks of the routes, and of the configuration entries for typed routes."""

from collections.abc import Iterator, Sequence

from pytest_device.app.checks.finding import Finding, failed
from pytest_device.app.document import at
from pytest_device.app.project import Project
from pytest_device.app.routes.entries import IGNORE, TSCONFIG, default_include, is_ignored, lacking, tsconfig


def check_routes(project: Project, declaration: str | None, include: Sequence[str] | None) -> Iterator[Finding]:
    """Yield findings about invalid route files and about missing entries for typed routes.

    ``declaration`` is the name of the generated declaration, ``include`` the entries required in ``tsconfig.json``.
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
        yield from _typed(project, name, include or default_include(project.vendor.word, name))


def _typed(project: Project, name: str, include: Sequence[str]) -> Iterator[Finding]:
    fix = f"run pytest-device app routes --typescript {name}"
    if not is_ignored(project.root, name):
        yield failed("typed-routes-ignored", project.root / IGNORE, name, fix)
    document = tsconfig(project.root)
    place = document.place("include") if document else None
    for entry in lacking(document, include):
        yield failed("typed-routes-included", project.root / TSCONFIG, entry, fix, place)

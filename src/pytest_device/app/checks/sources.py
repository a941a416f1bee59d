"""Checks of the sources: environment variable reads, styles, secrets that would ship with the app, and routes."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_device.app.bundler import css_module_name
from pytest_device.app.checks.finding import Finding, failed, in_config, project_finding
from pytest_device.app.document import Lines, Position, at
from pytest_device.app.files import read_text
from pytest_device.app.inlining import INSTALL, can_parse, inlined_public
from pytest_device.app.project import Project
from pytest_device.app.routes.entries import (
    IGNORE,
    TSCONFIG,
    default_include,
    is_ignored,
    lacking,
    tsconfig,
)
from pytest_device.app.secret_patterns import SECRETS, is_secret, secret_trails
from pytest_device.errors import ConfigError, ProjectError

_SKIPPED: Final = frozenset(
    ("node_modules", "ios", "android", "dist", "build", "coverage")
)
_SCRIPT: Final = re.compile(r"\.[cm]?[jt]sx?$")
_IN_NODE: Final = re.compile(
    r"^(?:scripts|tools|plugins|tests?|e2e)/|(?:^|/)__tests__/|\.(?:config|setup|test|spec)\."
)
"""Sources that run in Node.js, where environment variables are read at run time, as do files in the project root."""
_STYLES: Final = (".css", ".scss", ".sass")
_SASS_IMPORT: Final = re.compile(r"^[ \t]*+@(?:import|use|forward)\b", re.MULTILINE)


def check_sources(project: Project) -> Iterator[Finding]:
    """Yield findings about the files that the bundler reads."""
    yield from _without_parser(project)

    unread: list[Finding] = []
    for path in _files(project.root, unread):
        is_script = bool(_SCRIPT.search(path.name))
        if not is_script and path.suffix not in _STYLES:
            continue

        try:
            text = read_text(path)
        except FileNotFoundError:
            # Deleted in the meantime.
            continue
        except ProjectError as error:
            unread.append(
                _unread(path, error.reason, Position(error.line, error.column))
            )
            continue

        if is_script:
            yield from _script(project, path, text)
        else:
            yield from _style(project, path, text)
    yield from unread

    path = project.root / "postcss.config.js"
    if path.exists():
        fix = "write it as postcss.config.json, and start the bundler once with --clear"
        yield failed("bundler-postcss-config", path, "", fix)


def _without_parser(project: Project) -> Iterator[Finding]:
    """Yield the rules that are skipped without the parser for sources."""
    if not can_parse():
        for rule in ("env-not-inlined", "env-undefined"):
            yield project_finding(rule, project, "skipped", INSTALL)


def check_secrets(project: Project) -> Iterator[Finding]:
    """Yield findings about secrets in values that ship with the app."""
    for trail in secret_trails(project.config.get("extra"), ("extra",)):
        fix = "keep it on a server: whatever is in the app can be read"
        yield in_config(project, "secret-in-config", trail, "contains a secret", fix)

    prefix = project.vendor.public_prefix
    for name, value in project.env.from_files().items():
        if not value or not name.startswith(prefix):
            continue
        if is_secret(name.removeprefix(prefix), value):
            yield failed(
                "secret-in-public-variable",
                project.root / ".env",
                f"{name} contains a secret",
                f"remove {prefix} from its name, or keep it on a server",
            )


def _files(root: Path, unread: list[Finding]) -> Iterator[Path]:
    """Yield the project's own files, without following links to directories."""

    def skipped(error: OSError) -> None:
        unread.append(
            _unread(Path(error.filename), f"cannot be read: {error.strerror}")
        )

    for directory, names, files in os.walk(root, onerror=skipped):
        # In place: that is how os.walk learns which directories to enter, and in which order.
        names[:] = sorted(
            name for name in names if name not in _SKIPPED and not name.startswith(".")
        )
        for name in sorted(files):
            yield Path(directory, name)


def _unread(path: Path, problem: str, position: Position | None = None) -> Finding:
    return failed(
        "source-unreadable",
        path,
        problem,
        "check it in another way, or move it out of the project",
        position,
    )


def _script(project: Project, path: Path, text: str) -> Iterator[Finding]:
    lines = Lines(text)
    for pattern in SECRETS:
        for match in pattern.finditer(text):
            fix = "keep it on a server, and read it there"
            position = lines.position(match.start())
            yield failed("secret-in-source", path, "a secret", fix, position)

    relative = path.relative_to(project.root).as_posix()
    runs_in_node = path.parent == project.root or _IN_NODE.search(relative)
    if can_parse() and not runs_in_node:
        yield from _reads(project, path, text)


def _reads(project: Project, path: Path, text: str) -> Iterator[Finding]:
    server = "+api." in path.name
    try:
        reads = inlined_public(
            text, project.env.values, server=server, vendor=project.vendor
        )
    except ConfigError as error:
        yield _unread(path, str(error))
        return

    for read in reads:
        position = Position(read.line, read.column)
        # A computed name may be that of a public variable.
        is_public = read.name.startswith(project.vendor.public_prefix)
        may_be_public = is_public or not read.name
        if read.kind == "kept" and may_be_public and not server:
            fix = f"write process.env.{read.name or 'NAME'}"
            yield failed("env-not-inlined", path, read.expression, fix, position)
        elif read.kind == "undefined":
            yield failed(
                "env-undefined",
                path,
                read.name,
                "set it in an environment file",
                position,
            )


def _style(project: Project, path: Path, text: str) -> Iterator[Finding]:
    module = css_module_name(path.name)
    if module and re.search(r"\.(ios|android|native|web)\.module\.", path.name):
        base, _, platform = module.base.rpartition(".")
        fix = f"rename it to {base}.module.{platform}{path.suffix}"
        yield failed("bundler-css-order", path, path.name, fix)

    if path.suffix == ".css":
        return

    if not project.package.mentions("sass"):
        yield failed("bundler-sass-missing", path, path.name, "install sass")
    lines = Lines(text)
    for match in _SASS_IMPORT.finditer(text):
        position = lines.position(match.end())
        fix = "import it in a script"
        yield failed("bundler-sass-import", path, "", fix, position)


def check_routes(
    project: Project, declaration: str | None, include: Sequence[str] | None
) -> Iterator[Finding]:
    """Yield findings about invalid route files and about missing entries for typed routes.

    ``declaration`` is the name of the generated declaration, ``include`` the entries required in ``tsconfig.json``.
    """
    directory = project.app_directory
    if directory is None or not project.package.uses("router"):
        return

    for problem in project.routes.problems:
        yield failed(
            "routes-file",
            directory / problem.file,
            problem.problem,
            "rename or move the file",
        )

    for route in project.routes.all:
        names = [parameter.name for parameter in route.parameters]
        if len(set(names)) < len(names):
            yield failed(
                "routes-parameter",
                directory / route.file,
                route.page,
                "rename one of the parameters",
            )

    if at(project.config, "experiments", "typedRoutes") is True:
        word = project.vendor.word
        name = declaration or f"{word}-env.d.ts"
        entries = include or default_include(word, name)
        yield from _typed_routes(project, name, entries)


def _typed_routes(
    project: Project, name: str, include: Sequence[str]
) -> Iterator[Finding]:
    document = tsconfig(project.root)
    # Only a project in TypeScript gets a declaration.
    if document is None:
        return

    fix = f"run pytest-device app routes --typescript {name}"
    if not is_ignored(project.root, name):
        yield failed("typed-routes-ignored", project.root / IGNORE, name, fix)

    position = document.position("include")
    for entry in lacking(document, include):
        yield failed(
            "typed-routes-included", project.root / TSCONFIG, entry, fix, position
        )

"""``pytest-device app routes``: list routes, or generate typed links."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_device.cli.app.formats import shown_path
from pytest_device.cli.app.options import add_include, add_project, project_of, statuses
from pytest_device.cli.command import Command, add_json
from pytest_device.errors import ConfigError
from pytest_device.platforms.places import path_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_device.app import Project


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="write a Python module of typed links",
    )
    parser.add_argument(
        "--typescript",
        type=Path,
        metavar="FILE",
        help="write the TypeScript declaration, and add it to .gitignore and to the include list of tsconfig.json",
    )
    add_include(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing, and fail if a file is stale",
    )


def _run(parsed: argparse.Namespace) -> int:
    project = project_of(parsed, needs_config=False)
    contents = dict(_contents(project, parsed))
    if not contents:
        if parsed.check:
            raise ConfigError("--check needs --write or --typescript")
        _list(project, as_json=parsed.json)
        return 0

    stale = [path for path, content in contents.items() if _read(path) != content]
    if parsed.check:
        for path in stale:
            print(
                f"{shown_path(path)} is stale: run the command without --check",
                file=sys.stderr,
            )
        return int(bool(stale))

    for path, content in contents.items():
        if path in stale:
            _write(path, content)
            print(f"wrote {shown_path(path)}")
        else:
            print(f"unchanged: {shown_path(path)}")
    return 0


def _contents(
    project: "Project", parsed: argparse.Namespace
) -> "Iterator[tuple[Path, str]]":
    """Yield the files to write with their content, including the entries that the declaration needs."""
    from pytest_device.app.routes.declarations import python_module
    from pytest_device.app.routes.entries import completed, default_include

    app = project.root.absolute()
    if parsed.write:
        path = parsed.write
        root = path_from(path.absolute().parent, app).as_posix()
        yield path, python_module(project.routes.linkable, root, project.vendor)

    if parsed.typescript:
        path = parsed.typescript
        yield path, project.routes.typescript_declaration()

        inside = path_from(app, path.absolute())
        # Files outside the project need no entries.
        if not inside.is_absolute() and inside.parts[0] != "..":
            name = inside.as_posix()
            include = parsed.include or default_include(project.vendor.word, name)
            yield from completed(project.root, name, include)


def _read(path: Path) -> str | None:
    from pytest_device.regular_files import open_regular

    try:
        with open_regular(path) as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}"
        ) from None


def _list(project: "Project", *, as_json: bool) -> None:
    routes = project.routes.all
    if not as_json:
        for route in routes:
            print(f"{route.kind:9} {route.name}  {route.file}")
        return

    listed = [
        {
            "kind": route.kind,
            "page": route.page,
            "route": route.name,
            "file": route.file,
        }
        for route in routes
    ]
    print(json.dumps({"routes": listed}))


ROUTES: Final = Command(
    name="routes",
    summary="list the routes, or write them as typed links",
    description="List the routes of an app, or write a module that lets mypy and pyright refuse wrong links.",
    examples={
        "app routes": "the routes in the order in which they are tried",
        "app routes ../app --write tests/app_routes.py": "write the typed links",
        "app routes ../app --write tests/app_routes.py --check": "fail in CI if they are stale",
    },
    statuses=statuses("a file is stale"),
    add_options=_add_options,
    run=_run,
)

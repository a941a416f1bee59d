"""``pytest-device app routes``: the routes of an app, as a list and as types."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_device.cli.app.options import add_project, project_of, statuses
from pytest_device.cli.command import Command, add_json
from pytest_device.errors import ConfigError

if TYPE_CHECKING:
    from pytest_device.app import Project


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write a Python module of typed links")
    parser.add_argument("--typescript", type=Path, metavar="FILE", help="write the TypeScript declaration")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file is stale")


def _run(parsed: argparse.Namespace) -> int:
    project = project_of(parsed)
    wanted = {
        path: _content(project, path, typed=path == parsed.write) for path in (parsed.write, parsed.typescript) if path
    }
    if parsed.check and not wanted:
        raise ConfigError("--check needs --write or --typescript")
    if parsed.check:
        return _check(wanted)
    for path, content in wanted.items():
        _write(path, content)
    if not wanted:
        _list(project, as_json=parsed.json)
    return 0


def _content(project: "Project", path: Path, *, typed: bool) -> str:
    from pytest_device.app.routes.python import python_module

    if not typed:
        return project.routes.typescript_declaration()
    root = Path(os.path.relpath(project.root, path.absolute().parent)).as_posix()
    return python_module(project.routes.linkable, root, project.vendor.word)


def _check(wanted: dict[Path, str]) -> int:
    stale = [path for path, content in wanted.items() if _read(path) != content]
    for path in stale:
        print(f"{path} is stale: run the command without --check", file=sys.stderr)
    return int(bool(stale))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from None
    print(f"wrote {path}")


def _list(project: "Project", *, as_json: bool) -> None:
    if as_json:
        listed = [
            {"kind": one.kind, "page": one.page, "route": one.name, "file": one.file} for one in project.routes.all
        ]
        print(json.dumps({"routes": listed}))
        return
    for one in project.routes.all:
        print(f"{one.kind:9} {one.name}  {one.file}")


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

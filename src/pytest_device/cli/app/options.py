"""Options shared by the ``pytest-device app`` commands: the project and how to load it."""

import argparse
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pytest_device.app.project import Dynamic, Project


def statuses(failed: str = "") -> dict[int, str]:
    """Return the exit statuses of a command, including 1 if ``failed`` describes it."""
    return {
        0: "success",
        **({1: failed} if failed else {}),
        2: "usage error, or a project that cannot be read",
    }


def add_project(parser: argparse.ArgumentParser, *, option: str = "") -> None:
    """Add the options for loading a project; ``option`` replaces the positional argument for its directory."""
    what = "directory of the project (default: the current one)"
    if option:
        parser.add_argument(option, dest="path", metavar="PATH", default=".", help=what)
    else:
        parser.add_argument("path", nargs="?", default=".", help=what)
    parser.add_argument(
        "--mode",
        help="mode of the environment files (default: NODE_ENV, else development)",
    )
    parser.add_argument(
        "--vendor",
        default="vendor",
        help="vendor word in the project's files (default: vendor)",
    )
    parser.add_argument(
        "--dynamic",
        choices=("auto", "never", "node"),
        default="auto",
        help="how to evaluate app.config.js and .ts, which run with your rights: with Node's permission flags, "
        "which are no protection (auto); without them (node); not at all, for a project that you don't trust (never)",
    )


def add_include(parser: argparse.ArgumentParser) -> None:
    """Add the option for the ``tsconfig.json`` entries of the generated declaration."""
    parser.add_argument(
        "--include",
        action="append",
        metavar="ENTRY",
        help="entry for include in tsconfig.json; repeat for more (default: .vendor/types/**/*.ts and the declaration)",
    )


def project_of(parsed: argparse.Namespace) -> "Project":
    """Load the project, printing its notes and warnings to standard error. Raises ConfigError."""
    from pytest_device.app import load_project

    how = cast("Dynamic", parsed.dynamic)
    project = load_project(
        parsed.path, mode=parsed.mode, vendor=parsed.vendor, dynamic=how
    )
    for line in (*project.notes, *project.warnings, *project.env.warnings):
        print(f"note: {line}", file=sys.stderr)
    return project

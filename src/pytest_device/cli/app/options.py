"""Options shared by the ``pytest-device app`` commands: the project and how to load it."""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_device.errors import ConfigError, ProjectError
from pytest_device.options import Option, Options
from pytest_device.spec import VENDOR

if TYPE_CHECKING:
    from pytest_device.app.project import Dynamic, Project
    from pytest_device.settings import Settings


def statuses(failed: str = "") -> dict[int, str]:
    """Return the exit statuses of a command, including 1 if ``failed`` describes it."""
    meanings = {0: "success"}
    if failed:
        meanings[1] = failed
    meanings[2] = "usage error, or a project that cannot be read"
    return meanings


def add_project(parser: argparse.ArgumentParser, *, option: str = "") -> None:
    """Add the options for loading a project; ``option`` replaces the positional argument for its directory."""
    root = Options.app_root
    text = f"directory of the project (default: {root.variable} or {root.ini}, else the current one)"
    if option:
        parser.add_argument(option, dest="path", metavar="PATH", help=text)
    else:
        parser.add_argument("path", nargs="?", help=text)

    parser.add_argument(
        "--mode",
        help="mode of the environment files (default: NODE_ENV, else development)",
    )
    parser.add_argument(
        "--vendor",
        metavar="WORD",
        help="vendor word in the project's files (default: "
        f"{Options.vendor.variable} or {Options.vendor.ini}, else {VENDOR})",
    )
    parser.add_argument(
        "--vendor-names",
        action="append",
        metavar="NAME=VALUE",
        help="a name that does not follow from the word; repeat for more (default: "
        f"{Options.vendor_names.variable} or {Options.vendor_names.ini})",
    )
    parser.add_argument(
        "--dynamic",
        choices=("auto", "never"),
        help="whether to evaluate app.config.js and .ts, which run with your rights: never for a project that you "
        "don't trust",
    )


def add_include(parser: argparse.ArgumentParser) -> None:
    """Add the option for the ``tsconfig.json`` entries of the generated declaration."""
    parser.add_argument(
        "--include",
        action="append",
        metavar="ENTRY",
        help="entry for include in tsconfig.json; repeat for more (default: .vendor/types/**/*.ts and the declaration)",
    )


def settings_of(parsed: argparse.Namespace) -> "Settings":
    """Return the settings of a run in this directory, with the options of the command before them.

    Raises ConfigError for an invalid value.
    """
    from pytest_device.cli.app.settings import app_settings
    from pytest_device.settings import Settings

    settings = app_settings()
    if settings is None:
        print(
            "note: pytest does not start here, so that its ini file and environment variables have no effect",
            file=sys.stderr,
        )

    texts: dict[Option[Any], str | None] = {
        Options.vendor: parsed.vendor,
        Options.vendor_names: parsed.vendor_names and ",".join(parsed.vendor_names),
        Options.app_dynamic: parsed.dynamic,
    }
    values = {
        option.word: _parsed(option, text)
        for option, text in texts.items()
        if text is not None
    }

    return (settings or Settings()).replace("vendor", **values)


def _parsed(option: Option[Any], text: str) -> object:
    try:
        return option.parse(text)
    except ValueError as error:
        raise ConfigError(f"{option.word} {text!r} must be {error}") from None


def project_of(parsed: argparse.Namespace, *, needs_config: bool = True) -> "Project":
    """Load the project, printing its notes and warnings to standard error. Raises ConfigError.

    Unless the command ``needs_config``, a dynamic one that cannot be read is a note.
    """
    from pytest_device.app import load_project
    from pytest_device.cli.app.node import ensure_node
    from pytest_device.plugin.project import vendor_profile

    settings = settings_of(parsed)
    dynamic = cast("Dynamic", settings.app_dynamic)
    root = Path(parsed.path or settings.app_root or ".")
    # Nothing is installed for a project that is not trusted.
    if dynamic != "never":
        ensure_node(root)

    load = partial(
        load_project, root, mode=parsed.mode, vendor=vendor_profile(settings)
    )
    try:
        project = load(dynamic=dynamic)
    except ProjectError as error:
        if needs_config:
            raise
        # Raises again unless the dynamic configuration was the cause.
        project = load(dynamic="never")
        note = f"{error}: the values of the app config are missing"
        project = replace(project, unread=error, notes=(note,))

    for line in (*project.notes, *project.warnings, *project.env.warnings):
        print(f"note: {line}", file=sys.stderr)

    return project

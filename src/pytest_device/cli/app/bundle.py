"""``pytest-device app bundle``: search a build for secrets, public values and debug IDs."""

import argparse
from pathlib import Path
from typing import Final

from pytest_device.cli.app.formats import add_format, report
from pytest_device.cli.app.options import add_project, project_of, statuses
from pytest_device.cli.command import Command


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="PATH", help="bundle, archive or directory of a build")
    add_project(parser, option="--root")
    add_format(parser)
    parser.add_argument(
        "--allow", action="append", default=[], metavar="NAME", help="variable that may be in the build"
    )


def _run(parsed: argparse.Namespace) -> int:
    from pytest_device.app.bundle import inspect_bundle

    found = inspect_bundle(parsed.bundle, project_of(parsed), allowed=parsed.allow)
    facts = {"public": found.public, "addresses": found.addresses, "debug_ids": found.debug_ids}
    return report(found.findings, parsed.format, **facts, not_checked=found.unchecked, files=found.files)


BUNDLE: Final = Command(
    name="bundle",
    summary="search a build for secrets, public values and debug IDs",
    description="""\
Search a build for the values of the project's environment files: which public ones it carries, and any secret that
leaked into it. Values shorter than 8 characters are not searched for, but listed.""",
    examples={"app bundle dist --root ../app": "search the exported files of a project"},
    statuses=statuses("a secret in the build, or debug IDs that differ"),
    add_options=_add_options,
    run=_run,
)

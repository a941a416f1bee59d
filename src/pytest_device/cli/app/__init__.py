"""``pytest-device app``: inspect and check the app under test."""

import argparse
import sys
from typing import Final

from pytest_device.cli.app.bundle import BUNDLE
from pytest_device.cli.app.checks import CHECK
from pytest_device.cli.app.project import ENV, RUNTIME_VERSION, SHOW
from pytest_device.cli.app.routes import ROUTES
from pytest_device.cli.command import Command

COMMANDS: Final = (CHECK, SHOW, ENV, RUNTIME_VERSION, ROUTES, BUNDLE)
USAGE_ERROR: Final = 2


def _add_options(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands.add_parser)
    parser.set_defaults(help_of_app=parser.format_help)


def _run(parsed: argparse.Namespace) -> int:
    print(parsed.help_of_app(), file=sys.stderr)
    return USAGE_ERROR


APP: Final = Command(
    name="app",
    summary="read and check the app under test",
    description="Read and check the project of the app under test, before a device is paid for.",
    examples={one: text for command in COMMANDS for one, text in list(command.examples.items())[:1]},
    statuses={0: "success", 1: "findings that are errors", 2: "usage error, or a project that cannot be read"},
    add_options=_add_options,
    run=_run,
)

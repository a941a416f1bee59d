"""The command line, ``pytest-device``."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from pytest_device.cli.app import APP
from pytest_device.cli.command import USAGE_ERROR, Command, examples_of
from pytest_device.cli.doctor import DOCTOR
from pytest_device.cli.init import INIT
from pytest_device.cli.masked import masked
from pytest_device.cli.report import REPORT
from pytest_device.cli.serve import SERVE
from pytest_device.cli.sessions import SESSIONS, STOP
from pytest_device.cli.trace import TRACE
from pytest_device.cli.updates import UPDATES
from pytest_device.errors import ConfigError
from pytest_device.options import TOKEN_VARIABLE

COMMANDS: Final[tuple[Command, ...]] = (
    INIT,
    DOCTOR,
    SERVE,
    SESSIONS,
    STOP,
    APP,
    UPDATES,
    TRACE,
    REPORT,
)
INTERRUPTED: Final = 130
"""The shells' exit status for a program ended by SIGINT."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 2 for a usage error, which is printed to standard error."""
    # Around all of it: argparse quotes the arguments that it refuses.
    with masked(os.environ.get(TOKEN_VARIABLE, "")):
        parser = make_parser()
        parsed = parser.parse_args(arguments)
        if parsed.run is None:
            parser.print_help(sys.stderr)
            return USAGE_ERROR

        try:
            return int(parsed.run(parsed))
        except ConfigError as error:
            print(f"pytest-device: {error}", file=sys.stderr)
            return USAGE_ERROR
        except KeyboardInterrupt:
            print("pytest-device: interrupted", file=sys.stderr)
            return INTERRUPTED
        # The interpreter would print the traceback without masking it.
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            raise SystemExit(1) from None


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pytest-device",
        description="Remote devices for pytest: check the setup, run a local service, manage leftover sessions.",
        epilog=f"{examples_of(*COMMANDS)}\n\n`pytest-device COMMAND --help` shows the options and exit statuses.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the version and exit"
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands.add_parser)

    return parser


class _Version(argparse.Action):
    """Prints the version, which is read only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"pytest-device {version('pytest-device')}")
        parser.exit()

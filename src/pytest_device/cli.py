"""The command line: ``pytest-device serve``."""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.settings import APP_ID, LOCAL_APP_ID, TOKEN_VARIABLE, URL

DEFAULT_PORT: Final = 8765
_USAGE_ERROR: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="pytest-device", description="Devices for pytest: the local service.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser)
    parsed = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.command
    try:
        return command(parsed)
    except ConfigError as error:
        print(f"pytest-device: {error}", file=sys.stderr)
        return _USAGE_ERROR


def _add_serve(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "serve",
        help="run the local service until Ctrl-C",
        description="Run the local service on this machine and tell how to point a suite at it.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on, default %(default)s")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port, 0 for a free one, default %(default)s")
    parser.add_argument("--app-id", default=LOCAL_APP_ID, help="the one project the service knows, default %(default)s")
    parser.add_argument("--state-dir", type=Path, help="where it remembers its sessions, default: the user's state directory")
    parser.set_defaults(command=_serve)


def _serve(parsed: argparse.Namespace) -> int:
    raise NotImplementedError

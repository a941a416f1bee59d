"""The command line: ``pytest-device serve``."""

import argparse
import os
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.option_table import APP_ID, POLL_INTERVAL_SECONDS, TOKEN_VARIABLE, URL
from pytest_device.settings import LOCAL_APP_ID, LOCAL_POLL_INTERVAL_SECONDS

DEFAULT_PORT: Final = 8765


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, or 2 with a line on standard error for what cannot work."""
    parser = argparse.ArgumentParser(prog="pytest-device", description="Devices for pytest.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser)
    parsed = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = parsed.command
    try:
        command(parsed)
    except ConfigError as error:
        print(f"pytest-device: {error}", file=sys.stderr)
        return 2
    return 0


def _add_serve(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "serve",
        help="run the local service until Ctrl-C",
        description="Run the local service on this machine and tell how to point a suite at it.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 for a free one (default: %(default)s)")
    parser.add_argument("--app-id", default=LOCAL_APP_ID, help="the project it knows (default: %(default)s)")
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=_state_directory(),
        help="where it remembers its sessions, one service at a time (default: %(default)s)",
    )
    parser.set_defaults(command=_serve)


def _serve(parsed: argparse.Namespace) -> None:
    try:
        from pytest_device.service.config import ServiceConfig, cache_directory
        from pytest_device.service.server import Progress, Ready, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"the local service needs {error.name}: pip install 'pytest-device[local]'") from error

    token = secrets.token_urlsafe(32)
    state_dir: Path = parsed.state_dir
    token_path = state_dir / "token"
    config = ServiceConfig(
        token=token,
        app_id=parsed.app_id,
        host=parsed.host,
        port=parsed.port,
        state_dir=state_dir,
        cache_dir=cache_directory(os.environ, Path.home()),
    )

    def announce(event: Progress | Ready) -> None:
        match event:
            case Progress(text):
                print(text, flush=True)
            case Ready(url, app_id):
                # Not before: until it is ready the directory may be another service's.
                _write_privately(token_path, token)
                at_the_end.callback(token_path.unlink, missing_ok=True)
                print(_how_to_use(url, app_id, token_path), flush=True)

    with ExitStack() as at_the_end:
        serve(config, announce)


def _how_to_use(url: str, app_id: str, token_path: Path) -> str:
    return f"""\
The local service answers at {url}. Ctrl-C ends it, and every session with it.
In another terminal:

    export {URL.variable}={url} {APP_ID.variable}={app_id}
    export {TOKEN_VARIABLE}="$(cat {shlex.quote(str(token_path))})"
    export {POLL_INTERVAL_SECONDS.variable}={LOCAL_POLL_INTERVAL_SECONDS}
    pytest
"""


def _write_privately(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(text)


def _state_directory() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "pytest-device"

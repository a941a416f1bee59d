"""The command line: ``pytest-device serve``, ``sessions``, ``stop``."""

import argparse
import json
import os
import secrets
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from uuid import UUID

from pytest_device.errors import ConfigError
from pytest_device.option_table import (
    APP_ID,
    POLL_INTERVAL_SECONDS,
    STATE_DIR,
    STOP_TIMEOUT_SECONDS,
    TOKEN_VARIABLE,
    URL,
)
from pytest_device.redact import Redactor
from pytest_device.settings import LOCAL_APP_ID, LOCAL_POLL_INTERVAL_SECONDS, default_state_dir

DEFAULT_PORT: Final = 8765
INTERRUPTED: Final = 130
"""The exit status that shells give to what SIGINT ended."""

_ONLY_HERE: Final = "sessions that other machines asked for are not known here: the service has no list"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status, 2 with a line on standard error for what cannot work."""
    parser = argparse.ArgumentParser(prog="pytest-device", description="Devices for pytest.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser)
    _add_sessions(commands.add_parser)
    _add_stop(commands.add_parser)
    parsed = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.command
    try:
        return command(parsed)
    except ConfigError as error:
        print(f"pytest-device: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pytest-device: interrupted", file=sys.stderr)
        return INTERRUPTED


def _add_serve(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "serve",
        help="run the local service until Ctrl-C",
        description="Run the local service on this machine and tell how to point a suite at it.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 for a free one (default: %(default)s)")
    parser.add_argument("--app-id", default=LOCAL_APP_ID, help="the project it knows (default: %(default)s)")
    _add_state_dir(parser, "where it remembers its sessions, one service at a time")
    parser.set_defaults(command=_serve)


def _serve(parsed: argparse.Namespace) -> int:
    try:
        from pytest_device.service.config import ServiceConfig, cache_directory
        from pytest_device.service.server import Progress, Ready, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"the local service needs {error.name}: pip install 'pytest-device[local]'") from error

    token = secrets.token_urlsafe(32)
    state_dir = _state_dir_of(parsed)
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
    return 0


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


def _add_sessions(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "sessions",
        help="list the sessions that this machine's runs have not proven stopped",
        description=f"List what the ledger of this machine knows, without asking a service; {_ONLY_HERE}.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    _add_state_dir(parser, "where the runs wrote their sessions down")
    parser.set_defaults(command=_sessions)


def _sessions(parsed: argparse.Namespace) -> int:
    from pytest_device.sessions.inventory import opened

    state_dir = _state_dir_of(parsed)
    try:
        with opened(state_dir) as found:
            sessions, damaged = found
    except OSError as error:
        raise _unusable(error) from None
    if parsed.json:
        print(json.dumps({"sessions": [one.to_json() for one in sessions], "damaged": damaged}))
        return int(bool(damaged))
    for one in sessions:
        print(*one.lines(), sep="\n")
    for path, reason in damaged.items():
        print(f"damaged: {path}: {reason}; it may stand for a session that is running")
    if not (sessions or damaged):
        print(f"no session is known in {state_dir}")
    return int(bool(damaged))


def _add_stop(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "stop",
        help="stop sessions that runs have left behind, or kept",
        description=f"Stop what the ledger of this machine knows and no live run owns; {_ONLY_HERE}. "
        f"The access token comes from {TOKEN_VARIABLE}. Exit status: 0 all proven stopped, 1 not all.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("ids", nargs="*", default=[], type=UUID, metavar="ID", help="stop these sessions only")
    which.add_argument("--all", action="store_true", help="stop those of live runs, too")
    parser.add_argument("--url", default=os.environ.get(URL.variable), help=f"{URL.help} (default: {URL.variable})")
    parser.add_argument(
        "--timeout-seconds",
        type=_seconds,
        default=os.environ.get(STOP_TIMEOUT_SECONDS.variable) or STOP_TIMEOUT_SECONDS.default,
        help="how long to go on trying what does not succeed at once (default: %(default)s)",
    )
    _add_state_dir(parser, "where the runs wrote their sessions down")
    parser.set_defaults(command=_stop)


def _stop(parsed: argparse.Namespace) -> int:
    from pytest_device.sessions.inventory import Choice, stop_known
    from pytest_device.sessions.network import service_at

    if not parsed.url:
        raise ConfigError(f"which service? Give --url or {URL.variable}; `pytest-device sessions` tells each session's")
    service = service_at(parsed.url, os.environ.get(TOKEN_VARIABLE, ""))
    state_dir, redacted = _state_dir_of(parsed), Redactor([service.token]).text
    choice = Choice(frozenset(map(str, parsed.ids)), with_live_runs=parsed.all)
    try:
        outcome = stop_known(state_dir, service, choice, parsed.timeout_seconds)
    except OSError as error:
        raise _unusable(error) from None
    done, problems = list(outcome.lines()), list(outcome.problems())
    for text in done:
        print(redacted(text))
    for text in problems:
        print(redacted(text), file=sys.stderr)
    if not choice.ids:
        print(f"that is all that {state_dir} knows" if done or problems else f"nothing to stop in {state_dir}")
        print(_ONLY_HERE)
    return int(bool(problems))


def _seconds(text: str) -> float:
    if not 0 < float(text) <= threading.TIMEOUT_MAX:
        raise ValueError(text)
    return float(text)


def _add_state_dir(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=os.environ.get(STATE_DIR.variable) or default_state_dir(os.environ),
        help=f"{what} (default: {STATE_DIR.variable}, else %(default)s)",
    )


def _state_dir_of(parsed: argparse.Namespace) -> Path:
    state_dir: Path | None = parsed.state_dir
    if state_dir is None:
        raise ConfigError("this user has no home directory: give --state-dir")
    return state_dir


def _unusable(error: OSError) -> ConfigError:
    return ConfigError(f"the ledger cannot be used: {error}")

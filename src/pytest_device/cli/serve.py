"""``pytest-device serve``: run the local service."""

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_device.cli.command import Command, add_json, add_state_dir, state_dir_of
from pytest_device.cli.masked import masked
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.options import TOKEN_VARIABLE, Option, Options
from pytest_device.platforms import SYSTEM
from pytest_device.redact import Redactor, is_loopback
from pytest_device.service.config import DEFAULT_MAX_SESSIONS
from pytest_device.settings import LOCAL_APP_ID, LOCAL_POLL_INTERVAL_SECONDS, as_given
from pytest_device.spec import STATES, Status

if TYPE_CHECKING:
    from pytest_device.service.lifecycle import Session

T = TypeVar("T")

DEFAULT_PORT: Final = 8765


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        type=_host,
        default="127.0.0.1",
        help="loopback address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="port to listen on, 0 for a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--app-id",
        metavar="UUID",
        default=LOCAL_APP_ID,
        help="ID of its project (default: %(default)s)",
    )
    parser.add_argument(
        "--builds-dir",
        type=_directory,
        metavar="DIR",
        default=os.environ.get(Options.builds_dir.variable) or None,
        help=f"directory of builds, looked up by build ID (default: {Options.builds_dir.variable})",
    )
    parser.add_argument(
        "--max-sessions",
        type=_count,
        default=DEFAULT_MAX_SESSIONS,
        metavar="NUMBER",
        help="maximum number of concurrent sessions; more are refused with 429 (default: %(default)s)",
    )
    parser.add_argument(
        "--real-only",
        action="store_true",
        help=f"use real emulators and simulators only, never a browser (default: {Options.local_real.variable})",
    )
    parser.add_argument(
        "--require-isolation",
        action="store_true",
        help="refuse sessions if other users of this machine could reach ports of their programs "
        f"(default: {Options.local_require_isolation.variable})",
    )
    parser.add_argument(
        "--selenium-manager",
        action="store_true",
        help="let Selenium Manager download the browser or the chromedriver that this machine lacks; no hash is checked "
        f"(default: {Options.local_selenium_manager.variable})",
    )

    for option in (Options.avd, Options.simulator, Options.appium_allow_insecure):
        parser.add_argument(
            f"--{option.word.replace('_', '-')}",
            metavar=option.metavar,
            default=os.environ.get(option.variable) or None,
            help=f"{option.help} (default: {option.variable})",
        )

    add_state_dir(parser, "directory for its state, used by one service at a time")
    add_json(parser)


def _is_on(option: Option[bool]) -> bool:
    """Return whether the environment turns a switch on. Raises ConfigError for another value than true or false."""
    text = os.environ.get(option.variable)
    if not text:
        return False

    try:
        return option.parse(text)
    except ValueError as error:
        raise ConfigError(
            f"{as_given(option.variable, text)} must be {error}"
        ) from None


def _argument(
    rule: str, convert: Callable[[str], T], is_valid: Callable[[T], object]
) -> Callable[[str], T]:
    """Return a type for argparse, whose errors have the rule."""

    def parsed(text: str) -> T:
        with suppress(ValueError):
            value = convert(text)
            if is_valid(value):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} {rule}")

    return parsed


_host = _argument(
    "must be a loopback address (127.0.0.1, ::1 or localhost): no client would send its token elsewhere unencrypted",
    str,
    is_loopback,
)
_port = _argument(
    "must be a whole number from 0 to 65535, 0 for a free port",
    int,
    range(65_536).__contains__,
)
_count = _argument(
    "must be a whole number from 1",
    lambda text: int(text) if text.isdecimal() else 0,
    bool,
)
_directory = _argument(
    "must be an existing directory", lambda text: Path(text).absolute(), Path.is_dir
)


def _run(parsed: argparse.Namespace) -> int:
    try:
        from pytest_device.programs import cache_directory
        from pytest_device.service.config import ServiceConfig
        from pytest_device.service.server import Changed, Progress, Ready, serve
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the local service needs {error.name}: pip install 'pytest-device[local]'"
        ) from error

    # A new one at each start: whoever read that of an earlier service has no access to this one.
    token = secrets.token_urlsafe(32)
    state_dir = state_dir_of(parsed)
    token_path = state_dir / "token"
    config = ServiceConfig(
        token=token,
        app_id=parsed.app_id,
        host=parsed.host,
        port=parsed.port,
        state_dir=state_dir,
        cache_dir=cache_directory(os.environ, Path.home()),
        builds_dir=parsed.builds_dir,
        max_sessions=parsed.max_sessions,
        real_only=parsed.real_only or _is_on(Options.local_real),
        require_isolation=parsed.require_isolation
        or _is_on(Options.local_require_isolation),
        selenium_manager=parsed.selenium_manager
        or _is_on(Options.local_selenium_manager),
        avd=parsed.avd,
        simulator=parsed.simulator,
        allow_insecure=Options.appium_allow_insecure.parse(
            parsed.appium_allow_insecure or ""
        ),
    )

    def announce(event: Progress | Ready | Changed) -> None:
        # With --json, standard output has nothing but the one line of JSON.
        stream = sys.stderr if parsed.json else sys.stdout
        match event:
            case Progress(text):
                print(text, flush=True, file=stream)
            case Changed(session):
                line = _line_of(session, time.strftime("%H:%M:%S"))
                # If nobody reads it any longer, the service still has to stop its sessions.
                with suppress(OSError):
                    print(line, flush=True, file=stream)
            case Ready(url, app_id):
                # Not earlier: until the service is ready, the directory may belong to another service.
                _write_privately(token_path, token)
                cleanup.callback(token_path.unlink, missing_ok=True)
                usage = _as_json if parsed.json else _how_to_use
                print(usage(url, app_id, token_path), flush=True)

    with ExitStack() as cleanup, masked(token):
        serve(config, announce)

    return 0


def _line_of(session: "Session", now: str) -> str:
    if session.status is Status.NEW:
        detail = f"{session.platform} {session.type}"
        if session.name:
            detail += f", {session.name}"
    else:
        detail = (session.reason or "").strip().partition("\n")[0]

    line = f"{now} session {session.id[:8]} {STATES[session.status]}"
    if detail:
        line += f": {detail}"

    # Names and reasons come from clients and programs.
    return escaped(Redactor().text(line)).replace("\n", " ")


def _as_json(url: str, app_id: str, token_path: Path) -> str:
    return json.dumps(
        {
            "url": url,
            "app_id": app_id,
            "token_path": str(token_path.absolute()),
            "state_dir": str(token_path.parent.absolute()),
        }
    )


def _how_to_use(url: str, app_id: str, token_path: Path) -> str:
    shell = SYSTEM.shell
    address = {Options.url.variable: url, Options.app_id.variable: app_id}
    interval = {
        Options.poll_interval_seconds.variable: str(LOCAL_POLL_INTERVAL_SECONDS)
    }

    return f"""\
The local service is running at {url}, where a page lists its sessions.
Press Ctrl-C to stop it and all of its sessions.
In another terminal:

    {shell.variables(address)}
    {shell.variable_from_file(TOKEN_VARIABLE, token_path)}
    {shell.variables(interval)}
    pytest
"""


def _write_privately(path: Path, text: str) -> None:
    """Write a file that only this user can read, from its creation on."""
    # A service that was killed has left its own.
    path.unlink(missing_ok=True)
    # Exclusively: an existing file would keep its mode, and a link would lead elsewhere.
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(text)


SERVE: Final = Command(
    name="serve",
    summary="run the local service until Ctrl-C",
    description="""\
Run the local service on this machine and print how to use it. The first start
installs the programs it needs. Each start creates a new access token in a file
that only you can read; it is never printed.""",
    examples={
        "serve": "then follow the printed instructions",
        "serve --port 0 --json": "print one line of JSON when it is ready",
    },
    statuses={
        0: f"stopped by {SYSTEM.signals_text}",
        2: "startup failed, or usage error",
    },
    add_options=_add_options,
    run=_run,
)

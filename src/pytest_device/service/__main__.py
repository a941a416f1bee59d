"""The service as a child process: reads its configuration from standard input, reports events on standard output.

The first line in is the configuration as JSON. Each line out is an event as JSON: ``progress`` with ``text``, then
``ready`` with ``url`` and ``app_id``, or ``error`` with ``text`` and exit status 1. The service stops its
sessions and exits when standard input is closed, or when the parent process exits.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.programs import cache_directory
from pytest_device.service.config import parse
from pytest_device.service.server import Changed, Progress, Ready, serve

PARENT_SECONDS: Final = 0.5
"""Seconds between checks for the parent: a process that it forked may keep standard input open after its death."""

_STDIN: Final = 0
_STDOUT: Final = 1


def main() -> int:
    """Run the service; return the exit status."""
    parent = os.getppid()
    try:
        config = parse(
            _first_line(), cache_dir=cache_directory(os.environ, Path.home())
        )
        serve(config, _announce, watch=lambda end: _watch(parent, end))
    except ConfigError as error:
        _print(event="error", text=str(error))
        return 1
    return 0


def _announce(event: Progress | Ready | Changed) -> None:
    match event:
        case Progress(text):
            _print(event="progress", text=text)
        case Ready(url, app_id):
            _print(event="ready", url=url, app_id=app_id)
        case Changed():
            pass  # the run polls its sessions itself


def _print(**event: str) -> None:
    # The parent has exited: the service stops as soon as it notices.
    with suppress(BrokenPipeError):
        os.write(_STDOUT, json.dumps(event).encode() + b"\n")


def _first_line() -> str:
    """Read without a buffer: its lock, held by the watching thread, would break the interpreter's shutdown."""
    line = b""
    while b"\n" not in line and (part := os.read(_STDIN, 65536)):
        line += part
    return line.partition(b"\n")[0].decode()


def _watch(parent: int, end: Callable[[], None]) -> None:
    """Call ``end`` once standard input is closed or the parent has exited."""

    def until_closed() -> None:
        while os.read(_STDIN, 65536):
            pass
        end()

    def until_orphaned() -> None:
        pause = threading.Event()
        # On Windows, the ID of a parent that has exited stays.
        while os.getppid() == parent and SYSTEM.exists(parent):
            pause.wait(PARENT_SECONDS)
        end()

    for wait in (until_closed, until_orphaned):
        threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())

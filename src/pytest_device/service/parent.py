"""The run that started this process: it writes one line, reads events, and this process ends with it."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pytest_device.platforms import SYSTEM

PARENT_SECONDS: Final = 0.5
"""Seconds between checks for the parent: a process that it forked may keep standard input open after its death."""

_STDIN: Final = 0
_STDOUT: Final = 1


def first_line() -> str:
    """Return the first line of standard input.

    Read without a buffer: its lock, held by the watching thread, would break the interpreter's shutdown.
    """
    received = b""
    while b"\n" not in received:
        part = os.read(_STDIN, 65536)
        if not part:
            break
        received += part
    return received.partition(b"\n")[0].decode()


def report(**event: str) -> None:
    """Write an event to standard output, as one line of JSON."""
    # Without a reader, the parent has exited: this process stops as soon as it notices.
    with suppress(BrokenPipeError):
        os.write(_STDOUT, json.dumps(event).encode() + b"\n")


def watch(parent: int, end: Callable[[], None]) -> None:
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

    # Daemons: neither may keep this process alive when the service has ended by itself.
    for wait in (until_closed, until_orphaned):
        threading.Thread(target=wait, daemon=True).start()

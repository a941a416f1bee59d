"""The reaper as a process: detached from its owner, fed through its standard input, a socket."""

import os
import signal
import socket
from typing import Any, Final

from pytest_device.sessions.ledger import Ledger
from pytest_device.sessions.reaper import sender as courier
from pytest_device.sessions.reaper.loop import Watch
from pytest_device.sessions.reaper.messages import Lines, line
from pytest_device.sessions.reaper.service import Service

_CHUNK_BYTES: Final = 64 * 1024
_IGNORED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")
"""It ends by itself, once what it watches is stopped; nobody has to end it."""


def main() -> None:
    """Detach, read the first line, which says what to watch over, and watch."""
    if os.fork():
        os._exit(0)  # so that it is nobody's child: not a zombie, and not found by who ends a tree of processes
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # couriers leave no zombies
    channel = socket.socket(fileno=0)
    lines = Lines()
    told: list[dict[str, Any]] = []
    while not told:
        data = channel.recv(_CHUNK_BYTES)
        if not data:
            return
        told = lines.feed(data)
    channel.sendall(line(intent="", what="ready"))
    _watch_of(channel, **told[0]).run(lines, told[1:])


def _watch_of(
    channel: socket.socket, service: dict[str, Any], ledger: str | None, processes: list[int], *, leaves_word: bool
) -> Watch:
    def hire() -> socket.socket:
        return courier.in_child(Service(**service), channel)

    return Watch(
        channel,
        hire,
        Ledger(ledger) if ledger else None,
        token=service["token"],
        processes=tuple(processes),
        leaves_word=leaves_word,
    )

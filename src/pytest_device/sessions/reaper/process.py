"""The reaper as a process: detached from its run, fed through its standard input, a socket."""

import os
import signal
import socket
from typing import Final

from pytest_device.sessions.reaper import sender
from pytest_device.sessions.reaper.loop import ReaperLoop
from pytest_device.sessions.reaper.messages import Decoder, Ready, Start, encode

_IGNORED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")
"""It ends by itself, once what it watches is stopped; nobody has to end it."""


def main() -> None:
    """Detach, read the first message, which says what to watch over, and watch."""
    if os.fork():
        os._exit(0)  # so that it is nobody's child: not a zombie, and not found by who ends a tree of processes
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # senders leave no zombies
    channel = socket.socket(fileno=0)
    first = b""
    while b"\n" not in first:
        data = sender.received(channel)
        if not data:
            return
        first += data
    line, _, rest = first.partition(b"\n")
    (start,) = Decoder[Start](Start).feed(line + b"\n")
    channel.sendall(encode(Ready()))
    ReaperLoop(channel, lambda: sender.start(start.endpoint, channel), start).run(rest)

"""Runs a program in its own network namespace: its ports cannot be reached from outside.

Arguments: ``FD PORT... -- COMMAND...``. For each port, a listening socket inside the namespace is sent over the socket
FD, so that another process can accept its connections. If the system refuses namespaces, the reason is sent instead,
and the program runs without one, or not at all with ``--required`` after FD. Without arguments, the reason is printed.
Standard library only: it starts with every session.
"""

import os
import socket
import sys
from collections.abc import Sequence
from typing import Final

from pytest_device.platforms import SYSTEM

MODULE: Final = __name__
REQUIRED: Final = "--required"

_HOST: Final = "127.0.0.1"


def main() -> None:
    """Do what the arguments say."""
    if not sys.argv[1:]:
        print(SYSTEM.namespace_refusal())  # noqa: T201  # for the process that started it
        return

    separator = sys.argv.index("--")
    options = sys.argv[2:separator]
    _run(
        int(sys.argv[1]),
        [int(port) for port in options if port != REQUIRED],
        sys.argv[separator + 1 :],
        required=REQUIRED in options,
    )


def _run(
    channel: int, ports: Sequence[int], command: list[str], *, required: bool
) -> None:
    """Run a command in a namespace; if that is refused, without one, or not at all if it is ``required``."""
    with socket.socket(fileno=channel) as out:
        refusal = SYSTEM.namespace_refusal()
        if refusal:
            out.sendall(refusal.encode())
            if required:
                return
        else:
            SYSTEM.enter_namespace()
            listeners = [socket.create_server((_HOST, port)) for port in ports]
            SYSTEM.send_sockets(out, listeners)

    os.execv(command[0], command)  # noqa: S606  the session's own program

"""Runs a program in its own network namespace: its ports cannot be reached from outside.

Usage: ``isolated.py FD PORT... -- COMMAND...``. For each port, a listening socket inside the namespace is sent over the
socket FD, so that another process can accept its connections. If the system refuses namespaces, the reason is sent
instead, and the program runs without one, or not at all with ``--required`` after FD. Without arguments, the reason is
printed. Standard library only: it starts with every session.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REQUIRED: Final = "--required"

_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_UP: Final = 1
_HOST: Final = "127.0.0.1"


def _enter() -> None:
    """Move this process to its own network namespace, with a loopback interface. Raises OSError."""
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no network namespaces")
    user, group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    # Without a user namespace, root keeps its permissions for other users' files.
    if library.unshare(_NEW_NETWORK) != 0:
        if library.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        interface = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack(
            "16sH14x", fcntl.ioctl(any_socket, _GET_FLAGS, interface)
        )[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def refusal() -> str:
    """Return why this system refuses a namespace, "" if it does not."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:  # a partially created namespace cannot be left
        try:
            _enter()
        except OSError as error:
            os.write(writer, str(error.strerror or error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode()


def main(
    channel: int, ports: Sequence[int], command: list[str], *, required: bool
) -> None:
    """Run a command in a namespace; if that is refused, without one, or not at all if it is ``required``."""
    with socket.socket(fileno=channel) as out:
        if reason := refusal():
            out.sendall(reason.encode())
            if required:
                return
        else:
            _enter()
            listeners = [socket.create_server((_HOST, port)) for port in ports]
            socket.send_fds(out, [b"\0"], [one.fileno() for one in listeners])
    os.execv(command[0], command)  # noqa: S606  the session's own program


if __name__ == "__main__":
    if sys.argv[1:]:
        _separator = sys.argv.index("--")
        _ports = [int(port) for port in sys.argv[2:_separator] if port != REQUIRED]
        main(
            int(sys.argv[1]),
            _ports,
            sys.argv[_separator + 1 :],
            required=REQUIRED in sys.argv[2:_separator],
        )
    else:
        print(refusal())  # noqa: T201  # for the process that started it

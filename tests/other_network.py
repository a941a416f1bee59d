"""A local service, and its devices, in a network namespace of their own: this machine's 127.0.0.1 is not theirs.

Sockets in the file system lead through the wall, as a router does between two machines. Needs Linux, and the right to
create namespaces.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.cli import main as run

BYTES: Final = 65536
SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS of <linux/sockios.h>
UP: Final = 0x1  # IFF_UP of <linux/if.h>
NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET of <linux/sched.h>
NEW_USER: Final = 0x10000000  # CLONE_NEWUSER

TUNNEL: Final = """
import sys
from tests.other_network import listener_at, relay

print(sys.argv[1], flush=True)
relay(listener_at(sys.argv[2]), int(sys.argv[3]))
"""
"""A tunnel program: it connects the other network's end to a port of this one, and prints the address there."""


@dataclass(frozen=True)
class OtherNetwork:
    """What a run needs to use the devices there."""

    environ: dict[str, str]
    tunnel: str
    """A command for ``device_tunnel``."""


@contextmanager
def other_network(directory: Path) -> Generator[OtherNetwork]:
    """Run the local service in a new network until the block ends."""
    inner, outer = directory / "service.sock", directory / "tunnel.sock"
    with (
        socket.create_server(("127.0.0.1", 0)) as service,
        socket.create_server(("127.0.0.1", 0)) as public,
    ):
        # The addresses are the same in both networks, as those of a service on the internet are.
        relaying(service, str(inner))
        relaying(public, str(outer))
        command = [sys.executable, "-m", __name__]
        ports = [str(each.getsockname()[1]) for each in (service, public)]
        with subprocess.Popen(
            [*command, str(directory), *ports],
            stdout=subprocess.PIPE,
            text=True,
        ) as program:
            try:
                assert program.stdout is not None
                ready = json.loads(program.stdout.readline())
                environ = {
                    "DEVICE_URL": ready["url"],
                    "DEVICE_APP_ID": ready["app_id"],
                    "DEVICE_TOKEN": Path(ready["token_path"]).read_text(),
                    "DEVICE_POLL_INTERVAL_SECONDS": "0.2",
                }
                address = f"http://127.0.0.1:{ports[1]}"
                script = directory / "tunnel.py"
                script.write_text(TUNNEL)
                tunnel = f"{sys.executable} {script} {address} {outer} {{port}}"
                yield OtherNetwork(environ, tunnel)
            finally:
                program.terminate()


def listener_at(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        Path(path).unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


def relay(listener: socket.socket, target: str | int) -> None:
    """Connect each client of a listener to a socket file or a port on 127.0.0.1, until the listener is closed."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=connect, args=(client, target), daemon=True).start()


def connect(client: socket.socket, target: str | int) -> None:
    """Pass on what each side sends; if nobody is at the target, the client sees that its connection ends."""
    with client, suppress(OSError), connected(target) as server:
        replies = threading.Thread(target=pass_on, args=(server, client), daemon=True)
        replies.start()
        pass_on(client, server)
        replies.join()


def relaying(listener: socket.socket, target: str | int) -> None:
    threading.Thread(target=relay, args=(listener, target), daemon=True).start()


def connected(target: str | int) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target))
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(target)
    except OSError:
        server.close()
        raise
    return server


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def main(directory: Path, service_port: int, public_port: int) -> None:
    """Become the service, in a new network that knows two ports of the other one."""
    leave_network()
    relaying(listener_at(str(directory / "service.sock")), service_port)
    public = socket.create_server(("127.0.0.1", public_port))
    relaying(public, str(directory / "tunnel.sock"))
    state = directory / "state"
    # Not a child process, which would outlive this one.
    run(["serve", f"--port={service_port}", f"--state-dir={state}", "--json"])


def leave_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    flags = NEW_NETWORK if os.geteuid() == 0 else NEW_NETWORK | NEW_USER
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "can't create a network namespace")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

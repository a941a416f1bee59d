"""A network in front of the service that can be down, slow or corrupt replies."""

import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from pytest_device.spec import SESSIONS_PATH

_PATIENCE_SECONDS: Final = 60.0
_CHUNK: Final = 65536

Forward = Callable[[], bytes]
Trick = Callable[[socket.socket, Forward], None]
"""What happens to one request: ``Forward`` sends it to the service and returns the raw reply."""


class Network:
    """Listens at ``url`` and forwards requests, one per connection.

    Its state decides what happens to a new connection: ``up``, ``refused``, ``silent`` (accepted, never answered),
    ``reset``.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 0)
        self._reserved = _bound(0)  # keeps the port while nothing listens there
        self._address = self._reserved.getsockname()
        self.url = f"http://127.0.0.1:{self._address[1]}"
        self._tricks: dict[str, deque[Trick]] = {}
        self._held: list[socket.socket] = []
        self._over = threading.Event()
        self._listener: socket.socket | None = None
        self._state = ""
        self.struck_at: float | None = None
        self.become("up")

    def play(self, operation: str, trick: Trick, *, times: int = 1) -> None:
        """Play a trick on the next requests of an operation: create, get or stop."""
        self._tricks.setdefault(operation, deque()).extend([trick] * times)

    def become(self, state: str) -> None:
        """Change the state; open connections are not affected."""
        self._state = state
        if state == "refused":
            self._stop_listening()
        elif self._listener is None:
            self._listener = _bound(self._address[1])
            self._listener.listen(128)
            threading.Thread(
                target=self._accept, args=(self._listener,), daemon=True
            ).start()

    def close(self) -> None:
        """Close every connection."""
        self._over.set()
        self._stop_listening()
        self._reserved.close()
        for held in self._held:
            held.close()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            with suppress(OSError):
                # Wakes the accept() in the other thread.
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        while not self._over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(_PATIENCE_SECONDS)
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            match self._state:
                case "silent":
                    self._held.append(connection)
                    return
                case "reset":
                    reset(connection)
                    return
                case _:
                    self._pass_on(connection)
        connection.close()

    def _pass_on(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if not request:
            return
        tricks = self._tricks.get(_operation(request))
        if not tricks:
            connection.sendall(self._forward(request))
            return
        self.struck_at = self.struck_at or time.time()
        tricks.popleft()(connection, lambda: self._forward(request))

    def _forward(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        with socket.create_connection(self._target, _PATIENCE_SECONDS) as service:
            service.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            return b"".join(iter(lambda: service.recv(_CHUNK), b""))


@contextmanager
def network(target: str) -> Generator[Network]:
    """Run a network in front of the service at a URL."""
    between = Network(target)
    try:
        yield between
    finally:
        between.close()


def reset(connection: socket.socket) -> None:
    """Close a connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def carried_out_then_reset(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and lose the reply."""
    forward()
    reset(connection)


def refused_by_reset(connection: socket.socket, _forward: Forward) -> None:
    """Reset the connection without forwarding the request."""
    reset(connection)


def cut_in_half(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and send half of the reply."""
    answer = forward()
    connection.sendall(answer[: len(answer) // 2])


def cut_in_head(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and send the first bytes of the reply."""
    connection.sendall(forward()[:20])


def slow_to_pass(seconds: float) -> Trick:
    """Delay the request, and forward it even when the client has given up (seconds)."""

    def trick(connection: socket.socket, forward: Forward) -> None:
        time.sleep(seconds)
        connection.sendall(forward())

    return trick


def late(seconds: float) -> Trick:
    """Forward the request at once and delay the reply (seconds)."""

    def trick(connection: socket.socket, forward: Forward) -> None:
        answer = forward()
        time.sleep(seconds)
        connection.sendall(answer)

    return trick


def never(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and send no reply until the client gives up."""
    forward()
    with suppress(TimeoutError):
        connection.recv(1)


def swallowed(connection: socket.socket, _forward: Forward) -> None:
    """Send no reply until the client gives up, without forwarding the request."""
    with suppress(TimeoutError):
        connection.recv(1)


def trickling(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and send the reply byte by byte, without the last one."""
    answer = forward()
    for position in range(len(answer) - 1):
        connection.sendall(answer[position : position + 1])
        time.sleep(1.0)


def endless_header(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and start a reply whose headers never end."""
    forward()
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(100_000):
        connection.sendall(b"X-Header-%d: and another one\r\n" % number)
        time.sleep(0.01)


def endless_chunks(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and start a reply whose body never ends."""
    forward()
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(100_000):
        connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        time.sleep(0.001)


def huge(connection: socket.socket, forward: Forward) -> None:
    """Forward the request and reply with 10 MB."""
    forward()
    size = 10 * 1024 * 1024
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % size
    )
    connection.sendall(b'{"data": "' + b"x" * (size - 12) + b'"}')


def saying(
    status: str, body: bytes = b"", *headers: bytes, carried_out: bool = True
) -> Trick:
    """Send another reply."""

    def trick(connection: socket.socket, forward: Forward) -> None:
        if carried_out:
            forward()
        head = [
            f"HTTP/1.1 {status}".encode(),
            b"Content-Length: %d" % len(body),
            b"Connection: close",
            *headers,
        ]
        connection.sendall(b"\r\n".join(head) + b"\r\n\r\n" + body)

    return trick


def elsewhere(status: str) -> Trick:
    """Forward the request and reply with nothing but the path of the session."""

    def trick(connection: socket.socket, forward: Forward) -> None:
        body = forward().partition(b"\r\n\r\n")[2]
        path = f"{SESSIONS_PATH}/{json.loads(body)['data']['id']}"
        saying(status, b"", f"Location: {path}".encode(), carried_out=False)(
            connection, forward
        )

    return trick


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound


def _read_request(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        received = connection.recv(_CHUNK)
        if not received:
            return b""
        request += received
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    length = next(
        (int(value) for name, _, value in lines if name.lower() == b"content-length"), 0
    )
    while len(body) < length:
        received = connection.recv(_CHUNK)
        if not received:
            return b""
        body += received
    kept = [
        line
        for line in head.split(b"\r\n")
        if not line.lower().startswith(b"connection:")
    ]
    return b"\r\n".join(kept) + b"\r\n\r\n" + body


def _operation(request: bytes) -> str:
    method, path = request.split(b" ", 2)[:2]
    if path.endswith(b"/stop"):
        return "stop"
    if path.decode().startswith(SESSIONS_PATH):
        return "create" if method == b"POST" else "get"
    return ""

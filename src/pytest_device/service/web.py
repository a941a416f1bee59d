"""HTTP on a loopback socket: the listener, the server, and whose requests it accepts."""

import asyncio
import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_device.errors import ConfigError
from pytest_device.redact import is_loopback_authority
from pytest_device.service.replies import FORBIDDEN, RefusalError

REQUEST_SECONDS: Final = 10.0
"""Maximum seconds for the head of a request, and for each further part of its body."""
_UNFINISHED: Final = frozenset((h11.IDLE, h11.SEND_BODY))

Address = tuple[str, int]

_LISTS: Final = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
IS_SHOWN: Final = _LISTS[4].exists()
"""Whether this system shows the users of connections."""


class LoopbackOnly:
    """Refuses requests for other hosts: a web page must not reach the application under its own host name."""

    def __init__(self, app: ASGIApp, refusal: Callable[[str], Response]) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer = self._app if is_loopback_authority(host) else self._refusal(host)
        await answer(scope, receive, send)


class SameUserOnly:
    """Refuses requests from other users of this machine; accepts root, and users that the system does not show."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer, here = scope.get("client"), scope.get("server")
        if (
            peer
            and here
            and here[1]
            and user_of(tuple(peer), tuple(here)) not in {None, 0, os.geteuid()}
        ):
            raise RefusalError(
                403,
                FORBIDDEN,
                "only the user who started the local service can open its pages",
            )
        await self._app(scope, receive, send)


def user_of(peer: Address, here: Address) -> int | None:
    """Return the ID of the user who opened a connection, None if the system does not show it."""
    with suppress(OSError, ValueError):  # no such list, or an invalid address
        ends = [_as_listed(peer), _as_listed(here)]
        for line in (
            _LISTS[ipaddress.ip_address(peer[0]).version].read_text().splitlines()[1:]
        ):
            row = line.split()
            if row[1:3] == ends:
                return int(row[7])
    return None


def _as_listed(address: Address) -> str:
    """Return an address as the kernel lists it: 32-bit numbers in this machine's byte order, in hexadecimal."""
    packed = ipaddress.ip_address(address[0]).packed
    numbers = (
        int.from_bytes(packed[start : start + 4], sys.byteorder)
        for start in range(0, len(packed), 4)
    )
    return "".join(f"{number:08X}" for number in numbers) + f":{address[1]:04X}"


class RequestTimeoutProtocol(H11Protocol):
    """Closes connections whose requests are never completed: each would take resources as long as its client likes."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if (
            self.conn.their_state is not h11.IDLE
        ):  # the limit is for the whole head, however steadily it trickles in
            self._cancel()
        if self.conn.their_state in _UNFINISHED and self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._on_timeout)

    def _cancel(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # the service itself is the slow end
            self._wait()
        else:
            self.transport.close()


class Server(uvicorn.Server):
    """Calls ``ready`` once it accepts requests, and leaves signals to the process that runs it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        grace_seconds: int,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=RequestTimeoutProtocol,  # uses h11, which limits the size of headers
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=grace_seconds,
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do not handle signals."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ConfigError with the port, the host and the fix."""
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fix = "stop the program that uses it, or choose another port, or 0 for a free one"
            raise ConfigError(f"port {port} of {host} is in use: {fix}") from error
        raise ConfigError(
            f"cannot listen on port {port} of {host} ({error}): choose another host or port"
        ) from error
    # Connections inherit it; asyncio only sets it on sockets that it creates. Without it, a response, written as head
    # and body, waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

"""The HTTP server of this package: runs an ASGI application on a listening socket."""

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_device.same_user import is_permitted, refuse

IDLE_SECONDS: Final = 60
"""Seconds after which an idle connection is closed.

Longer than clients keep one (httpx: 5 s): a request on a connection that is being closed is lost.
"""


class SameUserProtocol(H11Protocol):
    """Refuses connections of other users; looks up the user once per connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        here = transport.get_extra_info("sockname")
        if not is_permitted(peer, here):
            self.app = refuse


class Server(uvicorn.Server):
    """Serves an application until ``should_exit`` is set; leaves signals to its process.

    Arguments:
        app: The application.
        grace_seconds: The maximum time for requests in progress when it stops.
        protocol: Handles the connections.
        aborts: Whether the connections of requests in progress are aborted first: the grace is then for their handlers,
            and a response without an end cannot delay the stop.
        trusts_proxies: Whether a proxy on this machine, such as a tunnel, may say who its client is.
        ready: Called once it accepts requests.
    """

    def __init__(
        self,
        app: Any,
        *,
        grace_seconds: int,
        protocol: type[H11Protocol] = H11Protocol,
        aborts: bool = False,
        trusts_proxies: bool = False,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=protocol,  # h11 limits the size of headers
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=trusts_proxies,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=grace_seconds,
        )
        super().__init__(config)
        self._aborts = aborts
        self._ready = ready
        self._stopped = asyncio.Event()

    async def main_loop(self) -> None:
        """Report that the server is ready, and run until it has to stop."""
        self._ready()
        tasks = [
            asyncio.create_task(super().main_loop()),
            asyncio.create_task(self._stopped.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def stop(self) -> None:
        """Stop at once: ``should_exit`` alone is noticed within a tenth of a second."""
        self.should_exit = True
        self._stopped.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and leave no connection open: uvicorn keeps those that are not idle."""
        if self._aborts:
            await self._abort()

        await super().shutdown(sockets)
        await self._abort()

    async def _abort(self) -> None:
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # let them close

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do not handle signals."""
        yield


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)

    # Connections inherit it; asyncio only sets it on sockets that it creates. Without it, a response, written as head
    # and body, waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    return listener

"""HTTP on a loopback socket: the listener, the server, and the check of the Host header."""

import errno
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_device.errors import ConfigError
from pytest_device.redact import is_loopback_authority
from pytest_device.service.slow_clients import RequestTimeoutProtocol


class LoopbackOnly:
    """Refuses requests for other hosts: a web page must not reach the application under its own host name."""

    def __init__(self, app: ASGIApp, refusal: Callable[[str], Response]) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer = self._app if is_loopback_authority(host) else self._refusal(host)
        await answer(scope, receive, send)


class Server(uvicorn.Server):
    """Calls ``ready`` once it accepts requests, and leaves signals to the process that runs it."""

    def __init__(self, app: ASGIApp, *, grace_seconds: int, ready: Callable[[], None] = lambda: None) -> None:
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
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fix = "stop the program that uses it, or choose another port, or 0 for a free one"
            raise ConfigError(f"port {port} of {host} is in use: {fix}") from error
        raise ConfigError(f"cannot listen on port {port} of {host} ({error}): choose another host or port") from error
    # Connections inherit it; asyncio only sets it on sockets that it creates. Without it, a response, written as head
    # and body, waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

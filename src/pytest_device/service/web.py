"""HTTP on a loopback socket: where the local service listens, and which requests it accepts."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

import h11
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_device.asgi_server import SameUserProtocol, listening
from pytest_device.errors import ConfigError
from pytest_device.redact import is_loopback_authority

REQUEST_SECONDS: Final = 10.0
"""Maximum seconds for the head of a request, and for each further part of its body."""
_UNFINISHED: Final = frozenset((h11.IDLE, h11.SEND_BODY))


class LoopbackOnly:
    """Refuses requests for other hosts: a web page must not reach the application under its own host name."""

    def __init__(self, app: ASGIApp, refusal: Callable[[str], Response]) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer = self._app if is_loopback_authority(host) else self._refusal(host)
        await answer(scope, receive, send)


class LocalProtocol(SameUserProtocol):
    """Refuses other users' connections, and closes those whose requests are never completed.

    An incomplete request would take resources as long as its client likes.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # The limit covers the whole head, however steadily it trickles in.
        if self.conn.their_state is not h11.IDLE:
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


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ConfigError with the port, the host and the fix."""
    try:
        return listening(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fix = "stop the program that uses it, or choose another port, or 0 for a free one"
            raise ConfigError(f"port {port} of {host} is in use: {fix}") from error
        raise ConfigError(
            f"cannot listen on port {port} of {host} ({error}): choose another host or port"
        ) from error

"""Makes one HTTP call with the standard library: limited in size, never redirected, with a read timeout."""

import base64
import http.client
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.sessions.compression import CompressionError, unpacked
from pytest_device.sessions.partial import located_id
from pytest_device.sessions.reaper.messages import (
    Answer,
    Call,
    Endpoint,
    NoReply,
    Reply,
)
from pytest_device.sessions.retry_policy import retry_after

CONNECT_SECONDS: Final = 10.0
MAX_BYTES: Final = 1024 * 1024

_CHUNK_BYTES: Final = 64 * 1024
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443
_INTERIM: Final = range(102, 200)
_KEEP_ALIVE: Final = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPALIVE": 30,  # the name of TCP_KEEPIDLE on macOS
    "TCP_KEEPINTVL": 30,
    "TCP_KEEPCNT": 10,
}
"""Seconds until the first probe of a silent connection and between probes, and their number.

Routers forget connections that are silent for a minute or more. A service that has vanished is noticed after five and a
half minutes, but a shorter outage of the network doesn't end a call.
"""


def _unlimited(_seconds: float | None) -> None:
    """Set no further limit."""


def send(
    endpoint: Endpoint,
    call: Call,
    seen: bytearray,
    limit: Callable[[float | None], None] = _unlimited,
) -> Answer:
    """Send a call; return the response.

    The body is added to ``seen`` as it arrives, so that a caller that stops waiting can read it: it may hold a
    session's ID. ``limit`` is called with the seconds that a response may still take once it has started, and with
    None if that was an interim response.
    """
    sent = False

    try:
        connection = _connection(endpoint)
        connection.response_class = partial(_FinalResponse, call.reply_seconds, limit)  # type: ignore[assignment]  # it is called only
        try:
            connection.connect()
            _keep_alive(connection.sock)
            connection.sock.settimeout(call.seconds)
            sent = True
            prefix = urlsplit(endpoint.url).path.rstrip("/")
            data = None if call.body is None else call.body.encode()
            connection.request(
                call.method, f"{prefix}{call.path}", data, _headers(endpoint.token)
            )

            return _answer(connection, seen)
        finally:
            connection.close()
    except (
        OSError,
        http.client.HTTPException,
        ValueError,
        RuntimeError,
        Warning,
    ) as error:
        # ssl and socket raise OSErrors. In the run's process, a plugin that blocks sockets warns and raises RuntimeErrors;
        # the suite may have turned the warning into an error.
        problem = f"{type(error).__name__}: {error}".rstrip(": ")
        # Its text is a line of the response, which may hold connection details.
        if type(error) is http.client.BadStatusLine:
            problem = "the response is not HTTP"
        if endpoint.proxy and not sent:
            host, port = _proxy_address(endpoint.proxy)
            problem += f", through the proxy {host}:{port}"

        return NoReply(problem, sent, bytes(seen))


def _answer(connection: http.client.HTTPConnection, seen: bytearray) -> Answer:
    reply = connection.getresponse()
    chunks = iter(partial(reply.read1, _CHUNK_BYTES), b"")
    try:
        read_body(chunks, MAX_BYTES, into=seen)
    except BodyLimitError:
        return NoReply(
            f"the response is larger than {MAX_BYTES} bytes", True, bytes(seen)
        )

    if reply.length:
        return NoReply(
            f"the response was cut off, {reply.length} bytes are missing",
            True,
            bytes(seen),
        )

    retry_after_seconds = retry_after(
        reply.headers.get("Retry-After"), reply.headers.get("Date"), time.time()
    )

    try:
        body = unpacked(
            bytes(seen), reply.headers.get("Content-Encoding", ""), MAX_BYTES
        )
    except CompressionError as error:
        return NoReply(str(error), True, error.part)

    return Reply(
        reply.status,
        body,
        retry_after_seconds,
        located_id(reply.headers.get("Location", "")),
    )


class _FinalResponse(http.client.HTTPResponse):
    """The final response to a call. Of those that may come before it, http.client itself skips 100 only."""

    def __init__(
        self,
        seconds: float,
        limit: Callable[[float | None], None],
        *arguments: Any,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, **keywords)
        self._seconds = seconds
        self._limit = limit

    def begin(self) -> None:
        self._begin()
        while self.status in _INTERIM:
            self._limit(None)
            self.headers = self.msg = None  # type: ignore[assignment]  # else it has started already
            self._begin()

    def _begin(self) -> None:
        self.fp.peek(1)  # waits for the first byte
        self._limit(self._seconds)
        super().begin()


def _keep_alive(connection: socket.socket) -> None:
    """Let the system probe a connection while it is silent."""
    # Not a TCP connection, or closed already: the call itself will show.
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if option := getattr(socket, name, None):
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    parts = urlsplit(endpoint.url)
    host = parts.hostname or ""
    # Always given: http.client would take the end of an IPv6 address for the port.
    port = parts.port or (_HTTP_PORT if parts.scheme == "http" else _HTTPS_PORT)
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)

    context = ssl.create_default_context(cafile=endpoint.cafile, capath=endpoint.capath)
    if not endpoint.proxy:
        return http.client.HTTPSConnection(
            host, port, timeout=CONNECT_SECONDS, context=context
        )

    proxy_host, proxy_port = _proxy_address(endpoint.proxy)
    connection = http.client.HTTPSConnection(
        proxy_host, proxy_port, timeout=CONNECT_SECONDS, context=context
    )
    proxy = urlsplit(endpoint.proxy)
    headers: dict[str, str] = {}

    if proxy.username is not None:
        credentials = (
            f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        )
        headers["Proxy-Authorization"] = (
            f"Basic {base64.b64encode(credentials).decode('ascii')}"
        )

    connection.set_tunnel(host, port, headers)
    return connection


def _proxy_address(proxy: str) -> tuple[str, int]:
    """Return host and port of a proxy. Without a port it is that of http, as for httpx, not that of the service."""
    parts = urlsplit(proxy)
    return parts.hostname or "", parts.port or _HTTP_PORT


def _headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "pytest-device",
        "Connection": "close",
    }

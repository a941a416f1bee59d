"""One call with the standard library: bounded in size, never redirected, its silences bounded."""

import base64
import http.client
import json
import ssl
import time
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pytest_device.sessions.reaper.service import Service
from pytest_device.sessions.retry_policy import retry_after

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 30.0
"""The longest pause between two bytes of an answer."""
MAX_BYTES: Final = 1024 * 1024

_CHUNK_BYTES: Final = 64 * 1024


def call(service: Service, method: str, path: str, body: Any, seen: bytearray) -> dict[str, Any]:
    """Return the answer's ``status``, or the ``problem`` there was and whether the request was ``sent``.

    With the status comes ``retry_after``, in seconds, where the answer has one.

    ``sent`` is False only when it certainly never left. What arrives of the answer's body is added to ``seen`` as it
    comes, so that it is there when the caller loses its patience: a session's id may be in it.
    """
    sent = False
    try:
        connection = _connection(service)
        try:
            connection.connect()
            connection.sock.settimeout(SILENCE_SECONDS)
            sent = True
            prefix = urlsplit(service.url).path.rstrip("/")
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{prefix}{path}", data, _headers(service.token))
            return _answer(connection, seen)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:  # those of ssl and socket are OSErrors
        return {"problem": f"{type(error).__name__}: {error}".rstrip(": "), "sent": sent}


def _answer(connection: http.client.HTTPConnection, seen: bytearray) -> dict[str, Any]:
    reply = connection.getresponse()
    if reply.headers.get("Content-Encoding", "identity") != "identity":
        return {"problem": "the answer is packed, though the request forbids it", "sent": True}
    while chunk := reply.read1(_CHUNK_BYTES):
        seen += chunk
        if len(seen) > MAX_BYTES:
            return {"problem": f"the answer is larger than {MAX_BYTES} bytes", "sent": True}
    if reply.length:
        return {"problem": f"the answer was cut off, {reply.length} bytes are missing", "sent": True}
    asked = retry_after(reply.headers.get("Retry-After"), reply.headers.get("Date"), time.time())
    return {"status": reply.status} | ({} if asked is None else {"retry_after": asked})


def _connection(service: Service) -> http.client.HTTPConnection:
    parts = urlsplit(service.url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
    context = ssl.create_default_context(cafile=service.cafile, capath=service.capath)
    if not service.proxy:
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=context)
    proxy = urlsplit(service.proxy)
    connection = http.client.HTTPSConnection(proxy.hostname or "", proxy.port, timeout=CONNECT_SECONDS, context=context)
    connection.set_tunnel(host, port, _proxy_headers(proxy.username, proxy.password))
    return connection


def _proxy_headers(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    credentials = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(credentials).decode('ascii')}"}


def _headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "pytest-device",
        "Connection": "close",
    }

"""Servers for one user: which user of this machine opened a connection, and the answer to the others.

All users of a machine can connect to a port of its loopback address. So a server whose clients are programs of one
user looks up each connection once, when it accepts it, where the system shows who opened it.
"""

import json
import socket
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.addresses import canonical
from pytest_device.platforms.system import Address

REFUSAL: Final = "only the user who started this server, and root, may use it"

_ROOT: Final = 0


def is_permitted(client: Address | None, server: Address | None) -> bool:
    """Return whether this user or root opened a connection, by its two ends.

    An unknown user is refused, except on a system that shows no users, and at an address that other machines can
    reach: there, each server requires a token or a key.
    """
    if not shows_users():
        return True

    # The connection was closed before its addresses were read.
    if not client or not server:
        return False

    user = SYSTEM.connection_user(client, server)
    if user is None:
        return not canonical(server[0]).is_loopback

    return user in {_ROOT, SYSTEM.user()}


@cache
def shows_users() -> bool:
    """Return whether this system shows which user opened a connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        user = SYSTEM.connection_user(client.getsockname(), listener.getsockname())

    return user is not None and user == SYSTEM.user()


def unknown_ways() -> list[str]:
    """Return the addresses over which this process's own connection to 127.0.0.1 would be refused, normally none."""
    addresses = ("127.0.0.1", "::ffff:127.0.0.1")
    return [address for address in addresses if not _permits_itself(address)]


async def refuse(
    _scope: Any, _receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Refuse a request as an ASGI application, in the local service's format of errors."""
    error = {"code": "FORBIDDEN", "message": REFUSAL, "option": None}
    body = json.dumps({"errors": [error]}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _permits_itself(address: str) -> bool:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection((address, listener.getsockname()[1])) as client,
        ):
            return is_permitted(client.getsockname(), listener.getsockname())
    except OSError:  # a machine without IPv6 cannot connect this way
        return True

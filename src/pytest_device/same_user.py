"""Servers for one user: which user of this machine opened a connection, and the answer to the others.

All users of a machine can connect to a port of its loopback address. So a server whose clients are programs of one
user looks up each connection once, when it accepts it. Linux shows the users of TCP connections: for one, over a
netlink socket (sock_diag(7)), which takes microseconds; for all, in /proc/net, which takes milliseconds.
"""

import ipaddress
import json
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

REFUSAL: Final = "only the user who started this server, and root, may use it"

Address = tuple[Any, ...]
"""IP address and port; those of IPv6 sockets have two more values."""
_Ends = tuple[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int], ...]
_Owner = tuple[int, int] | None
"""User and inode of a client's socket, None if there is no such socket."""

_ROOT: Final = 0

# Of netlink(7) and sock_diag(7).
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY_STATE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUERY: Final = struct.Struct("=BBBBI")
_SOCKET: Final = struct.Struct("!HH16s16s")
_NO_INTERFACE_AND_COOKIE: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER: Final = struct.Struct("=BBBB48sIIIII")
_ANSWER_BYTES: Final = 4096
_ANSWER_SECONDS: Final = 1.0

_LISTS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_READS: Final = 3
"""Maximum number of reads of the lists: one that changes while it is read can lack a row."""
_ROW_BYTES: Final = 256
"""More than any row has."""
_USER_COLUMN: Final = 6
_INODE_COLUMN: Final = 8


def is_permitted(peer: Address | None, here: Address | None) -> bool:
    """Return whether this user or root opened a connection from ``peer`` to ``here``.

    An unknown user is refused, except on a system that shows no users, and at an address that other machines can
    reach: there, each server requires a token or a key.
    """
    if not shows_users():
        return True

    if not (peer and here):  # the connection was closed before its addresses were read
        return False

    user = user_of(peer, here)
    if user is None:
        return not _canonical(here[0]).is_loopback
    return user in {_ROOT, os.geteuid()}


def user_of(peer: Address, here: Address) -> int | None:
    """Return the ID of the user who opened a connection; None if the system does not show it, or it is closed."""
    find = user_finder()
    owner = find(_ends(peer, here)) if find else None
    return _user(owner)


def shows_users() -> bool:
    """Return whether this system shows which user opened a connection."""
    return user_finder() is not None


def unknown_ways() -> list[str]:
    """Return the addresses over which this process's own connection to 127.0.0.1 would be refused, normally none."""
    return [
        way for way in ("127.0.0.1", "::ffff:127.0.0.1") if not _permits_itself(way)
    ]


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


def _permits_itself(way: str) -> bool:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection((way, listener.getsockname()[1])) as client,
        ):
            return is_permitted(client.getsockname(), listener.getsockname())
    except OSError:  # a machine without IPv6 cannot connect this way
        return True


@cache
def user_finder() -> Callable[[_Ends], _Owner] | None:
    """Return the first function that finds the user of a connection of this process, None if none does.

    A list may exist and be empty: some sandboxes hide connections.
    """
    if not hasattr(os, "geteuid"):  # Windows
        return None

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        ends = _ends(client.getsockname(), listener.getsockname())
        return next(
            (find for find in (_asked, _listed) if _user(find(ends)) == os.geteuid()),
            None,
        )


def _user(owner: _Owner) -> int | None:
    """Return the user of a socket, None if its program has closed it.

    A closed socket has no inode, and the kernel reports root as its user: otherwise, another user could send a request
    and close the connection before the lookup.
    """
    if owner is None:
        return None
    user, inode = owner
    return user if inode else None


def _asked(ends: _Ends) -> _Owner:
    """Ask the kernel for the client's socket."""
    family = socket.AF_INET if ends[0][0].version == 4 else socket.AF_INET6  # noqa: PLR2004  # IPv4
    query = (
        _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
        + _named(ends)
        + _NO_INTERFACE_AND_COOKIE
    )
    header = _HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_SECONDS)
            kernel.send(header + query)
            answer = kernel.recv(_ANSWER_BYTES)
    except (OSError, AttributeError):  # not permitted, or not Linux
        return None

    kind = _HEADER.unpack_from(answer)[1]
    # An error: there is no such socket.
    if kind != _BY_FAMILY or len(answer) < _HEADER.size + _ANSWER.size:
        return None

    *_, found, _expires, _received, _sent, user, inode = _ANSWER.unpack_from(
        answer, _HEADER.size
    )
    # Without a connection, the kernel returns the socket that listens on the client's port.
    is_connection = found[: _SOCKET.size] in {_named(ends), _named(_mapped(ends))}
    return (user, inode) if is_connection else None


def _named(ends: _Ends) -> bytes:
    """Return two addresses as the kernel names a socket."""
    (address, port), (far_address, far_port) = ends
    return _SOCKET.pack(port, far_port, address.packed, far_address.packed)


def _listed(ends: _Ends) -> _Owner:
    """Search the lists of all connections for the client's socket."""
    for _ in range(_READS):
        for path, row_ends in zip(_LISTS, (ends, _mapped(ends)), strict=True):
            listed = b""
            with suppress(OSError):  # not Linux, or without IPv6
                listed = path.read_bytes()

            start = listed.find(_columns(row_ends))
            if start >= 0:
                columns = listed[start : start + _ROW_BYTES].split()
                return int(columns[_USER_COLUMN]), int(columns[_INODE_COLUMN])
    return None


def _columns(ends: _Ends) -> bytes:
    """Return two addresses as a list has them: 32-bit numbers in this machine's byte order, in hexadecimal."""
    columns = list[str]()
    for address, port in ends:
        words = [
            address.packed[start : start + 4]
            for start in range(0, len(address.packed), 4)
        ]
        numbers = "".join(
            f"{int.from_bytes(word, sys.byteorder):08X}" for word in words
        )
        columns.append(f"{numbers}:{port:04X}")
    return f" {' '.join(columns)} ".encode()


def _ends(peer: Address, here: Address) -> _Ends:
    return tuple((_canonical(address[0]), int(address[1])) for address in (peer, here))


def _canonical(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    parsed = ipaddress.ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed


def _mapped(ends: _Ends) -> _Ends:
    """Return two addresses as those of IPv6 sockets.

    A client with such a socket can connect to an IPv4 address. The kernel shows it with ``::ffff:127.0.0.1``, and in
    the list of IPv6, while the server sees ``127.0.0.1``.
    """
    return tuple(
        (ipaddress.IPv6Address(f"::ffff:{one}") if one.version == 4 else one, port)  # noqa: PLR2004  # IPv4
        for one, port in ends
    )

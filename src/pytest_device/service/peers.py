"""Identifies the user at the other end of a local connection."""

import ipaddress
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_device.service.replies import FORBIDDEN, RefusalError

Address = tuple[str, int]

_LISTS: Final = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
IS_SHOWN: Final = _LISTS[4].exists()
"""Whether this system shows the users of connections."""


class SameUserOnly:
    """Refuses requests from other users of this machine; accepts root, and users that the system does not show."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer, here = scope.get("client"), scope.get("server")
        if peer and here and here[1] and user_of(tuple(peer), tuple(here)) not in {None, 0, os.geteuid()}:
            raise RefusalError(403, FORBIDDEN, "only the user who started the local service can open its pages")
        await self._app(scope, receive, send)


def user_of(peer: Address, here: Address) -> int | None:
    """Return the ID of the user who opened a connection, None if the system does not show it."""
    with suppress(OSError, ValueError):  # no such list, or an invalid address
        ends = [_as_listed(peer), _as_listed(here)]
        for line in _LISTS[ipaddress.ip_address(peer[0]).version].read_text().splitlines()[1:]:
            row = line.split()
            if row[1:3] == ends:
                return int(row[7])
    return None


def _as_listed(address: Address) -> str:
    """Return an address as the kernel lists it: 32-bit numbers in this machine's byte order, in hexadecimal."""
    packed = ipaddress.ip_address(address[0]).packed
    numbers = (int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4))
    return "".join(f"{number:08X}" for number in numbers) + f":{address[1]:04X}"

"""Limits how long HTTP calls take, by closing their connections."""

import socket
import threading
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

_MAX_CONNECTIONS: Final = 100
"""The maximum number of connections that httpx keeps open."""


class Sockets:
    """The connections of a client, which all its calls share: none knows which one it uses."""

    def __init__(self) -> None:
        self._opened: deque[socket.socket] = deque(maxlen=_MAX_CONNECTIONS)

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Record a new connection; to be passed to each call as httpx's extension ``trace``."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._opened.append(info["return_value"].get_extra_info("socket"))

    @contextmanager
    def limited(self, seconds: float) -> Generator[threading.Event]:
        """Close all connections once the block takes longer; the event is then set.

        httpx limits each read alone: a response that trickles in would never exceed that.
        """
        late = threading.Event()
        timer = threading.Timer(seconds, self._shut, [late])
        timer.daemon = True
        timer.start()

        try:
            yield late
        finally:
            timer.cancel()

    def _shut(self, late: threading.Event) -> None:
        late.set()
        for opened in tuple(self._opened):
            with suppress(OSError):  # closed meanwhile
                opened.shutdown(socket.SHUT_RDWR)

"""Limits how long HTTP calls take, by closing their connections."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

_MAX_CONNECTIONS: Final = 100
"""The maximum number of connections that httpx keeps open."""
_GRACE_SECONDS: Final = 0.5
"""Seconds after the end of a call until its connection is closed: a silent server runs into httpx's own timeout."""


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

    @contextmanager
    def ending_late_calls(
        self,
        seconds: float,
        transport_error: type[Exception],
        unfinished: Callable[[], Exception],
    ) -> Generator[None]:
        """Limit a whole call, and raise ``unfinished()`` if it takes longer.

        Arguments:
            seconds: The call's own timeout; the connection is closed a moment later.
            transport_error: What the HTTP library raises for a connection that is closed.
            unfinished: Makes the error.
        """
        with self.limited(seconds + _GRACE_SECONDS) as late:
            try:
                yield
            except transport_error:
                if late.is_set():
                    raise unfinished() from None
                raise

            # A closed connection ends a body without a length, too.
            if late.is_set():
                raise unfinished()

    def _shut(self, late: threading.Event) -> None:
        late.set()
        for opened in tuple(self._opened):
            with suppress(OSError):  # closed meanwhile
                opened.shutdown(socket.SHUT_RDWR)

"""Closes connections whose requests are never completed: each would occupy resources as long as its client likes."""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS: Final = 10.0
"""Maximum seconds for the head of a request, and for each further part of its body."""
_UNFINISHED: Final = frozenset((h11.IDLE, h11.SEND_BODY))


class RequestTimeoutProtocol(H11Protocol):
    """HTTP/1.1 for clients that send their requests without long pauses."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # the limit is for the whole head, however steadily it trickles in
            self._cancel()
        if self.conn.their_state in _UNFINISHED and self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(SECONDS, self._on_timeout)

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

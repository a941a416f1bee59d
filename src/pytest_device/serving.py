"""Serves an application on this machine from a thread of the test's process, and keeps what it saw for the test."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

GRACE_SECONDS: Final = 1
"""How long requests in progress may take when the server stops."""

POLL_SECONDS: Final = 0.05

_T = TypeVar("_T")


class Journal:
    """What a service saw, in order and of any kinds, shared by its thread and the test's."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Hold it to change what waiting tests look for."""
        self._entries: tuple[object, ...] = ()

    def add(self, entry: object) -> None:
        """Note an entry."""
        with self.changed:
            self._entries += (entry,)
            self.changed.notify_all()

    def of(self, kind: type[_T]) -> tuple[_T, ...]:
        """Return the entries of a kind so far."""
        return tuple(entry for entry in self._entries if isinstance(entry, kind))

    def wait_until(self, find: Callable[[], _T | None], timeout_seconds: float) -> _T | None:
        """Return what ``find`` finds now or after a later entry, None if it finds nothing in time."""
        deadline = time.monotonic() + timeout_seconds
        with self.changed:
            while (found := find()) is None:
                if not self.changed.wait(deadline - time.monotonic()):
                    return find()
            return found


class AppServer:
    """An address on 127.0.0.1, taken at once, at which an ASGI application is served from `start` to `stop`."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        # asyncio sets it only on sockets that name their protocol: each reply would wait 40 ms for an acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server: Any = None
        self._is_serving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, app: Any) -> None:
        """Serve the application; requests wait in the socket until it does."""
        self._server = _server(app, self._is_serving)
        self._thread.start()

    def stop(self) -> None:
        """Cut off the requests in progress, end the thread, and free the address."""
        if self._server:
            while not self._is_serving.wait(POLL_SECONDS) and self._thread.is_alive():
                pass  # uvicorn that is to exit before it serves leaves open what it has accepted
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        self._server.run([self._socket])


def _server(app: Any, is_serving: threading.Event) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        async def main_loop(self) -> None:
            is_serving.set()
            await super().main_loop()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """Cut off connections, too: uvicorn waits for endless replies, and leaves their sockets open."""
            await self._abort()
            await super().shutdown(sockets)
            await self._abort()

        async def _abort(self) -> None:
            for connection in tuple(self.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)  # in which they close

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(config)

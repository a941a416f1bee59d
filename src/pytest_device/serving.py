"""Local ASGI server that runs in a thread of the test process, and a journal of what it received."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

GRACE_SECONDS: Final = 1
"""Maximum time for requests in progress to finish when the server stops, in seconds."""

POLL_SECONDS: Final = 0.05

_T = TypeVar("_T")
F = TypeVar("F")


class Journal(Generic[F]):
    """Ordered log of entries of any type, and pending failures, shared by the server's thread and the test's."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Condition to hold while changing state that tests wait for."""
        self._entries: tuple[object, ...] = ()
        self._failures: list[F] = []

    def add(self, entry: object) -> None:
        """Append an entry and wake up waiting tests."""
        with self.changed:
            self._entries += (entry,)
            self.changed.notify_all()

    def of(self, kind: type[_T]) -> tuple[_T, ...]:
        """Return the entries of a type so far."""
        return tuple(entry for entry in self._entries if isinstance(entry, kind))

    def add_failures(self, *failures: F) -> None:
        """Add pending failures."""
        with self.changed:
            self._failures.extend(failures)

    def next_failure(self) -> F | None:
        """Remove and return the oldest pending failure."""
        with self.changed:
            return self._failures.pop(0) if self._failures else None

    def clear_failures(self) -> None:
        """Cancel all pending failures."""
        with self.changed:
            self._failures.clear()

    def wait_until(self, find: Callable[[], _T | None], timeout_seconds: float) -> _T | None:
        """Call ``find`` now and after each new entry; return its result, or None when the timeout expires."""
        deadline = time.monotonic() + timeout_seconds
        with self.changed:
            while (found := find()) is None:
                if not self.changed.wait(deadline - time.monotonic()):
                    return find()
            return found


class AppServer:
    """A server for an ASGI application on 127.0.0.1; it binds its port immediately and serves after `start`."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        # asyncio sets it only on sockets with an explicit protocol; without it, each reply waits 40 ms for an ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server: Any = None
        self._is_serving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, app: Any) -> None:
        """Serve the application in a thread; earlier requests wait in the socket."""
        self._server = _server(app, self._is_serving)
        self._thread.start()

    def stop(self) -> None:
        """Abort the requests in progress, stop the thread and free the port."""
        if self._server:
            while not self._is_serving.wait(POLL_SECONDS) and self._thread.is_alive():
                pass  # if stopped before it serves, uvicorn leaves accepted connections open
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
            """Abort all connections; uvicorn would wait for endless replies and leave their sockets open."""
            await self._abort()
            await super().shutdown(sockets)
            await self._abort()

        async def _abort(self) -> None:
            for connection in tuple(self.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)  # let them close

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

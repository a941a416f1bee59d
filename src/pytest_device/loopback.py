"""What the services for tests share: a server on this machine, what it noted, and how it is to fail."""

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pytest_device.errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette

GRACE_SECONDS: Final = 1
"""How long replies in progress may take when a service ends."""

_Failure = TypeVar("_Failure")
_Found = TypeVar("_Found")


def need_extra(module: str) -> None:
    """Raise ConfigError if a module of the extra ``services`` is not installed."""
    try:
        import_module(module)
    except ImportError:
        raise ConfigError(f"{module} is not installed: pip install 'pytest-device[services]'") from None


class LoopbackService:
    """A service on 127.0.0.1, in a thread of its own; use it in a ``with``."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        # asyncio sets it only on sockets that name their protocol: each reply would wait 40 ms for an acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self, app: "Starlette") -> None:
        self._server = _server(app)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class Journal(Generic[_Failure]):
    """Entries and failures, shared by the server's thread and the test's; `wait_until` waits for the next entry."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._failures: list[tuple[_Failure, int]] = []

    @contextmanager
    def noting(self) -> Generator[None]:
        """Change the entries in this block; those who wait are notified at its end."""
        with self._changed:
            yield
            self._changed.notify_all()

    def fail(self, failure: _Failure, times: int) -> None:
        """Fail the next times."""
        with self._changed:
            self._failures.append((failure, times))

    def take(self, matches: Callable[[_Failure], bool]) -> _Failure | None:
        """Return the next failure that matches and count it down."""
        with self._changed:
            for index, (failure, times) in enumerate(self._failures):
                if matches(failure):
                    self._failures[index : index + 1] = [(failure, times - 1)] if times > 1 else []
                    return failure
        return None

    def clear_failures(self) -> None:
        """Let everything work again."""
        with self._changed:
            self._failures.clear()

    def wait_until(self, find: Callable[[], _Found | None], timeout_seconds: float) -> _Found | None:
        """Return what ``find`` finds, None if it finds nothing in time."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while (found := find()) is None:
                if not self._changed.wait(deadline - time.monotonic()):
                    return find()
            return found


def _server(app: "Starlette") -> Any:
    import uvicorn

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)

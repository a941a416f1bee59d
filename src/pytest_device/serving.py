"""Services in the test's own process: their ASGI server in a thread, what they received, and failures to inject."""

import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.redact import is_http_url, shown

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import Route

    from pytest_device.asgi_server import Server

__tracebackhide__ = hides_frames

GRACE_SECONDS: Final = 1
"""Maximum time for requests in progress to finish when the server stops, in seconds."""

POLL_SECONDS: Final = 0.05
MAX_PORT: Final = 65_535

_T = TypeVar("_T")


class MissingExtraError(ConfigError, ImportError):
    """A package of an extra is not installed."""


def need_extra(what: str, *packages: str) -> None:
    """Raise MissingExtraError if a package of the extra ``services`` is not installed."""
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            problem = f"{what} needs {package}: pip install 'pytest-device[services]'"
            raise MissingExtraError(problem) from None


def check_public_url(url: str | None) -> None:
    """Raise ConfigError unless a service's public URL is None, or a URL with http or https to which a path fits."""
    value = cast("object", url)  # the settings fixtures are not checked for types
    if value is None:
        return

    is_valid = isinstance(value, str) and is_http_url(value)
    if not is_valid or "?" in str(value) or "#" in str(value):
        raise ConfigError(
            f"public_url {shown(str(value))!r} must be a URL with http or https, without query and fragment"
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of the next ``times`` requests to an endpoint; ``seconds`` is the duration of a delay."""

    endpoint: str
    kind: str
    times: int = 1
    seconds: float = 1.0

    def __post_init__(self) -> None:
        times = cast("object", self.times)  # suites are not checked for types
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            raise ConfigError(f"times={times!r} must be a whole number, 1 or more")
        if not _is_duration(self.seconds) or self.seconds < 0:
            raise ConfigError(
                f"seconds={self.seconds!r} must be a number of seconds, 0 or more"
            )


def _is_duration(seconds: object) -> bool:
    """Return whether a value is a number of seconds that a thread can wait; that excludes NaN and infinity."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False

    return abs(seconds) <= threading.TIMEOUT_MAX


class Journal:
    """Ordered log of entries of any type, and pending failures, shared by the server's thread and the test's."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Condition to hold while changing state that tests wait for."""
        self._entries: tuple[object, ...] = ()
        self._failures: list[Failure] = []

    def add(self, entry: object) -> None:
        """Append an entry and wake up waiting tests."""
        with self.changed:
            self._entries += (entry,)
            self.changed.notify_all()

    def of(self, kind: type[_T]) -> tuple[_T, ...]:
        """Return the entries of a type so far."""
        return tuple(entry for entry in self._entries if isinstance(entry, kind))

    def add_failure(self, failure: Failure) -> None:
        """Add a pending failure."""
        with self.changed:
            self._failures.append(failure)

    def take_failure(self, endpoint: str, *kinds: str) -> Failure | None:
        """Return the oldest failure of these kinds, or of any, at an endpoint and decrement its count."""
        with self.changed:
            for index, failure in enumerate(self._failures):
                is_of_kind = not kinds or failure.kind in kinds
                if failure.endpoint != endpoint or not is_of_kind:
                    continue

                if failure.times > 1:
                    remaining = replace(failure, times=failure.times - 1)
                    self._failures[index] = remaining
                else:
                    del self._failures[index]
                return failure

        return None

    def clear_failures(self) -> None:
        """Cancel all pending failures."""
        with self.changed:
            self._failures.clear()

    def wait_until(
        self, find: Callable[[], _T | None], timeout_seconds: float
    ) -> _T | None:
        """Call ``find`` now and after each new entry; return its result, or None when the timeout expires.

        Raises ConfigError for a timeout that is not a number of seconds.
        """
        if not _is_duration(timeout_seconds):
            raise ConfigError(
                f"timeout_seconds={timeout_seconds!r} must be a finite number of seconds"
            )

        deadline = time.monotonic() + timeout_seconds
        with self.changed:
            result = find()
            while result is None:
                is_notified = self.changed.wait(deadline - time.monotonic())
                result = find()
                if not is_notified:
                    break
            return result


J = TypeVar("J", bound=Journal)


class AppServer:
    """A server for an ASGI application on 127.0.0.1; it binds its port when `url` is read, and serves after `start`.

    Other users of this machine reach it: a device's browser, a tunnel or a server of the app may run as one.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._server: Server | None = None
        self._is_serving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @cached_property
    def _socket(self) -> socket.socket:
        from pytest_device.asgi_server import listening

        port = cast("object", self._port)  # as for `check_public_url`
        # Before the socket, which create_server would leave open.
        if not isinstance(port, int) or not 0 <= port <= MAX_PORT:
            raise ConfigError(f"port {port!r} must be 0 to {MAX_PORT}")

        try:
            return listening("127.0.0.1", self._port)
        except OSError as error:
            raise ConfigError(
                f"port {self._port} is not available: {error.strerror}"
            ) from None

    @property
    def url(self) -> str:
        """Base URL. Raises ConfigError if the port is in use."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self, app: Any) -> None:
        """Serve the application in a thread; earlier requests wait in the socket. Raises ConfigError as `url`."""
        from uvicorn.protocols.http.h11_impl import H11Protocol

        from pytest_device.asgi_server import Server

        self._server = Server(
            app,
            protocol=H11Protocol,
            grace_seconds=GRACE_SECONDS,
            aborts=True,
            trusts_proxies=True,
            ready=self._is_serving.set,
        )
        _ = self._socket  # before the thread, whose errors nobody sees
        self._thread.start()

    def stop(self) -> None:
        """Abort the requests in progress, stop the thread and free the port."""
        if self._server:
            # If stopped before it serves, uvicorn leaves accepted connections open.
            while not self._is_serving.wait(POLL_SECONDS):
                if not self._thread.is_alive():
                    break
            self._server.should_exit = True
            self._thread.join()

        if "_socket" in self.__dict__:  # it was opened
            self._socket.close()

    def _run(self) -> None:
        if self._server:
            self._server.run([self._socket])


class Service(Generic[J]):
    """Service of an ASGI application with injected failures; use it as a context manager."""

    def __init__(self, journal: J, port: int) -> None:
        self._journal = journal
        self._server = AppServer(port)

    def __enter__(self) -> Self:
        self._server.start(self._app())
        return self

    def __exit__(self, *error: object) -> None:
        self._server.stop()

    @property
    def local_url(self) -> str:
        """URL on this machine. Raises ConfigError if the port is in use."""
        return self._server.url

    @property
    def app(self) -> Any:
        """ASGI application of the service, to serve it elsewhere, too."""
        return self._app()

    def clear_failures(self) -> None:
        """Cancel all pending failures."""
        self._journal.clear_failures()

    def _app(self) -> Any:
        raise NotImplementedError


async def wait_for_disconnect(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], seconds: float | None = None
) -> None:
    """Wait until the client disconnects, at most some seconds.

    The server disconnects the clients when it stops. A handler that sleeps instead would be canceled, and logged with
    its traceback.
    """
    # Only where a server runs, which has loaded it: this module is imported in more places.
    import asyncio

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    with suppress(TimeoutError):
        await asyncio.wait_for(disconnected(), seconds)


def app_of(routes: "Sequence[Route]") -> "Starlette":
    """Return an ASGI application for all origins: web builds of an app are on another one and send no cookies."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware

    anywhere = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["*"],
    )

    return Starlette(routes=routes, middleware=[anywhere])

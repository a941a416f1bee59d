"""Makes services of this process reachable for devices on other machines: one port for all, and its public URL."""

import secrets
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from pytest_device.errors import ConfigError
from pytest_device.redact import is_http_url, shown, uses_tls
from pytest_device.serving import AppServer

IDENTITY_PATH: Final = "/.well-known/pytest-device"
"""Where a gateway says which one it is, so that a URL that leads elsewhere is found."""
START_SECONDS: Final = 30.0
"""Maximum time until a public URL leads to the gateway, in seconds."""

_POLL_SECONDS: Final = 0.1
_REQUEST_SECONDS: Final = 5.0
_IDENTITY_BYTES: Final = 100

TunnelFactory: TypeAlias = Callable[[int], AbstractContextManager[str]]
"""Opens a tunnel to a port of 127.0.0.1; the context manager provides its public URL."""


class Gateway:
    """One port for several services, each at a path of its own that nobody can guess: a tunnel's URL is public."""

    def __init__(self) -> None:
        self._identity = secrets.token_urlsafe(16)
        self._apps: dict[str, Any] = {}
        self._server = AppServer()

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        return urlsplit(self._server.url).port or 0

    def start(self) -> None:
        """Answer requests in a thread."""
        self._server.start(self)

    def stop(self) -> None:
        """Free the port."""
        self._server.stop()

    def new_path(self) -> str:
        """Return a path for a service, without a trailing slash."""
        return f"/{secrets.token_urlsafe(12)}"

    @contextmanager
    def serving(self, path: str, app: Any) -> Generator[None]:
        """Answer requests at a path, of `new_path`, with an ASGI application."""
        self._apps[path] = app
        try:
            yield
        finally:
            del self._apps[path]

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Pass a request to the service at its path, as an ASGI server mounts an application."""
        from starlette.responses import PlainTextResponse

        # A lifespan or a websocket: no service has one.
        if scope["type"] != "http":
            return

        request: dict[str, Any] = dict(scope)
        path: str = request["path"]
        if path == IDENTITY_PATH:
            await PlainTextResponse(self._identity)(request, receive, send)
            return

        mounted = "/" + path.lstrip("/").partition("/")[0]
        app = self._apps.get(mounted)
        if app is None:
            await PlainTextResponse("not found\n", 404)(request, receive, send)
            return

        request["root_path"] = mounted
        await app(request, receive, send)


def at_public_url(url: str, worker: str) -> TunnelFactory:
    """Return a factory for a URL at which each port of this machine is public: it replaces ``{port}`` and ``{worker}``."""
    return lambda port: nullcontext(
        url.replace("{port}", str(port)).replace("{worker}", worker)
    )


@contextmanager
def opened(make: TunnelFactory, gateway: Gateway) -> Generator[str]:
    """Open a tunnel to a gateway, and provide its public URL without a trailing slash.

    A request through the URL shows that it leads to this gateway. Raises ConfigError.
    """
    with make(gateway.port) as provided:
        url = cast("object", provided)  # a suite's factory may provide anything
        if not isinstance(url, str) or not is_http_url(url):
            raise ConfigError(
                f"device_tunnel_factory provided {shown(str(url))!r}, which is no http or https URL: "
                "yield the tunnel's public URL"
            )

        _wait_for(url, gateway.port, time.monotonic() + START_SECONDS)
        yield url.rstrip("/")


def _wait_for(url: str, port: int, deadline: float) -> None:
    problem = _problem_of(url, port)
    while problem:
        if time.monotonic() > deadline:
            raise ConfigError(
                f"the public URL of the services leads nowhere: {problem}. No device was created"
            )
        time.sleep(_POLL_SECONDS)
        problem = _problem_of(url, port)


def _problem_of(url: str, port: int) -> str:
    """Return why a URL does not lead to the gateway at a port, empty if it does."""
    try:
        expected = _identity(f"http://127.0.0.1:{port}")
        actual = _identity(url.rstrip("/"))
    except _NoIdentityError as error:
        return f"{shown(url)}: {error}"

    return "" if actual == expected else f"{shown(url)} leads to another server"


class _NoIdentityError(Exception):
    """A server did not respond, or not with a gateway's identity."""


def _identity(base: str) -> str:
    """Return a server's response at the path of a gateway's identity, at most 100 bytes. Raises _NoIdentityError."""
    import httpx

    url = f"{base}{IDENTITY_PATH}"
    is_on_this_machine = urlsplit(base).hostname == "127.0.0.1"
    try:
        with (
            httpx.Client(
                timeout=_REQUEST_SECONDS,
                verify=uses_tls(url),
                trust_env=not is_on_this_machine,
            ) as http,
            http.stream("GET", url) as reply,
        ):
            if not reply.is_success:
                raise _NoIdentityError(f"status {reply.status_code}")
            # Any server may be at the other end: no more is read than an identity has.
            beginning = next(reply.iter_bytes(_IDENTITY_BYTES), b"")
            return beginning[:_IDENTITY_BYTES].decode(errors="replace")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _NoIdentityError(str(error) or type(error).__name__) from None

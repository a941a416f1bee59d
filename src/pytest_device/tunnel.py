"""Makes services of this process reachable for devices on other machines: one port for all, and a tunnel to it."""

import os
import re
import secrets
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
from pytest_device.redact import shown, uses_tls
from pytest_device.serving import AppServer

PORT: Final = "{port}"
"""Stands for the port in a tunnel's command."""
IDENTITY_PATH: Final = "/.well-known/pytest-device"
"""Where a gateway says which one it is, so that a tunnel that leads elsewhere is found."""
START_SECONDS: Final = 30.0
"""Maximum time from a tunnel's start until its URL leads to the gateway, in seconds."""

_STOP_SECONDS: Final = 10.0
"""Longer than the guard takes to end the command and its children."""
_POLL_SECONDS: Final = 0.1
_REQUEST_SECONDS: Final = 5.0
_NO_DEVICE: Final = "No device was created"
_MAX_LINES: Final = 5
"""Maximum number of a command's lines in an error, the last ones."""
_LINE_LENGTH: Final = 200
_READ_BYTES: Final = 8192
_IDENTITY_BYTES: Final = 100
_MAX_URLS: Final = 20
"""Maximum number of URLs of a command's output to try: some print those of their documentation, too."""
_URL: Final = re.compile(r"https?://[^\s\"'<>|`\\^{}*\x00-\x1f\x7f-\U0010ffff]+")
"""A URL of ASCII: frames, quotes, emphasis and escaped JSON around it are no part of it."""
_BEHIND_URL: Final = ".,:;!)]"

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


@dataclass(frozen=True, slots=True)
class OpenTunnel:
    """A tunnel that leads to a gateway."""

    url: str
    """Public URL, without a trailing slash."""
    check: Callable[[], None] = lambda: None
    """Raises ConfigError if the tunnel's command has ended since; what a suite's factory opens is not checked again."""


@contextmanager
def opened(make: TunnelFactory, gateway: Gateway) -> Generator[OpenTunnel]:
    """Open a tunnel to a gateway.

    One request through its public URL shows that it leads to this gateway. Raises ConfigError.
    """
    if isinstance(make, CommandTunnel):
        with make.started(gateway.port) as program:
            yield OpenTunnel(program.url.rstrip("/"), program.check)
        return

    with make(gateway.port) as provided:
        url = cast("object", provided)  # a suite's factory may provide anything
        if not isinstance(url, str) or not _URL.fullmatch(url):
            raise ConfigError(
                f"device_tunnel_factory provided {shown(str(url))!r}, which is no http or https URL: "
                "yield the tunnel's public URL"
            )

        _wait_for(url, gateway.port, time.monotonic() + START_SECONDS)
        yield OpenTunnel(url.rstrip("/"))


@dataclass(frozen=True, slots=True)
class CommandTunnel:
    """A tunnel that a program opens: ``command`` with ``{port}`` for the port, split as a shell does, without a shell.

    The program prints the public URL, among any other text, and keeps the tunnel open until it is terminated.
    """

    command: str

    @contextmanager
    def __call__(self, port: int) -> Generator[str]:
        """Start the program, and provide the first of its URLs that leads to the port; raises ConfigError."""
        with self.started(port) as program:
            yield program.url

    @contextmanager
    def started(self, port: int) -> "Generator[_Program]":
        """Start the program, and wait until one of its URLs leads to the port; raises ConfigError."""
        program = _Program(self.command.replace(PORT, str(port)))
        try:
            program.wait_for_url(port)
            yield program
        finally:
            program.stop()


class _Program:
    """A tunnel's process, whose guard ends it if this process is killed."""

    def __init__(self, command: str) -> None:
        self.url = ""
        self._words = shlex.split(command)
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._urls: dict[str, None] = {}
        """The printed URLs, each once, in their order."""
        self._rest = b""
        """What follows the last line break: the URL may be in a line that does not end."""
        self._process = subprocess.Popen(  # noqa: S603  # the user's own setting
            bare_python("pytest_device.tunnel_guard", *self._words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            # A signal to the run's whole group, as of Ctrl-C, a closed terminal or timeout(1), would end the guard, too.
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for_url(self, port: int) -> None:
        """Wait until a printed URL leads to the port, and keep it. Raises ConfigError."""
        deadline = time.monotonic() + START_SECONDS
        problem = ""
        while time.monotonic() < deadline:
            # Before the URLs are tried: what it printed before its end is tried once more.
            has_ended = self._process.poll() is not None

            for url in dict.fromkeys([*self._urls, *_urls_in(self._rest)]):
                if time.monotonic() > deadline:
                    break

                problem = _problem_of(url, port)
                if not problem:
                    self.url = url
                    return

            if has_ended:
                self._reader.join(_STOP_SECONDS)
                status = self._process.returncode
                raise self._error(f"ended with status {status}", _NO_DEVICE)

            time.sleep(_POLL_SECONDS)

        if problem:
            raise self._error(f"leads nowhere: {problem}", _NO_DEVICE)
        raise self._error(f"printed no URL within {START_SECONDS:g} s", _NO_DEVICE)

    def check(self) -> None:
        """Raise ConfigError if the program has ended since its URL led here."""
        status = self._process.poll()
        if status is not None:
            self._reader.join(_STOP_SECONDS)
            raise self._error(
                f"ended with status {status} during the run",
                "No more devices reach the services of this process",
            )

    def stop(self) -> None:
        """Terminate the program: its guard does, when its input ends."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()

        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

        self._reader.join(_STOP_SECONDS)
        # Closing what another thread reads would wait for it, for ever.
        if self._process.stdout and not self._reader.is_alive():
            self._process.stdout.close()

    def _read(self) -> None:
        """Keep the last lines and the URLs; read on, since a full pipe would stop the program."""
        output = cast("BufferedReader", self._process.stdout)
        rest = b""
        # In parts, because a line may be endless; a program that draws over its line ends it with a carriage return.
        while part := output.read1(_READ_BYTES):
            *lines, rest = re.split(rb"[\r\n]+", rest + part)
            if len(rest) > _READ_BYTES:
                lines.append(rest)
                rest = b""
            self._rest = rest
            self._keep(lines)

        self._rest = b""
        self._keep([rest])

    def _keep(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._lines.append(line.decode(errors="replace").rstrip()[:_LINE_LENGTH])
            if len(self._urls) < _MAX_URLS:
                self._urls |= dict.fromkeys(_urls_in(line))

    def _error(self, problem: str, effect: str) -> ConfigError:
        lines = [*self._lines, self._rest.decode(errors="replace")[:_LINE_LENGTH]]
        printed = "; ".join(line for line in lines[-_MAX_LINES:] if line) or "nothing"
        return ConfigError(
            f"the tunnel {shown(self._words[0])!r} (device_tunnel) {problem}. It printed: {shown(printed)}. {effect}"
        )


def _urls_in(line: bytes) -> list[str]:
    text = line.decode(errors="replace")
    return [url.rstrip(_BEHIND_URL) for url in _URL.findall(text)]


def _environment() -> dict[str, str]:
    """Return the variables for the program: the user's own, which may configure it, without those of this package."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEVICE_")
    }


def _wait_for(url: str, port: int, deadline: float) -> None:
    problem = _problem_of(url, port)
    while problem:
        if time.monotonic() > deadline:
            raise ConfigError(
                f"the tunnel of device_tunnel_factory leads nowhere: {problem}. No device was created"
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

"""HTTP servers on this machine, with replies set by a test."""

import json
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import (
    BaseHTTPRequestHandler,
    SimpleHTTPRequestHandler,
    ThreadingHTTPServer,
)
from pathlib import Path
from socketserver import BaseServer
from typing import Final, TypeVar

import trustme

from tests.waiting import Checkpoint

Server = TypeVar("Server", bound=BaseServer)

_NOTHING: Final[Mapping[str, str]] = {}


class Handler(BaseHTTPRequestHandler):
    """Reads requests and sends replies, without writing to the terminal."""

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] = _NOTHING
    ) -> None:
        """Send a reply; ``headers`` may replace its ``Content-Length``."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log nothing."""


class HttpServer(ThreadingHTTPServer):
    """A server on a free port, which does not wait for the clients that are left at its end."""

    daemon_threads = True
    scheme = "http"

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Require TLS of each later connection."""
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"


@dataclass(frozen=True)
class Answer:
    """The reply to one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    rest: bytes = b""
    """Sent repeatedly after the body, ``pause`` seconds apart, until the client disconnects."""
    pause: float = 0.0


def says(value: object, status: int = 200) -> Answer:
    """Return the answer with a value as JSON."""
    return Answer(
        status, json.dumps(value).encode(), {"Content-Type": "application/json"}
    )


class ScriptedServer(HttpServer):
    """Stands in for any program with an HTTP interface: records its requests, and replies as the test sets.

    ``asked`` has the path and the Authorization header of each request, ``bodies`` their bodies. ``answer`` is called
    with the method and the path, such as ``GET /status``.
    """

    def __init__(self, answer: Callable[[str], Answer] | None = None) -> None:
        super().__init__(_Scripted)
        self.asked: list[tuple[str, str | None]] = []
        self.bodies: list[bytes] = []
        self.answer = answer or (lambda _call: Answer())
        self.is_over = threading.Event()

    def use_own_tls(self, cafile: Path) -> None:
        """Require TLS from now on; write the certificate authority of this server to a file."""
        authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.cert_pem.write_to_path(cafile)
        self.use_tls(context)

    def handle_error(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Ignore it if the client disconnects."""


class _Scripted(Handler):
    server: ScriptedServer

    def do_GET(self) -> None:
        self.server.bodies.append(self.body())
        self.server.asked.append((self.path, self.headers["Authorization"]))
        answer = self.server.answer(f"{self.command} {self.path}")
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if not answer.rest and "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        while answer.rest and not self.server.is_over.wait(answer.pause):
            self.wfile.write(answer.rest)

    do_POST = do_DELETE = do_GET  # noqa: N815  # the names that the base class looks for


@contextmanager
def scripted_server(
    answer: Callable[[str], Answer] | None = None,
) -> Generator[ScriptedServer]:
    """Run a server with the answers of a test; end it with the block."""
    with running(ScriptedServer(answer)) as server:
        try:
            yield server
        finally:
            server.is_over.set()


def unavailable(
    checkpoint: Checkpoint, headers: Mapping[str, str]
) -> Callable[[str], Answer]:
    """Return the answers of a service that is slow to report that it is unavailable: not before the test lets it."""

    def answer(_call: str) -> Answer:
        checkpoint.wait()
        return Answer(503, b"", headers)

    return answer


@contextmanager
def running(server: Server) -> Generator[Server]:
    """Let a server answer in a thread; end and close it with the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    with server:
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_files(directory: Path) -> Generator[str]:
    """Serve the files of a directory; return the address, without a slash at the end."""
    handler = partial(_Files, directory=str(directory))
    with running(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log nothing."""

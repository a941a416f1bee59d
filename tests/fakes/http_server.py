"""HTTP servers on this machine, with replies set by a test."""

import ssl
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import (
    BaseHTTPRequestHandler,
    SimpleHTTPRequestHandler,
    ThreadingHTTPServer,
)
from pathlib import Path
from socketserver import BaseServer
from typing import Final, TypeVar

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

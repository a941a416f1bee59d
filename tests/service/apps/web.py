"""A web server whose responses a test sets byte for byte."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer


@dataclass(frozen=True)
class Answer:
    """``endless`` is sent again and again after the body; ``silent`` keeps the connection open and says no more."""

    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] | None = None
    endless: bytes = b""
    silent: bool = False

    def head(self) -> bytes:
        length = (
            {}
            if self.endless or self.silent
            else {"Content-Length": str(len(self.body))}
        )
        headers = {"Connection": "close", **length, **(self.headers or {})}
        return "\r\n".join(
            [
                f"HTTP/1.1 {self.status}",
                *(f"{k}: {v}" for k, v in headers.items()),
                "",
                "",
            ]
        ).encode()


@contextmanager
def web(answers: Mapping[str, Answer]) -> Generator[str]:
    """Answer on a free port by the path and query of a request; give the address."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            request = self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            reported = answers.get(
                request.split()[1].decode(), Answer(status="404 Not Found")
            )
            with suppress(ConnectionError):
                self.wfile.write(reported.head() + reported.body)
                while reported.endless:
                    self.wfile.write(reported.endless)
                if reported.silent:
                    self.rfile.read()  # until the client goes

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        answering = threading.Thread(target=server.serve_forever, args=(0.01,))
        answering.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            answering.join()

"""Controllers with replies set by a test, and sessions that use them."""

import json
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

from pytest_device.sessions.models import Session
from tests.contract.document import example_session
from tests.fakes.http_server import Handler, HttpServer, running

TOKEN = "open-sesame-open"
CONFIGS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "appium": lambda url: {"appiumUrl": url, "capabilities": {"platformName": "Fake"}},
    "agent-device": lambda url: {
        "agentDeviceRemoteSessionUrl": url,
        "agentDeviceRemoteSessionToken": TOKEN,
    },
    "argent": lambda url: {"toolsUrl": url, "toolsAuthToken": TOKEN},
    "web-preview-only": lambda url: {"webPreviewUrl": url},
    "quantum-device": lambda url: {"quantumUrl": url},
}


def session_at(url: str, session_type: str = "appium", **details: Any) -> Session:
    """Return a session in progress with a controller at a URL."""
    return Session.from_wire(
        example_session(
            type=session_type, remoteConfig=CONFIGS[session_type](url) | details
        )
    )


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    rest: bytes = b""
    """Sent repeatedly after the body, ``pause`` seconds apart, until the client disconnects."""
    pause: float = 0.0


def says(value: object, status: int = 200) -> Answer:
    return Answer(
        status, json.dumps(value).encode(), {"Content-Type": "application/json"}
    )


class ControllerServer(HttpServer):
    """Records its requests, and replies as the test sets."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.bodies: list[bytes] = []
        self.answer: Callable[[str], Answer] = lambda _call: Answer()
        self.is_over = threading.Event()

    def handle_error(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Ignore it if the client disconnects."""


class _Handler(Handler):
    server: ControllerServer

    def do_GET(self) -> None:
        self.server.bodies.append(self.body())
        self.server.asked.append((self.path, self.headers["Authorization"]))
        answer = self.server.answer(f"{self.command} {self.path}")
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if not answer.rest:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        while answer.rest and not self.server.is_over.wait(answer.pause):
            self.wfile.write(answer.rest)

    do_POST = do_DELETE = do_GET  # noqa: N815  # the names that the base class looks for


def speak_tls(server: ControllerServer, cafile: Path) -> None:
    """Require TLS from now on; write the certificate authority of this server to a file."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(cafile)
    server.use_tls(context)


@contextmanager
def controller() -> Generator[ControllerServer]:
    with running(ControllerServer()) as server:
        try:
            yield server
        finally:
            server.is_over.set()

"""The reaper's calls: over TLS with the given authority only, through a proxy, limited, never redirected."""

import base64
import gzip
import json
import socket
import ssl
import threading
import warnings
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
import trustme

from pytest_device import (
    ConfigError,
    DeviceClient,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.sessions.network import endpoint_at
from pytest_device.sessions.reaper.http import MAX_BYTES, send
from pytest_device.sessions.reaper.messages import (
    Answer,
    Call,
    Endpoint,
    NoReply,
    Reply,
)
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.http_server import Handler, HttpServer, running
from tests.fakes.local_service import APP_ID
from tests.sessions.reaper_clients import Served, request_at
from tests.waiting import eventually

pytestmark = pytest.mark.every_python

TOKEN = "open-sesame-open"
BODY: Final = b'{"data": {"id": "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d"}}'
# Else the names of the tests depend on the time.
GZIPPED: Final = gzip.compress(BODY, mtime=0)
DEFLATED: Final = zlib.compress(BODY)
BARE: Final = DEFLATED[2:-4]
"""As some servers send it."""
SESSION_ID: Final = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d"
CALL = Call(1, "POST", "/v2/x", '{"a": 1}')


class TlsService(HttpServer):
    """A service over TLS that remembers what it was asked, and answers as it is configured."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(_Handler)
        self.use_tls(context)
        self.asked: list[tuple[str, str, str]] = []
        self.status, self.headers, self.body = 200, {"Content-Length": "2"}, b"{}"
        self.first = b""

    @property
    def url(self) -> str:
        return f"{super().url}/base"


class _Handler(Handler):
    server: TlsService

    def do_POST(self) -> None:
        self.server.asked.append(
            (self.path, self.headers["Authorization"], self.body().decode())
        )
        self.wfile.write(self.server.first)
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls_service(authority: trustme.CA) -> Generator[TlsService]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with running(TlsService(context)) as server:
        yield server


@pytest.fixture
def cafile(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


class Proxy:
    """Accepts one CONNECT and forwards bytes in both directions."""

    def __init__(
        self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
    ) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.head = b""
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        near, _ = self._listener.accept()
        with self._listener, near:
            while b"\r\n\r\n" not in self.head:
                self.head += near.recv(4096)
            near.sendall(self._answer)
            if b" 200 " not in self._answer:
                return
            host, _, port = self.head.split()[1].decode().partition(":")
            with socket.create_connection((host, int(port))) as away:
                back = threading.Thread(target=_carry, args=(away, near), daemon=True)
                back.start()
                _carry(near, away)
                back.join(10)


def _carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # either end has gone
        return


def test_a_call_reaches_a_service_with_a_trusted_certificate(
    tls_service: TlsService, cafile: str
) -> None:
    seen = bytearray()

    answer = send(Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, seen)

    assert (answer, bytes(seen)) == (Reply(200, b"{}"), b"{}")
    ((path, authorization, body),) = tls_service.asked
    assert (path, authorization, json.loads(body)) == (
        "/base/v2/x",
        f"Bearer {TOKEN}",
        {"a": 1},
    )


def test_the_certificate_variables_apply_to_a_service_on_this_machine(
    tls_service: TlsService, cafile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tls_service.url.removesuffix("/base")
    with (
        DeviceClient(url, TOKEN) as client,
        pytest.raises(TransportError, match=r"(?i)certificate"),
    ):
        client.stop("7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c")
    monkeypatch.setenv("SSL_CERT_FILE", cafile)

    endpoint = endpoint_at(url, TOKEN)

    assert isinstance(send(endpoint, CALL, bytearray()), Reply)
    with DeviceClient(url, TOKEN) as client, pytest.raises(UnexpectedReplyError):
        client.stop("7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c")


def test_a_silent_service_has_as_long_as_the_call_may_take() -> None:
    answers: list[Answer] = []
    call = CALL._replace(seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN)
        threading.Thread(
            target=lambda: answers.append(send(endpoint, call, bytearray())),
            daemon=True,
        ).start()

        assert eventually(lambda: bool(answers))

    assert answers == [NoReply("TimeoutError: timed out", sent=True)]


def test_nothing_is_sent_to_a_service_with_an_untrusted_certificate(
    tls_service: TlsService,
) -> None:
    answer = send(Endpoint(tls_service.url, TOKEN), CALL, bytearray())

    assert isinstance(answer, NoReply)
    assert not answer.sent
    assert "CERTIFICATE_VERIFY_FAILED" in answer.problem
    assert tls_service.asked == []


def test_a_proxy_gets_its_credentials_but_nothing_of_the_call(
    tls_service: TlsService, cafile: str
) -> None:
    proxy = Proxy()
    endpoint = Endpoint(
        tls_service.url,
        TOKEN,
        proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}",
        cafile=cafile,
    )

    assert send(endpoint, CALL, bytearray()) == Reply(200, b"{}")

    assert proxy.head.startswith(
        f"CONNECT 127.0.0.1:{tls_service.server_port} ".encode()
    )
    assert b"Basic " + base64.b64encode(b"me:p@ss") in proxy.head
    assert TOKEN.encode() not in proxy.head


def test_a_proxy_that_refuses_leaves_the_call_unsent(
    tls_service: TlsService, cafile: str
) -> None:
    proxy = Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    answer = send(
        Endpoint(tls_service.url, TOKEN, f"http://127.0.0.1:{proxy.port}", cafile),
        CALL,
        bytearray(),
    )

    assert isinstance(answer, NoReply)
    assert not answer.sent
    assert "407" in answer.problem
    assert answer.problem.endswith(f", through the proxy 127.0.0.1:{proxy.port}")
    assert tls_service.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_ipv6_address_without_a_port_is_no_name_to_look_up(scheme: str) -> None:
    endpoint = Endpoint(f"{scheme}://[::1]", TOKEN)

    answer = send(endpoint, CALL, bytearray())

    assert isinstance(answer, NoReply)
    assert "gaierror" not in answer.problem


def test_a_proxy_without_a_port_has_that_of_http() -> None:
    endpoint = Endpoint(
        "https://service.invalid", TOKEN, "http://me:pass@proxy.invalid"
    )

    answer = send(endpoint, CALL, bytearray())

    assert isinstance(answer, NoReply)
    assert answer.problem.endswith(", through the proxy proxy.invalid:80")


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("socks5://me:sesame@host:1", r"socks5://\*\*\*@host:1 cannot be used"),
        ("http://me:sesame/open@host:1", "must be a URL such as .* percent-encoded"),
        ("http://[me:sesame@host", "must be a URL such as"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    proxy: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)

    with pytest.raises(ConfigError, match=problem) as caught:
        endpoint_at("https://service.invalid", TOKEN)

    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "session_id"),
    [
        (f"{SESSIONS_PATH}/{SESSION_ID}", SESSION_ID),
        (
            f"https://other.example{SESSIONS_PATH}/{SESSION_ID.upper()}/",
            SESSION_ID.upper(),
        ),
        (f"{SESSIONS_PATH}/", ""),
        (f"{SESSIONS_PATH}/{SESSION_ID}/stop", ""),
        (f"/login?next={SESSION_ID}", ""),
    ],
)
def test_a_location_may_name_a_session(
    tls_service: TlsService, cafile: str, location: str, session_id: str
) -> None:
    tls_service.status = 201
    tls_service.headers = {"Location": location, "Content-Length": "2"}

    answer = send(Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, bytearray())

    assert answer == Reply(201, b"{}", located_id=session_id)


def test_a_redirect_is_not_followed(tls_service: TlsService, cafile: str) -> None:
    tls_service.status, tls_service.headers = (
        307,
        {"Location": tls_service.url, "Content-Length": "2"},
    )

    assert send(
        Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, bytearray()
    ) == Reply(307, b"{}")

    assert len(tls_service.asked) == 1


def test_interim_responses_are_skipped(tls_service: TlsService, cafile: str) -> None:
    tls_service.first = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    )

    assert send(
        Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, bytearray()
    ) == Reply(200, b"{}")


def test_no_problem_quotes_a_response_that_is_not_http(
    tls_service: TlsService, cafile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls_service.first = b'{"data": {"remoteConfig": {"toolsAuthToken": "hunter2"}}}\r\n'
    monkeypatch.setenv("SSL_CERT_FILE", cafile)
    url = tls_service.url.removesuffix("/base")

    answer = send(endpoint_at(url, TOKEN), CALL, bytearray())
    with DeviceClient(url, TOKEN) as client, pytest.raises(TransportError) as caught:
        client.create(request_at(Served(url, TOKEN, APP_ID)))

    assert isinstance(answer, NoReply)
    assert "hunter2" not in f"{answer.problem} {caught.value}"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", GZIPPED), ("X-GZip", GZIPPED), ("deflate", DEFLATED), ("deflate", BARE)],
)
def test_responses_compressed_by_proxies_are_decompressed(
    tls_service: TlsService, cafile: str, encoding: str, packed: bytes
) -> None:
    tls_service.headers, tls_service.body = (
        {"Content-Encoding": encoding, "Content-Length": str(len(packed))},
        packed,
    )

    assert send(
        Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, bytearray()
    ) == Reply(200, BODY)


@pytest.mark.parametrize(
    ("headers", "body", "problem"),
    [
        ({"Content-Length": str(MAX_BYTES + 1)}, b" " * (MAX_BYTES + 1), "larger than"),
        ({"Content-Length": "9"}, b'{"id"', "4 bytes are missing"),
        ({"Content-Length": "2", "Content-Encoding": "br"}, b"{}", "compressed ('br')"),
        (
            {"Content-Encoding": "gzip"},
            GZIPPED[:-9],
            "the compressed response is truncated",
        ),
        (
            {"Content-Encoding": "deflate"},
            BODY,
            "compressed as deflate, but cannot be decompressed",
        ),
        (
            {"Content-Encoding": "gzip"},
            gzip.compress(bytes(2 * MAX_BYTES), mtime=0),
            f"the decompressed response is larger than {MAX_BYTES} bytes",
        ),
    ],
)
def test_an_incomplete_response_is_a_problem_of_a_sent_call(
    tls_service: TlsService,
    cafile: str,
    headers: dict[str, str],
    body: bytes,
    problem: str,
) -> None:
    tls_service.headers, tls_service.body = headers, body

    answer = send(Endpoint(tls_service.url, TOKEN, cafile=cafile), CALL, bytearray())

    assert isinstance(answer, NoReply)
    assert problem in answer.problem
    assert answer.sent


def test_a_plugin_that_blocks_sockets_leaves_the_call_unsent_if_warnings_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def warn(*_arguments: object, **_options: object) -> None:
        warnings.warn("A test tried to use socket.socket.", stacklevel=2)

    monkeypatch.setattr(socket, "create_connection", warn)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = send(Endpoint("http://127.0.0.1:1", TOKEN), CALL, bytearray())

    assert answer == NoReply("UserWarning: A test tried to use socket.socket.", False)

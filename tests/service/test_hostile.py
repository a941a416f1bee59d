"""The service as a process, and hostile clients."""

import hmac
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from pytest_device.service.api import MAX_BODY_BYTES, MAX_TESTING_BODY_BYTES
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.local_service import (
    ACCOUNTS,
    TOKEN,
    UNKNOWN_ID,
    InProcessService,
    data,
)
from tests.service.process import PATIENCE_SECONDS, ServiceProcess, config, running

ATTEMPTED_BYTES = 256 * 1024 * 1024
BORNE_BYTES = 3 * MAX_TESTING_BODY_BYTES
"""Memory that the service may use for an attempt: the maximum size, in parts and assembled."""
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def service(directory: Path) -> Iterator[ServiceProcess]:
    with running(config(directory)) as service:
        yield service


def answer(
    service: ServiceProcess, head: str, part: bytes = b"", most: int = 0
) -> tuple[str, int]:
    """Send raw bytes, the part again and again until it is refused; return the answer and what was sent."""
    url, sent = httpx.URL(service.url), 0
    with socket.create_connection(
        (url.host, url.port or 0), timeout=PATIENCE_SECONDS
    ) as connection:
        connection.sendall(head.encode().replace(b"\n", b"\r\n"))
        with suppress(OSError):  # refused
            connection.settimeout(2)
            while sent < most:
                connection.sendall(part)
                sent += len(part)
        connection.settimeout(PATIENCE_SECONDS)
        with suppress(ConnectionResetError):
            return connection.recv(65536).decode(), sent
    return "", sent


def head(method: str, path: str, *headers: str, host: str = "localhost") -> str:
    authorization = f"Authorization: Bearer {TOKEN}"
    return "\n".join(
        [f"{method} {path} HTTP/1.1", f"Host: {host}", authorization, *headers, "", ""]
    )


CHUNKS = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
ENDLESS = [
    (SESSIONS_PATH, "Transfer-Encoding: chunked", CHUNKS),
    (SESSIONS_PATH, f"Content-Length: {ATTEMPTED_BYTES}", b" " * 65536),
    (f"{SESSIONS_PATH}/{UNKNOWN_ID}/stop", "Transfer-Encoding: chunked", CHUNKS),
    ("/testing/faults", "Transfer-Encoding: chunked", CHUNKS),
    ("/testing/reset", f"Content-Length: {ATTEMPTED_BYTES}", b" " * 65536),
    ("/nowhere", "Transfer-Encoding: chunked", CHUNKS),
]


@pytest.mark.parametrize(("path", "length", "part"), ENDLESS)
def test_an_endless_body_is_not_read(
    service: ServiceProcess, path: str, length: str, part: bytes
) -> None:
    before = psutil.Process(service.process.pid).memory_info().rss

    answer(
        service,
        head("POST", path, "Content-Type: application/json", length),
        part,
        ATTEMPTED_BYTES,
    )

    assert psutil.Process(service.process.pid).memory_info().rss - before < BORNE_BYTES
    assert service.create().status_code == 200


def test_an_overlarge_body_is_refused_with_a_message(service: ServiceProcess) -> None:
    reply = service.http.post(
        SESSIONS_PATH, content=b" " * (MAX_BODY_BYTES + 1), headers=JSON
    )

    assert reply.status_code == 413
    assert str(MAX_BODY_BYTES) in reply.text


def test_a_fault_can_be_larger_but_not_unlimited(service: ServiceProcess) -> None:
    fault = {
        "operation": "stop",
        "effect": "reply",
        "body": "x" * 10_000_000,
        "times": 0,
    }

    assert service.http.post("/testing/faults", json=fault).status_code == 200
    assert (
        service.http.post(
            "/testing/faults", content=b" " * (MAX_TESTING_BODY_BYTES + 1)
        ).status_code
        == 413
    )


def test_endless_headers_are_not_read(service: ServiceProcess) -> None:
    said, sent = answer(
        service,
        f"GET {SESSIONS_PATH}/{UNKNOWN_ID} HTTP/1.1\n",
        b"X: y\r\n" * 1000,
        ATTEMPTED_BYTES,
    )

    assert sent < ATTEMPTED_BYTES
    assert not said.startswith("HTTP/1.1 200 ")
    assert service.create().status_code == 200


FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost@evil.example",
    "10.0.0.1",
    "0.0.0.0",
    "[::]",
    "",
]
PATHS = [
    f"{SESSIONS_PATH}/{UNKNOWN_ID}",
    f"/sessions/{UNKNOWN_ID}",
    "/testing/sessions",
    "/openapi.json",
    "/",
]


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", PATHS)
def test_requests_for_a_foreign_host_are_refused(
    service: ServiceProcess, host: str, path: str
) -> None:
    said, _ = answer(service, head("GET", path, host=host))

    assert said.startswith("HTTP/1.1 421 ")


def test_no_fault_applies_to_a_foreign_host(service: ServiceProcess) -> None:
    service.fault("get", "reply", status=200, body="planted", skip=0)
    foreign, _ = answer(service, head("GET", PATHS[0], host="evil.example"))
    own, _ = answer(service, head("GET", PATHS[0]))

    assert foreign.startswith("HTTP/1.1 421 ")
    assert own.startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "headers",
    [
        "Host: localhost\nHost: evil.example",
        "Host: evil.example\nHost: localhost",
        "X: y",
    ],
)
def test_a_request_has_exactly_one_host_header(
    service: ServiceProcess, headers: str
) -> None:
    said, _ = answer(service, f"GET {PATHS[0]} HTTP/1.1\n{headers}\n\n")

    assert said.startswith("HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "session_id",
    [
        "..",
        "../..",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "%00",
        "~root",
        ".%5c..%5c",
    ],
)
@pytest.mark.parametrize(
    "page", [f"{SESSIONS_PATH}/", f"{SESSIONS_PATH}/{UNKNOWN_ID}/", "/sessions/", "/"]
)
def test_no_path_leads_to_a_file(
    service: ServiceProcess, page: str, session_id: str
) -> None:
    said, _ = answer(service, head("GET", page + session_id))

    assert said.startswith(("HTTP/1.1 400 ", "HTTP/1.1 404 ", "HTTP/1.1 405 "))
    assert "root:" not in said


def test_no_value_of_a_request_reaches_a_shell_or_a_file(
    service: ServiceProcess, directory: Path
) -> None:
    before = {path for path in directory.rglob("*") if path.is_file()}
    marker = directory / "marker"
    for text in (
        f"$(touch {marker})",
        f"`touch {marker}`",
        f"; touch {marker} #",
        f"| touch {marker}",
        str(marker),
    ):
        options = {
            "name": text,
            "deviceIdentifier": text,
            "packageVersion": text,
            "applicationArchiveUrl": f"https://127.0.0.1:9/{text.replace(' ', '%20')}",
            "openUrl": f"file://{text.replace(' ', '%20')}",
            "launchArgs": [text, f"../{text}"],
        }
        session_id = data(service.create(**options))["id"]
        service.http.post(f"{SESSIONS_PATH}/{session_id}/stop")

    assert {path for path in directory.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1/",
        "/etc/passwd",
        "//x/y",
    ],
)
def test_an_archive_must_have_an_http_url(service: ServiceProcess, url: str) -> None:
    assert service.create(applicationArchiveUrl=url).status_code == 400


def test_no_name_can_forge_a_log_line(service: ServiceProcess, directory: Path) -> None:
    service.create(name="a\r\n2026-01-01 ERROR forged\u2028\x1b[31m")
    lines = (directory / "service.log").read_text().split("\n")

    assert not [line for line in lines if line.startswith("2026-01-01 ERROR")]
    assert "\x1b" not in "".join(lines)


def test_every_token_is_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[int, int]] = []
    constant_time = hmac.compare_digest

    def counting(known: bytes, given: bytes) -> bool:
        compared.append((len(known), len(given)))
        return constant_time(known, given)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    path = f"{SESSIONS_PATH}/{UNKNOWN_ID}"
    with closing(InProcessService()) as service:
        for token in ("", TOKEN, TOKEN[:-1], "x" * 5000):
            header = {"Authorization": f"Bearer {token}"}
            service.send("GET", path, token=None, headers=header)

    tokens = sum(len(account.tokens) for account in ACCOUNTS)
    assert compared == [(32, 32)] * 4 * tokens

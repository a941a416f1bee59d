"""Services of the test's own process."""

import asyncio
import gc
import math
import socket
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import StreamingResponse

from pytest_device import ConfigError
from pytest_device.auth.discovery import WELL_KNOWN
from pytest_device.auth.provider import IdentityProvider
from pytest_device.notifications.endpoint import PushEndpoint
from pytest_device.serving import AppServer, Failure, Journal
from pytest_device.testing import faulty_service
from pytest_device.updates.service import DeviceUpdateService


async def trickle() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.01)


async def endless(scope: Any, receive: Any, send: Any) -> None:
    await StreamingResponse(trickle())(scope, receive, send)


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="endless reply"),
        pytest.param(b"GET / HT", id="half a request"),
        pytest.param(b"", id="silence"),
    ],
)
def test_a_server_that_stops_leaves_nothing_open(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def stop_during_a_request() -> None:
        server = AppServer()
        with socket.create_connection(
            ("127.0.0.1", int(server.url.rpartition(":")[2]))
        ) as client:
            server.start(endless)
            client.send(request_bytes)
            if request_bytes.endswith(b"\r\n\r\n"):
                assert client.recv(1)
            server.stop()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        stop_during_a_request()
        gc.collect()

    assert [str(one.message) for one in seen] == []
    assert caplog.messages == []


def identity_provider() -> IdentityProvider:
    return IdentityProvider(clients=[])


@pytest.mark.parametrize(
    ("make", "failure", "request_line"),
    [
        (
            identity_provider,
            lambda provider: provider.fail("discovery", "delay", seconds=3600),
            f"GET {WELL_KNOWN}",
        ),
        (
            identity_provider,
            lambda provider: provider.fail("discovery", "hang"),
            f"GET {WELL_KNOWN}",
        ),
        (
            DeviceUpdateService,
            lambda updates: updates.fail("slow", seconds=3600),
            "GET /manifest",
        ),
        (PushEndpoint, lambda push: push.fail("hang"), "POST /push/getPushToken"),
    ],
)
def test_a_service_that_stops_during_a_delayed_reply_logs_nothing(
    make: Callable[[], Any],
    failure: Callable[[Any], None],
    request_line: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    method, path = request_line.split()
    service = make()
    url = urlsplit(service.local_url)
    request = f"{request_line} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n"

    # Stopped before the client disconnects.
    with socket.create_connection((url.hostname, url.port)) as client, service:
        failure(service)
        client.send(request.encode())
        # Answered while the first one waits.
        httpx.request(method, f"{service.local_url}{path}", timeout=60)

    assert caplog.messages == []


def test_a_server_that_never_started_frees_its_port() -> None:
    first = AppServer()
    port = int(first.url.rpartition(":")[2])
    first.stop()

    AppServer(port).stop()


def test_a_server_whose_url_is_never_read_opens_no_socket() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        AppServer()
        DeviceUpdateService(public_url="https://updates.example").app  # noqa: B018  # served elsewhere
        gc.collect()

    assert [str(one.message) for one in seen] == []


def test_a_port_that_cannot_be_bound_is_named() -> None:
    first = AppServer()
    port = int(first.url.rpartition(":")[2])
    wrong_ports: list[tuple[Any, str]] = [
        (port, "is not available"),
        (99_999, "must be 0 to 65535"),
        ("80", "must be 0 to 65535"),
    ]
    for wrong, problem in wrong_ports:
        with pytest.raises(ConfigError, match=f"port {wrong!r} {problem}"):
            AppServer(wrong).start(endless)
    first.stop()


def test_waits_on_a_journal_end_with_the_awaited_entry() -> None:
    journal = Journal()
    journal.add(1)
    threading.Timer(0.05, journal.add, ["x"]).start()

    assert journal.wait_until(lambda: journal.of(str) or None, 10) == ("x",)
    assert journal.of(int) == (1,)
    assert journal.wait_until(lambda: None, 0.01) is None


@pytest.mark.parametrize("seconds", ["1", None, math.inf, math.nan])
def test_a_timeout_or_delay_that_is_no_number_of_seconds_is_refused(
    seconds: Any,
) -> None:
    with pytest.raises(ConfigError, match=r"timeout_seconds=.* must be a finite"):
        Journal().wait_until(lambda: None, seconds)
    with pytest.raises(ConfigError, match=r"seconds=.* must be a number of seconds"):
        Failure("token", "delay", seconds=seconds)


@pytest.mark.parametrize("times", ["1", 1.5, True])
def test_a_failure_happens_a_whole_number_of_times(times: Any) -> None:
    with pytest.raises(ConfigError, match=r"times=.* must be a whole number"):
        Failure("token", "deny", times)


@contextmanager
def in_this_process() -> Generator[str]:
    with DeviceUpdateService() as service:
        yield service.url


@contextmanager
def local_service() -> Generator[str]:
    with faulty_service() as service:
        yield service.url


@pytest.mark.nightly
@pytest.mark.parametrize("running", [in_this_process, local_service])
def test_an_idle_connection_stays_open_for_longer_than_clients_keep_it(
    running: Callable[[], AbstractContextManager[str]],
) -> None:
    """Else the server closes a connection just when a client that has kept it sends the next request."""
    kept_seconds = httpx.Limits().keepalive_expiry
    assert kept_seconds
    with (
        running() as url,
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), 10) as client,
    ):
        client.sendall(b"GET /no-such-page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        reply = reply_of(client)
        client.settimeout(kept_seconds + 1)

        with pytest.raises(TimeoutError):
            client.recv(1)

    assert b"connection: close" not in reply.lower()


def reply_of(client: socket.socket) -> bytes:
    """Read a reply with a content length."""
    reply = b""
    while b"\r\n\r\n" not in reply:
        reply += client.recv(1000)
    head, _, body = reply.partition(b"\r\n\r\n")
    [length] = [
        int(line.split(b":")[1])
        for line in head.lower().splitlines()
        if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += client.recv(1000)
    return reply

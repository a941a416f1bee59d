"""Services of the test's own process."""

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import StreamingResponse

from pytest_device import ConfigError
from pytest_device.serving import AppServer, Journal
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
    for wrong, problem in ((port, "is not available"), (99_999, "must be 0 to 65535")):
        with pytest.raises(ConfigError, match=f"port {wrong} {problem}"):
            AppServer(wrong).start(endless)
    first.stop()


def test_waits_on_a_journal_end_with_the_awaited_entry() -> None:
    journal = Journal()
    journal.add(1)
    threading.Timer(0.05, journal.add, ["x"]).start()

    assert journal.wait_until(lambda: journal.of(str) or None, 10) == ("x",)
    assert journal.of(int) == (1,)
    assert journal.wait_until(lambda: None, 0.01) is None

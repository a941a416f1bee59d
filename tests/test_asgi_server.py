"""The HTTP server of the local service and of the services in the test's own process."""

import asyncio
import socket
from typing import Any

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_device.asgi_server import Server, listening


async def endless(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        body = bytes(1024**2)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await asyncio.sleep(0)  # a connection that is closed takes it without a wait


@pytest.mark.parametrize("aborts", [True, False])
def test_a_response_that_nobody_reads_does_not_stay_open_when_the_server_stops(
    *, aborts: bool
) -> None:
    transports: list[asyncio.Transport] = []

    class Recorded(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            transports.append(transport)
            super().connection_made(transport)

    async def stopped_during_a_response(
        listener: socket.socket, client: socket.socket
    ) -> None:
        server = Server(endless, protocol=Recorded, grace_seconds=0, aborts=aborts)
        serving = asyncio.create_task(server.serve([listener]))

        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.to_thread(client.recv, 1)
        server.should_exit = True
        await serving

    with (
        listening("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname(), 10) as client,
    ):
        asyncio.run(stopped_during_a_response(listener, client))

    [transport] = transports
    assert transport.get_extra_info("socket").fileno() == -1

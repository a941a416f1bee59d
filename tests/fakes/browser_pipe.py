"""A browser at the other end of its pipe, which says what a test says."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pytest_device.service.devices.cdp import Connection, Event


@dataclass(frozen=True)
class FakeBrowserPipe:
    """Stands in for a browser: the other end of the pipe to it.

    ``asked`` returns the next command, ``say`` sends a message.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def asked(self) -> Any:
        return json.loads((await self.reader.readuntil(b"\0"))[:-1])

    def say(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\0")


Handler = Callable[[FakeBrowserPipe], Awaitable[None]]


@asynccontextmanager
async def browser(
    handler: Handler, heard: Callable[[Event], None] = print
) -> AsyncGenerator[Connection, None]:
    """Provide a connection to a browser that the handler plays; ``heard`` receives its events."""
    near, far = [
        await asyncio.open_connection(sock=end, limit=2**24)
        for end in socket.socketpair()
    ]
    connection, pipe = Connection(*near), FakeBrowserPipe(*far)
    connection.on_event = heard
    tasks = [
        asyncio.create_task(connection.read()),
        asyncio.ensure_future(handler(pipe)),
    ]
    try:
        yield connection
    finally:
        for task in tasks:
            task.cancel()
        for _, writer in (near, far):
            writer.close()
            await writer.wait_closed()

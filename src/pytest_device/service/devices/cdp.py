"""A connection to the debugging port of a browser: commands, events and the end."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from pytest_device.errors import ControllerError

LIMIT_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 1.0
_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""Larger than any screenshot."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the browser; ``session`` is the page it is about, None for the browser itself."""

    method: str
    params: Mapping[str, Any]
    session: str | None


class RefusedError(ControllerError):
    """The browser refused a command."""


class Connection:
    """Sends commands and returns their results. Created by ``connected``."""

    def __init__(self, websocket: ClientConnection, on_event: Callable[[Event], None]) -> None:
        self._websocket = websocket
        self._on_event = on_event
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> Mapping[str, Any]:
        """Execute a command of a page or of the browser itself, and return its result.

        Raises ControllerError if it is refused, takes too long, or the browser exits.
        """
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params or {}}
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_seconds):
                await self._websocket.send(json.dumps(command | ({"sessionId": session} if session else {})))
                reply = await answer
        except TimeoutError as error:
            raise ControllerError(f"the browser did not answer {method} within {limit_seconds:g} s") from error
        except ConnectionClosed as error:
            raise _gone(method) from error
        finally:
            del self._waiting[number]
        if problem := reply.get("error"):
            raise RefusedError(f"the browser refuses {method}: {problem['message']}")
        result: Mapping[str, Any] = reply["result"]
        return result

    async def read(self) -> None:
        """Receive messages until the connection ends."""
        try:
            async for message in self._websocket:
                self._take(json.loads(message))
        except ConnectionClosed:
            return  # a browser that was killed closes without a handshake
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_gone("a command"))

    def _take(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            self._on_event(Event(message["method"], message["params"], message.get("sessionId")))
            return
        answer = self._waiting.get(message["id"])
        if answer is not None and not answer.done():
            answer.set_result(message)


@asynccontextmanager
async def connected(url: str, on_event: Callable[[Event], None]) -> AsyncGenerator[Connection, None]:
    """Connect to a browser's ``ws://`` address; ``on_event`` receives each event. Raises ControllerError."""
    where = urlsplit(url)
    try:
        # With a socket of our own, no proxy of the environment is used.
        opened = socket.create_connection((where.hostname or "", where.port or 0), LIMIT_SECONDS)
        websocket = await connect(
            url,
            sock=opened,
            compression=None,
            max_size=_MESSAGE_BYTES,
            ping_interval=None,  # its end is noticed at once, and a busy page is not a dead one
            open_timeout=LIMIT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
        )
    except (OSError, WebSocketException) as error:
        raise ControllerError(f"the browser's debugging port does not answer: {error}") from error
    connection = Connection(websocket, on_event)
    reading = asyncio.create_task(connection.read())
    try:
        yield connection
    finally:
        await websocket.close()
        await reading


def _gone(method: str) -> ControllerError:
    return ControllerError(f"the browser exited, {method} was not answered")

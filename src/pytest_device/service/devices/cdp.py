"""A connection to the debugging port of a browser: its commands, its events, its end."""

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
"""More than the picture of any screen."""


@dataclass(frozen=True, slots=True)
class Event:
    """What the browser tells unasked; ``session`` is the page it tells it of, None for itself."""

    method: str
    params: Mapping[str, Any]
    session: str | None


class RefusedError(ControllerError):
    """The browser has answered, and does not do it."""


class Connection:
    """Sends commands and hands each answer to whoever waits for it. Made by ``connected``."""

    def __init__(self, websocket: ClientConnection, heard: Callable[[Event], None]) -> None:
        self._websocket = websocket
        self._heard = heard
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
        """Carry out a command, of a page or of the browser itself, and return its result.

        Raises ControllerError when it is refused, takes too long, or the browser is gone.
        """
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_seconds):
                await self._websocket.send(_command(number, method, params, session))
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
        """Take in what the browser says, to the end of the connection."""
        try:
            async for message in self._websocket:
                self._take(json.loads(message))
        except ConnectionClosed:
            return  # a browser that was killed says no farewell
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_gone("a command"))

    def _take(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            self._heard(Event(message["method"], message["params"], message.get("sessionId")))
            return
        answer = self._waiting.get(message["id"])
        if answer is not None and not answer.done():
            answer.set_result(message)


@asynccontextmanager
async def connected(url: str, heard: Callable[[Event], None]) -> AsyncGenerator[Connection, None]:
    """Connect to a browser's ``ws://`` address; ``heard`` is given each event. Raises ControllerError."""
    where = urlsplit(url)
    try:
        # With a socket of our own no proxy of the environment gets between.
        opened = socket.create_connection((where.hostname or "", where.port or 0), LIMIT_SECONDS)
        websocket = await connect(
            url,
            sock=opened,
            compression=None,
            max_size=_MESSAGE_BYTES,
            ping_interval=None,  # its end is seen at once, and a busy page is not a dead one
            open_timeout=LIMIT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
        )
    except (OSError, WebSocketException) as error:
        raise ControllerError(f"the browser's debugging port does not answer: {error}") from error
    connection = Connection(websocket, heard)
    reading = asyncio.create_task(connection.read())
    try:
        yield connection
    finally:
        await websocket.close()
        await reading


def _command(number: int, method: str, params: Mapping[str, Any] | None, session: str | None) -> str:
    addressed = {"sessionId": session} if session else {}
    return json.dumps({"id": number, "method": method, "params": params or {}, **addressed})


def _gone(method: str) -> ControllerError:
    return ControllerError(f"the browser is gone, {method} was not answered")

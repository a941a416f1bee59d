"""A connection to a browser over its pipe: commands, events and the end."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from pytest_device.errors import ControllerError

LIMIT_SECONDS: Final = 10.0
"""Maximum seconds for a command, unless its caller sets another limit: a frozen page never answers."""
_READ_BYTES: Final = 1024 * 1024
_END: Final = b"\0"
_DETACHED: Final = "Target.detachedFromTarget"
_INPUT: Final = "Input."
_INPUT_SECONDS: Final = 1.0
"""Maximum seconds to wait for input in progress: a page with a dialog does not answer it."""
_GONE: Final[Mapping[str, Any]] = {}
"""Reply to pending commands when the browser exits; compared by identity, since a result may be empty, too."""

Message = Mapping[str, Any]
Handler = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class Event:
    """A browser event; ``session`` is the debugging session of the page concerned, None for the browser itself."""

    method: str
    params: Mapping[str, Any]
    session: str | None


class RefusedError(ControllerError):
    """The browser refused a command."""


class Connection:
    """Sends commands and returns their results while ``read`` runs. ``on_event`` receives each event.

    Others may share the connection: they ``forward`` commands, and ``subscribe`` to their sessions' events.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.on_event: Callable[[Event], None] = lambda _event: None
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self._waiting: dict[int, Handler] = {}
        """Receivers of the replies to open commands, by number."""
        self._handlers: dict[str, Handler] = {}
        """Receivers of events, by session."""
        self._input: dict[int, str] = {}
        """Sessions of the taps and keys in progress, by number of the command."""
        self._input_is_over = asyncio.Event()
        self._held: list[bytes] | None = None
        """Taps and keys that are held back, None while none are."""
        self._is_over = False

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> Mapping[str, Any]:
        """Execute a command on a page or on the browser itself, and return its result.

        Raises ControllerError if it is refused, takes too long, or the browser exits.
        """
        if self._is_over:
            raise _gone(method)

        command: dict[str, Any] = {"method": method, "params": params or {}}
        if session:
            command["sessionId"] = session

        pending: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def resolve(reply: Message) -> None:
            if not pending.done():  # cancelled by the time limit
                pending.set_result(reply)

        number = self.forward(command, resolve)
        try:
            async with asyncio.timeout(limit_seconds):
                await self._writer.drain()
                reply = await pending
        except TimeoutError as error:
            raise ControllerError(
                f"the browser did not respond to {method} within {limit_seconds:g} s"
            ) from error
        except ConnectionError as error:
            raise _gone(method) from error
        finally:
            self._waiting.pop(number, None)

        return _result(reply, method)

    def forward(self, command: Message, on_reply: Handler) -> int:
        """Send a command under a number of this connection and return the number; ``on_reply`` receives the reply."""
        number = next(self._numbers)
        self._waiting[number] = on_reply
        message = json.dumps({**command, "id": number}).encode() + _END

        is_input = command["method"].startswith(_INPUT)
        if is_input:
            self._input[number] = command.get("sessionId", "")
            self._input_is_over.clear()

        if is_input and self._held is not None:
            self._held.append(message)
        else:
            self._writer.write(message)

        return number

    @asynccontextmanager
    async def without_input(self) -> AsyncGenerator[None]:
        """Hold taps and keys back until the end of the block, or until ``release_input``; those in progress end first."""
        if self._input:
            with suppress(TimeoutError):
                async with asyncio.timeout(_INPUT_SECONDS):
                    await self._input_is_over.wait()

        if self._held is None:
            self._held = []

        try:
            yield
        finally:
            self.release_input()

    def release_input(self) -> None:
        """Send the taps and keys that are held back."""
        held, self._held = self._held or [], None
        for message in held:
            self._writer.write(message)

    def subscribe(self, session: str, handler: Handler | None) -> None:
        """Send a session's events to a handler from now on; with None, to ``on_event`` again."""
        if handler:
            self._handlers[session] = handler
        else:
            self._handlers.pop(session, None)

    async def read(self) -> None:
        """Receive messages until the browser exits."""
        try:
            async for message in self._messages():
                self._on_message(json.loads(message))
        finally:
            self._is_over = True
            for on_reply in tuple(self._waiting.values()):
                on_reply(_GONE)

    async def _messages(self) -> AsyncIterator[bytes]:
        """Yield the messages: each ends with a zero byte, and may arrive in several parts."""
        parts: list[bytes] = []  # of the message that has not ended yet
        while received := await self._reader.read(_READ_BYTES):
            first, *others = received.split(_END)
            parts.append(first)

            for other in others:
                yield b"".join(parts)
                parts = [other]

    def _on_message(self, message: Message) -> None:
        if "id" in message:
            self._end_input([message["id"]])
            on_reply = self._waiting.pop(message["id"], None)
            if on_reply:
                on_reply(message)
            return

        method, params = message["method"], message["params"]
        if method == _DETACHED:
            # Nobody answers the input of a page that is gone.
            detached = params["sessionId"]
            self._end_input(
                [
                    number
                    for number, session in self._input.items()
                    if session == detached
                ]
            )

        session = message.get("sessionId")
        handler = self._handlers.get(session or "")
        if handler:
            handler(message)
        else:
            self.on_event(Event(method, params, session))

    def _end_input(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._input.pop(number, None)

        if not self._input:
            self._input_is_over.set()


def _result(reply: Message, method: str) -> Mapping[str, Any]:
    if reply is _GONE:
        raise _gone(method)
    if "error" in reply:
        message = reply["error"]["message"]
        raise RefusedError(f"the browser refuses {method}: {message}")

    result: Mapping[str, Any] = reply["result"]
    return result


def _gone(method: str) -> ControllerError:
    return ControllerError(f"the browser exited before it responded to {method}")

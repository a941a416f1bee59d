"""A debugging port for a browser that is controlled through a pipe, for this user's programs only."""

import asyncio
import http
import json
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from pytest_device.asgi_server import listening
from pytest_device.errors import ControllerError
from pytest_device.redact import is_loopback_authority
from pytest_device.same_user import is_permitted
from pytest_device.service.devices.cdp import Connection, Message

_HOST: Final = "127.0.0.1"
_CLOSE_SECONDS: Final = 1.0
_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""Larger than any screenshot."""
_KEY_BYTES: Final = 16
_EDGE: Final = re.compile(r"^(Headless)?Edg\b")
_NO_SESSION: Final = {"code": -32001, "message": "Session with given id not found."}
"""Equal to the browser's own response."""

Order = Callable[[], Sequence[str]]
"""Returns the targets of the open pages, the one in front first."""


@asynccontextmanager
async def relaying(
    connection: Connection, order: Order, listener: socket.socket
) -> AsyncGenerator[None]:
    """Serve a listening socket like the browser's debugging port."""
    relay = _Relay(connection, order)
    async with serve(
        relay.serve,
        sock=listener,
        process_request=relay.answer,
        compression=None,
        max_size=_MESSAGE_BYTES,
        ping_interval=None,  # a busy program is not a dead one
        close_timeout=_CLOSE_SECONDS,
    ):
        yield


def reserved() -> socket.socket:
    """Return a listening socket for the relay: connections wait until it serves them."""
    return listening(_HOST, 0)


class _Targets:
    """What the relay lists: the browser's targets without those that programs made for themselves."""

    def __init__(self, order: Order) -> None:
        self.hidden: set[str] = set()
        """Browser contexts that programs made: no page in them is the device's, so that no program is told of one."""
        self._order = order

    def visible(self, targets: Sequence[Message]) -> Sequence[Message]:
        """Return those that programs may see, the page in front first: programs take the first one."""
        ranks = {target: rank for rank, target in enumerate(self._order())}
        visible = [
            target
            for target in targets
            if target.get("browserContextId") not in self.hidden
        ]
        return sorted(
            visible, key=lambda target: ranks.get(target["targetId"], len(ranks))
        )


class _Relay:
    def __init__(self, connection: Connection, order: Order) -> None:
        self._connection = connection
        self._key = secrets.token_hex(_KEY_BYTES)
        self._targets = _Targets(order)

    async def answer(
        self, client: ServerConnection, request: Request
    ) -> Response | None:
        """Answer a request for the list of targets; return None to accept a connection to one."""
        reason = _refusal(client, request)
        if reason:
            return client.respond(http.HTTPStatus.FORBIDDEN, f"{reason}\n")

        base = f"ws://{request.headers['Host']}/devtools"
        match request.path.partition("?")[0].rstrip("/").split("/"):
            case ["", "json", "version"]:
                return _json(client, await self._version(base))
            case ["", "json"] | ["", "json", "list"]:
                return _json(client, await self._list(base))
            case ["", "devtools", "browser", key] if secrets.compare_digest(
                key, self._key
            ):
                return None
            case ["", "devtools", "page", key, _] if secrets.compare_digest(
                key, self._key
            ):
                return None
            case _:
                return client.respond(http.HTTPStatus.NOT_FOUND, "no such target\n")

    async def serve(self, websocket: ServerConnection) -> None:
        """Forward messages between a program and the browser, in the program's own debugging sessions."""
        attached = await self._connection.call("Target.attachToBrowserTarget")
        root: str = attached["sessionId"]
        client = _Client(self._connection, root, self._targets)
        sending = asyncio.create_task(client.send(websocket))

        try:
            path = websocket.request.path if websocket.request else ""
            if "/page/" in path:
                await client.narrow(path.rpartition("/")[2])

            async for text in websocket:
                client.forward(json.loads(text))
        except (ConnectionClosed, ControllerError, ValueError):
            return  # the program, the page or the browser is gone
        finally:
            sending.cancel()
            client.close()

            with suppress(ControllerError):
                await self._connection.call(
                    "Target.detachFromTarget", {"sessionId": root}
                )

    async def _version(self, base: str) -> Message:
        version = await self._connection.call("Browser.getVersion")
        return {
            # chromedriver rejects Edge by this name, and nothing else about it.
            "Browser": _EDGE.sub("Chrome", version["product"]),
            "Protocol-Version": version["protocolVersion"],
            "User-Agent": version["userAgent"],
            "V8-Version": version["jsVersion"],
            "WebKit-Version": f"537.36 ({version['revision']})",
            "webSocketDebuggerUrl": f"{base}/browser/{self._key}",
        }

    async def _list(self, base: str) -> Sequence[Message]:
        reply = await self._connection.call("Target.getTargets")
        return [
            {
                "id": target["targetId"],
                "type": target["type"],
                "title": target["title"],
                "url": target["url"],
                "webSocketDebuggerUrl": f"{base}/page/{self._key}/{target['targetId']}",
            }
            for target in self._targets.visible(reply["targetInfos"])
        ]


class _Client:
    """A program: its debugging sessions, of which ``root`` is the whole browser's."""

    def __init__(self, connection: Connection, root: str, targets: _Targets) -> None:
        self._connection = connection
        self._targets = targets
        self._root = root
        self._main = root
        """Where commands without a session are sent: the browser, or the page that the program connected to."""
        self._sessions: set[str] = set()
        self._outgoing: asyncio.Queue[Message] = asyncio.Queue()
        self._add(root)

    async def narrow(self, target: str) -> None:
        """Send commands without a session to this page."""
        attached = await self._connection.call(
            "Target.attachToTarget",
            {"targetId": target, "flatten": True},
            session=self._root,
        )
        self._main = attached["sessionId"]

    async def send(self, websocket: ServerConnection) -> None:
        """Send the browser's messages, in order."""
        with suppress(ConnectionClosed):
            while True:
                await websocket.send(json.dumps(await self._outgoing.get()))

    def forward(self, command: Mapping[str, Any]) -> None:
        """Forward a program's command to the browser, and the response back under the program's number."""
        own_ids = {
            name: command[name] for name in ("id", "sessionId") if name in command
        }
        session = command.get("sessionId", self._main)
        if session not in self._sessions:
            self._outgoing.put_nowait({"error": _NO_SESSION, **own_ids})
            return

        def on_reply(reply: Message) -> None:
            self._hide(command["method"], reply.get("result") or {})
            self._outgoing.put_nowait({**_without_session(reply), **own_ids})

        self._connection.forward({**command, "sessionId": session}, on_reply)

    def close(self) -> None:
        for session in self._sessions:
            self._connection.subscribe(session, None)

    def _hide(self, method: str, result: dict[str, Any]) -> None:
        """Note a browser context that the program made; leave pages in such ones out of a list, and sort it."""
        if method == "Target.createBrowserContext" and result:
            self._targets.hidden.add(result["browserContextId"])

        if method == "Target.getTargets" and result:
            result["targetInfos"] = self._targets.visible(result["targetInfos"])

    def _on_event(self, event: Message) -> None:
        match event:
            case {
                "method": "Target.targetCreated" | "Target.targetInfoChanged",
                "params": {"targetInfo": {"browserContextId": str(context)}},
            } if context in self._targets.hidden:
                return
            case {
                "method": "Target.attachedToTarget",
                "params": {"sessionId": str(session)},
            }:
                self._add(session)
            case {
                "method": "Target.detachedFromTarget",
                "params": {"sessionId": str(session)},
            }:
                self._sessions.discard(session)
                self._connection.subscribe(session, None)
            case _:
                pass

        if event["sessionId"] == self._main:
            self._outgoing.put_nowait(_without_session(event))
        elif event["sessionId"] != self._root:
            self._outgoing.put_nowait(event)

    def _add(self, session: str) -> None:
        self._sessions.add(session)
        self._connection.subscribe(session, self._on_event)


def _without_session(message: Message) -> Message:
    return {name: value for name, value in message.items() if name != "sessionId"}


def _json(client: ServerConnection, value: object) -> Response:
    response = client.respond(http.HTTPStatus.OK, json.dumps(value))
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json; charset=UTF-8"

    return response


def _refusal(client: ServerConnection, request: Request) -> str | None:
    """Return why a request is refused: it comes from a web page or another user."""
    is_local = is_loopback_authority(request.headers.get("Host", ""))
    if "Origin" in request.headers or not is_local:
        return "web pages are refused"
    if not is_permitted(client.remote_address, client.local_address):
        return "other users are refused"
    return None

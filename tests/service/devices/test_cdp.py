"""The connection to a browser's debugging port, with a server in the place of the browser."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from pytest_device.errors import ControllerError
from pytest_device.service.devices.cdp import Connection, Event, connected

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def browser(handler: Handler, heard: Callable[[Event], None] = print) -> AsyncGenerator[Connection, None]:
    """Connect to a browser that behaves so."""
    async with serve(handler, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connected(f"ws://127.0.0.1:{port}/devtools/browser/1", heard) as connection:
            yield connection


async def answering(websocket: ServerConnection) -> None:
    async for message in websocket:
        asked = json.loads(message)
        await websocket.send(json.dumps({"id": asked["id"], "result": asked}))


async def refusing(websocket: ServerConnection) -> None:
    async for message in websocket:
        await websocket.send(json.dumps({"id": json.loads(message)["id"], "error": {"message": "Not allowed"}}))


async def silent(websocket: ServerConnection) -> None:
    await websocket.wait_closed()


async def leaving(websocket: ServerConnection) -> None:
    await websocket.recv()
    websocket.transport.abort()


def within(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


def test_a_command_gets_its_own_answer() -> None:
    async def scenario() -> Any:
        async with browser(answering) as connection:
            calls = [connection.call("Page.navigate", {"url": str(number)}, session="S") for number in range(3)]
            return await asyncio.gather(*calls)

    replies = within(scenario())

    assert [reply["params"]["url"] for reply in replies] == ["0", "1", "2"]
    assert {reply["sessionId"] for reply in replies} == {"S"}


def test_a_refusal_is_reported_with_its_reason() -> None:
    async def scenario() -> None:
        async with browser(refusing) as connection:
            with pytest.raises(ControllerError, match=r"the browser refuses Page\.crash: Not allowed"):
                await connection.call("Page.crash")

    within(scenario())


def test_an_answer_is_not_waited_for_without_end() -> None:
    async def scenario() -> None:
        async with browser(silent) as connection:
            with pytest.raises(ControllerError, match=r"did not answer Page\.enable within 0\.1 s"):
                await connection.call("Page.enable", limit_seconds=0.1)

    within(scenario())


def test_a_browser_that_goes_leaves_nobody_waiting() -> None:
    async def scenario() -> None:
        async with browser(leaving) as connection:
            with pytest.raises(ControllerError, match="the browser exited"):
                await connection.call("Page.enable")
            with pytest.raises(ControllerError, match="the browser exited"):
                await connection.call("Page.enable")

    within(scenario())


def test_events_are_reported_with_their_page() -> None:
    heard: list[Event] = []

    async def reporting(websocket: ServerConnection) -> None:
        await websocket.send(json.dumps({"method": "Page.loadEventFired", "params": {"timestamp": 1}}))
        await websocket.send(json.dumps({"method": "Page.frameResized", "params": {}, "sessionId": "S"}))
        await answering(websocket)

    async def scenario() -> None:
        async with browser(reporting, heard.append) as connection:
            await connection.call("Page.enable")

    within(scenario())

    assert heard == [Event("Page.loadEventFired", {"timestamp": 1}, None), Event("Page.frameResized", {}, "S")]


def test_a_port_that_nobody_listens_on_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async def scenario() -> None:
        async with connected(f"ws://127.0.0.1:{port}/", print):
            pass

    with pytest.raises(ControllerError, match="the browser's debugging port does not answer"):
        within(scenario())


def test_no_proxy_gets_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)

    async def scenario() -> Any:
        async with browser(answering) as connection:
            return await connection.call("Page.enable")

    assert within(scenario())["method"] == "Page.enable"

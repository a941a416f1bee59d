"""The connection to a browser through its pipe, with a handler instead of the browser.

A real browser answers every command, in small messages, and in order.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.cdp import Event
from tests.fakes.browser_pipe import FakeBrowserPipe, browser


async def answering(pipe: FakeBrowserPipe) -> None:
    while True:
        asked = await pipe.asked()
        pipe.say(id=asked["id"], result=asked)


async def refusing(pipe: FakeBrowserPipe) -> None:
    pipe.say(id=(await pipe.asked())["id"], error={"message": "Not allowed"})


async def silent(pipe: FakeBrowserPipe) -> None:
    await pipe.reader.read()


async def leaving(pipe: FakeBrowserPipe) -> None:
    await pipe.asked()
    pipe.writer.close()


def within(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


def test_a_command_gets_its_own_response() -> None:
    async def scenario() -> Any:
        async with browser(answering) as connection:
            calls = [
                connection.call("Page.navigate", {"url": str(number)}, session="S")
                for number in range(3)
            ]
            return await asyncio.gather(*calls)

    replies = within(scenario())

    assert [reply["params"]["url"] for reply in replies] == ["0", "1", "2"]
    assert {reply["sessionId"] for reply in replies} == {"S"}


def test_a_refusal_is_reported_with_its_reason() -> None:
    async def scenario() -> None:
        async with browser(refusing) as connection:
            with pytest.raises(
                ControllerError, match=r"the browser refuses Page\.crash: Not allowed"
            ):
                await connection.call("Page.crash")

    within(scenario())


def test_a_command_without_a_response_times_out() -> None:
    async def scenario() -> None:
        async with browser(silent) as connection:
            with pytest.raises(
                ControllerError, match=r"did not respond to Page\.enable within 0\.1 s"
            ):
                await connection.call("Page.enable", limit_seconds=0.1)

    within(scenario())


def test_commands_end_when_the_browser_exits() -> None:
    async def scenario() -> None:
        async with browser(leaving) as connection:
            with pytest.raises(ControllerError, match="the browser exited"):
                await connection.call("Page.enable")
            with pytest.raises(ControllerError, match="the browser exited"):
                await connection.call("Page.enable")

    within(scenario())


def test_events_are_reported_with_their_page() -> None:
    heard: list[Event] = []

    async def reporting(pipe: FakeBrowserPipe) -> None:
        pipe.say(method="Page.loadEventFired", params={"timestamp": 1})
        pipe.say(method="Page.frameResized", params={}, sessionId="S")
        await answering(pipe)

    async def scenario() -> None:
        async with browser(reporting, heard.append) as connection:
            await connection.call("Page.enable")

    within(scenario())

    assert heard == [
        Event("Page.loadEventFired", {"timestamp": 1}, None),
        Event("Page.frameResized", {}, "S"),
    ]


def test_a_message_of_any_size_arrives_whole() -> None:
    async def scenario() -> Any:
        async with browser(answering) as connection:
            return await connection.call("Page.navigate", {"url": "x" * 5_000_000})

    assert len(within(scenario())["params"]["url"]) == 5_000_000

"""Access to the browser through its relay, and isolation of the programs that use it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect

from pytest_device.service.devices.relay import relaying, reserved
from tests.fakes.browser_pipe import FakeBrowserPipe, browser
from tests.other_user import answers, only_as_root, request
from tests.service.devices.phone import BootedDevice


def asked(phone: BootedDevice, path: str, **headers: str) -> httpx.Response:
    async def exchange() -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
            return await client.get(
                f"http://127.0.0.1:{phone.device.tools.debugging_port}{path}"
            )

    return phone.do(exchange())


def address_of(phone: BootedDevice) -> str:
    return str(asked(phone, "/json/version").json()["webSocketDebuggerUrl"])


async def exchange(websocket: ClientConnection, **message: Any) -> Mapping[str, Any]:
    """Send a command, and return its answer; skip events."""
    await websocket.send(json.dumps(message))
    async for text in websocket:
        reply: Mapping[str, Any] = json.loads(text)
        if reply.get("id") == message["id"]:
            return reply
    raise AssertionError("the relay closed the connection")


def test_the_browser_opens_no_port(phone: BootedDevice) -> None:
    listening = [
        one for process in phone.processes() for one in process.net_connections("inet")
    ]

    assert [one for one in listening if one.status == psutil.CONN_LISTEN] == []


def test_this_user_gets_the_browsers_url_with_its_key(phone: BootedDevice) -> None:
    address = address_of(phone)

    assert address.startswith(
        f"ws://127.0.0.1:{phone.device.tools.debugging_port}/devtools/browser/"
    )


@pytest.mark.parametrize(
    ("product", "shown"),
    [
        ("Edg/153.0.3485.14", "Chrome/153.0.3485.14"),
        ("HeadlessEdg/153.0.3485.14", "Chrome/153.0.3485.14"),
        ("HeadlessChrome/153.0.8010.52", "HeadlessChrome/153.0.8010.52"),
        ("Chrome/153.0.8010.52", "Chrome/153.0.8010.52"),
    ],
)
def test_chromedriver_sees_edge_as_chrome_since_it_rejects_its_name(
    product: str, shown: str
) -> None:
    version = dict.fromkeys(
        ("protocolVersion", "userAgent", "jsVersion", "revision"), "1"
    )

    async def edge(pipe: FakeBrowserPipe) -> None:
        asked = await pipe.asked()
        assert asked["method"] == "Browser.getVersion"
        pipe.say(id=asked["id"], result={"product": product, **version})

    async def ask() -> Any:
        listener = reserved()
        port = listener.getsockname()[1]
        async with (
            browser(edge) as connection,
            relaying(connection, list, listener),
            httpx.AsyncClient(trust_env=False) as client,
        ):
            return (await client.get(f"http://127.0.0.1:{port}/json/version")).json()

    assert asyncio.run(ask())["Browser"] == shown


@only_as_root
def test_another_user_gets_no_url(phone: BootedDevice) -> None:
    port = phone.device.tools.debugging_port or 0
    asked = request("GET", "/json/version", port)

    told = phone.do(asyncio.to_thread(answers, port, [asked]))

    assert [answer for answer in told if not answer.startswith("HTTP/1.1 403 ")] == []
    assert [answer for answer in told if "other users are refused" not in answer] == []


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://page.example"}, {"Host": "page.example"}]
)
def test_a_web_page_gets_no_url(phone: BootedDevice, headers: dict[str, str]) -> None:
    assert asked(phone, "/json/version", **headers).status_code == 403


@pytest.mark.parametrize("path", ["browser/made-up", "page/made-up/target", ""])
def test_without_the_key_no_connection_opens(phone: BootedDevice, path: str) -> None:
    assert asked(phone, f"/devtools/{path}").status_code == 404


def test_programs_have_their_own_command_numbers_and_sessions(
    phone: BootedDevice,
) -> None:
    address = address_of(phone)

    async def scenario() -> None:
        async with connect(address) as one, connect(address) as other:
            targets = (await exchange(one, id=1, method="Target.getTargets"))["result"][
                "targetInfos"
            ]
            [page] = [
                target["targetId"] for target in targets if target["type"] == "page"
            ]
            attach = {
                "method": "Target.attachToTarget",
                "params": {"targetId": page, "flatten": True},
            }
            sessions = [
                (await exchange(client, id=2, **attach))["result"]["sessionId"]
                for client in (one, other)
            ]
            assert len(set(sessions)) == 2

            evaluate = {"method": "Runtime.evaluate", "params": {"expression": "6 * 7"}}
            mine = await exchange(one, id=7, sessionId=sessions[0], **evaluate)
            assert (mine["result"]["result"]["value"], mine["sessionId"]) == (
                42,
                sessions[0],
            )
            theirs = await exchange(one, id=8, sessionId=sessions[1], **evaluate)
            assert theirs["error"]["message"] == "Session with given id not found."

            await exchange(
                one, id=9, method="Target.setDiscoverTargets", params={"discover": True}
            )
            await exchange(
                one,
                id=10,
                method="Target.createTarget",
                params={"url": "about:blank#more"},
            )
            # What one program has enabled is not reported to another.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(other.recv(), 0.3)

    phone.do(scenario())
    phone.do(phone.device.close_others())


def test_a_program_that_disconnects_is_detached(phone: BootedDevice) -> None:
    address = address_of(phone)

    async def scenario() -> None:
        async with connect(address) as other:
            async with connect(address) as one:
                await exchange(one, id=1, method="Target.getTargets")
            reply = await exchange(
                other, id=1, method="Target.getTargets", params={"filter": [{}]}
            )
            infos = reply["result"]["targetInfos"]
            # By the device.
            assert [info["attached"] for info in infos if info["type"] == "page"] == [
                True
            ]

    phone.do(scenario())
    assert phone.says("1 + 1") == 2

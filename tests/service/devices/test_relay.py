"""Access to the browser through its relay, and isolation of the programs that use it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx
import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect

from pytest_device.service.runners.processes import find_processes
from tests.service.devices.phone import Phone

ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as connection:
    connection.sendall(b"GET /json/version HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
    print(connection.recv(4096).decode(errors="replace"))
"""


def asked(phone: Phone, path: str, **headers: str) -> httpx.Response:
    async def exchange() -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
            return await client.get(
                f"http://127.0.0.1:{phone.device.tools.debugging_port}{path}"
            )

    return phone.do(exchange())


def address_of(phone: Phone) -> str:
    return str(asked(phone, "/json/version").json()["webSocketDebuggerUrl"])


async def exchange(websocket: ClientConnection, **message: Any) -> Mapping[str, Any]:
    """Send a command, and return its answer; skip events."""
    await websocket.send(json.dumps(message))
    async for text in websocket:
        reply: Mapping[str, Any] = json.loads(text)
        if reply.get("id") == message["id"]:
            return reply
    raise AssertionError("the relay closed the connection")


def test_the_browser_opens_no_port(phone: Phone) -> None:
    listening = [
        one
        for process in find_processes([phone.directory])
        for one in process.net_connections("inet")
    ]

    assert [one for one in listening if one.status == psutil.CONN_LISTEN] == []


def test_this_user_gets_the_browsers_url_with_its_key(phone: Phone) -> None:
    address = address_of(phone)

    assert address.startswith(
        f"ws://127.0.0.1:{phone.device.tools.debugging_port}/devtools/browser/"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux shows whose connection it is"
)
def test_another_user_gets_no_url(phone: Phone) -> None:
    command = [
        "/usr/bin/env",
        "python3",
        "-c",
        ASK,
        str(phone.device.tools.debugging_port),
    ]

    def as_nobody() -> str:
        return subprocess.run(
            command, user="nobody", cwd="/", capture_output=True, text=True, check=True
        ).stdout

    printed = phone.do(asyncio.to_thread(as_nobody))

    assert printed.startswith("HTTP/1.1 403 ")
    assert "other users are refused" in printed


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://page.example"}, {"Host": "page.example"}]
)
def test_a_web_page_gets_no_url(phone: Phone, headers: dict[str, str]) -> None:
    assert asked(phone, "/json/version", **headers).status_code == 403


@pytest.mark.parametrize("path", ["browser/made-up", "page/made-up/target", ""])
def test_without_the_key_no_connection_opens(phone: Phone, path: str) -> None:
    assert asked(phone, f"/devtools/{path}").status_code == 404


def test_programs_have_their_own_command_numbers_and_sessions(phone: Phone) -> None:
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
            with pytest.raises(
                TimeoutError
            ):  # what one program has enabled is not reported to another
                await asyncio.wait_for(other.recv(), 0.3)

    phone.do(scenario())
    phone.do(phone.device.close_others())


def test_a_program_that_disconnects_is_detached(phone: Phone) -> None:
    address = address_of(phone)

    async def scenario() -> None:
        async with connect(address) as other:
            async with connect(address) as one:
                await exchange(one, id=1, method="Target.getTargets")
            reply = await exchange(
                other, id=1, method="Target.getTargets", params={"filter": [{}]}
            )
            infos = reply["result"]["targetInfos"]
            assert [info["attached"] for info in infos if info["type"] == "page"] == [
                True
            ]  # by the device

    phone.do(scenario())
    assert phone.says("1 + 1") == 2

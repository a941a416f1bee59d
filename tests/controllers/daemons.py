"""Replies of a server that replaces an agent-device daemon or an argent tool server."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent
from pytest_device.controllers.environment import environment_of
from tests.controllers.servers import session_at
from tests.fakes.http_server import Answer, ScriptedServer, says

HTML = Answer(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"})
TAP: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "udid": {"type": "string", "minLength": 1},
        "x": {"type": "number", "minimum": 0, "maximum": 1},
        "button": {"type": "string", "enum": ["left", "right"]},
    },
    "required": ["udid", "x"],
}


def done(**data: Any) -> Answer:
    """Return the daemon's response to a successful command."""
    return says({"jsonrpc": "2.0", "id": "1", "result": {"ok": True, "data": data}})


def refused(code: str, message: str, status: int = 500, **data: Any) -> Answer:
    """Return the daemon's response to a rejected command."""
    error = {
        "code": -32000,
        "message": message,
        "data": {"code": code, "message": message, **data},
    }
    return says({"jsonrpc": "2.0", "id": "1", "error": error}, status)


def in_turn(*answers: Answer) -> Callable[[str], Answer]:
    """Return the replies in turn, and then the last one forever."""
    left = list(answers)
    return lambda _call: left.pop(0) if len(left) > 1 else left[0]


def agent_device(
    controller: ScriptedServer, name: str = "a-test", **more: Any
) -> AgentDevice:
    """Return a client of agent-device on a server, with no pauses."""
    session = session_at(controller.url, "agent-device")
    return AgentDevice(
        session, environment_of(session, name=name), sleep=lambda _seconds: None, **more
    )


def commands(controller: ScriptedServer) -> list[dict[str, Any]]:
    """Return the parameters of the commands that a server was sent."""
    return [json.loads(body)["params"] for body in controller.bodies if body]


def tools(calls: Mapping[str, Answer]) -> Callable[[str], Answer]:
    """Reply like a tool server with one device, a tool to tap it, and replies set by the test."""
    known = [
        {"name": "gesture-tap", "description": "Press the screen", "inputSchema": TAP},
        {
            "name": "list-devices",
            "description": "List",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ]
    own: Mapping[str, Answer] = {
        "GET /tools": says({"tools": known}),
        "POST /tools/list-devices": says(
            {"data": {"devices": [{"platform": "android", "serial": "emulator-5554"}]}}
        ),
        **calls,
    }
    return lambda call: own.get(call, says({"error": "Tool not found"}, 404))


def argent(controller: ScriptedServer, **more: Any) -> Argent:
    """Return a client of argent on a server, with no pauses."""
    return Argent(
        session_at(controller.url, "argent"), sleep=lambda _seconds: None, **more
    )

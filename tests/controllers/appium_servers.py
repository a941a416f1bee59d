"""Replies of a server that replaces Appium, and the requests it received."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_device.sessions.models import Session
from tests.contract.document import example_session
from tests.fakes.http_server import Answer, ScriptedServer, says

READY = says({"value": {"ready": True}})
DONE = says({"value": None})


def refuses(error: str, message: str, status: int = 500) -> Answer:
    """Return WebDriver's response for an error."""
    return says(
        {
            "value": {
                "error": error,
                "message": message,
                "stacktrace": f"{message}\n    at a line",
            }
        },
        status,
    )


def appium(
    capabilities: Mapping[str, Any] | None = None, **answers: Answer
) -> Callable[[str], Answer]:
    """Reply like an Appium server; with the given replies to paths that end in their names (``session``: the start)."""
    started = says(
        {"value": {"sessionId": "1", "capabilities": dict(capabilities or {})}}
    )

    def answer(call: str) -> Answer:
        if call.endswith("/status"):
            return READY
        if call.startswith("POST") and call.endswith("/session"):
            return answers.get("session", started)
        return answers.get(call.rpartition("/")[2], DONE)

    return answer


def session_on(
    controller: ScriptedServer,
    *,
    capabilities: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Session:
    """Return a session without an app that uses this server as Appium."""
    config = {"appiumUrl": controller.url, "capabilities": dict(capabilities or {})}
    blank = {
        "type": "appium",
        "buildId": None,
        "applicationArchiveUrl": None,
        "remoteConfig": config,
    }
    return Session.from_wire(example_session(**blank | changes))


def started_with(controller: ScriptedServer) -> dict[str, Any]:
    """Return the capabilities of the only driver that was started."""
    (body,) = [
        body
        for (path, _), body in zip(controller.asked, controller.bodies, strict=True)
        if path.endswith("/session")
    ]
    wanted: dict[str, Any] = json.loads(body)["capabilities"]
    assert wanted["firstMatch"] == [{}]
    always: dict[str, Any] = wanted["alwaysMatch"]
    return always


def received(controller: ScriptedServer, path: str) -> list[Any]:
    """Return the bodies that a path was sent."""
    return [
        json.loads(body)
        for (asked, _), body in zip(controller.asked, controller.bodies, strict=True)
        if asked.endswith(path)
    ]

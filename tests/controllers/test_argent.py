"""The client of argent: names of arguments, results and errors."""

import json

import pytest

from pytest_device.controllers.argent import Argent
from pytest_device.errors import ArgentError, ControllerError, ControllerLostError
from tests.controllers.daemons import HTML, TAP, argent, in_turn, tools
from tests.controllers.servers import TOKEN, session_at
from tests.fakes.http_server import Answer, ScriptedServer, says

TAPPED = {"POST /tools/gesture-tap": says({"data": {"tapped": True}})}


@pytest.mark.parametrize("argument", ["udid", "device_id"])
def test_a_call_adds_the_sessions_device(
    controller: ScriptedServer, argument: str
) -> None:
    place = TAP["properties"]["x"]
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}, "x": place},
        "required": [argument, "x"],
    }
    tap = {"name": "gesture-tap", "description": "Press", "inputSchema": schema}
    controller.answer = tools({"GET /tools": says({"tools": [tap]}), **TAPPED})

    assert argent(controller).call("gesture-tap", x=0.5) == {"tapped": True}

    assert controller.asked[-1] == ("/tools/gesture-tap", f"Bearer {TOKEN}")
    sent = json.loads(controller.bodies[-1])
    assert sent == {"x": 0.5, argument: "emulator-5554"}


def test_tools_have_name_description_and_schema(controller: ScriptedServer) -> None:
    controller.answer = tools({})

    (tap, _) = argent(controller).tools()

    assert (tap.name, tap.description, tap.input_schema) == (
        "gesture-tap",
        "Press the screen",
        TAP,
    )


def test_the_names_of_arguments_are_checked_before_they_are_sent(
    controller: ScriptedServer,
) -> None:
    controller.answer = tools(TAPPED)

    with pytest.raises(ArgentError) as caught:
        argent(controller).call("gesture-tap", x=1, y=1)

    assert caught.value.issues == ["y is unknown, must be one of udid, x, button"]
    assert str(caught.value) == f"argent gesture-tap: {caught.value.issues[0]}"
    assert all(path != "/tools/gesture-tap" for path, _ in controller.asked)


def test_an_unknown_tool_is_reported_with_similar_names(
    controller: ScriptedServer,
) -> None:
    controller.answer = tools({})

    with pytest.raises(
        ArgentError, match="argent has no tool 'gesture-tab', only gesture-tap"
    ):
        argent(controller).call("gesture-tab")


def test_a_refusal_has_the_servers_code_and_issues(controller: ScriptedServer) -> None:
    issues = [{"path": ["x"], "message": "expected number"}]
    controller.answer = tools(
        {
            "POST /tools/gesture-tap": says(
                {"error": "[]", "message": "x is wrong", "issues": issues}, 400
            )
        }
    )
    with pytest.raises(ArgentError, match="argent gesture-tap: x is wrong") as caught:
        argent(controller).call("gesture-tap", x=1)
    assert caught.value.issues == ["x: expected number"]

    controller.answer = tools(
        {
            "POST /tools/gesture-tap": says(
                {"error": "it is gone", "error_code": "UNREACHABLE"}, 500
            )
        }
    )
    with pytest.raises(ArgentError, match="it is gone") as caught:
        argent(controller).call("gesture-tap", x=1)
    assert caught.value.code == "UNREACHABLE"


def test_a_read_only_tool_is_retried_and_an_action_is_not(
    controller: ScriptedServer,
) -> None:
    devices = in_turn(HTML, HTML, says({"data": {"devices": [{"serial": "a"}]}}))
    controller.answer = lambda call: (
        devices(call) if "list-devices" in call else tools({})(call)
    )
    assert argent(controller).device_id == "a"

    controller.answer = tools({"POST /tools/gesture-tap": HTML})
    controller.asked.clear()
    with pytest.raises(ControllerLostError, match="other than JSON"):
        argent(controller).call("gesture-tap", x=1, udid="a")
    assert [path for path, _ in controller.asked] == ["/tools", "/tools/gesture-tap"]


def test_a_device_that_is_not_listed_yet_is_looked_up_again(
    controller: ScriptedServer,
) -> None:
    found = in_turn(
        says({"data": {"devices": []}}), says({"data": {"devices": [{"udid": "one"}]}})
    )
    controller.answer = lambda call: (
        found(call) if "list-devices" in call else tools({})(call)
    )

    assert argent(controller).device_id == "one"


@pytest.mark.parametrize("devices", [[], [{"udid": "one"}, {"udid": "two"}]])
def test_no_device_or_several_devices_are_reported(
    controller: ScriptedServer, devices: list[dict[str, str]]
) -> None:
    controller.answer = tools(
        {"POST /tools/list-devices": says({"data": {"devices": devices}})}
    )

    with pytest.raises(ArgentError, match=f"argent reports {len(devices)} devices"):
        argent(controller).call("gesture-tap", x=1)


def test_a_running_device_is_preferred(controller: ScriptedServer) -> None:
    devices = [{"udid": "one", "state": "Shutdown"}, {"udid": "two", "state": "Booted"}]
    controller.answer = tools(
        {"POST /tools/list-devices": says({"data": {"devices": devices}})}
    )

    assert argent(controller).device_id == "two"


def test_an_artifact_is_bytes(controller: ScriptedServer) -> None:
    controller.answer = lambda call: (
        Answer(body=b"\x89PNG")
        if call == "GET /artifacts/1"
        else says({"error": "none"}, 404)
    )

    assert argent(controller).artifact("1") == b"\x89PNG"
    with pytest.raises(ArgentError, match="none"):
        argent(controller).artifact("2")


def test_a_session_of_another_type_has_no_tool_server(
    controller: ScriptedServer,
) -> None:
    with pytest.raises(
        ControllerError, match="of type appium: it has no argent tool server"
    ):
        Argent(session_at(controller.url))

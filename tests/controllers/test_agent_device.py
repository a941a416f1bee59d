"""The client of agent-device: its requests, its results and errors, and no secrets in them."""

import pickle
import sys
from pathlib import Path

import pytest

from pytest_device.controllers.agent_device import AgentDevice, Target
from pytest_device.controllers.client import MAX_BODY_BYTES
from pytest_device.controllers.environment import environment_of, session_name
from pytest_device.controllers.snapshot import Node
from pytest_device.errors import (
    AgentDeviceError,
    ConfigError,
    ControllerError,
    ControllerLostError,
)
from tests.controllers.daemons import (
    HTML,
    agent_device,
    commands,
    done,
    in_turn,
    refused,
)
from tests.controllers.servers import TOKEN, session_at
from tests.fakes.http_server import Answer, ScriptedServer, says
from tests.waiting import eventually

NO_MATCH = refused(
    "COMMAND_FAILED",
    "Selector did not match: label=Go",
    hint="Take a snapshot.",
    details={"reason": "selector_not_found"},
)


def test_a_command_has_session_platform_and_token_and_no_unset_flag(
    controller: ScriptedServer,
) -> None:
    controller.answer = lambda _call: done()

    agent_device(controller).open(
        "com.example.notes",
        url="notes://new",
        relaunch=True,
        launchArgs=["-a"],
        timeoutMs=None,
    )

    (sent,) = commands(controller)
    assert controller.asked == [("/rpc", f"Bearer {TOKEN}")]
    assert sent["session"] == "a-test"
    assert sent["meta"]["sessionExplicit"] is True
    assert (sent["command"], sent["positionals"]) == (
        "open",
        ["com.example.notes", "notes://new"],
    )
    assert sent["flags"] == {
        "platform": "android",
        "relaunch": True,
        "launchArgs": ["-a"],
    }


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("label=Go", ["label=Go"]),
        ("@e3", ["@e3"]),
        (Node("e3", "button"), ["@e3"]),
        ((12, 7.5), ["12", "7.5"]),
    ],
)
def test_a_target_is_a_selector_a_reference_a_node_or_a_point(
    controller: ScriptedServer, target: Target, words: list[str]
) -> None:
    controller.answer = lambda _call: done()

    agent_device(controller).fill(target, "Ada")

    assert commands(controller)[0]["positionals"] == [*words, "Ada"]


def test_a_snapshot_has_its_nodes_and_shows_them_as_text(
    controller: ScriptedServer,
) -> None:
    nodes = [
        {"ref": "e1", "role": "heading", "label": "Notes", "depth": 0, "pid": 7},
        {
            "ref": "e2",
            "type": "textbox",
            "label": "name",
            "value": "Ada",
            "depth": 1,
            "enabled": False,
            "focused": True,
        },
        {
            "ref": "e3",
            "role": "button",
            "rect": {"x": 1, "y": 2, "width": 3, "height": 4.5},
        },
    ]
    controller.answer = lambda _call: done(nodes=nodes, truncated=True, appName="Notes")

    seen = agent_device(controller).snapshot(interactive=True)

    assert commands(controller)[0]["flags"]["snapshotInteractiveOnly"] is True
    assert seen.is_truncated
    assert seen.more == {"appName": "Notes"}
    assert seen.labels() == ["Notes", "name"]
    assert seen.node("name").value == "Ada"
    assert [node.enabled for node in seen] == [True, False, True]
    assert seen.nodes[0].more == {"pid": 7}
    assert (rect := seen.nodes[2].rect) is not None
    assert rect.height == 4.5
    assert (
        str(seen).splitlines()[1]
        == "  @e2 [textbox] \"name\" value='Ada' disabled focused"
    )
    with pytest.raises(
        LookupError, match=r"no node with the label 'Go'[^@]*@e1 \[heading\]"
    ):
        seen.node("Go")


def test_a_wait_has_its_own_limit_and_one_condition(controller: ScriptedServer) -> None:
    controller.answer = lambda _call: done(waitedMs=1)
    device = agent_device(controller)

    device.wait("label=Go", timeout_seconds=0.5)
    device.wait(text="Hello")
    device.wait(absent="label=Go")

    assert [sent["positionals"] for sent in commands(controller)] == [
        ["label=Go", "500"],
        ["text", "Hello", "10000"],
        ["absent", "label=Go", "10000"],
    ]
    with pytest.raises(TypeError, match="one of selector, text and absent"):
        device.wait("label=Go", text="Hello")


def test_a_message_next_to_the_data_of_a_refusal_is_shown(
    controller: ScriptedServer,
) -> None:
    controller.answer = lambda _call: says(
        {"error": {"code": -32000, "message": "not there", "data": {"hint": "Look."}}}
    )

    with pytest.raises(AgentDeviceError, match="not there"):
        agent_device(controller).press("label=Go")


def test_a_refusal_has_the_daemons_code_hint_and_details_and_is_not_retried(
    controller: ScriptedServer,
) -> None:
    controller.answer = lambda _call: NO_MATCH

    with pytest.raises(AgentDeviceError) as caught:
        agent_device(controller).get("label=Go")

    error = caught.value
    assert (
        str(error)
        == "agent-device get: Selector did not match: label=Go (COMMAND_FAILED)\nTake a snapshot."
    )
    assert (error.code, error.hint, error.details["reason"]) == (
        "COMMAND_FAILED",
        "Take a snapshot.",
        "selector_not_found",
    )
    assert len(controller.asked) == 1


def test_is_returns_false_without_a_match_and_raises_any_other_refusal(
    controller: ScriptedServer,
) -> None:
    device = agent_device(controller)

    controller.answer = lambda _call: done(**{"pass": True})
    assert device.is_("text", "label=Go", "Go")
    controller.answer = lambda _call: NO_MATCH
    assert not device.is_("visible", "label=Go")
    controller.answer = lambda _call: refused(
        "COMMAND_FAILED", "is failed", details={"reason": "predicate_failed"}
    )
    assert not device.is_("visible", "label=Go")
    controller.answer = lambda _call: refused("INVALID_ARGS", "no such predicate", 400)
    with pytest.raises(AgentDeviceError, match="no such predicate"):
        device.is_("visible", "label=Go")
    assert commands(controller)[0]["positionals"] == ["text", "label=Go", "Go"]


@pytest.mark.parametrize("answer", [HTML, Answer(503), Answer(504, b"{}")])
def test_a_read_is_tried_three_times_and_an_action_once(
    controller: ScriptedServer, answer: Answer
) -> None:
    device = agent_device(controller)

    controller.answer = in_turn(answer, answer, done(text="Go"))
    assert device.get("label=Go") == "Go"
    assert len(controller.asked) == 3

    controller.asked.clear()
    controller.answer = in_turn(answer, done())
    with pytest.raises(ControllerLostError, match=f"status {answer.status}"):
        device.press("label=Go")
    assert len(controller.asked) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HTML, r"something other than JSON \(status 502\)"),
        (
            Answer(302, headers={"Location": "http://127.0.0.1:9/"}),
            r"sent a redirect \(status 302\)",
        ),
        (
            refused("UNAUTHORIZED", "Invalid token", 401),
            r"rejected the session's credentials \(status 401\)",
        ),
        (says({"errors": [{"code": "NOT_FOUND"}]}, 404), "returned status 404"),
        (says({"hello": 1}), r"something other than JSON-RPC \(status 200\)"),
        (says([]), r"something other than JSON-RPC \(status 200\)"),
    ],
)
def test_a_response_from_another_program_is_a_lost_controller(
    controller: ScriptedServer, answer: Answer, words: str
) -> None:
    controller.answer = lambda _call: answer

    with pytest.raises(ControllerLostError, match=words) as caught:
        agent_device(controller).press("label=Go")

    assert "https://" in str(caught.value)  # the session's page
    assert controller.url not in str(caught.value)


def test_a_dead_daemon_is_a_lost_controller_and_its_url_is_not_shown() -> None:
    device = AgentDevice(
        session_at("http://127.0.0.1:9/secret-path", "agent-device"),
        sleep=lambda _seconds: None,
    )

    with pytest.raises(
        ControllerLostError, match="does not respond: connection refused"
    ) as caught:
        device.snapshot()

    assert "secret-path" not in str(caught.value)


def test_a_call_without_a_response_times_out(controller: ScriptedServer) -> None:
    controller.answer = lambda _call: Answer(
        headers={"Content-Length": "100"}, rest=b" ", pause=60
    )

    errors: list[str] = []

    def is_reported() -> bool:
        with pytest.raises(ControllerLostError) as lost:
            agent_device(controller, timeout_seconds=0.2).snapshot()
        errors.append(str(lost.value))
        return "does not respond in time" in errors[-1]

    # On a busy machine, the limit of the whole call may come first.
    assert eventually(is_reported)
    # Each call was sent once.
    assert eventually(lambda: len(controller.asked) == len(errors))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(rest=b" ", pause=0.02),
        Answer(103, b"", rest=b"HTTP/1.1 103 Early Hints\r\n\r\n", pause=0.02),
    ],
    ids=["body", "headers"],
)
def test_a_trickling_response_times_out(
    controller: ScriptedServer, answer: Answer
) -> None:
    controller.answer = lambda _call: answer

    def error() -> str:
        with pytest.raises(ControllerLostError) as lost:
            agent_device(controller, timeout_seconds=0.3).press("label=Go")
        return str(lost.value)

    # On a busy machine, a pause of the response may be too long by itself.
    assert eventually(lambda: "does not finish its response" in error())


def test_a_file_that_stops_arriving_is_not_taken_for_complete(
    controller: ScriptedServer,
) -> None:
    # Without a length, a closed connection ends it. The pause is shorter than the client's timeout for each read.
    controller.answer = lambda _call: Answer(body=b"half", rest=b"...", pause=0.9)

    with pytest.raises(ControllerLostError):
        agent_device(controller, timeout_seconds=1).artifact("7f3c")


def test_an_overlong_text_is_reported_before_anything_is_sent(
    controller: ScriptedServer,
) -> None:
    with pytest.raises(
        ControllerError, match=f"accepts at most {MAX_BODY_BYTES} bytes"
    ):
        agent_device(controller).fill("label=name", "x" * MAX_BODY_BYTES)

    assert controller.asked == []


def test_a_screenshot_is_fetched_from_the_daemons_machine(
    controller: ScriptedServer, tmp_path: Path
) -> None:
    taken = done(
        path="/tmp/there.png",
        artifacts=[{"artifactId": "a/1", "fileName": "screenshot.png"}],
    )
    controller.answer = lambda call: (
        taken if call.startswith("POST") else Answer(body=b"\x89PNG")
    )

    assert agent_device(controller).screenshot(tmp_path / "here.png") == b"\x89PNG"

    assert (tmp_path / "here.png").read_bytes() == b"\x89PNG"
    assert commands(controller)[0]["meta"]["clientArtifactPaths"] == {
        "path": "screenshot.png"
    }
    assert controller.asked[-1] == ("/artifacts/a%2F1", f"Bearer {TOKEN}")


def test_the_files_of_a_recording_stay_in_their_directory(
    controller: ScriptedServer, tmp_path: Path
) -> None:
    kept = [
        {"artifactId": "1", "fileName": "../a.mp4"},
        {"artifactId": "2", "fileName": "b.mp4"},
    ]
    controller.answer = lambda call: (
        done(artifacts=kept) if call.startswith("POST") else Answer(body=b"film")
    )
    device = agent_device(controller)

    device.start_recording(fps=5)

    assert device.stop_recording(tmp_path) == (
        tmp_path / "1-a.mp4",
        tmp_path / "2-b.mp4",
    )
    assert commands(controller)[0]["flags"]["fps"] == 5


def test_closing_an_unopened_session_is_not_an_error(
    controller: ScriptedServer,
) -> None:
    controller.answer = lambda _call: refused(
        "SESSION_NOT_FOUND", "No active session", 404
    )

    agent_device(controller).close()


def test_no_repr_or_message_shows_url_or_token(controller: ScriptedServer) -> None:
    controller.answer = lambda _call: refused(
        "COMMAND_FAILED", f"cannot reach {controller.url} with {TOKEN}"
    )
    device = agent_device(controller)

    with pytest.raises(AgentDeviceError) as caught:
        device.press("label=Go")

    shown = f"{device!r} {device.environment!r} {vars(device)!r} {caught.value}"
    assert TOKEN not in shown
    assert controller.url not in shown


def test_a_session_of_another_type_has_no_daemon(controller: ScriptedServer) -> None:
    with pytest.raises(
        ControllerError, match="of type argent: it has no agent-device daemon"
    ):
        AgentDevice(session_at(controller.url, "argent"))


PROGRAM = """
import json, os, sys
assert os.environ["AGENT_DEVICE_DAEMON_AUTH_TOKEN"] not in " ".join(sys.argv)
data = {"args": sys.argv[1:], "session": os.environ["AGENT_DEVICE_SESSION"]}
if "fail" in sys.argv:
    print(json.dumps({"success": False, "error": {"code": "COMMAND_FAILED", "message": "no", "hint": "try"}}))
elif "crash" in sys.argv:
    sys.exit("Traceback: " + os.environ["AGENT_DEVICE_DAEMON_AUTH_TOKEN"])
else:
    print(json.dumps({"success": True, "data": data}))
"""


def test_the_real_program_runs_in_the_same_session(controller: ScriptedServer) -> None:
    device, program = agent_device(controller), [sys.executable, "-c", PROGRAM]

    assert device.run("get", "text", "label=Go", program=program) == {
        "args": ["get", "text", "label=Go", "--json"],
        "session": "a-test",
    }
    with pytest.raises(
        AgentDeviceError, match=r"agent-device fail: no \(COMMAND_FAILED\)\ntry"
    ):
        device.run("fail", program=program)
    with pytest.raises(
        ControllerError, match=r"crash exited with status 1: Traceback: \*\*\*"
    ):
        device.run("crash", program=program)
    with pytest.raises(ControllerError, match="took longer than"):
        device.run(
            "get",
            program=[sys.executable, "-c", "import time; time.sleep(60)"],
            timeout_seconds=0.2,
        )


def test_a_program_that_is_not_installed_is_reported(
    controller: ScriptedServer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="agent-device is not on PATH"):
        agent_device(controller).run("devices", environ={"PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match="cannot be run"):
        agent_device(controller).run("devices", program=[str(tmp_path / "missing")])


def test_session_names_are_safe_short_and_unique_per_test() -> None:
    names = {
        session_name(worker, f"tests/test_a.py::test_{'ä' * 200}[{n}]")
        for worker in ("gw0", "gw1")
        for n in (1, 2)
    }

    assert len(names) == 4
    assert all(
        name.replace("-", "").isalnum() and name.isascii() and len(name) <= 50
        for name in names
    )


def test_the_given_state_directory_is_used(
    controller: ScriptedServer, tmp_path: Path
) -> None:
    variables = environment_of(
        session_at(controller.url, "agent-device"), name="n", state_dir=tmp_path
    )

    assert variables["AGENT_DEVICE_STATE_DIR"] == str(tmp_path)
    assert variables["AGENT_DEVICE_PLATFORM"] == "android"


def test_an_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(AgentDeviceError("no", code="A", hint="h")))

    assert (str(error), error.code, error.hint) == ("no", "A", "h")

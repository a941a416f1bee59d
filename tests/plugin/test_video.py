"""Videos of tests whose controller is agent-device or argent, and of those that no controller records."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_device.testing import FaultyService
from tests.controllers.daemons import done, refused, tools
from tests.controllers.servers import CONFIGS
from tests.fakes.http_server import Answer, ScriptedServer, says, scripted_server

MP4 = b"\0\0\0 ftypisom"
READY = says({"ok": True})
TOOL: dict[str, Any] = {
    "type": "object",
    "properties": {"udid": {}, "trimStatic": {}},
    "required": ["udid"],
}


@pytest.fixture
def controller() -> Generator[ScriptedServer]:
    """Provide the controller that the service names for each session."""
    with scripted_server() as server:
        yield server


def suite(
    pytester: pytest.Pytester,
    service: FaultyService,
    controller: ScriptedServer,
    kind: str,
) -> None:
    """Write a suite with one failing test on a session with this controller."""
    fields = {"remoteConfig": CONFIGS[kind](controller.url)}
    service.add_fault("get", "change", fields=fields, times=None)
    fixture = f"device_{kind.replace('-', '_')}"
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.device(platform="android", type="{kind}")
        def test_fails({fixture}): assert False
        """
    )


def videos() -> list[str]:
    """Return the names of the kept videos, all of which are the one that was recorded."""
    kept = sorted(Path("left").rglob("video.*"))
    assert all(path.read_bytes() == MP4 for path in kept)
    return [path.name for path in kept]


def test_agent_device_records_the_screen_because_no_app_is_open_yet(
    pytester: pytest.Pytester, service: FaultyService, controller: ScriptedServer
) -> None:
    artifact = {"artifactId": "1", "fileName": "recording.mp4"}
    controller.answer = lambda call: (
        done(artifacts=[artifact])
        if call.startswith("POST")
        else Answer(body=MP4)
        if "artifacts" in call
        else READY
    )
    suite(pytester, service, controller, "agent-device")

    pytester.runpytest("--device-artifacts-dir=left", "--device-video=on")

    assert videos() == ["video.mp4"]
    sent = [json.loads(body)["params"] for body in controller.bodies if body]
    (start, stop) = [call for call in sent if call["command"] == "record"]
    assert (start["positionals"], stop["positionals"]) == (["start"], ["stop"])
    assert start["flags"]["recordingScope"] == "device"


def test_argent_records_with_its_tools(
    pytester: pytest.Pytester, service: FaultyService, controller: ScriptedServer
) -> None:
    known = [
        {"name": name, "description": "", "inputSchema": TOOL}
        for name in ("screen-recording-start", "screen-recording-stop")
    ]
    controller.answer = tools(
        {
            "GET /tools": says({"tools": known}),
            "POST /tools/screen-recording-start": says({"data": {}}),
            "POST /tools/screen-recording-stop": says({"data": {"video": {"id": "1"}}}),
            "GET /artifacts/1": Answer(body=MP4),
        }
    )
    suite(pytester, service, controller, "argent")

    pytester.runpytest("--device-artifacts-dir=left", "--device-video=on")

    assert videos() == ["video.mp4"]


def test_a_controller_that_does_not_record_is_a_line_in_the_log(
    pytester: pytest.Pytester, service: FaultyService, controller: ScriptedServer
) -> None:
    no = refused("UNSUPPORTED_OPERATION", "record is not supported", 400)
    controller.answer = lambda call: no if call.startswith("POST") else READY
    suite(pytester, service, controller, "agent-device")

    result = pytester.runpytest("--device-artifacts-dir=left", "--device-video=on")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no video of the device: *record is not supported*"])
    assert videos() == []


def test_a_device_whose_commands_the_plugin_does_not_send_is_a_line_in_the_log(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_fails(device_session): assert False
        """
    )

    result = pytester.runpytest("--device-artifacts-dir=left", "--device-video=on")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*no video of device: only a test with device_driver*"]
    )
    assert service.statuses() == ["stopped"]

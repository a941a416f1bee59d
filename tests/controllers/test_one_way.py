"""All commands of a client pass through one method, where a recorder can see them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.appium.drivers import driver
from pytest_device.controllers.argent import Argent
from pytest_device.controllers.environment import environment_of
from tests.controllers.appium_servers import appium, session_on
from tests.controllers.daemons import commands, done, tools
from tests.controllers.servers import session_at
from tests.fakes.http_server import ScriptedServer, says

ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "open": ("com.example.notes",),
    "snapshot": (),
    "press": ("label=Go",),
    "longpress": ("label=Go",),
    "fill": ("label=Name", "Ada"),
    "type": ("Ada",),
    "scroll": ("down",),
    "back": (),
    "alert": (),
    "wait": ("label=Go",),
    "get": ("label=Go",),
    "node": ("label=Go",),
    "find": ("Go",),
    "is_": ("visible", "label=Go"),
    "screenshot": (),
    "start_recording": (),
    "stop_recording": (Path("unused"),),
    "logs": ("path",),
    "clear_app_state": (),
    "close": (),
}


class RecordedAgentDevice(AgentDevice):
    recorded: list[str]

    def command(self, name: str, *positionals: str, **more: Any) -> Mapping[str, Any]:
        self.recorded.append(name)
        return super().command(name, *positionals, **more)


class RecordedArgent(Argent):
    recorded: list[str]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        self.recorded.append(tool)
        return super().call(tool, **arguments)


def test_every_method_of_agent_device_sends_its_command_through_command(
    controller: ScriptedServer, tmp_path: Path
) -> None:
    artifact = {"artifactId": "1", "fileName": "a.png"}
    controller.answer = lambda call: (
        done(artifacts=[artifact]) if "rpc" in call else says({})
    )
    session = session_at(controller.url, "agent-device")
    device = RecordedAgentDevice(session, environment_of(session, name="a-test"))
    device.recorded = []

    for name, arguments in ARGUMENTS.items():
        here = [tmp_path if value == Path("unused") else value for value in arguments]
        getattr(device, name)(*here)

    own = {name for name in vars(AgentDevice) if not name.startswith("_")}
    assert own == set(ARGUMENTS)
    assert device.recorded == [sent["command"] for sent in commands(controller)]
    assert len(device.recorded) == len(ARGUMENTS)


def test_every_tool_that_a_test_uses_is_called_through_call(
    controller: ScriptedServer,
) -> None:
    schema = {"type": "object", "properties": {}}
    names = ("screenshot", "describe")
    listed = [{"name": name, "inputSchema": schema} for name in names]
    controller.answer = tools(
        {
            "GET /tools": says({"tools": listed}),
            "POST /tools/screenshot": says({"data": {"image": {"id": "1"}}}),
            "POST /tools/describe": says({"data": {"description": "a button"}}),
            "GET /artifacts/1": says({}),
        }
    )
    device = RecordedArgent(session_at(controller.url, "argent"))
    device.recorded = []

    device.screenshot()
    device.describe()

    sent = [
        path.removeprefix("/tools/")
        for path, _ in controller.asked
        if "/tools/" in path
    ]
    assert device.recorded == sent == list(names)


def test_every_command_of_a_started_driver_goes_through_its_command_executor(
    controller: ScriptedServer,
) -> None:
    controller.answer = appium(
        element=says({"value": {"element-6066-11e4-a52e-4f735466cecf": "1"}})
    )
    recorded: list[str] = []

    with driver(session_on(controller), {}) as started:
        execute = started.command_executor.execute

        def recording(command: str, params: dict[str, Any]) -> Any:
            recorded.append(command)
            return execute(command, params)  # type: ignore[no-untyped-call]

        started.command_executor.execute = recording  # type: ignore[method-assign]
        before = len(controller.asked)
        started.find_element("id", "go").click()
        started.back()

    assert recorded == [
        "findElement",
        "clickElement",
        "goBack",
        "quit",
    ]
    assert len(controller.asked) - before == len(recorded)

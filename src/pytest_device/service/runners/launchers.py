"""Starts the controllers of sessions: Appium's servers, the daemons of agent-device and argent."""

import asyncio
import http.client
import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.service.devices.base import Device
from pytest_device.service.runners import isolation
from pytest_device.service.runners.controller import (
    APPIUM_BOOT_LIMIT_SECONDS,
    BOOT_LIMIT_SECONDS,
    HOST,
    Controller,
    LaunchContext,
    Launcher,
)
from pytest_device.service.runners.output_tail import AppiumOutputTail, OutputTail, TokenOutputTail
from pytest_device.service.runners.processes import MARK
from pytest_device.service.runners.program import Program
from pytest_device.service.runners.toolchain import AGENT_DEVICE, APPIUM, ARGENT, Project
from pytest_device.spec import SessionType

_ANSWER_SECONDS: Final = 5.0
_ON_SOCKET: Final = ("--require", str(Path(__file__).parent / "on_socket.cjs"))
_NEAR: Final = (HOST, "localhost", "0.0.0.0")  # noqa: S104  compared, not listened on
_PORT: Final = "4723"
"""Port that the script above replaces with a socket; nothing listens on it."""
_APPIUM_ARGUMENTS: Final = (
    *("server", "--address", HOST, "--port", _PORT),
    *("--config", str(os.devnull)),  # otherwise it searches every parent directory for one
    *("--log-level", "info", "--log-no-colors"),
    *("--shutdown-timeout", "0"),  # otherwise each open client connection delays the shutdown
)
_OUR_DRIVER: Final = Path(__file__).parent.parent / "appium_driver"
_OUR_NAME: Final = "appium-pytest-device-driver"
_FAKE_DRIVER: Final = "@appium/fake-driver"
_BROWSER: Final = "agent-browser"
_BROWSER_VERSION: Final = "0.27.1"
"""Version that this agent-device manages; the npm project pins it."""
_SHIM: Final = Path(__file__).parent / "agent_browser/shim.js"


@dataclass(frozen=True, slots=True)
class AppiumLauncher:
    """Runs Appium servers, each with its own Appium home unless the device needs the user's driver.

    Appium supports no access token: it listens on a socket in a private directory, to which the gateway connects.
    """

    boot_limit_seconds: float = APPIUM_BOOT_LIMIT_SECONDS
    project: Project = APPIUM

    async def launch(self, context: LaunchContext, device: Device) -> Controller:
        output = AppiumOutputTail()
        output.hide(context.device_url)
        listener, program = await _start(
            context,
            device,
            APPIUM,
            [*_APPIUM_ARGUMENTS, *_allowed(context)],
            self._environ(context, device),
            output,
        )

        async def answered() -> bool | None:
            return await _answers(listener, "/status", lambda reply: reply["value"]["ready"]) or None

        await program.ready(answered, self.boot_limit_seconds)
        config = {"appiumUrl": context.url, "capabilities": dict(device.tools.capabilities)}
        return Controller(program, config, listener)

    def _environ(self, context: LaunchContext, device: Device) -> dict[str, str]:
        """Return the environment: real drivers need the user's home directory, ours and the fake one do not."""
        own = context.workspace.subdir("appium")
        _prepare_home(own, context, device)
        return context.environment(
            context.home if device.tools.appium_home else context.workspace.subdir("home"),
            APPIUM_HOME=device.tools.appium_home or own,
            **_device_environ(context, device),
        )


def _allowed(context: LaunchContext) -> Sequence[str]:
    return ("--allow-insecure", ",".join(context.allow_insecure)) if context.allow_insecure else ()


@dataclass(frozen=True, slots=True)
class DaemonLauncher:
    """Runs daemons, each in its own ``directory``, to which it writes its token.

    ``notes`` is the pattern of that file, ``alive`` the path of the health check and the key of a healthy response.
    ``details`` are the keys of URL and token in the connection details.
    """

    project: Project
    environ: Callable[[LaunchContext, Device, Path], dict[str, str]]
    directory: str
    notes: str
    alive: tuple[str, str]
    details: tuple[str, str]
    arguments: Sequence[str] = ()
    output: Callable[[], OutputTail] = OutputTail
    boot_limit_seconds: float = BOOT_LIMIT_SECONDS

    async def launch(self, context: LaunchContext, device: Device) -> Controller:
        directory, output = context.workspace.subdir(self.directory), self.output()
        environ = self.environ(context, device, directory)
        listener, program = await _start(context, device, self.project, self.arguments, environ, output)

        async def answered() -> str | None:
            path, key = self.alive
            token = _token_in(directory, self.notes)
            output.hide(token)
            good = token and await _answers(listener, path, lambda reply: reply[key], token=token)
            return token if good else None

        token = await program.ready(answered, self.boot_limit_seconds)
        return Controller(program, dict(zip(self.details, (context.url, token), strict=True)), listener, token)


async def _start(
    context: LaunchContext,
    device: Device,
    project: Project,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    output: OutputTail,
) -> tuple[Path, Program]:
    """Start a controller; return the socket that replaces ``_PORT``, and the program.

    A controller of the local browser gets its own namespace, because it starts programs that listen without any key.
    """
    listener, port = context.workspace.short / "controller", device.tools.debugging_port
    command: list[str | Path] = [context.toolchain.node, *_ON_SOCKET, context.toolchain.script, *arguments]
    environ = {"PYTEST_DEVICE_PORT": _PORT, **environ, "PYTEST_DEVICE_SOCKET": str(listener)}
    title = project.node.program
    service = urlsplit(context.device_url)
    is_near = service.hostname in _NEAR
    if port is not None and not is_near:
        context.note(f"{isolation.OPEN}: the service listens on {service.hostname}, not on {HOST}")
    if port is None or not is_near:
        return listener, await context.workspace.start(title, command, environ=environ, output=output)
    bridges = [port, service.port or 0]
    program = await isolation.start(
        context.workspace, title, command, environ=environ, output=output, bridges=bridges, note=context.note
    )
    return listener, program


def _prepare_home(home: Path, context: LaunchContext, device: Device) -> None:
    # Appium writes a list of drivers to its home. With separate homes no server reads the list while another one
    # writes it, and the installed programs may be read-only.
    if device.tools.appium_home:
        return
    if device.tools.debugging_port is None:
        link = home / "node_modules" / _FAKE_DRIVER
        link.parent.mkdir(parents=True)
        link.symlink_to(context.toolchain.package(_FAKE_DRIVER))
        return
    ours = home / "node_modules" / _OUR_NAME
    # Copied, because Node.js resolves imports from a file's real path.
    shutil.copytree(_OUR_DRIVER, ours, ignore=shutil.ignore_patterns("*.json", "*.md", "__pycache__"))
    shutil.copy(_OUR_DRIVER / f"{device.platform}.json", ours / "package.json")
    (ours / "node_modules").symlink_to(context.toolchain.project / "node_modules")


def _device_environ(context: LaunchContext, device: Device) -> Mapping[str, str]:
    """Return the variables that our driver needs to find the device, see its README."""
    if device.tools.debugging_port is None:
        return device.tools.environ
    return {
        **device.tools.environ,
        "PYTEST_DEVICE_DEVICE_URL": context.device_url,
        "PYTEST_DEVICE_DEBUGGING_PORT": str(device.tools.debugging_port),
        "PYTEST_DEVICE_DEVICE_NAME": device.name,
        "PYTEST_DEVICE_UDID": str(device.tools.capabilities.get("appium:udid", "")),
    }


def _agent_device_environ(context: LaunchContext, device: Device, state: Path) -> dict[str, str]:
    """Return the environment: real devices need the user's home directory, a browser does not."""
    is_browser = device.tools.debugging_port is not None
    return context.environment(
        context.workspace.subdir("home") if is_browser else context.home,
        AGENT_DEVICE_STATE_DIR=state,
        AGENT_DEVICE_CLAIMS_DIR=context.workspace.subdir("claims"),
        AGENT_DEVICE_DAEMON_SERVER_MODE="http",
        AGENT_DEVICE_DAEMON_IDLE_TIMEOUT_MS="0",
        AGENT_DEVICE_NO_UPDATE_NOTIFIER="1",
        PYTEST_DEVICE_PORT="0",  # listens on any port
        **device.tools.environ,
        **(_agent_browser(context, device, state) if is_browser else {}),
    )


def _agent_browser(context: LaunchContext, device: Device, state: Path) -> Mapping[str, str]:
    """Install our shim in place of the agent-browser that the daemon manages; return the shim's environment."""
    managed = state / "tools" / _BROWSER / _BROWSER_VERSION
    package = managed / "package/node_modules" / _BROWSER
    package.mkdir(parents=True)
    shutil.copy(_SHIM, package)
    manifest = {"name": _BROWSER, "version": _BROWSER_VERSION, "type": "module", "bin": {_BROWSER: _SHIM.name}}
    (package / "package.json").write_text(json.dumps(manifest))
    (managed / "manifest.json").write_text(json.dumps({"package": _BROWSER, "version": _BROWSER_VERSION}))
    return {
        "PYTEST_DEVICE_AGENT_BROWSER": str(context.toolchain.package(_BROWSER) / "bin/agent-browser.js"),
        "PYTEST_DEVICE_DEBUGGING_PORT": str(device.tools.debugging_port),
        MARK: str(context.workspace.directory),
    }


def _argent_environ(context: LaunchContext, device: Device, home: Path) -> dict[str, str]:
    port = device.tools.debugging_port
    return context.environment(
        home,
        ARGENT_TELEMETRY="0",
        NODE_OPTIONS=f'--require "{_ON_SOCKET[1]}"',  # for the server that the command starts
        **device.tools.environ,
        **({} if port is None else {"ARGENT_CHROMIUM_PORTS": str(port)}),
    )


class _OverSocket(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__(HOST, timeout=_ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_ANSWER_SECONDS)
        self.sock.connect(str(self._path))


async def _answers(listener: Path, path: str, is_good: Callable[[Any], Any], *, token: str = "") -> bool:
    """Return whether a socket answers a GET request with JSON that ``is_good`` accepts."""
    return await asyncio.to_thread(_answers_now, listener, path, is_good, token)


def _answers_now(listener: Path, path: str, is_good: Callable[[Any], Any], token: str) -> bool:
    connection = _OverSocket(listener)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        reply = connection.getresponse()
        return reply.status == HTTPStatus.OK and bool(is_good(json.load(reply)))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False  # not ready yet
    finally:
        connection.close()


def _token_in(directory: Path, pattern: str) -> str:
    """Return the token that a program wrote to a JSON file, "" if it has not yet."""
    try:
        return str(json.loads(next(directory.glob(pattern)).read_text())["token"])
    except (StopIteration, OSError, ValueError, KeyError):
        return ""


LAUNCHERS: Final[Mapping[SessionType, Launcher]] = {
    SessionType.APPIUM: AppiumLauncher(),
    SessionType.AGENT_DEVICE: DaemonLauncher(
        AGENT_DEVICE,
        _agent_device_environ,
        directory="agent-device",
        notes="daemon.json",
        alive=("/health", "ok"),
        details=("agentDeviceRemoteSessionUrl", "agentDeviceRemoteSessionToken"),
    ),
    SessionType.ARGENT: DaemonLauncher(
        ARGENT,
        _argent_environ,
        directory="home",
        notes=".argent/tool-server-*.json",
        alive=("/tools", "tools"),
        details=("toolsUrl", "toolsAuthToken"),
        arguments=("server", "start", "--host", HOST, "--port", _PORT, "--idle-timeout", "0", "--force"),
        output=TokenOutputTail,
    ),
}
"""By session type; other session types have no controller."""

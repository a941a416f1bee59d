"""Starts the controllers of sessions: Appium's servers, the daemons of agent-device and argent."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Facts
from pytest_device.service.programs import isolation
from pytest_device.service.programs.isolation import HOST
from pytest_device.service.programs.output_tail import (
    AppiumOutputTail,
    OutputTail,
    TokenOutputTail,
)
from pytest_device.service.programs.processes import MARK
from pytest_device.service.programs.program import Program
from pytest_device.service.programs.toolchain import (
    AGENT_DEVICE,
    APPIUM,
    ARGENT,
    Project,
    digest,
)
from pytest_device.service.runners.controller import (
    Controller,
    LaunchContext,
    over_socket,
)
from pytest_device.spec import SessionType

_ANSWER_SECONDS: Final = 5.0
_ON_SOCKET: Final = ("--require", str(Path(__file__).parent / "on_socket.cjs"))
_NO_UPDATE_CHECK: Final = Path(__file__).parent / "no_update_check.cjs"
_PORT: Final = "4723"
"""Port that the script above replaces with a socket; nothing listens on it."""
_APPIUM_ARGUMENTS: Final = (
    "server",
    "--address",
    HOST,
    "--port",
    _PORT,
    # Otherwise it searches every parent directory for one.
    "--config",
    str(os.devnull),
    "--log-level",
    "info",
    "--log-no-colors",
    # Otherwise each open client connection delays the shutdown.
    "--shutdown-timeout",
    "0",
)
_ARGENT_ARGUMENTS: Final = (
    "server",
    "start",
    "--host",
    HOST,
    "--port",
    _PORT,
    # The service ends idle sessions itself, as their create requests say.
    "--idle-timeout",
    "0",
    "--force",
)
_OWN_DRIVER: Final = Path(__file__).parent.parent / "appium_driver"
"""This package's driver of the local browser."""
_OWN_NAME: Final = "appium-pytest-device-driver"
_FAKE_DRIVER: Final = "@appium/fake-driver"
_BROWSER: Final = "agent-browser"
_BROWSER_VERSION: Final = "0.27.1"
"""Version that this agent-device manages; the npm project pins it."""
_RECTANGLES: Final = Path(__file__).parent / "agent_browser/rectangles.cjs"
_SHIM: Final = Path(__file__).parent / "agent_browser/shim.js"


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts the controllers of one session type.

    Attributes:
        project: The npm project to install.
        environ: Prepares a controller's own directory, and returns its environment.
        directory: The name of this directory in the session's workspace.
        health_path: The path of the health check.
        is_healthy: Returns whether a response to the health check, parsed as JSON, is that of a ready controller.
        details: Returns the connection details for URL, token and device.
        arguments: Returns the arguments of the command line.
        token_file: The pattern of the file in the directory to which the controller writes its token. Appium has none:
            its socket is in a private directory, to which the gateway connects.
        preload: A script that the controller's own process loads first.
        output: Returns the collector of its output.
        boot_limit_seconds: The maximum time of a start.
    """

    project: Project
    environ: Callable[[LaunchContext, Facts, Path], dict[str, str]]
    directory: str
    health_path: str
    is_healthy: Callable[[Any], Any]
    details: Callable[[str, str, Facts], Mapping[str, Any]]
    arguments: Callable[[LaunchContext], Sequence[str]] = lambda _context: ()
    token_file: str = ""
    preload: Path | None = None
    output: Callable[[], OutputTail] = OutputTail
    boot_limit_seconds: float = 60.0

    async def launch(self, context: LaunchContext, device: Facts) -> Controller:
        """Start a controller and return it once it responds; removing the workspace stops it.

        Raises ControllerError if it does not respond in time, OSError if it cannot be started.
        """
        directory = context.workspace.subdir(self.directory)
        output = self.output()
        output.hide(context.device_url)
        environ = self.environ(context, device, directory)
        listener, program = await self._start(context, device, environ, output)

        async def token_once_ready() -> str | None:
            token = ""
            if self.token_file:
                token = _token_in(directory, self.token_file)
                if not token:
                    return None
                output.hide(token)

            is_ready = await _responds(
                listener, self.health_path, self.is_healthy, token
            )
            return token if is_ready else None

        token = await program.ready(token_once_ready, self.boot_limit_seconds)
        details = self.details(context.url, token, device)
        return Controller(program, details, listener, token)

    async def _start(
        self,
        context: LaunchContext,
        device: Facts,
        environ: Mapping[str, str],
        output: OutputTail,
    ) -> tuple[Path, Program]:
        """Start a controller; return the socket that replaces ``_PORT``, and the program.

        A controller of the local browser gets its own namespace: it starts programs that listen without any key.
        """
        listener = context.workspace.short / "controller"
        tools = context.toolchain
        preload = ("--require", self.preload) if self.preload else ()
        command: list[str | Path] = [
            tools.node,
            *_ON_SOCKET,
            *preload,
            tools.script,
            *self.arguments(context),
        ]
        environ = {
            "PYTEST_DEVICE_PORT": _PORT,
            **environ,
            "PYTEST_DEVICE_SOCKET": str(listener),
        }
        title = self.project.node.program
        service = urlsplit(context.device_url)
        port = device.tools.debugging_port

        is_bridged = isolation.is_bridged(service.hostname or "")
        if port is not None and not is_bridged:
            reason = f"the service listens on {service.hostname}, not on {HOST}"
            if context.requires_isolation:
                raise ControllerError(isolation.required(reason))
            context.note(f"{isolation.OPEN}: {reason}")

        if port is None or not is_bridged:
            program = await context.workspace.start(
                title, command, environ=environ, output=output
            )
        else:
            # From its namespace, the controller reaches only the browser and the service.
            program = await isolation.start(
                context.workspace,
                title,
                command,
                environ=environ,
                output=output,
                bridges=[port, service.port or 0],
                note=context.note,
                is_required=context.requires_isolation,
            )
        return listener, program


def _appium_arguments(context: LaunchContext) -> Sequence[str]:
    if not context.allow_insecure:
        return _APPIUM_ARGUMENTS
    features = ",".join(context.allow_insecure)
    return [*_APPIUM_ARGUMENTS, "--allow-insecure", features]


def _appium_environ(context: LaunchContext, device: Facts, own: Path) -> dict[str, str]:
    """Return the environment: real drivers need the user's home directory, the other two do not.

    Each server has its own Appium home unless the device needs the user's driver.
    """
    _prepare_home(own, context, device)
    users_drivers = device.tools.appium_home
    return context.environment(
        context.home if users_drivers else context.workspace.subdir("home"),
        APPIUM_HOME=users_drivers or own,
        # A third of its start is compiling modules. Node.js does without if it can't write there.
        NODE_COMPILE_CACHE=context.toolchain.project / "compile-cache",
        **_device_environ(context, device),
    )


def _prepare_home(home: Path, context: LaunchContext, device: Facts) -> None:
    # Appium writes a list of drivers to its home. With separate homes no server reads the list while another one
    # writes it, and the installed programs may be read-only.
    if device.tools.appium_home:
        return

    if device.tools.debugging_port is None:
        link = home / "node_modules" / _FAKE_DRIVER
        link.parent.mkdir(parents=True)
        link.symlink_to(context.toolchain.package(_FAKE_DRIVER))
        return

    ours = home / "node_modules" / _OWN_NAME
    ours.parent.mkdir(parents=True)
    project = context.toolchain.project
    try:
        ours.symlink_to(_driver_in(project, device.platform))
    except OSError:  # the installed programs are read-only
        _copy_driver(device.platform, ours)
        (ours / "node_modules").symlink_to(project / "node_modules")


def _driver_in(project: Path, platform: str) -> Path:
    """Return our driver's directory in the npm project, copied there once per version.

    Node.js resolves imports from a file's real path, and keeps compiled modules by it: copies in each session's home
    would fill that cache. Raises OSError if the project is read-only.
    """
    files = [*sorted(_OWN_DRIVER.glob("*.js")), _OWN_DRIVER / f"{platform}.json"]
    driver = project / "drivers" / f"{platform}-{digest(files)}"
    if driver.is_dir():
        return driver

    driver.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=driver.parent) as directory:
        partial = Path(directory, _OWN_NAME)
        _copy_driver(platform, partial)
        try:
            partial.rename(driver)
        except OSError:
            if not driver.is_dir():  # if it is, another service was faster
                raise

    return driver


def _copy_driver(platform: str, directory: Path) -> None:
    shutil.copytree(
        _OWN_DRIVER,
        directory,
        ignore=shutil.ignore_patterns("*.json", "*.md", "__pycache__"),
    )
    shutil.copy(_OWN_DRIVER / f"{platform}.json", directory / "package.json")


def _device_environ(context: LaunchContext, device: Facts) -> Mapping[str, str]:
    """Return the variables that this package's driver needs to find the device, see its README."""
    if device.tools.debugging_port is None:
        return device.tools.environ

    return {
        **device.tools.environ,
        "PYTEST_DEVICE_DEVICE_URL": context.device_url,
        "PYTEST_DEVICE_DEBUGGING_PORT": str(device.tools.debugging_port),
        "PYTEST_DEVICE_DEVICE_NAME": device.name,
        "PYTEST_DEVICE_UDID": str(device.tools.capabilities.get("appium:udid", "")),
    }


def _agent_device_environ(
    context: LaunchContext, device: Facts, state: Path
) -> dict[str, str]:
    """Return the environment: real devices need the user's home directory, a browser does not."""
    is_browser = device.tools.debugging_port is not None
    browser_environ: Mapping[str, str] = {}
    if is_browser:
        browser_environ = _agent_browser(context, device, state)

    return context.environment(
        context.workspace.subdir("home") if is_browser else context.home,
        AGENT_DEVICE_STATE_DIR=state,
        # In the user's own, a second daemon would be refused the device: DEVICE_IN_USE.
        AGENT_DEVICE_CLAIMS_DIR=context.workspace.subdir("claims"),
        AGENT_DEVICE_DAEMON_SERVER_MODE="http",
        # As for argent, the service ends idle sessions itself.
        AGENT_DEVICE_DAEMON_IDLE_TIMEOUT_MS="0",
        AGENT_DEVICE_NO_UPDATE_NOTIFIER="1",
        PYTEST_DEVICE_PORT="0",  # listens on any port
        **device.tools.environ,
        **browser_environ,
    )


def _agent_browser(
    context: LaunchContext, device: Facts, state: Path
) -> Mapping[str, str]:
    """Install the shim in place of the agent-browser that the daemon manages; return the shim's environment."""
    managed = state / "tools" / _BROWSER / _BROWSER_VERSION
    package = managed / "package/node_modules" / _BROWSER
    package.mkdir(parents=True)
    shutil.copy(_SHIM, package)
    manifest = {
        "name": _BROWSER,
        "version": _BROWSER_VERSION,
        "bin": {_BROWSER: _SHIM.name},
    }
    (package / "package.json").write_text(json.dumps(manifest))
    (managed / "manifest.json").write_text(
        json.dumps({"package": _BROWSER, "version": _BROWSER_VERSION})
    )

    return {
        "PYTEST_DEVICE_AGENT_BROWSER": str(
            context.toolchain.package(_BROWSER) / "bin/agent-browser.js"
        ),
        "PYTEST_DEVICE_DEBUGGING_PORT": str(device.tools.debugging_port),
        "PYTEST_DEVICE_DEVICE_URL": context.device_url,
        MARK: str(context.workspace.directory),
    }


def _argent_environ(
    context: LaunchContext, device: Facts, home: Path
) -> dict[str, str]:
    port = device.tools.debugging_port
    browsers = {} if port is None else {"ARGENT_CHROMIUM_PORTS": str(port)}
    return context.environment(
        home,
        ARGENT_TELEMETRY="0",
        # For the server that the command starts.
        NODE_OPTIONS=f'--require "{_ON_SOCKET[1]}" --require "{_NO_UPDATE_CHECK}"',
        **device.tools.environ,
        **browsers,
    )


async def _responds(
    listener: Path, path: str, is_healthy: Callable[[Any], Any], token: str
) -> bool:
    """Return whether a socket responds to a GET request with JSON that ``is_healthy`` accepts."""
    if not listener.exists():  # noqa: ASYNC240  # fast, where a client for each attempt is not
        return False

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(
        transport=over_socket(listener), timeout=_ANSWER_SECONDS
    ) as client:
        try:
            reply = await client.get(f"http://{HOST}{path}", headers=headers)
            return reply.status_code == HTTPStatus.OK and bool(is_healthy(reply.json()))
        except (httpx.TransportError, ValueError, KeyError, TypeError):
            return False  # not ready yet


def _token_in(directory: Path, pattern: str) -> str:
    """Return the token that a program wrote to a JSON file, "" if it has not yet."""
    for path in directory.glob(pattern):
        try:
            return str(json.loads(path.read_text())["token"])
        except (OSError, ValueError, KeyError):  # not written completely yet
            return ""
    return ""  # not written at all yet


LAUNCHERS: Final[Mapping[SessionType, Launcher]] = {
    SessionType.APPIUM: Launcher(
        APPIUM,
        _appium_environ,
        directory="appium",
        health_path="/status",
        is_healthy=lambda reply: reply["value"]["ready"],
        details=lambda url, _token, device: {
            "appiumUrl": url,
            "capabilities": dict(device.tools.capabilities),
        },
        arguments=_appium_arguments,
        output=AppiumOutputTail,
        boot_limit_seconds=120.0,  # as in remote services
    ),
    SessionType.AGENT_DEVICE: Launcher(
        AGENT_DEVICE,
        _agent_device_environ,
        directory="agent-device",
        health_path="/health",
        is_healthy=lambda reply: reply["ok"],
        details=lambda url, token, _: {
            "agentDeviceRemoteSessionUrl": url,
            "agentDeviceRemoteSessionToken": token,
        },
        token_file="daemon.json",  # noqa: S106  # the name of a file
        preload=_RECTANGLES,
    ),
    SessionType.ARGENT: Launcher(
        ARGENT,
        _argent_environ,
        directory="home",
        health_path="/tools",
        is_healthy=lambda reply: reply["tools"],
        details=lambda url, token, _device: {"toolsUrl": url, "toolsAuthToken": token},
        arguments=lambda _context: _ARGENT_ARGUMENTS,
        token_file=".argent/tool-server-*.json",  # noqa: S106  # a pattern of files
        output=TokenOutputTail,
    ),
}
"""By session type; other session types have no controller."""

"""agent-device as the controller of a session: its daemon, over HTTP."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.controller import BOOT_LIMIT_SECONDS, Controller, LaunchContext
from pytest_device.service.runners.health import answers, noted
from pytest_device.service.runners.journal import Journal
from pytest_device.service.runners.processes import MARK
from pytest_device.service.runners.toolchain import AGENT_DEVICE, Project

_BROWSER: Final = "agent-browser"
_BROWSER_VERSION: Final = "0.27.1"
"""The version that this agent-device manages; the npm project pins it."""
_SHIM: Final = Path(__file__).parent / "agent_browser/shim.js"


@dataclass(frozen=True, slots=True)
class AgentDeviceLauncher:
    """Runs agent-device daemons, each with its own state and claims."""

    boot_limit_seconds: float = BOOT_LIMIT_SECONDS
    project: Project = AGENT_DEVICE

    async def launch(self, context: LaunchContext, device: Device) -> Controller:
        """Start a daemon and wait until it answers."""
        state = context.workspace.subdir("agent-device")
        journal = Journal()
        program = await context.workspace.start(
            AGENT_DEVICE.node.program,
            [context.toolchain.node, context.toolchain.script],
            environ=_environ(context, device, state),
            journal=journal,
        )

        async def answered() -> tuple[int, str] | None:
            port, token = noted(state / "daemon.json", "httpPort")
            journal.hide(token)
            return (port, token) if port and await answers(port, "/health", _is_ok) else None

        port, token = await program.ready(answered, self.boot_limit_seconds)
        config = {"agentDeviceRemoteSessionUrl": context.url, "agentDeviceRemoteSessionToken": token}
        return Controller(program, config, port, token)


def _is_ok(reply: Any) -> bool:
    return bool(reply["ok"])


def _environ(context: LaunchContext, device: Device, state: Path) -> dict[str, str]:
    """Return the environment: real devices need the user's home directory, a browser does not."""
    is_browser = device.tools.debugging_port is not None
    return context.environment(
        context.workspace.subdir("home") if is_browser else context.home,
        AGENT_DEVICE_STATE_DIR=state,
        AGENT_DEVICE_CLAIMS_DIR=context.workspace.subdir("claims"),
        AGENT_DEVICE_DAEMON_SERVER_MODE="http",
        AGENT_DEVICE_DAEMON_IDLE_TIMEOUT_MS="0",
        AGENT_DEVICE_NO_UPDATE_NOTIFIER="1",
        **device.tools.environ,
        **(_browser(context, device, state) if is_browser else {}),
    )


def _browser(context: LaunchContext, device: Device, state: Path) -> Mapping[str, str]:
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

"""argent as the controller of a session: its tool server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.controller import BOOT_LIMIT_SECONDS, HOST, Controller, LaunchContext
from pytest_device.service.runners.health import answers, noted
from pytest_device.service.runners.journal import TokenJournal
from pytest_device.service.runners.toolchain import ARGENT, Project


@dataclass(frozen=True, slots=True)
class ArgentLauncher:
    """Runs argent's tool servers, each with its own home, where it writes its port and its token."""

    boot_limit_seconds: float = BOOT_LIMIT_SECONDS
    project: Project = ARGENT

    async def launch(self, context: LaunchContext, device: Device) -> Controller:
        """Start a tool server and wait until it answers."""
        home, journal = context.workspace.subdir("home"), TokenJournal()
        program = await context.workspace.start(
            ARGENT.node.program, _command(context), environ=_environ(context, device, home), journal=journal
        )

        async def answered() -> tuple[int, str] | None:
            port, token = noted(_notes(home), "port")
            journal.hide(token)
            return (port, token) if port and await answers(port, "/tools", _has_tools, token=token) else None

        port, token = await program.ready(answered, self.boot_limit_seconds)
        return Controller(program, {"toolsUrl": context.url, "toolsAuthToken": token}, port, token)


def _command(context: LaunchContext) -> list[str | Path]:
    return [
        *(context.toolchain.node, context.toolchain.script, "server", "start"),
        *("--host", HOST, "--port", "0"),
        *("--idle-timeout", "0", "--force"),
    ]


def _environ(context: LaunchContext, device: Device, home: Path) -> dict[str, str]:
    port = device.tools.debugging_port
    return context.environment(
        home,
        ARGENT_TELEMETRY="0",
        **device.tools.environ,
        **({} if port is None else {"ARGENT_CHROMIUM_PORTS": str(port)}),
    )


def _notes(home: Path) -> Path:
    return next(home.glob(".argent/tool-server-*.json"), home / ".argent/tool-server.json")


def _has_tools(reply: Any) -> bool:
    return bool(reply["tools"])

"""argent as the controller of a session: its tool server."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.controller import BOOT_LIMIT_SECONDS, HOST, Controller, Place
from pytest_device.service.runners.health import answers
from pytest_device.service.runners.journal import TokenJournal
from pytest_device.service.runners.toolchain import ARGENT, Project


@dataclass(frozen=True, slots=True)
class ArgentLauncher:
    """Runs argent's tool servers, each with a home of its own: there it notes its port and its token."""

    boot_limit_seconds: float = BOOT_LIMIT_SECONDS
    project: Project = ARGENT

    async def launch(self, place: Place, device: Device) -> Controller:
        """Start a tool server that answers."""
        home, journal = place.workplace.room("home"), TokenJournal()
        program = await place.workplace.start(
            ARGENT.node.program, _command(place), environ=_environ(place, device, home), journal=journal
        )

        async def answered() -> tuple[int, str] | None:
            port, token = _notes(home)
            journal.hide(token)
            return (port, token) if port and await answers(port, "/tools", _has_tools, token=token) else None

        port, token = await program.ready(answered, self.boot_limit_seconds)
        return Controller(program, {"toolsUrl": place.url, "toolsAuthToken": token}, port, token)


def _command(place: Place) -> list[str | Path]:
    return [
        *(place.toolchain.node, place.toolchain.script, "server", "start"),
        *("--host", HOST, "--port", "0"),
        *("--idle-timeout", "0", "--force"),
    ]


def _environ(place: Place, device: Device, home: Path) -> dict[str, str]:
    port = device.tools.debugging_port
    return place.environment(
        home,
        ARGENT_TELEMETRY="0",
        **device.tools.environ,
        **({} if port is None else {"ARGENT_CHROMIUM_PORTS": str(port)}),
    )


def _notes(home: Path) -> tuple[int, str]:
    """Return the port and the token that the server has noted, 0 and nothing while it has not."""
    try:
        (path,) = home.glob(".argent/tool-server-*.json")
        noted = json.loads(path.read_text())
        return int(noted["port"]), str(noted["token"])
    except (OSError, ValueError, KeyError):
        return 0, ""


def _has_tools(reply: Any) -> bool:
    return bool(reply["tools"])

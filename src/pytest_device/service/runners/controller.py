"""The controller of a session: the program that drives its device for a test."""

import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from pytest_device.service.logs import Log
from pytest_device.service.programs.program import Program, Workspace
from pytest_device.service.programs.toolchain import Toolchain

# Loading the system's certificates would take time.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ONE_REQUEST: Final = httpx.Limits()


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What the launch of a controller needs.

    Attributes:
        workspace: The workspace of its session.
        toolchain: Node.js and the controller's npm project.
        environ: The environment of the session's programs.
        home: The user's home directory.
        url: The controller's URL at the gateway, a secret.
        device_url: The URL of the device's HTTP interface, a secret.
        note: Adds an entry to the session's timeline.
        allow_insecure: Features for Appium's option of this name.
        requires_isolation: Whether a controller of the local browser must have its own network namespace.
    """

    workspace: Workspace
    toolchain: Toolchain
    environ: Mapping[str, str]
    home: Path
    url: str = field(repr=False)
    device_url: str = field(repr=False)
    note: Log
    allow_insecure: Sequence[str] = ()
    requires_isolation: bool = False

    def environment(self, home: Path, **more: str | Path) -> dict[str, str]:
        """Return the environment of the controller's program, with its own home and temporary directory."""
        # Node.js first: a controller starts further programs by the name "node".
        node_directory = str(self.toolchain.node.parent)
        path = self.environ.get("PATH", os.defpath)
        return {
            **self.environ,
            "PATH": os.pathsep.join([node_directory, path]),
            "HOME": str(home),
            "TMPDIR": str(self.workspace.subdir("tmp")),
            "DO_NOT_TRACK": "1",
            **{name: str(value) for name, value in more.items()},
        }


@dataclass(frozen=True, slots=True)
class Controller:
    """A running controller: its ``remoteConfig`` without the preview, and its connection to the gateway.

    It listens on ``socket``, which only this user can open. ``token`` is its access token.
    """

    program: Program
    remote_config: Mapping[str, Any] = field(repr=False)
    socket: Path
    token: str = field(default="", repr=False)

    async def ended(self) -> str:
        """Wait until it exits; return its exit status and its last output."""
        return f"{self.program.title} exited unexpectedly: {await self.program.ended()}"


def over_socket(
    socket: Path, limits: httpx.Limits = _ONE_REQUEST
) -> httpx.AsyncHTTPTransport:
    """Return a transport that connects to a controller's Unix socket."""
    return httpx.AsyncHTTPTransport(uds=str(socket), verify=_NO_TLS, limits=limits)

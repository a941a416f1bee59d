"""What a session's controller is: the program that a test speaks to, started for one device."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_device.service.devices.base import Device
from pytest_device.service.runners.activity import Activity
from pytest_device.service.runners.journal import Journal
from pytest_device.service.runners.program import Program, Workspace
from pytest_device.service.runners.toolchain import Project, Toolchain

HOST: Final = "127.0.0.1"
BOOT_LIMIT_SECONDS: Final = 60.0
APPIUM_BOOT_LIMIT_SECONDS: Final = 120.0
"""Both as real services have them."""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """Where a controller is to run: in its session's workspace, by ``toolchain``, under these published addresses.

    ``environ`` is what the session's programs see of the user's environment, ``home`` is the user's. ``url`` is where
    the gateway forwards from, ``device_url`` where the device answers over HTTP. Both are secrets.
    """

    workspace: Workspace
    toolchain: Toolchain
    environ: Mapping[str, str]
    home: Path
    url: str = field(repr=False)
    device_url: str = field(repr=False)
    activity: Activity

    def environment(self, home: Path, **more: str | Path) -> dict[str, str]:
        """Return the environment of the controller's program: a home, and a directory for temporary files here."""
        return {
            **self.environ,
            "PATH": os.pathsep.join([str(self.toolchain.node.parent), self.environ.get("PATH", os.defpath)]),
            "HOME": str(home),
            "TMPDIR": str(self.workspace.subdir("tmp")),
            "DO_NOT_TRACK": "1",
            **{name: str(value) for name, value in more.items()},
        }


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller that answers: its ``remoteConfig`` without the preview, and how the gateway reaches it.

    ``port`` is None for one that clients reach themselves. ``token`` is what it asks for.
    """

    program: Program
    remote_config: Mapping[str, Any] = field(repr=False)
    port: int | None = None
    token: str = field(default="", repr=False)

    @property
    def journal(self) -> Journal:
        """What it prints."""
        return self.program.journal

    async def ended(self) -> str:
        """Wait until it is gone; return how it ended and what it said last."""
        return f"{self.program.title} ended by itself: {await self.program.ended()}"


class Launcher(Protocol):
    """Starts the controllers of one session type."""

    @property
    def project(self) -> Project:
        """What has to be installed."""
        ...

    async def launch(self, place: LaunchContext, device: Device) -> Controller:
        """Start a controller and return it when it answers; whoever clears the workspace ends it.

        Raises ControllerError when it does not come up in time, OSError when it cannot be started.
        """
        ...

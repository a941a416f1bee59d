"""Appium as the controller of a session: its drivers, its command line, its port."""

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Device
from pytest_device.service.runners.controller import APPIUM_BOOT_LIMIT_SECONDS, HOST, Controller, LaunchContext
from pytest_device.service.runners.health import answers
from pytest_device.service.runners.journal import AppiumJournal
from pytest_device.service.runners.program import EndedError
from pytest_device.service.runners.toolchain import APPIUM, Project

_PORT_TRIES: Final = 5
_OUR_DRIVER: Final = Path(__file__).parent.parent / "appium_driver"
_OUR_NAME: Final = "appium-pytest-device-driver"
_FAKE_DRIVER: Final = "@appium/fake-driver"


def free_port() -> int:
    """Return a free port of this machine; another process may still take it first."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class AppiumLauncher:
    """Runs Appium servers, each with its own Appium home unless the device needs the user's driver."""

    ports: Callable[[], int] = free_port
    boot_limit_seconds: float = APPIUM_BOOT_LIMIT_SECONDS
    project: Project = APPIUM

    async def launch(self, context: LaunchContext, device: Device) -> Controller:
        """Start a server and wait until it answers."""
        environ = self._environ(context, device)
        for _ in range(_PORT_TRIES):
            try:
                return await self._launch(context, device, environ, self.ports())
            except _PortTakenError:
                continue
        raise ControllerError(
            f"other processes took {_PORT_TRIES} free ports in turn before Appium could listen on them"
        )

    async def _launch(
        self, context: LaunchContext, device: Device, environ: Mapping[str, str], port: int
    ) -> Controller:
        journal = AppiumJournal(context.activity)
        journal.hide(context.device_url)
        program = await context.workspace.start(
            APPIUM.node.program, _command(context, port), environ=environ, journal=journal
        )

        async def answered() -> bool | None:
            # Another process may answer at the port: it is this server once its own log says that it listens.
            return (journal.listens and await answers(port, "/status", _is_ready)) or None

        try:
            await program.ready(answered, self.boot_limit_seconds)
        except EndedError as error:
            if journal.port_taken:
                raise _PortTakenError(str(error)) from error
            raise
        config = {"appiumUrl": f"http://{HOST}:{port}", "capabilities": dict(device.tools.capabilities)}
        return Controller(program, config)

    def _environ(self, context: LaunchContext, device: Device) -> dict[str, str]:
        """Return the environment: real drivers need the user's home directory, ours and the fake one do not."""
        own = context.workspace.subdir("appium")
        _prepare_home(own, context, device)
        return context.environment(
            context.home if device.tools.appium_home else context.workspace.subdir("home"),
            APPIUM_HOME=device.tools.appium_home or own,
            **_device_environ(context, device),
        )


def _is_ready(reply: Any) -> bool:
    return bool(reply["value"]["ready"])


class _PortTakenError(ControllerError):
    """Another process has taken the port."""


def _command(context: LaunchContext, port: int) -> list[str | Path]:
    return [
        *(context.toolchain.node, context.toolchain.script, "server"),
        *("--address", HOST, "--port", str(port)),
        *("--config", os.devnull),  # else it searches every parent directory for one
        *("--log-level", "info", "--log-no-colors"),
        *("--shutdown-timeout", "0"),  # else each open connection of a client delays the shutdown
    ]


def _prepare_home(home: Path, context: LaunchContext, device: Device) -> None:
    # Appium writes a list of drivers to its home. With a home of its own no server reads the list while another one
    # writes it, and the installed programs may be read-only.
    if device.tools.appium_home:
        return
    if device.tools.debugging_port is None:
        link = home / "node_modules" / _FAKE_DRIVER
        link.parent.mkdir(parents=True)
        link.symlink_to(context.toolchain.package(_FAKE_DRIVER))
        return
    ours = home / "node_modules" / _OUR_NAME
    # Copied: Node.js resolves imports from the real path of a file.
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
        "PYTEST_DEVICE_UDID": device.tools.capabilities.get("appium:udid", ""),
    }

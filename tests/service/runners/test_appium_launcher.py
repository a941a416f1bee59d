"""The start of an Appium server.

A launcher gets the program to start: a service installs the real Appium, which neither fails nor hangs at will.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Device, Facts, Tools
from pytest_device.service.devices.fake import Fake
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import find_processes
from pytest_device.service.programs.program import workspace
from pytest_device.service.programs.toolchain import Toolchain
from pytest_device.service.runners.controller import Controller, LaunchContext
from pytest_device.service.runners.launchers import LAUNCHERS, Launcher
from pytest_device.service.runners.resources import for_sessions
from pytest_device.spec import Platform, SessionType

APPIUM = LAUNCHERS[SessionType.APPIUM]


class RealDevice(Fake):
    """A device with a driver that the user installed."""

    def __init__(self, appium_home: Path) -> None:
        super().__init__(Platform.ANDROID)
        self._appium_home = appium_home

    @property
    def tools(self) -> Tools:
        return Tools({"platformName": "Android"}, self._appium_home)


class LocalBrowser(Fake):
    """A device with the driver of this package."""

    @property
    def tools(self) -> Tools:
        return Tools({"platformName": "Android"}, debugging_port=9)


@pytest.fixture
def fake() -> Fake:
    return Fake(Platform.ANDROID)


@dataclass(frozen=True)
class LauncherHarness:
    """What a launcher is given here."""

    toolchain: Toolchain
    guard: Guard
    home: Path
    directory: Path
    allow_insecure: Sequence[str] = ()

    @asynccontextmanager
    async def running(
        self, launcher: Launcher, device: Device
    ) -> AsyncGenerator[Controller]:
        async with workspace(self.directory, self.guard) as work:
            yield await launcher.launch(
                LaunchContext(
                    workspace=work,
                    toolchain=self.toolchain,
                    environ=for_sessions(os.environ),
                    home=self.home,
                    url="",
                    device_url="",
                    note=print,
                    allow_insecure=self.allow_insecure,
                ),
                Facts(device.name, device.platform, device.tools),
            )

    def run(self, launcher: Launcher, device: Device) -> None:
        """Run a server."""

        async def scenario() -> None:
            async with self.running(launcher, device):
                pass

        asyncio.run(scenario())

    def of(self, directory: Path, javascript: str) -> "LauncherHarness":
        """The same Node.js with another program instead of Appium."""
        script = directory / "index.js"
        script.parent.mkdir(parents=True)
        script.write_text(javascript)
        return replace(self, toolchain=replace(self.toolchain, script=script))


@pytest.fixture
def harness(
    tools: Toolchain, guard: Guard, workspace: Path, tmp_path: Path
) -> LauncherHarness:
    return LauncherHarness(tools, guard, tmp_path / "home", workspace / "one")


def test_appium_opens_no_port_and_a_socket_for_this_user_only(
    harness: LauncherHarness, fake: Fake
) -> None:
    async def scenario() -> None:
        async with harness.running(APPIUM, fake) as server:
            assert server.socket.is_socket()
            assert server.socket.parent.stat().st_mode & 0o077 == 0
            programs = {program.pid for program in find_processes([harness.directory])}
            assert programs
            assert programs.isdisjoint(
                one.pid for one in psutil.net_connections("inet")
            )

    asyncio.run(scenario())


def test_an_appium_that_dies_during_startup_is_reported_with_status_and_output(
    harness: LauncherHarness, fake: Fake, tmp_path: Path
) -> None:
    broken = harness.of(
        tmp_path / "broken", "console.error('no such module'); process.exit(3)"
    )
    with pytest.raises(
        ControllerError,
        match=r"Appium exited during startup: exit status 3\nThe end of its log:\n    no such",
    ):
        broken.run(APPIUM, fake)
    assert not harness.directory.exists()


def test_an_unresponsive_appium_is_stopped_at_the_limit(
    harness: LauncherHarness, fake: Fake, tmp_path: Path
) -> None:
    hanging = harness.of(
        tmp_path / "hanging", "console.log('hm'); setInterval(() => {}, 1000)"
    )
    with pytest.raises(
        ControllerError, match=r"not ready within 1 s\nThe end of its log:"
    ):
        hanging.run(replace(APPIUM, boot_limit_seconds=1), fake)
    assert not find_processes([harness.directory])
    assert not harness.directory.exists()


def test_the_exit_of_a_server_is_noticed_even_if_its_children_continue(
    harness: LauncherHarness, fake: Fake, tmp_path: Path
) -> None:
    parent = harness.of(
        tmp_path / "parent",
        "const {spawn} = require('child_process');"
        "spawn('sleep', ['99'], {stdio: 'inherit', detached: true});"
        'const reply = (_, r) => { r.end(\'{"value": {"ready": true}}\', () => setTimeout(process.exit, 100, 9)) };'
        "require('http').createServer(reply).listen(process.argv[process.argv.indexOf('--port') + 1], '127.0.0.1')",
    )

    async def scenario() -> str:
        async with parent.running(APPIUM, fake) as server, asyncio.timeout(20):
            return await server.ended()

    assert "Appium exited unexpectedly: exit status 9" in asyncio.run(scenario())
    assert not find_processes([harness.directory])


def test_a_program_that_cannot_be_started_leaves_no_directory(
    harness: LauncherHarness, fake: Fake, tmp_path: Path
) -> None:
    gone = replace(
        harness, toolchain=replace(harness.toolchain, node=tmp_path / "gone/node")
    )
    with pytest.raises(FileNotFoundError):
        gone.run(APPIUM, fake)
    assert not harness.directory.exists()


def test_a_real_driver_uses_the_users_environment(
    harness: LauncherHarness, tmp_path: Path
) -> None:
    printing = harness.of(
        tmp_path / "printing",
        "const {HOME, APPIUM_HOME} = process.env; console.log(HOME, APPIUM_HOME); process.exit(1)",
    )
    with pytest.raises(
        ControllerError, match=f"{tmp_path}/home {tmp_path}/home/.appium"
    ):
        printing.run(APPIUM, RealDevice(tmp_path / "home/.appium"))


@pytest.fixture
def fresh(harness: LauncherHarness, tmp_path: Path) -> LauncherHarness:
    """Appium, installed where it has not run yet."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "node_modules").symlink_to(harness.toolchain.project / "node_modules")
    return replace(harness, toolchain=replace(harness.toolchain, project=project))


DRIVER = "pytest-device@0.1.0 (automationName 'UiAutomator2')"
"""How Appium lists the driver of the local browser."""


def output_of_browser_session(harness: LauncherHarness) -> str:
    async def scenario() -> str:
        device = LocalBrowser(Platform.ANDROID)
        async with harness.running(APPIUM, device) as server:
            return server.program.output.text

    return asyncio.run(scenario())


def test_sessions_share_the_driver_of_the_local_browser_and_compiled_modules(
    fresh: LauncherHarness, tmp_path: Path
) -> None:
    compiled = list[int]()
    for name in ("one", "two"):
        session = replace(fresh, directory=tmp_path / name)
        assert DRIVER in output_of_browser_session(session)
        files = fresh.toolchain.project.glob("compile-cache/**/*")
        compiled.append(sum(file.is_file() for file in files))

    assert compiled[0] > 100
    assert compiled[1] == compiled[0]


def test_installed_programs_may_be_read_only(fresh: LauncherHarness) -> None:
    # Not by permissions: root ignores them.
    (fresh.toolchain.project / "drivers").touch()

    assert DRIVER in output_of_browser_session(fresh)


def test_an_incomplete_request_does_not_delay_the_end(
    harness: LauncherHarness, fake: Fake
) -> None:
    async def scenario() -> int | None:
        async with harness.running(APPIUM, fake) as server:
            reader, writer = await asyncio.open_unix_connection(server.socket)
            writer.write(b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"GET /sta")
            await writer.drain()
        writer.close()
        return server.program.process.returncode

    # It ended when asked, and was not killed at the limit.
    assert asyncio.run(scenario()) == 0


def test_insecure_features_are_allowed_by_name(
    harness: LauncherHarness, fake: Fake, tmp_path: Path
) -> None:
    talks = harness.of(
        tmp_path / "talks",
        "console.log(process.argv.slice(-2).join(' ')); process.exit(1)",
    )
    allowing = replace(
        talks, allow_insecure=("uiautomator2:adb_shell", "*:session_discovery")
    )

    with pytest.raises(
        ControllerError,
        match=r"--allow-insecure uiautomator2:adb_shell,\*:session_discovery",
    ):
        allowing.run(APPIUM, fake)
    with pytest.raises(ControllerError, match="--shutdown-timeout 0"):
        talks.run(APPIUM, fake)

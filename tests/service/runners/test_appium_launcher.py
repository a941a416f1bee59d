import asyncio
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.runners.appium_server import Launcher, free_port
from pytest_device.service.runners.drivers import Driver, Found, choose
from pytest_device.service.runners.environment import for_sessions
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.processes import working_for
from pytest_device.service.runners.toolchain import Toolchain
from pytest_device.spec import Platform


@pytest.fixture
def launcher(tools: Toolchain, guard: Guard, tmp_path: Path) -> Launcher:
    return Launcher(tools, guard, for_sessions(os.environ), tmp_path / "home", time.time)


@pytest.fixture
def fake() -> Driver:
    return choose(Platform.ANDROID, None, Found(), ())


def appium_that(tools: Toolchain, directory: Path, javascript: str) -> Toolchain:
    """The same Node.js with another program in the place of Appium."""
    script = directory / "node_modules/appium/index.js"
    script.parent.mkdir(parents=True)
    script.write_text(javascript)
    return replace(tools, project=directory)


def run(launcher: Launcher, driver: Driver, directory: Path) -> int:
    """Run a server, return its port."""

    async def scenario() -> int:
        async with launcher.running(directory, driver) as server:
            return server.port

    return asyncio.run(scenario())


def test_a_port_that_someone_else_was_quicker_to_take_is_passed_over(
    launcher: Launcher, fake: Driver, workplace: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = free_port()
        ports = iter([other.getsockname()[1], free])
        assert run(replace(launcher, ports=lambda: next(ports)), fake, workplace / "one") == free


def test_ports_are_not_tried_for_ever(launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path) -> None:
    taken = appium_that(launcher.toolchain, tmp_path / "taken", "console.log('EADDRINUSE'); process.exit(1)")
    with pytest.raises(ControllerError, match="5 free ports in turn were taken"):
        run(replace(launcher, toolchain=taken), fake, workplace / "one")


def test_an_appium_that_dies_while_it_boots_tells_how_and_why(
    launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path
) -> None:
    broken = appium_that(launcher.toolchain, tmp_path / "broken", "console.error('no such module'); process.exit(3)")
    with pytest.raises(ControllerError, match="ended while it booted: exit status 3; the end of its log:\n    no such"):
        run(replace(launcher, toolchain=broken), fake, workplace / "one")
    assert not (workplace / "one").exists()


def test_an_appium_that_never_answers_is_ended_at_the_limit(
    launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path
) -> None:
    hanging = appium_that(launcher.toolchain, tmp_path / "hanging", "console.log('hm'); setInterval(() => {}, 1000)")
    with pytest.raises(ControllerError, match=r"not ready within 0\.5 s; the end of its log:\n    hm"):
        run(replace(launcher, toolchain=hanging, boot_limit_seconds=0.5), fake, workplace / "one")
    assert not working_for([workplace / "one"])
    assert not (workplace / "one").exists()


def test_whoever_answers_at_the_port_is_not_taken_for_appium(
    launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path
) -> None:
    """Only what Appium says of itself tells whose port it is."""
    silent = appium_that(
        launcher.toolchain,
        tmp_path / "silent",
        'const reply = (_, r) => r.end(\'{"value": {"ready": true}}\');'
        "require('http').createServer(reply).listen(+process.argv[process.argv.indexOf('--port') + 1], '127.0.0.1')",
    )
    with pytest.raises(ControllerError, match="not ready within"):
        run(replace(launcher, toolchain=silent, boot_limit_seconds=0.5), fake, workplace / "one")


def test_the_end_of_a_server_is_noticed_while_what_it_started_goes_on(
    launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path
) -> None:
    parent = appium_that(
        launcher.toolchain,
        tmp_path / "parent",
        "const {spawn} = require('child_process');"
        "spawn('sleep', ['99'], {stdio: 'inherit', detached: true});"
        'const reply = (_, r) => { r.end(\'{"value": {"ready": true}}\', () => setTimeout(process.exit, 100, 9)) };'
        "const port = +process.argv[process.argv.indexOf('--port') + 1];"
        "const up = () => console.log('REST http interface listener started on ' + port);"
        "require('http').createServer(reply).listen(port, '127.0.0.1', up)",
    )

    async def scenario() -> str:
        async with replace(launcher, toolchain=parent).running(workplace / "one", fake) as server:
            async with asyncio.timeout(10):
                return await server.ended()

    assert "exit status 9" in asyncio.run(scenario())
    assert not working_for([workplace / "one"])


def test_a_program_that_cannot_be_started_is_an_error_that_leaves_no_directory(
    launcher: Launcher, fake: Driver, workplace: Path, tmp_path: Path
) -> None:
    gone = replace(launcher.toolchain, node=tmp_path / "gone/node")
    with pytest.raises(FileNotFoundError):
        run(replace(launcher, toolchain=gone), fake, workplace / "one")
    assert not (workplace / "one").exists()


def test_a_real_driver_works_with_what_the_user_has_set_up(launcher: Launcher, workplace: Path, tmp_path: Path) -> None:
    printing = appium_that(
        launcher.toolchain,
        tmp_path / "printing",
        "const {HOME, APPIUM_HOME} = process.env; console.log(HOME, APPIUM_HOME); process.exit(1)",
    )
    driver = Driver({"platformName": "Android"}, tmp_path / "home/.appium")
    with pytest.raises(ControllerError, match=f"{tmp_path}/home {tmp_path}/home/.appium"):
        run(replace(launcher, toolchain=printing), driver, workplace / "one")


def test_a_request_that_never_gets_whole_does_not_hold_up_the_end(
    launcher: Launcher, fake: Driver, workplace: Path
) -> None:
    async def scenario() -> int | None:
        async with launcher.running(workplace / "one", fake) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"GET /sta")
            await writer.drain()
        writer.close()
        return server.process.returncode

    assert asyncio.run(scenario()) == 0  # it ended when asked, and was not killed at the limit

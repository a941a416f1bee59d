"""One Appium server of one session: its command line, its port, whether it answers, how it ends."""

import asyncio
import http.client
import json
import os
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.runners.drivers import Driver
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.journal import Journal
from pytest_device.service.runners.processes import carry_through, remove
from pytest_device.service.runners.toolchain import Toolchain

HOST: Final = "127.0.0.1"
BOOT_LIMIT_SECONDS: Final = 120.0

_PORT_TRIES: Final = 5
_POLL_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 5.0
_LAST_WORDS_SECONDS: Final = 1.0
_READ_BYTES: Final = 65536


def free_port() -> int:
    """Return a port of this machine that nobody listens on; someone else may still be quicker to take it."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class AppiumServer:
    """A server that was started, and what its log tells."""

    port: int
    journal: Journal
    process: Process
    reading: asyncio.Task[None]

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{HOST}:{self.port}"

    async def answers(self, limit_seconds: float) -> bool:
        """Wait until the server answers; False says that its port was taken.

        Raises ControllerError when it ends instead, or takes longer than the limit.
        """
        try:
            async with asyncio.timeout(limit_seconds):
                # Whoever answers at the port is this server only once its own log says that it listens.
                while not (self.journal.listens and await asyncio.to_thread(_status_is_good, self.port)):
                    if self.process.returncode is not None:
                        return await self._ended_early()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise ControllerError(
                f"Appium was not ready within {limit_seconds:g} s; the end of its log:\n{self.journal.tail}"
            ) from error
        return True

    async def ended(self) -> str:
        """Wait for the end of the server; tell how it ended and what it said last."""
        # Not process.wait(): that waits for the end of the output too, which what the server has started may hold open.
        while self.process.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        await asyncio.wait({self.reading}, timeout=_LAST_WORDS_SECONDS)
        return f"exit status {self.process.returncode}; the end of its log:\n{self.journal.tail}"

    async def closed(self) -> None:
        """Wait until nothing of the ended server is left in this process."""
        if (await asyncio.wait({self.reading}, timeout=_LAST_WORDS_SECONDS))[0]:
            await self.process.wait()
        self.reading.cancel()

    async def _ended_early(self) -> bool:
        how = await self.ended()
        if not self.journal.port_taken:
            raise ControllerError(f"Appium ended while it booted: {how}")
        return False


@dataclass(frozen=True, slots=True)
class Launcher:
    """Runs Appium servers, each for a directory that is all its own."""

    toolchain: Toolchain
    guard: Guard
    environ: Mapping[str, str]
    home: Path
    clock: Callable[[], float]
    ports: Callable[[], int] = free_port
    boot_limit_seconds: float = BOOT_LIMIT_SECONDS

    @asynccontextmanager
    async def running(self, directory: Path, driver: Driver) -> AsyncGenerator[AppiumServer, None]:
        """Run a server that answers; at the end of the block no process and no file of it is left.

        Raises ControllerError when it does not come up, OSError when its directory cannot be made or cleared.
        """
        servers: list[AppiumServer] = []
        try:
            self._furnish(directory)
            while len(servers) < _PORT_TRIES:
                servers.append(server := await self._start(directory, driver))
                if await server.answers(self.boot_limit_seconds):
                    yield server
                    return
            raise ControllerError(f"{_PORT_TRIES} free ports in turn were taken before Appium could listen on them")
        finally:
            await carry_through(_clear(directory, servers))

    async def _start(self, directory: Path, driver: Driver) -> AppiumServer:
        port, journal = self.ports(), Journal(self.clock)
        environ = self._environ(directory, driver)
        process = await self.guard.start(self._command(port), directory=directory, environ=environ)
        return AppiumServer(port, journal, process, asyncio.create_task(_read(process, journal)))

    def _command(self, port: int) -> list[str | Path]:
        return [
            *(self.toolchain.node, self.toolchain.appium, "server"),
            *("--address", HOST, "--port", str(port)),
            *("--config", os.devnull),  # else it looks for one in every directory above its own
            *("--log-level", "info", "--log-no-colors"),
            *("--shutdown-timeout", "0"),  # else each connection that a client keeps open holds up the end
        ]

    def _environ(self, directory: Path, driver: Driver) -> dict[str, str]:
        """Real drivers work with what the user has set up at home; the fake one sees nothing of it."""
        path = os.pathsep.join([str(self.toolchain.node.parent), self.environ.get("PATH", os.defpath)])
        return {
            **self.environ,
            "PATH": path,
            "TMPDIR": str(directory / "tmp"),
            "HOME": str(self.home if driver.home else directory / "home"),
            "APPIUM_HOME": str(driver.home or directory / "appium"),
        }

    def _furnish(self, directory: Path) -> None:
        for name in ("home", "tmp", "appium/node_modules/@appium"):
            (directory / name).mkdir(parents=True)
        # Appium notes the drivers it finds beside them. With an Appium home of its own no server
        # reads what another one is just writing, and what is installed need not be writable.
        (directory / "appium/node_modules/@appium/fake-driver").symlink_to(self.toolchain.fake_driver)


async def _clear(directory: Path, servers: Iterable[AppiumServer]) -> None:
    await asyncio.to_thread(remove, [directory])
    for server in servers:
        await server.closed()


async def _read(process: Process, journal: Journal) -> None:
    if process.stdout is None:  # never: it is started with a pipe
        raise RuntimeError("Appium has no standard output")
    while output := await process.stdout.read(_READ_BYTES):
        journal.feed(output)


def _status_is_good(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/status")
        reply = connection.getresponse()
        return reply.status == http.HTTPStatus.OK and bool(json.load(reply)["value"]["ready"])
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return False  # not yet
    finally:
        connection.close()

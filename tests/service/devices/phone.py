"""A browser as a phone, and access to its pages through a second client."""

import asyncio
import json
import os
import urllib.request
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import psutil
from websockets.asyncio.client import ClientConnection, connect

from pytest_device.errors import ControllerError
from pytest_device.programs import cache_directory
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.cdp import Connection
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.programs.processes import find_processes, remove
from tests.fakes.machine import devices_of

APP: Final = Path(__file__).parent / "app"
LIMIT_SECONDS: Final = 60

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class BootedDevice:
    """A local device in its own event loop, with a second client for its pages."""

    device: Chromium
    directory: Path
    runner: asyncio.Runner

    def do(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine."""
        return self.runner.run(work)

    def processes(self) -> set[psutil.Process]:
        """Return the processes of the browser."""
        return find_processes([self.directory])

    def install(self, **facts: Any) -> str:
        """Install the app of the tests."""
        return self.do(self.device.install(App(**{"path": APP, **facts})))

    def start(self, *arguments: str, **facts: Any) -> str:
        """Install the app of the tests and launch it."""
        app = self.install(**facts)
        self.do(self.device.launch(app, arguments))
        return app

    def says(self, expression: str) -> Any:
        """Return the value of an expression on the page in front."""
        return self.do(self._says(expression))

    def says_in_time(self, expression: str, expected: object) -> bool:
        """Poll until an expression has the expected value."""
        return self.do(self._says_in_time(expression, expected))

    def calls(
        self, method: str, *, limit_seconds: float = LIMIT_SECONDS, **params: Any
    ) -> Mapping[str, Any]:
        """Send a command to the page in front, as a controller does."""
        return self.do(self._calls(method, params, limit_seconds))

    async def _says(self, expression: str) -> Any:
        how = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        reply = await self._calls("Runtime.evaluate", how)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def _says_in_time(self, expression: str, expected: object) -> bool:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not await self._is_said(expression, expected):  # noqa: ASYNC110  nothing reports it
                await asyncio.sleep(0.02)
        return True

    async def _is_said(self, expression: str, expected: object) -> bool:
        try:
            return bool(await self._says(expression) == expected)
        # The page is being closed, or there is none.
        except (
            ControllerError,
            KeyError,
        ):
            return False

    async def _calls(
        self,
        method: str,
        params: Mapping[str, Any],
        limit_seconds: float = LIMIT_SECONDS,
    ) -> Mapping[str, Any]:
        async with self._page() as page:
            return await page.call(method, params, limit_seconds=limit_seconds)

    @asynccontextmanager
    async def _page(self) -> AsyncGenerator[Connection, None]:
        async with connect(
            (await self._front())["webSocketDebuggerUrl"], max_size=None
        ) as websocket:
            reader = asyncio.StreamReader()
            connection = Connection(reader, cast("Any", _Writer(websocket)))
            tasks = [
                asyncio.create_task(_feed(websocket, reader)),
                asyncio.create_task(connection.read()),
            ]
            try:
                yield connection
            finally:
                for task in tasks:
                    task.cancel()

    async def _front(self) -> Mapping[str, str]:
        """Return the page in front, empty while there is none."""
        url = f"http://127.0.0.1:{self.device.tools.debugging_port}/json/list"
        pages = await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(url)))
        return next((page for page in pages if page["type"] == "page"), {})


class _Writer:
    """A web socket in the place of a pipe."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket
        self._unsent: list[bytes] = []

    def write(self, message: bytes) -> None:
        self._unsent.append(message[:-1])

    async def drain(self) -> None:
        while self._unsent:
            await self._websocket.send(self._unsent.pop(0).decode())


async def _feed(websocket: ClientConnection, reader: asyncio.StreamReader) -> None:
    async for message in websocket:
        reader.feed_data(str(message).encode() + b"\0")
    reader.feed_eof()


@contextmanager
def booted(
    directory: Path, log: Callable[[str], None] = print, **request: Any
) -> Generator[BootedDevice]:
    """Boot a phone with its files in a directory; remove them and end its processes with the block."""
    devices = devices_of(
        {**os.environ, "LC_ALL": "C.UTF-8"},  # as in most containers
        directory / "user",
        log,
        cache=cache_directory(os.environ, Path.home()),
    )
    with asyncio.Runner() as runner:
        lent = runner.run(devices.__aenter__()).borrowed(
            {"platform": "android", "type": "appium"} | request, directory
        )
        try:
            device = runner.run(lent.__aenter__())
            assert isinstance(device, Chromium)
            yield BootedDevice(device, directory, runner)
        finally:
            runner.run(lent.__aexit__(None, None, None))
            remove([directory])
            runner.run(devices.__aexit__(None, None, None))

"""The service with a drawn device on a local port, and a browser for its pages."""

import asyncio
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service as Chromedriver

from pytest_device.errors import ControllerError
from pytest_device.programs import cache_directory
from pytest_device.service.accounts import Accounts
from pytest_device.service.api import create_app
from pytest_device.service.apps.builds import App
from pytest_device.service.devices import browsers
from pytest_device.service.devices.base import AppState, Orientation, Tools
from pytest_device.service.keys import Keys
from pytest_device.service.preview import routes
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.service.runners.base import (
    Boot,
    Booting,
    Failed,
    LogEntry,
    Record,
    Running,
)
from pytest_device.service.server import serve_requests
from pytest_device.service.sessions import Sessions
from pytest_device.service.web import listen
from pytest_device.spec import Platform, SessionType
from tests.service.world import ACCOUNTS, APP_ID, memory_store

PATIENCE_SECONDS: Final = 60.0
WIDTH, HEIGHT = 195, 422
COLOURS: Final = ((52, 73, 196), (23, 140, 90), (200, 120, 20), (150, 40, 120))


def drawn(width: int, height: int, colour: Sequence[int]) -> bytes:
    """Return a PNG of one colour with a lighter bar at its top."""
    bar = b"\x00" + bytes([230, 233, 240] * width)
    row = b"\x00" + bytes([*colour] * width)
    pixels = bar * (height // 12) + row * (height - height // 12)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(of))
        + name
        + of
        + struct.pack(">I", zlib.crc32(name + of))
        for name, of in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@dataclass
class DrawnDevice:
    """A device with a screen of one colour, which changes with each tap; records what is done to it."""

    platform: Platform = Platform.ANDROID
    kind: str = "drawn"
    name: str = "Pixel 8"
    tools: Tools = field(default_factory=lambda: Tools({}))
    taps: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    held: Orientation = "PORTRAIT"
    pictures: int = 0
    broken: str | None = None

    async def install(self, app: App) -> str:
        raise NotImplementedError

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        raise NotImplementedError

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        raise NotImplementedError

    async def terminate(self, application_id: str) -> bool:
        raise NotImplementedError

    async def remove(self, application_id: str) -> bool:
        raise NotImplementedError

    async def clear(self, application_id: str | None = None) -> None:
        raise NotImplementedError

    async def apps(self) -> Mapping[str, AppState]:
        return {}

    async def screenshot(self) -> bytes:
        self.pictures += 1
        self._check()
        size = (WIDTH, HEIGHT) if self.held == "PORTRAIT" else (HEIGHT, WIDTH)
        return drawn(*size, COLOURS[len(self.taps) % len(COLOURS)])

    async def tap(self, x: float, y: float) -> None:
        self._check()
        self.taps.append((x, y))

    async def orientation(self) -> Orientation:
        return self.held

    async def rotate(self, orientation: Orientation) -> None:
        self._check()
        self.held = orientation

    async def ended(self) -> str:
        raise NotImplementedError

    def _check(self) -> None:
        if self.broken:
            raise ControllerError(self.broken)


class DrawnRunner:
    """A runner whose devices become ready, fail and log on the test's command."""

    def __init__(self, *, ready: bool = True) -> None:
        self.drawn = DrawnDevice()
        self.boot: Boot = Running({}) if ready else Booting()
        self.used: float | None = None
        self.seen = True
        self.reported: list[LogEntry] = []
        self.said = ""
        self._records: dict[str, Record] = {}

    def start(self, session_id: str, request: Mapping[str, Any]) -> None: ...

    def fail(self, reason: str) -> None:
        self.boot = Failed(reason)

    def record(self, session_id: str) -> Record:
        record = self._records.setdefault(session_id, Record(session_id, {}))
        record.boot = self.boot
        record.device = self.drawn if self.seen else None
        record.last_request = self.used
        record.entries.clear()
        record.entries.extend(self.reported)
        record.output = OutputTail()
        record.output.feed(self.said.encode())
        record.output.close()
        return record

    def stop(self, session_id: str) -> None: ...

    async def close(self) -> None: ...


class Stage:
    """One session of the service and its pages."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8765",
        *,
        clock: Callable[[], float] = time.time,
        ready: bool = True,
        **body: Any,
    ) -> None:
        self.runner = DrawnRunner(ready=ready)
        self.device = self.runner.drawn
        self.sessions = Sessions(store=memory_store(), runner=self.runner, clock=clock)
        keys = Keys(base_url)
        more = routes(self.sessions, keys)
        self.app = create_app(
            sessions=self.sessions,
            accounts=Accounts(ACCOUNTS),
            base_url=base_url,
            more=more,
        )
        request: Any = {
            "appId": APP_ID,
            "platform": "android",
            "name": "login works",
        } | body
        self.id = self.sessions.create(request, default_minutes=30).id
        self.page = f"{base_url}/sessions/{self.id}"
        self.preview = keys.url("preview", self.id)
        self.base_url = base_url

    def send(self, method: str, url: str, **more: Any) -> httpx.Response:
        """Send any request in-process."""

        async def exchange() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self.app)
            ) as client:
                return await client.request(method, url, **more)

        return asyncio.run(exchange())

    def get(self, url: str, **more: Any) -> httpx.Response:
        return self.send("GET", url, **more)

    def post(self, url: str, body: object, **headers: str | None) -> httpx.Response:
        """Send a request as a page of the service does; ``headers`` replace its own, None removes one."""
        sent = {"Origin": self.base_url, "Sec-Fetch-Site": "same-origin"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        given = {name: value for name, value in sent.items() if value is not None}
        return self.send("POST", url, json=body, headers=given)


@contextmanager
def on_stage(**more: Any) -> Generator[Stage]:
    """Serve a stage on a local port, in its own thread."""
    with listen("127.0.0.1", 0) as listener:
        stage = Stage(f"http://127.0.0.1:{listener.getsockname()[1]}", **more)
        loop, stop, up = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        serving = serve_requests(stage.app, listener, stage.sessions, stop, up.set)
        thread = threading.Thread(target=loop.run_until_complete, args=(serving,))
        thread.start()
        try:
            assert up.wait(PATIENCE_SECONDS)
            yield stage
        finally:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()


@contextmanager
def browser() -> Generator[webdriver.Chrome]:
    """Start the browser that a session would get, without a window; the test is skipped where there is none."""
    binary, driver = asyncio.run(_programs())
    options = Options()
    options.binary_location = str(binary)
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--force-prefers-reduced-motion",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options, Chromedriver(str(driver)))
    try:
        yield chrome
    finally:
        chrome.quit()


async def _programs() -> tuple[Path, Path]:
    guard = Guard(environ=os.environ, log=print)
    toolbox = Toolbox(guard, os.environ, cache_directory(os.environ, Path.home()))
    found = await browsers.find(
        os.environ,
        SessionType.APPIUM,
        cache_dir=toolbox.cache_dir,
        built_for=browsers.hardware(),
    )
    if found.missing or not (found.program and found.chromedriver):
        pytest.skip(f"{found.missing}: {found.fix}")
    try:
        if found.to_install:
            await browsers.Pinned(toolbox.cache_dir).install(
                toolbox, SessionType.APPIUM, print
            )
    finally:
        guard.close()
    return found.program, found.chromedriver

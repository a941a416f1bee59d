"""A session of the local service with its pages, and a browser for them."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service as Chromedriver

from pytest_device.errors import ConfigError
from pytest_device.programs import cache_directory
from pytest_device.service import device_routes, preview
from pytest_device.service.keys import Keys
from pytest_device.service.runners.base import LogEntry, Record
from pytest_device.service.server import serve_requests
from pytest_device.service.web import listen
from tests.fakes.clock import FakeClock
from tests.fakes.devices import FakeDevice, FakeRunner
from tests.fakes.local_service import BASE_URL, NOW, InProcessService
from tests.fakes.machine import devices_of

PATIENCE_SECONDS: Final = 60.0


class ServedSession:
    """One session of the local service, with its pages and its device, which does what the test says.

    Apps that are downloaded for the device are in ``files``.
    """

    def __init__(
        self,
        base_url: str = BASE_URL,
        *,
        clock: Callable[[], float] | None = None,
        ready: bool = True,
        device: FakeDevice | None = None,
        files: Path = Path(os.devnull),
        **options: Any,
    ) -> None:
        self.device = device or FakeDevice()
        self.runner = FakeRunner(self.device, ready=ready)
        self._keys = Keys(base_url)
        clock = clock or FakeClock(NOW)
        self.service = InProcessService(
            clock=clock,
            runner=self.runner,
            base_url=base_url,
            testing=False,
            more=lambda sessions: (
                *preview.routes(sessions, self._keys, clock),
                *device_routes.routes(
                    self.runner,
                    self._keys,
                    directory=lambda _session_id: files,
                    note=lambda *_noted: None,
                ),
            ),
        )

        named = {"name": "login works"} | options
        self.id = self.service.created(
            **{name: value for name, value in named.items() if value is not None}
        )
        self.base_url = base_url
        self.page = f"{base_url}/sessions/{self.id}"
        self.preview = self._keys.url("preview", self.id)
        self.device_url = self._keys.url("devices", self.id)

    @property
    def status(self) -> str:
        return str(self.service.get(self.id).json()["data"]["status"])

    @property
    def record(self) -> Record:
        """What the service knows of the session's programs."""
        return self.runner.record(self.id)

    def boot(self, remote_config: Mapping[str, Any]) -> None:
        """Let the device and its controller become ready."""
        self.runner.boot(self.id, remote_config)

    def fail(self, reason: str, *, at: float | None = None) -> None:
        """Let the device or its controller fail."""
        self.runner.fail(self.id, reason, at=at)

    def note(self, at: float, text: str) -> None:
        """Add an entry to the timeline."""
        self.record.entries.append(LogEntry(at, text))

    def print(self, output: str) -> None:
        """Let the controller print all its output."""
        self.record.output.feed(output.encode())
        self.record.output.close()

    def send(self, method: str, url: str, **more: Any) -> httpx.Response:
        """Send any request, without a token, as a browser does."""
        return self.service.send(method, url, token=None, **more)

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
def serving(**options: Any) -> Generator[ServedSession]:
    """Serve a session and its pages on a local port, in its own thread and on the clock of this machine."""
    with listen("127.0.0.1", 0) as listener:
        session = ServedSession(
            f"http://127.0.0.1:{listener.getsockname()[1]}", clock=time.time, **options
        )
        service = session.service
        loop, stop, up = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        requests = serve_requests(service.app, listener, service.sessions, stop, up.set)
        thread = threading.Thread(target=loop.run_until_complete, args=(requests,))
        thread.start()
        try:
            assert up.wait(PATIENCE_SECONDS)
            yield session
        finally:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()


@contextmanager
def browser() -> Generator[webdriver.Chrome]:
    """Start the browser that a session would get, without a window; the test is skipped where there is none."""
    binary, driver = browser_programs()
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


def browser_programs() -> tuple[Path, Path]:
    """Return the browser and the chromedriver that a session would get; the test is skipped where there are none."""
    return asyncio.run(_programs())


async def _programs() -> tuple[Path, Path]:
    request = {"platform": "android", "type": "appium", "deviceIdentifier": "chromium"}
    cache = cache_directory(os.environ, Path.home())
    try:
        async with devices_of(os.environ, Path.home(), print, cache=cache) as devices:
            chosen = await devices.choose(request, print)
            chosen = await devices.install(chosen, request, print)
    except ConfigError as error:
        pytest.skip(str(error))

    assert chosen.program
    assert chosen.chromedriver
    return chosen.program, chosen.chromedriver

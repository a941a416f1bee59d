"""Devices in memory, and a runner of the local service that has them."""

import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.devices.base import AppState, Device, Orientation, Tools
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.devices.console import Line
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.program import Program
from pytest_device.service.runners.base import (
    GONE,
    Booting,
    Failed,
    Record,
    Running,
)
from pytest_device.service.runners.controller import Controller
from pytest_device.spec import Platform

WIDTH, HEIGHT = 195, 422
COLOURS: Final = ((52, 73, 196), (23, 140, 90), (200, 120, 20), (150, 40, 120))


@dataclass
class FakeDevice:
    """A device with a screen of one colour, which changes with each tap.

    It accepts every command and does nothing but remember it in ``calls``, as a tuple of the command's name and its
    arguments. While ``broken`` is a text, commands that concern the screen fail with it.
    """

    platform: Platform = Platform.ANDROID
    kind: str = "fake"
    name: str = "Pixel 8"
    tools: Tools = field(default_factory=lambda: Tools({}))
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    taps: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    builds: list[App] = field(default_factory=list[App])
    """The apps that were installed."""
    in_front: str | None = None
    """The ID of the only app that is running."""
    held: Orientation = "PORTRAIT"
    pictures: int = 0
    """How many screenshots were taken."""
    broken: str | None = None
    screen: bytes | None = None
    """What it returns instead of a picture of its screen."""
    expose: Callable[[], Awaitable[None]] | None = None
    """Awaited while a screenshot is taken."""

    async def install(self, app: App) -> str:
        self.builds.append(app)
        return app.application_id or "app"

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        self.calls.append(("launch", application_id, *arguments))

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        if url.startswith("broken:"):
            raise ControllerError("no app here opens broken:")
        self.calls.append(("open_url", url, application_id))

    async def terminate(self, application_id: str) -> bool:
        self.calls.append(("terminate", application_id))
        return application_id == self.in_front

    async def remove(self, application_id: str) -> bool:
        raise ControllerError(f"{application_id} cannot be removed")

    async def clear(self, application_id: str | None = None) -> None:
        self.calls.append(("clear", application_id))

    async def apps(self) -> Mapping[str, AppState]:
        return {self.in_front: AppState.FOREGROUND} if self.in_front else {}

    async def screenshot(self) -> bytes:
        self.pictures += 1
        self._check()
        if self.expose:
            await self.expose()
        if self.screen is not None:
            return self.screen
        size = (WIDTH, HEIGHT) if self.held == "PORTRAIT" else (HEIGHT, WIDTH)
        return png(*size, COLOURS[len(self.taps) % len(COLOURS)])

    async def tap(self, x: float, y: float) -> None:
        self._check()
        self.taps.append((x, y))

    async def orientation(self) -> Orientation:
        return self.held

    async def rotate(self, orientation: Orientation) -> None:
        self._check()
        self.calls.append(("rotate", orientation))
        self.held = orientation

    async def ended(self) -> str:
        raise NotImplementedError

    def _check(self) -> None:
        if self.broken:
            raise ControllerError(self.broken)


@dataclass
class FakeBrowserDevice(FakeDevice, Chromium):
    """A fake device that the service takes for one of its browsers; its page is at ``shown``."""

    kind: str = Chromium.kind
    tools: Tools = field(default_factory=lambda: Tools({}, debugging_port=1))
    shown: str = "http://127.0.0.1:7777/notes?from=here"
    lines: Sequence[Line] = ()
    """The lines in its console."""

    def log(self, at: float, level: str, text: str) -> None:
        """Add a line to its console."""
        self.lines = (*self.lines, Line(at, level, text))

    def has(self, app: App) -> bool:
        return app in self.builds

    async def address(self) -> str:
        return self.shown


class FakeRunner:
    """The programs of sessions, in the state that the test sets.

    Each session gets ``device``, and is booting unless devices are ``ready`` at once. Later states are set on its record,
    or by ``boot`` and ``fail``.
    """

    def __init__(self, device: Device | None = None, *, ready: bool = False) -> None:
        self.device = device
        self.records: dict[str, Record] = {}
        self._ready = ready

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        record = Record(session_id, request)
        if self.device is not None:
            record.use(self.device)
        record.boot = Running({}) if self._ready else Booting()
        self.records[session_id] = record

    def record(self, session_id: str) -> Record:
        return self.records.get(session_id) or Record(session_id, {}, boot=GONE)

    def boot(self, session_id: str, remote_config: Mapping[str, Any]) -> None:
        """Let a session's device and controller become ready."""
        self.records[session_id].boot = Running(remote_config)

    def control(self, session_id: str, title: str, socket: Path, token: str) -> None:
        """Let a session have a controller that listens on a socket, and no process."""
        no_process: Any = None
        program = Program(title, no_process, OutputTail(), no_process)
        self.records[session_id].controller = Controller(program, {}, socket, token)

    def fail(self, session_id: str, reason: str, *, at: float | None = None) -> None:
        """Let a session's device or controller fail."""
        self.records[session_id].boot = Failed(reason, at)

    def stop(self, session_id: str) -> None:
        """Do nothing to the device: a stopped session must not depend on it."""

    async def close(self) -> None:
        """Do nothing."""


def png(width: int, height: int, colour: Sequence[int]) -> bytes:
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

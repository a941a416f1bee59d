"""One Chromium as a process: found, started for a session, ended."""

import asyncio
import os
import shutil
import tempfile
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.processes import carry_through

HOST: Final = "127.0.0.1"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BUNDLES: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""Where macOS has them, on no PATH."""
CHROMEDRIVER: Final = "chromedriver"

BOOT_SECONDS: Final = 60.0
_GRACE_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.05
_LAST_WORDS_SECONDS: Final = 1.0
_TAIL_LINES: Final = 10
_LINE_BYTES: Final = 300
_TEMPORARY_LETTERS: Final = 40
"""Of a socket's path at most 103 may be used on macOS, 107 on Linux; the browser adds 46, and we add 12."""
_NOISE: Final = b"dbus/bus.cc"
"""Of a machine without a desktop; it says nothing of what went wrong."""

_UNUSED: Final = (
    "BackForwardCache",  # an app that was left would live on, unseen
    "DialMediaRouteProvider",
    "MediaRouter",
    "OptimizationHints",
    "PreloadTopChromeWebUI",
    "Translate",
)
_FLAGS: Final = (
    *("--headless=new", "--disable-gpu", "--in-process-gpu", "--mute-audio", "--hide-scrollbars"),
    # One session needs few processes, and many sessions share a machine. An app that leaves the screen, as one does
    # before every test, costs no new one: 5 to 10 times as fast.
    *("--disable-site-isolation-trials", "--renderer-process-limit=2", "--disable-extensions"),
    *("--disable-breakpad", "--disable-crash-reporter"),
    # Nothing is fetched, reported or asked that no test has asked for.
    *("--no-first-run", "--no-default-browser-check", "--disable-default-apps", "--disable-sync", "--no-pings"),
    *("--disable-background-networking", "--disable-component-update", "--disable-domain-reliability"),
    *("--disable-client-side-phishing-detection", "--metrics-recording-only", "--disable-quic"),
    *("--password-store=basic", "--use-mock-keychain", "--disable-dev-shm-usage"),
    # A page that nobody looks at goes on as on a phone.
    *("--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows"),
    "--allow-pre-commit-input",  # else what is touched and typed before the first picture of a page is lost
    *("--disable-renderer-backgrounding", "--disable-hang-monitor", "--disable-popup-blocking"),
    f"--disable-features={','.join(_UNUSED)}",
    *("--lang=en-US", f"--remote-debugging-address={HOST}", "--remote-debugging-port=0"),
)


def find_chromium(environ: Mapping[str, str]) -> Path | None:
    """Return the browser of this machine, None where there is none."""
    on_path = (shutil.which(name, path=environ.get("PATH", "")) for name in PROGRAMS)
    in_place = (bundle for bundle in BUNDLES if os.access(bundle, os.X_OK))
    found = next((program for program in (*on_path, *in_place) if program), None)
    return Path(found) if found else None


def find_chromedriver(environ: Mapping[str, str]) -> Path | None:
    """Return the program by which Appium speaks to a browser, None where it is missing."""
    found = shutil.which(CHROMEDRIVER, path=environ.get("PATH", ""))
    return Path(found) if found else None


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that runs; ``url`` is the ``ws://`` address by which it is commanded."""

    process: Process
    port: int
    url: str
    output: "_Output"

    async def ended(self) -> str:
        """Wait for its end; tell how it ended and what it said last."""
        await _exited(self.process)
        await asyncio.wait({self.output.reading}, timeout=_LAST_WORDS_SECONDS)
        return f"the browser ended with exit status {self.process.returncode}{self.output.told()}"


@asynccontextmanager
async def browsing(
    program: Path,
    *,
    size: tuple[int, int],
    directory: Path,
    environ: Mapping[str, str],
    guard: Guard,
    limit_seconds: float = BOOT_SECONDS,
) -> AsyncGenerator[Browser, None]:
    """Run a browser with one empty page and a window of a size, all it keeps below a directory.

    At the end of the block it is ended; what it may leave of its processes ends with the directory. Raises
    ControllerError when it does not come up, OSError when its places cannot be made.
    """
    profile = directory / "chromium"
    for place in (profile, directory / "home"):
        place.mkdir(parents=True, exist_ok=True)
    (profile / "DevToolsActivePort").unlink(missing_ok=True)
    with _temporary_files(guard) as temporary:
        own = {"HOME": str(directory / "home"), "TMPDIR": str(temporary)}
        process = await _started(_command(program, profile, size), directory, {**environ, **own}, guard)
        output = _Output(process)
        try:
            port, path = await _listening(process, profile / "DevToolsActivePort", output, limit_seconds)
            yield Browser(process, port, f"ws://{HOST}:{port}{path}", output)
        finally:
            await carry_through(_end(process, output))


@contextmanager
def _temporary_files(guard: Guard) -> Generator[Path]:
    """Make a directory for them, private and with a short path; it goes with the block, or with this process.

    The path is absolute, since not all processes of the browser stay where it was started; and the browser makes a
    socket in it, whose path may have some hundred letters: that of a session has more.
    """
    usual = tempfile.gettempdir()
    place = usual if len(usual) <= _TEMPORARY_LETTERS else "/tmp"  # noqa: S108  what is made there is private
    directory = Path(tempfile.mkdtemp(prefix="pd-", dir=place))
    guard.watch(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _command(program: Path, profile: Path, size: tuple[int, int]) -> Sequence[str | Path]:
    as_root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    window = f"--window-size={size[0]},{size[1]}"
    return [program, *_FLAGS, *as_root, window, f"--user-data-dir={profile}", "about:blank"]


async def _started(command: Sequence[str | Path], directory: Path, environ: Mapping[str, str], guard: Guard) -> Process:
    try:
        return await guard.start(command, directory=directory, environ=environ)
    except OSError as error:
        raise ControllerError(f"{command[0]} cannot be run: {error.strerror}") from error


async def _listening(process: Process, file: Path, output: "_Output", limit_seconds: float) -> tuple[int, str]:
    """Return the port and the path that the browser writes into a file as soon as it listens."""
    try:
        async with asyncio.timeout(limit_seconds):
            while process.returncode is None:
                if where := _where(file):
                    return where
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise ControllerError(f"the browser was not ready within {limit_seconds:g} s{output.told()}") from error
    await asyncio.wait({output.reading}, timeout=_LAST_WORDS_SECONDS)
    raise ControllerError(f"the browser ended at its start with exit status {process.returncode}{output.told()}")


def _where(file: Path) -> tuple[int, str] | None:
    port, _, path = (file.read_text() if file.exists() else "").partition("\n")
    return (int(port), path.strip()) if path else None


async def _end(process: Process, output: "_Output") -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await _exited(process)
    except TimeoutError:
        process.kill()
        await _exited(process)
    if (await asyncio.wait({output.reading}, timeout=_LAST_WORDS_SECONDS))[0]:
        await process.wait()
    output.reading.cancel()


async def _exited(process: Process) -> None:
    # Not process.wait(): that waits for the end of the output too, which a process left over may hold open.
    while process.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)


@dataclass(slots=True)
class _Output:
    """Reads what the browser prints, so that it is never held up, and keeps the end of it."""

    process: Process
    lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=_TAIL_LINES))
    reading: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self.reading = asyncio.create_task(self._read())

    def told(self) -> str:
        """Return the last lines, for the end of a message; nothing when there are none."""
        return "".join(["; the end of its output:", *(f"\n    {line}" for line in self.lines)]) if self.lines else ""

    async def _read(self) -> None:
        if self.process.stdout is None:  # never: it is started with a pipe
            raise RuntimeError("the browser has no standard output")
        while line := await self._line(self.process.stdout):
            if _NOISE not in line and line.strip():
                self.lines.append(line[:_LINE_BYTES].decode(errors="replace").rstrip())

    @staticmethod
    async def _line(stream: asyncio.StreamReader) -> bytes:
        try:
            return await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            return await stream.read(error.consumed)

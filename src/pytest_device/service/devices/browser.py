"""One Chromium as a process: finds, starts and stops it."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.platforms import SYSTEM
from pytest_device.service.devices.cdp import Connection
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.processes import finish_despite_cancellation
from pytest_device.service.programs.program import EndedError, Program, short_directory

KIND: Final = "chromium"
"""The kind of device that it is. Not in `chromium`, which imports a web server: a sign-in needs none."""
BOOT_SECONDS: Final = 60.0
_STARTS: Final = 2
"""Maximum number of starts: on a busy machine, about one in five hundred ends with a crash inside the browser
(SIGSEGV)."""
_GRACE_SECONDS: Final = 3.0
"""Seconds between SIGTERM and SIGKILL."""
_NOISE: Final = r"dbus/bus\.cc|^DevTools listening|^\s*$"
"""Output that does not explain a failure: blank lines, the browser's URL, complaints about a missing desktop."""

_UNUSED: Final = (
    "BackForwardCache",  # an app that was left would keep running in the background
    "DialMediaRouteProvider",
    "MediaRouter",
    "OptimizationHints",
    "PreloadTopChromeWebUI",
    "Translate",
)
_FLAGS: Final = (
    # Neither a display nor a sound card is needed.
    "--headless=new",
    "--disable-gpu",
    "--in-process-gpu",
    "--mute-audio",
    "--hide-scrollbars",
    # One session needs few processes, and many sessions share a machine. An app that leaves the screen, as before
    # every test, needs no new process, which is 5 to 10 times as fast.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    # No downloads, reports or prompts that a test did not cause.
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-default-apps",
    "--disable-sync",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
    "--disable-quic",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-dev-shm-usage",
    # A page in the background keeps running, as on a phone.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # Otherwise touches and keys before a page's first frame are lost.
    "--allow-pre-commit-input",
    "--disable-hang-monitor",
    "--disable-popup-blocking",
    f"--disable-features={','.join(_UNUSED)}",
    "--lang=en-US",
    # In a locale such as C.UTF-8, pages would have the language en-US@posix, which Intl refuses.
    "--accept-lang=en-US",
    # A port could be opened by every user of the machine; a pipe only by this process.
    "--remote-debugging-pipe",
)


def find_browsers(environ: Mapping[str, str]) -> list[Path]:
    """Return this machine's browsers, best first: those on PATH, and those at the usual places."""
    places = SYSTEM.places
    path = environ.get("PATH", "")
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "/")

    on_path = [shutil.which(name, path=path) for name in places.browser_names]
    candidates = [Path(program) for program in on_path if program]
    candidates += [
        program
        for program in places.browsers(environ, home)
        if os.access(program, os.X_OK)
    ]

    # Different names of one program are one browser: the first name stays.
    by_target: dict[Path, Path] = {}
    for program in candidates:
        by_target.setdefault(program.resolve(), program)
    return list(by_target.values())


def find_chromedriver(environ: Mapping[str, str]) -> Path | None:
    """Return the chromedriver for Appium, None if it is missing."""
    on_path = shutil.which(SYSTEM.places.chromedriver, path=environ.get("PATH", ""))
    return Path(on_path) if on_path else None


@dataclass(frozen=True, slots=True)
class Browser:
    """A running browser, and the connection to it, which ``task`` reads."""

    program: Program
    connection: Connection
    task: asyncio.Task[None]

    async def ended(self) -> str:
        """Wait until it exits; return its exit status and its last output."""
        return f"the browser exited unexpectedly: {await self.program.ended()}"


@asynccontextmanager
async def browsing(
    executable: Path,
    *,
    size: tuple[int, int],
    directory: Path,
    environ: Mapping[str, str],
    guard: Guard,
    log: Log,
    limit_seconds: float = BOOT_SECONDS,
) -> AsyncGenerator[Browser, None]:
    """Run a browser with one empty page; it is stopped at the end of the block.

    If it exits before it is ready, it is started once more, and ``log`` reports the reason.

    Arguments:
        executable: The browser.
        size: Width and height of its window in CSS pixels.
        directory: Gets its profile. Processes that it leaves are stopped when the guard removes this directory.
        environ: The environment of its process.
        guard: Stops the processes if this process is killed.
        log: Called with a line for a retried start.
        limit_seconds: The maximum time of a start.

    Raises:
        ControllerError: It does not start.
        OSError: Its directories cannot be created.
    """
    profile = directory / "chromium"
    home = directory / "home"
    profile.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)

    with short_directory(guard) as temporary:
        own_environ = {**environ, **SYSTEM.home_variables(home, temporary)}
        command = _command(executable, profile, size)

        async def start() -> Browser:
            program = await _started(command, directory, own_environ, guard)
            return await _answering(program, limit_seconds)

        browser = await _with_retry(start, log)
        try:
            yield browser
        finally:
            await finish_despite_cancellation(_end(browser))


async def _with_retry(start: Callable[[], Awaitable[Browser]], log: Log) -> Browser:
    for _ in range(1, _STARTS):
        try:
            return await start()
        except EndedError as error:
            log(f"{error}; starting it again")

    return await start()


def _command(
    program: Path, profile: Path, size: tuple[int, int]
) -> Sequence[str | Path]:
    # The browser refuses to run its sandbox as root, as in most containers.
    for_root = ("--no-sandbox",) if SYSTEM.is_root() else ()
    width, height = size
    return [
        program,
        *_FLAGS,
        *for_root,
        f"--window-size={width},{height}",
        f"--user-data-dir={profile}",
        "about:blank",
    ]


async def _started(
    command: Sequence[str | Path],
    directory: Path,
    environ: Mapping[str, str],
    guard: Guard,
) -> Program:
    executable = Path(command[0])
    try:
        executable.stat()  # noqa: ASYNC240  # fails early; the shell would only report an exit status
        process = await guard.start(
            SYSTEM.browser_command(command),
            directory=directory,
            environ=environ,
            piped=True,
        )
    except OSError as error:
        raise ControllerError(
            f"{executable} cannot be run: {error.strerror}"
        ) from error

    return Program.reading("the browser", process, OutputTail(dropped=_NOISE))


async def _answering(program: Program, limit_seconds: float) -> Browser:
    """Return the browser once it responds."""
    reader, writer = program.process.stdout, program.process.stdin
    if reader is None or writer is None:  # never: it was started with pipes
        raise RuntimeError("the browser has no pipe")

    connection = Connection(reader, writer)
    browser = Browser(program, connection, asyncio.create_task(connection.read()))

    async def version() -> Mapping[str, Any] | None:
        try:
            return await connection.call(
                "Browser.getVersion", limit_seconds=limit_seconds
            )
        except ControllerError:  # it has exited, or is late
            return None

    try:
        await program.ready(version, limit_seconds)
    except BaseException:
        await finish_despite_cancellation(_end(browser))
        raise

    return browser


async def _end(browser: Browser) -> None:
    program = browser.program
    if program.process.returncode is None:
        program.process.terminate()

    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await program.exited()
    except TimeoutError:
        program.process.kill()
        await program.exited()

    browser.task.cancel()
    if program.process.stdin:
        program.process.stdin.close()

    await program.closed()

"""The runner of Appium sessions: which run, how far each is, how each ends."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.runners import drivers, node, toolchain
from pytest_device.service.runners.appium_server import Launcher
from pytest_device.service.runners.base import Boot, Booting, Failed, Running
from pytest_device.service.runners.cache import Installer
from pytest_device.service.runners.drivers import Driver
from pytest_device.service.runners.environment import for_installers, for_sessions
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.journal import Journal
from pytest_device.service.runners.processes import remove
from pytest_device.spec import DEFAULT_SESSION_TYPE, Platform, SessionType

_GONE: Final = Failed("no programs run for this session: it was stopped, or the service was started anew since")


class AppiumRunner:
    """Runs one Appium server per session, all of whose processes end with it, however the service ends.

    ``state_dir`` belongs to one service at a time, which is for the caller to see to: what a session leaves behind is
    found again by its directory there. ``cache_dir`` is shared by all services of a user. Call every method from the
    event loop's thread.
    """

    def __init__(
        self,
        *,
        state_dir: Path,
        cache_dir: Path,
        log: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        home: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._directory = state_dir / "programs"
        self._cache_dir = cache_dir
        self._log = log
        self._environ = environ
        self._session_environ = for_sessions(environ)
        self._home = home or Path.home()
        self._clock = clock
        self._guard = Guard(environ=environ, log=log)
        self._launcher: Launcher | None = None
        self._sessions: dict[str, _Session] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._taken: set[str] = set()

    async def prepare(self, progress: Callable[[str], None]) -> None:
        """Find or install Node.js and Appium; ``progress`` is told what takes long, and how long so far.

        Raises ConfigError with the cause and the fix.
        """
        if os.name != "posix":
            raise ConfigError("the local service runs on Linux and macOS: on Windows run it inside WSL")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._directory} cannot be made: {error.strerror or error}") from error
        installer = Installer(self._guard, for_installers(self._environ), progress)
        nodes = node.candidates(self._environ)
        tools = await toolchain.prepare(installer, self._cache_dir, nodes=nodes)
        self._launcher = Launcher(tools, self._guard, self._session_environ, self._home, self._clock)

    def end_leftovers(self) -> None:
        """End what sessions of an earlier service left in this state directory; call it before the first start."""
        leftovers = sorted(self._directory.iterdir()) if self._directory.exists() else []
        try:
            remove(leftovers)
        except OSError as error:
            self._log(f"what an earlier service left in {self._directory} is still there: {error}")

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Begin to boot for a valid create request; return at once."""
        if self._launcher is None:
            raise RuntimeError("prepare() comes first")
        session = self._sessions[session_id] = _Session(session_id, request)
        life = session.life = asyncio.create_task(self._live(session, self._launcher))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    def look(self, session_id: str) -> Boot:
        """Tell how far the session's programs are, from memory, without waiting."""
        session = self._sessions.get(session_id)
        return session.boot if session else _GONE

    def last_activity(self, session_id: str) -> float | None:
        """Tell when an Appium command last came or was answered (Unix seconds): now, while one is carried out."""
        session = self._sessions.get(session_id)
        return session.journal.last_command if session and session.journal else None

    def stop(self, session_id: str) -> None:
        """Begin to end the session's programs; return at once. Repeating it does nothing."""
        session = self._sessions.pop(session_id, None)
        if session and session.life:
            session.life.cancel()

    async def close(self) -> None:
        """End the programs of all sessions; return when no process of theirs is left."""
        for session_id in list(self._sessions):
            self.stop(session_id)
        if self._lives:
            await asyncio.wait(self._lives)
        await asyncio.to_thread(self._guard.close)

    async def _live(self, session: "_Session", launcher: Launcher) -> None:
        """Carry the session from its boot to the end of its programs, which comes by itself or by ``stop``."""
        try:
            check(session.request, installed=toolchain.appium_version())
            async with (
                self._device(session) as driver,
                launcher.running(self._directory / session.id, driver) as server,
            ):
                session.journal = server.journal
                session.boot = Running({"appiumUrl": server.url, "capabilities": dict(driver.capabilities)})
                self._fail(session, f"Appium ended by itself: {await server.ended()}")
        except (ControllerError, OSError) as error:
            self._fail(session, str(error))
        finally:
            if not isinstance(session.boot, Failed):
                session.boot = _GONE

    def _fail(self, session: "_Session", reason: str) -> None:
        session.boot = Failed(reason)
        self._log(f"session {session.id}: {reason}")

    @asynccontextmanager
    async def _device(self, session: "_Session") -> AsyncGenerator[Driver, None]:
        """Choose a device; it is taken until the block ends."""
        platform = Platform(session.request["platform"])
        found = await drivers.find(platform, environ=self._session_environ, home=self._home)
        driver = drivers.choose(platform, session.request.get("deviceIdentifier"), found, self._taken)
        device = driver.capabilities.get("appium:udid", "fake")
        self._log(f"session {session.id}: the device is {device} {found.why_none and f'({found.why_none})'}")
        self._taken |= {device}
        try:
            yield driver
        finally:
            self._taken.discard(device)


def check(request: Mapping[str, Any], *, installed: str) -> None:
    """Raise ControllerError for a request that the document allows and this runner does not serve. Ours."""
    session_type = request.get("type", DEFAULT_SESSION_TYPE)
    if session_type != SessionType.APPIUM:
        raise ControllerError(f"the local service drives appium sessions only, and this one is {session_type!s}")
    # A version in full, or its first one or two numbers.
    accepted = [".".join(installed.split(".")[:length]) for length in (1, 2, 3)]
    version = request.get("packageVersion")
    if version is not None and version not in accepted:
        raise ControllerError(
            f"packageVersion {version!r} is not installed here: give one of {', '.join(accepted)}, or none"
        )


@dataclass(slots=True)
class _Session:
    """What is known of one session; the only thing here that changes."""

    id: str
    request: Mapping[str, Any]
    boot: Boot = field(default_factory=Booting)
    journal: Journal | None = None
    life: asyncio.Task[None] | None = None

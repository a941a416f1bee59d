"""The runner of real programs: which sessions run, how far each is, how each ends."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.apps import source
from pytest_device.service.devices import fake
from pytest_device.service.devices.base import Device
from pytest_device.service.devices.kinds import Devices
from pytest_device.service.keys import Keys
from pytest_device.service.runners.activity import Activity
from pytest_device.service.runners.agent_device import AgentDeviceLauncher
from pytest_device.service.runners.appium import AppiumLauncher
from pytest_device.service.runners.argent import ArgentLauncher
from pytest_device.service.runners.base import Boot, Failed, Moment, Running
from pytest_device.service.runners.controller import Controller, Launcher, Place
from pytest_device.service.runners.environment import for_sessions
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.processes import remove
from pytest_device.service.runners.program import Workplace, workplace
from pytest_device.service.runners.record import KEPT, Record
from pytest_device.service.runners.toolchain import Project, Toolbox
from pytest_device.spec import SessionType

LAUNCHERS: Final[Mapping[SessionType, Launcher]] = {
    SessionType.APPIUM: AppiumLauncher(),
    SessionType.AGENT_DEVICE: AgentDeviceLauncher(),
    SessionType.ARGENT: ArgentLauncher(),
}
"""A session of another type has no controller."""

_APPS: Final = "app"
_GONE: Final = Failed("no programs run for this session: it was stopped, or the service was started anew since")


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the runner works: ``state`` belongs to one service at a time, which is for the caller to see to.

    What a session leaves behind is found again by its directory there. ``cache`` is shared by all services of a user,
    whose ``home`` real devices are reached with. ``builds`` has the builds that sessions may name.
    """

    state: Path
    cache: Path
    home: Path = field(default_factory=Path.home)
    builds: Path | None = None


class ProgramsRunner:
    """Runs a device and a controller per session, all of whose processes end with it, however the service ends.

    ``keys`` make the addresses of controllers, devices and previews. Call every method from the event loop's thread.
    """

    def __init__(
        self,
        *,
        keys: Keys,
        folders: Folders,
        log: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
        launchers: Mapping[SessionType, Launcher] = LAUNCHERS,
    ) -> None:
        self._keys = keys
        self._folders = folders
        self._directory = folders.state / "programs"
        self._log = log
        self._environ = for_sessions(environ)
        self._clock = clock
        self._launchers = launchers
        self._guard = Guard(environ=environ, log=log)
        self._toolbox = Toolbox(self._guard, environ, folders.cache)
        self._devices = Devices(
            environ=self._environ, home=folders.home, guard=self._guard, log=log, toolbox=self._toolbox
        )
        self._active: dict[str, asyncio.Task[None]] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._records: dict[str, Record] = {}

    async def prepare(
        self,
        progress: Callable[[str], None],
        types: Iterable[SessionType] = (),
        requests: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Find or install what sessions of these types run on, and the devices of these create requests.

        ``progress`` is told what takes long. Raises ConfigError with the cause and the fix, also where this machine has
        no device for a request.
        """
        if os.name != "posix":
            raise ConfigError("the local service runs on Linux and macOS: on Windows run it inside WSL")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._directory} cannot be made: {error.strerror or error}") from error
        browsers = dict.fromkeys([await self._devices.prepare(request, progress) for request in requests])
        for browser in filter(None, browsers):
            progress(f"browser: {browser}")
        for launcher in [self._launchers[one] for one in types if one in self._launchers]:
            await self._toolbox.get(launcher.project, progress)

    async def refusal(self, request: Mapping[str, Any]) -> str | None:
        """Return why this machine has no device for a create request, None where it has one."""
        return await self._devices.refusal(request)

    def end_leftovers(self) -> None:
        """End what sessions of an earlier service left in this state directory; call it before the first start."""
        leftovers = sorted(self._directory.iterdir()) if self._directory.exists() else []
        try:
            remove(leftovers)
        except OSError as error:
            self._log(f"what an earlier service left in {self._directory} is still there: {error}")

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Begin to boot for a valid create request; return at once."""
        record = Record(session_id, request, self._clock, Activity(self._clock))
        self._forget_the_oldest()
        self._records[session_id] = record
        life = self._active[session_id] = asyncio.create_task(self._live(record))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    def look(self, session_id: str) -> Boot:
        """Tell how far the session's programs are, from memory, without waiting."""
        return self._records[session_id].boot if session_id in self._active else _GONE

    def last_activity(self, session_id: str) -> float | None:
        """Tell when the controller was last used (Unix seconds): now, while it carries out a command."""
        return self._records[session_id].activity.last if session_id in self._active else None

    def device(self, session_id: str) -> Device | None:
        """Return the device of a session that is up."""
        return self._records[session_id].device if session_id in self._active else None

    def controller(self, session_id: str) -> tuple[Controller, Activity] | None:
        """Return the controller of a session that is ready, and where its use is noted."""
        record = self._records.get(session_id) if session_id in self._active else None
        return (record.controller, record.activity) if record and record.controller else None

    def directory(self, session_id: str) -> Path:
        """Return where the apps of a session are unpacked to."""
        return self._directory / session_id / _APPS

    def note(self, session_id: str, text: str) -> None:
        """Note something that happens to a session now."""
        if session_id in self._active:
            self._note(self._records[session_id], text)

    def moments(self, session_id: str) -> Sequence[Moment]:
        """Tell what happened to the session's programs; of sessions that have ended, of the newest."""
        return tuple(self._records[session_id].moments) if session_id in self._records else ()

    def log(self, session_id: str) -> str:
        """Return the last lines of the controller's log, without secrets; of ended sessions, of the newest."""
        return self._records[session_id].log if session_id in self._records else ""

    def stop(self, session_id: str) -> None:
        """Begin to end the session's programs; return at once. Repeating it does nothing."""
        if life := self._active.pop(session_id, None):
            self._records[session_id].note("stopped: its programs are being ended")
            life.cancel()

    async def close(self) -> None:
        """End the programs of all sessions; return when no process of theirs is left."""
        for session_id in list(self._active):
            self.stop(session_id)
        if self._lives:
            await asyncio.wait(self._lives)
        await asyncio.to_thread(self._guard.close)

    async def _live(self, record: Record) -> None:
        """Carry the session from its boot to the end of its programs, which comes by itself or by ``stop``."""
        try:
            async with AsyncExitStack() as stack:
                self._fail(record, await self._run(record, stack))
        except (ControllerError, ConfigError, OSError) as error:
            self._fail(record, str(error))
        except Exception as error:
            self._fail(record, f"the service failed: {type(error).__name__}")
            raise
        finally:
            record.device = None
            if not isinstance(record.boot, Failed):
                record.boot = _GONE
            record.note("its programs are gone")

    async def _run(self, record: Record, stack: AsyncExitStack) -> str:
        """Build the session up, leave on the stack how it is taken down; return why it ended by itself."""
        launcher = self._launchers.get(record.type)
        if launcher:
            check(record.request, launcher.project)
        place = await stack.enter_async_context(workplace(self._directory / record.id, self._guard))
        place.room(_APPS)
        device = await self._booted(record, place, stack)
        await self._put_app(record, device)
        config = await self._controlled(record, launcher, device, place) if launcher else dict[str, Any]()
        record.boot = Running({**config, **self._preview(record, device)})
        return await _first_end(device, record.controller)

    async def _booted(self, record: Record, place: Workplace, stack: AsyncExitStack) -> Device:
        lent = self._devices.lent(record.request, place.directory, log=lambda text: self._note(record, text))
        record.device = await stack.enter_async_context(lent)
        stack.push_async_callback(place.end)  # all at once: nobody is to wait in vain for another's answer
        return record.device

    async def _put_app(self, record: Record, device: Device) -> None:
        """Install and launch the app that was asked for, as the document says; Appium's clients do so themselves."""
        if record.type is SessionType.APPIUM:
            return
        app = await source.resolve(
            record.request,
            builds_dir=self._folders.builds,
            directory=self.directory(record.id),
            kind=device.kind,
            note=lambda text: self._note(record, text),
        )
        if app is None:
            return
        application_id = await device.install(app)
        self._note(record, f"app installed: {application_id}")
        await device.launch(application_id, record.request.get("launchArgs", ()))
        self._note(record, "app launched")
        if url := record.request.get("openUrl"):
            await device.open_url(url, application_id)
            self._note(record, "address opened in the app")

    async def _controlled(
        self, record: Record, launcher: Launcher, device: Device, place: Workplace
    ) -> Mapping[str, Any]:
        """Start the controller; return its connection details."""
        tools = await self._toolbox.get(launcher.project, lambda text: self._note(record, text))
        controller = await launcher.launch(
            Place(
                workplace=place,
                toolchain=tools,
                environ=self._environ,
                home=self._folders.home,
                url=self._keys.url("controllers", record.id),
                device_url=self._keys.url("devices", record.id),
                activity=record.activity,
            ),
            device,
        )
        record.controller = controller
        self._note(record, f"controller ready: {launcher.project.title}")
        return controller.remote_config

    def _preview(self, record: Record, device: Device) -> Mapping[str, str]:
        return {} if device.kind == fake.KIND else {"webPreviewUrl": self._keys.url("preview", record.id)}

    def _note(self, record: Record, text: str) -> None:
        record.note(text)
        self._log(f"session {record.id}: {text}")

    def _fail(self, record: Record, reason: str) -> None:
        record.boot = Failed(reason)  # the reason is the session's, not a moment of its programs as well
        self._log(f"session {record.id}: {reason}")

    def _forget_the_oldest(self) -> None:
        ended = [session_id for session_id in self._records if session_id not in self._active]
        for session_id in ended[: max(0, len(ended) - KEPT + 1)]:
            del self._records[session_id]


def check(request: Mapping[str, Any], project: Project) -> None:
    """Raise ControllerError for a version of the controller that is not the installed one. Ours."""
    # A version in full, or its first one or two numbers.
    accepted = [".".join(project.version.split(".")[:length]) for length in (1, 2, 3)]
    version = request.get("packageVersion")
    if version is not None and version not in accepted:
        raise ControllerError(
            f"packageVersion {version!r} is not installed here: {project.title} is. "
            f"Give one of {', '.join(accepted)}, or none."
        )


async def _first_end(device: Device, controller: Controller | None) -> str:
    """Wait until the device or the controller is gone; return which and how."""
    ends = {asyncio.ensure_future(device.ended())}
    if controller:
        ends.add(asyncio.ensure_future(controller.ended()))
    try:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return "; ".join(end.result() for end in done)
    finally:
        for end in ends:
            end.cancel()

"""The runner of real programs: starts the device, the app and the controller of each session."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.apps.builds import Builds
from pytest_device.service.apps.source import Sources
from pytest_device.service.devices import fake
from pytest_device.service.devices.base import (
    Device,
    Facts,
    RequestError,
    take_screenshot,
)
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.logs import Log
from pytest_device.service.programs.processes import remove
from pytest_device.service.programs.program import Workspace, first, workspace
from pytest_device.service.programs.toolchain import Project
from pytest_device.service.runners.base import (
    GONE,
    KEPT,
    KEPT_SCREENSHOTS,
    Failed,
    Record,
    Running,
)
from pytest_device.service.runners.controller import LaunchContext
from pytest_device.service.runners.launchers import LAUNCHERS, Launcher
from pytest_device.service.runners.resources import Resources
from pytest_device.spec import SessionType

LAST_SCREENSHOT_SECONDS: Final = 2.0
"""Maximum seconds for the screenshot of a failed session: the run waits for the failure meanwhile."""

_Start = Callable[[Facts], Coroutine[Any, Any, Mapping[str, Any]]]


class ProgramsRunner:
    """Runs a device and a controller per session; all their processes end with it, however the service ends.

    Call every method from the event loop's thread.
    """

    def __init__(
        self, shared: Resources, *, log: Log, clock: Callable[[], float] = time.time
    ) -> None:
        self._shared = shared
        self._directory = shared.directories.programs
        self._log = log
        self._clock = clock
        self._active: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._records: dict[str, Record] = {}

    async def prepare(
        self,
        progress: Log,
        types: Iterable[SessionType] = (),
        requests: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Find or install the programs for these session types, and the devices for these create requests.

        ``progress`` reports slow steps. Raises ConfigError with the cause and the fix, also if this machine has no
        device for a request.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self._directory} cannot be created: {error.strerror or error}"
            ) from error

        # All devices are chosen before anything is installed: a request that this machine has no device for
        # downloads nothing.
        devices = self._shared.devices
        chosen = [
            (await devices.choose(request, progress), request) for request in requests
        ]

        projects = [LAUNCHERS[kind].project for kind in types if kind in LAUNCHERS]
        await _side_by_side(
            *(
                devices.install(availability, request, progress)
                for availability, request in chosen
            ),
            *(self._shared.toolbox.get(project, progress) for project in projects),
        )

    def end_leftovers(self) -> None:
        """Stop and remove the leftovers of an earlier service in this state directory; call it before any start."""
        # Usually none: their guard outlives a killed service. It may have been killed as well.
        try:
            if self._directory.exists():
                remove(sorted(self._directory.iterdir()))
        except OSError as error:
            # If the directory cannot be used at all, `prepare` reports it.
            self._log(
                f"leftovers of an earlier service in {self._directory} cannot be removed: {error}"
            )

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        record = Record(session_id, request, self._clock)
        self._forget_oldest()
        self._records[session_id] = record

        task = asyncio.create_task(self._run(record))
        self._active[session_id] = task
        # Kept until it is done, which is after its session has ended: an unreferenced task may be collected.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def record(self, session_id: str) -> Record:
        """Return the state of a session's programs; of ended sessions only the newest are kept."""
        record = self._records.get(session_id)
        return Record(session_id, {}, boot=GONE) if record is None else record

    def note(self, session_id: str, text: str) -> None:
        """Add an entry to a session's timeline."""
        if session_id in self._active:
            self._note(self._records[session_id], text)

    def stop(self, session_id: str) -> None:
        task = self._active.pop(session_id, None)
        if task is None:
            return

        record = self._records[session_id]
        if not task.done():
            record.note("stopping processes")
        record.forget_programs()
        task.cancel()

    async def close(self) -> None:
        for session_id in list(self._active):
            self.stop(session_id)
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._shared.devices.close()
        await asyncio.to_thread(self._shared.guard.close)

    async def _run(self, record: Record) -> None:
        """Run the session's programs until one exits or ``stop`` cancels this; leave no process behind."""
        launcher = LAUNCHERS.get(record.type)
        programs = _SessionPrograms(
            record, launcher, self._shared, lambda text: self._note(record, text)
        )
        try:
            async with AsyncExitStack() as stack:
                try:
                    reason = await programs.run(stack)
                except (ControllerError, ConfigError, OSError):
                    await _keep_screenshot(record)
                    raise
                await _keep_screenshot(record)
                self._fail(record, reason)
        except (ControllerError, ConfigError, OSError) as error:
            record.failed_by_request = isinstance(error, RequestError)
            self._fail(record, str(error))
        except Exception as error:
            self._fail(record, f"the service failed: {type(error).__name__}")
            raise
        finally:
            record.device = None
            record.note("processes exited")

    def _note(self, record: Record, text: str) -> None:
        record.note(text)
        self._log(f"session {record.id}: {text}")

    def _fail(self, record: Record, reason: str) -> None:
        # The reason ends the session's timeline; adding it to its programs' entries would repeat it.
        record.boot = Failed(reason, self._clock())
        self._log(f"session {record.id}: {reason}")

    def _forget_oldest(self) -> None:
        """Remove the oldest ended sessions and screenshots, so that one more is within the limits."""
        ended = [
            session_id for session_id in self._records if session_id not in self._active
        ]
        without_screenshot = max(0, len(ended) - KEPT_SCREENSHOTS + 1)
        for session_id in ended[:without_screenshot]:
            self._records[session_id].screenshot = None

        removed = max(0, len(ended) - KEPT + 1)
        for session_id in ended[:removed]:
            del self._records[session_id]


async def _side_by_side(*steps: Coroutine[Any, Any, object]) -> None:
    """Run steps at the same time; if one fails, cancel the others, and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)
    except* ConfigError as errors:
        failed = errors.exceptions
    else:
        return
    # A user fixes one cause at a time, and often it is that of the others, too: no network.
    raise failed[0]


async def _keep_screenshot(record: Record) -> None:
    """Take the last screenshot of a failed session, if its device still shows one."""
    if record.device is None:
        return

    # The device may be what failed: an earlier screenshot, if there is one, stays then.
    with suppress(ControllerError, OSError, TimeoutError):
        async with asyncio.timeout(LAST_SCREENSHOT_SECONDS):
            record.screenshot = await take_screenshot(record.device)


@dataclass(frozen=True, slots=True)
class _SessionPrograms:
    """Starts the programs of one session in its workspace."""

    record: Record
    launcher: Launcher | None
    shared: Resources
    note: Log

    async def run(self, stack: AsyncExitStack) -> str:
        """Start device, app and controller, and wait until one of them exits; return which one and how.

        ``stack`` stops them. Raises ControllerError, ConfigError and OSError with the reason for the session page.
        """
        record, directories = self.record, self.shared.directories
        is_appium = record.type is SessionType.APPIUM
        if self.launcher:
            check(record.request, self.launcher.project)

        own = await stack.enter_async_context(
            workspace(directories.programs / record.id, self.shared.guard)
        )
        apps = directories.apps(record.id)
        apps.mkdir(mode=0o700)

        starting = _ControllerStart(lambda facts: self._start_controller(own, facts))
        stack.push_async_callback(starting.cancel)
        borrowed = self.shared.devices.borrowed(
            record.request,
            own.directory,
            log=self.note,
            # Appium takes longer to start than a browser. The others start once the app is installed.
            expect=starting.begin if is_appium else None,
        )
        device = await stack.enter_async_context(borrowed)
        record.use(device)
        if isinstance(device, Chromium):
            device.accept_pushes(self.shared.keys.url("web-push", record.id))
        # All programs end at once: none waits for a response from one that has exited.
        stack.push_async_callback(own.end)

        # Appium clients install and launch their apps themselves.
        if not is_appium:
            await self._install_app(device, apps)

        remote_config = dict(await starting.details(device))
        if device.kind != fake.KIND:  # which has no screen
            remote_config["webPreviewUrl"] = self.shared.keys.url("preview", record.id)
        record.boot = Running(remote_config)

        ends = [device.ended()]
        if record.controller:
            ends.append(record.controller.ended())
        return await first(*ends)

    async def _install_app(self, device: Device, directory: Path) -> None:
        """Install and launch the requested app, as specified in the document."""
        request = self.record.request
        try:
            sources = Sources(
                directory,
                device.kind,
                Builds(self.shared.directories.builds),
                self.note,
            )
            app = await sources.requested(request)
        except ControllerError as error:
            raise RequestError(str(error)) from error
        if app is None:
            return

        application_id = await device.install(app)
        self.note(f"app installed: {application_id}")
        await device.launch(application_id, request.get("launchArgs", ()))
        self.note("app launched")

        url = request.get("openUrl")
        if url:
            await device.open_url(url, application_id)
            self.note("URL opened in the app")

    async def _start_controller(
        self, own: Workspace, device: Facts
    ) -> Mapping[str, Any]:
        """Start the controller, if the session has one; return its connection details."""
        launcher, record = self.launcher, self.record
        if launcher is None:
            return {}

        is_appium = record.type is SessionType.APPIUM
        keys = self.shared.keys
        context = LaunchContext(
            workspace=own,
            toolchain=await self.shared.toolbox.get(launcher.project, self.note),
            environ=self.shared.environ,
            home=self.shared.directories.home,
            url=keys.url("appium" if is_appium else "controllers", record.id),
            device_url=keys.url("devices", record.id),
            note=self.note,
            allow_insecure=self.shared.allow_insecure,
            requires_isolation=self.shared.isolation.required,
        )
        controller = await launcher.launch(context, device)
        record.controller = controller
        record.output = controller.program.output
        self.note(f"controller ready: {launcher.project.title}")
        return controller.remote_config


class _ControllerStart:
    """The start of a controller: beside that of its device if it begins early, else after it."""

    def __init__(self, start: _Start) -> None:
        self._start = start
        self._task: asyncio.Task[Mapping[str, Any]] | None = None

    def begin(self, device: Facts) -> None:
        self._task = asyncio.create_task(self._start(device))

    async def details(self, device: Device) -> Mapping[str, Any]:
        """Return its connection details once it is up. Raises as the start does."""
        if self._task is None:
            facts = Facts(device.name, device.platform, device.tools)
            return await self._start(facts)
        return await self._task

    async def cancel(self) -> None:
        """End a start that nobody waits for any more, such as that of a device that failed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


def check(request: Mapping[str, Any], project: Project) -> None:
    """Raise RequestError if the request names another version of the controller than the installed one.

    Not in the document; chosen here.
    """
    major, minor, patch = project.version.split(".", 2)
    accepted = [major, f"{major}.{minor}", f"{major}.{minor}.{patch}"]
    version = request.get("packageVersion")
    if version is not None and version not in accepted:
        raise RequestError(
            f"packageVersion {version!r} is not installed here: {project.title} is. "
            f"Set it to one of {', '.join(accepted)}, or leave it out."
        )

"""The programs of one session, from boot to end: its device, its app, its controller, their state and timeline."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import Builds
from pytest_device.service.apps.source import Sources
from pytest_device.service.devices import fake
from pytest_device.service.devices.base import Device, RequestError
from pytest_device.service.logs import Log
from pytest_device.service.runners.base import Boot, Booting, LogEntry, Running
from pytest_device.service.runners.controller import Controller, LaunchContext, Launcher
from pytest_device.service.runners.output_tail import Activity
from pytest_device.service.runners.program import Workspace, first, workspace
from pytest_device.service.runners.resources import Resources
from pytest_device.service.runners.toolchain import Project
from pytest_device.spec import DEFAULT_SESSION_TYPE, SessionType

KEPT: Final = 200
"""Maximum number of ended sessions to keep, and of entries in each timeline."""


@dataclass(slots=True)
class Record:
    """One session: its request, its state and its timeline. The only mutable value here."""

    id: str
    request: Mapping[str, Any]
    clock: Callable[[], float]
    activity: Activity
    boot: Boot = field(default_factory=Booting)
    device: Device | None = None
    controller: Controller | None = None
    entries: deque[LogEntry] = field(default_factory=lambda: deque[LogEntry](maxlen=KEPT))

    @property
    def type(self) -> SessionType:
        """The session type, which determines the controller."""
        return SessionType(self.request.get("type", DEFAULT_SESSION_TYPE))

    @property
    def log(self) -> str:
        """The last lines of the controller's log, without secrets."""
        return self.controller.program.output.text if self.controller else ""

    def note(self, text: str) -> None:
        self.entries.append(LogEntry(self.clock(), text))


@dataclass(frozen=True, slots=True)
class SessionPrograms:
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
        if self.launcher:
            check(record.request, self.launcher.project)
        own = await stack.enter_async_context(workspace(directories.programs / record.id, self.shared.guard))
        apps = directories.apps(record.id)
        apps.mkdir(mode=0o700)
        borrowed = self.shared.devices.borrowed(record.request, own.directory, log=self.note)
        record.device = device = await stack.enter_async_context(borrowed)
        stack.push_async_callback(own.end)  # all at once: none waits for a response from one that has exited
        if record.type is not SessionType.APPIUM:  # Appium clients install and launch their apps themselves
            await self._install_app(device, apps)
        config = await self._start_controller(self.launcher, device, own) if self.launcher else dict[str, Any]()
        preview = {} if device.kind == fake.KIND else {"webPreviewUrl": self.shared.keys.url("preview", record.id)}
        record.boot = Running({**config, **preview})
        return await first(device.ended(), *([record.controller.ended()] if record.controller else []))

    async def _install_app(self, device: Device, directory: Path) -> None:
        """Install and launch the requested app, as specified in the document."""
        request = self.record.request
        try:
            sources = Sources(directory, device.kind, Builds(self.shared.directories.builds), self.note)
            app = await sources.requested(request)
        except ControllerError as error:
            raise RequestError(str(error)) from error
        if app is None:
            return
        application_id = await device.install(app)
        self.note(f"app installed: {application_id}")
        await device.launch(application_id, request.get("launchArgs", ()))
        self.note("app launched")
        if url := request.get("openUrl"):
            await device.open_url(url, application_id)
            self.note("URL opened in the app")

    async def _start_controller(self, launcher: Launcher, device: Device, own: Workspace) -> Mapping[str, Any]:
        """Start the controller; return its connection details."""
        record = self.record
        context = LaunchContext(
            workspace=own,
            toolchain=await self.shared.toolbox.get(launcher.project, self.note),
            environ=self.shared.environ,
            home=self.shared.directories.home,
            url=self.shared.keys.url("appium" if record.type is SessionType.APPIUM else "controllers", record.id),
            device_url=self.shared.keys.url("devices", record.id),
            note=self.note,
            allow_insecure=self.shared.allow_insecure,
        )
        record.controller = await launcher.launch(context, device)
        self.note(f"controller ready: {launcher.project.title}")
        return record.controller.remote_config


def check(request: Mapping[str, Any], project: Project) -> None:
    """Raise RequestError if the request names another version of the controller than the installed one. Ours."""
    # A full version, or its first one or two numbers.
    accepted = [".".join(project.version.split(".")[:length]) for length in (1, 2, 3)]
    version = request.get("packageVersion")
    if version is not None and version not in accepted:
        raise RequestError(
            f"packageVersion {version!r} is not installed here: {project.title} is. "
            f"Set it to one of {', '.join(accepted)}, or leave it out."
        )

"""The runner of real programs: the running sessions, and the state of each boot."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.service.devices.base import Device, RequestError
from pytest_device.service.devices.found import DevicePreference
from pytest_device.service.keys import Keys
from pytest_device.service.logs import Log
from pytest_device.service.runners.base import Boot, Failed, LogEntry
from pytest_device.service.runners.controller import Controller, Launcher
from pytest_device.service.runners.launchers import LAUNCHERS
from pytest_device.service.runners.output_tail import Activity
from pytest_device.service.runners.processes import remove
from pytest_device.service.runners.resources import Directories, Resources
from pytest_device.service.runners.session_programs import KEPT, Record, SessionPrograms
from pytest_device.spec import SessionType

_GONE: Final = Failed("the session has no processes: it was stopped, or the service was restarted")


class ProgramsRunner:
    """Runs a device and a controller per session; all their processes end with it, however the service ends.

    ``keys`` creates the URLs of controllers, devices and previews. Call every method from the event loop's thread.
    """

    def __init__(
        self,
        *,
        keys: Keys,
        directories: Directories,
        log: Log,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
        launchers: Mapping[SessionType, Launcher] = LAUNCHERS,
        preference: DevicePreference = DevicePreference(),  # noqa: B008  # frozen
        allow_insecure: Sequence[str] = (),
    ) -> None:
        self._shared = Resources.of(
            keys, directories, environ, log, preference=preference, allow_insecure=allow_insecure
        )
        self._directory = directories.programs
        self._log = log
        self._clock = clock
        self._launchers = launchers
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
        if os.name != "posix":
            raise ConfigError("the local service runs on Linux and macOS: on Windows run it inside WSL")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._directory} cannot be created: {error.strerror or error}") from error
        for request in requests:
            await self._shared.devices.prepare(request, progress)
        for launcher in [self._launchers[one] for one in types if one in self._launchers]:
            await self._shared.toolbox.get(launcher.project, progress)

    async def refusal(self, request: Mapping[str, Any]) -> str | None:
        """Return why this machine has no device for a create request, None if it has one."""
        return await self._shared.devices.refusal(request)

    def end_leftovers(self) -> None:
        """Stop and remove the leftovers of an earlier service in this state directory; call it before any start."""
        leftovers = sorted(self._directory.iterdir()) if self._directory.exists() else []
        try:
            remove(leftovers)
        except OSError as error:
            self._log(f"leftovers of an earlier service in {self._directory} cannot be removed: {error}")

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        record = Record(session_id, request, self._clock, Activity(self._clock))
        self._forget_the_oldest()
        self._records[session_id] = record
        task = self._active[session_id] = asyncio.create_task(self._run(record))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def status(self, session_id: str) -> Boot:
        return self._records[session_id].boot if session_id in self._active else _GONE

    def last_activity(self, session_id: str) -> float | None:
        """Return when the controller was last used (Unix seconds): now, while it executes a command."""
        return self._records[session_id].activity.last if session_id in self._active else None

    def failed_by_request(self, session_id: str) -> bool:
        boot = self._records[session_id].boot if session_id in self._records else None
        return isinstance(boot, Failed) and boot.by_request

    def device(self, session_id: str) -> Device | None:
        return self._records[session_id].device if session_id in self._active else None

    def controller(self, session_id: str) -> tuple[Controller, Activity] | None:
        """Return the controller of a session that is ready, and the record of its activity."""
        record = self._records.get(session_id) if session_id in self._active else None
        return (record.controller, record.activity) if record and record.controller else None

    def directory(self, session_id: str) -> Path:
        """Return the directory that a session's apps are unpacked to."""
        return self._shared.directories.apps(session_id)

    def note(self, session_id: str, text: str) -> None:
        """Add an entry to a session's timeline."""
        if session_id in self._active:
            self._note(self._records[session_id], text)

    def log_entries(self, session_id: str) -> Sequence[LogEntry]:
        """Return the timeline of the session's programs; of ended sessions only the newest are kept."""
        return tuple(self._records[session_id].entries) if session_id in self._records else ()

    def log(self, session_id: str) -> str:
        """Return the last lines of the controller's log, without secrets; only the newest ended sessions have one."""
        return self._records[session_id].log if session_id in self._records else ""

    def stop(self, session_id: str) -> None:
        if task := self._active.pop(session_id, None):
            self._records[session_id].note("stopping processes")
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
        launcher = self._launchers.get(record.type)
        programs = SessionPrograms(record, launcher, self._shared, lambda text: self._note(record, text))
        try:
            async with AsyncExitStack() as stack:
                self._fail(record, await programs.run(stack))
        except (ControllerError, ConfigError, OSError) as error:
            self._fail(record, str(error), by_request=isinstance(error, RequestError))
        except Exception as error:
            self._fail(record, f"the service failed: {type(error).__name__}")
            raise
        finally:
            record.device = None
            if not isinstance(record.boot, Failed):
                record.boot = _GONE
            record.note("processes exited")

    def _note(self, record: Record, text: str) -> None:
        record.note(text)
        self._log(f"session {record.id}: {text}")

    def _fail(self, record: Record, reason: str, *, by_request: bool = False) -> None:
        # The reason ends the session's timeline; adding it to its programs' entries would repeat it.
        record.boot = Failed(reason, self._clock(), by_request)
        self._log(f"session {record.id}: {reason}")

    def _forget_the_oldest(self) -> None:
        ended = [session_id for session_id in self._records if session_id not in self._active]
        for session_id in ended[: max(0, len(ended) - KEPT + 1)]:
            del self._records[session_id]

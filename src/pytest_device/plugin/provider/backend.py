"""A process's connection to the service, through a reaper or directly to a local service, and what it leaves behind."""

import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

import pytest

from pytest_device.errors import ConfigError
from pytest_device.local import LocalService
from pytest_device.options import Options
from pytest_device.plugin.output.terminal import Terminal
from pytest_device.plugin.state import ended_by_interrupt
from pytest_device.sessions.client import (
    REPLY_SECONDS,
    DeviceClient,
    LocalClient,
    SessionClient,
)
from pytest_device.sessions.events import Event
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.quota import (
    FileStore,
    Slots,
    Store,
    key_of,
    slots_directory,
)
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import (
    STOP_SECONDS,
    ReaperClient,
    ReaperConfig,
    never,
)
from pytest_device.sessions.reporter import Reporter, SafetyNet
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.sweep import MIN_STOP_SECONDS, reconcile, stop_all, sweep
from pytest_device.settings import Settings
from pytest_device.spec import LONGEST_MINUTES, SessionType

if TYPE_CHECKING:
    from pytest_device.redact import Redactor
    from pytest_device.sessions.quota.redis_store import RedisStore
    from pytest_device.sessions.request import SessionRequest


MAIN: Final = "main"
"""Owner name of the process that was started as the run."""
_CHOOSES_DEVICE: Final = ("platform", "type", "deviceIdentifier")
"""Request fields that decide which device of this machine is used."""
_APPIUM_CLIENT: Final = (
    "pytest_device.plugin.provider.drivers",
    "pytest_device.trace.appium",
    "appium.webdriver",
)
"""Modules that the first Appium driver of a process imports."""


class _Backend:
    """What both kinds of service have in common: slots that limit concurrent sessions."""

    log_path: Path | None = None

    def __init__(
        self,
        settings: Settings,
        service: Endpoint,
        reporter: Reporter,
        state_dir: Path | None,
    ) -> None:
        self.service = service
        self._settings = settings
        self._reporter = reporter
        self._state_dir = state_dir

    def slots(self, holder: str) -> Slots | None:
        """Return the slots that limit concurrent sessions, None without a limit.

        They are in the store that machines share, or in the state directory, which all runs of this user share.
        """
        if self._settings.max_sessions is None:
            return None

        store = self._shared_store()
        if store is None and self._state_dir:
            store = FileStore(slots_directory(self._state_dir, self.service.url))

        if store is None:
            source = self._settings.source("max_sessions")
            raise ConfigError(
                f"{source} needs a state directory: set {Options.state_dir.flag}"
            )

        return self._slots(store, self._settings.max_sessions, holder)

    def exclusive(self, holder: str, session_id: str) -> Slots | None:
        """Return the only slot of an existing session, None without a state directory."""
        if self._state_dir is None:
            return None

        # The same in any spelling.
        directory = slots_directory(
            self._state_dir, f"{self.service.url}/{UUID(session_id)}"
        )
        return self._slots(FileStore(directory), 1, holder, of=session_id)

    def _shared_store(self) -> Store | None:
        """Return the store that machines share, None if they share none."""
        return None

    def _slots(self, store: Store, limit: int, holder: str, of: str = "") -> Slots:
        timeout = self._settings.wait_timeout_seconds
        return Slots(
            store,
            limit,
            holder=holder,
            timeout_seconds=timeout,
            reporter=self._reporter,
            of=of,
        )


class LocalBackend(_Backend):
    """The local service of the run: started here, or by the coordinator, which sends its URL.

    Programs that sessions for ``requests`` need are installed before the first session is created.
    """

    def __init__(
        self,
        settings: Settings,
        running: dict[str, str] | None,
        reporter: Reporter,
        requests: "Collection[SessionRequest]" = (),
        redactor: "Redactor | None" = None,
        *,
        drives: bool = False,
    ) -> None:
        """Connect to the service.

        Args:
            settings: The settings of the run.
            running: URL, token and log path of the service that the coordinator started; None to start one.
            reporter: Reports the progress of its start.
            requests: What the tests of the run request.
            redactor: Learns the secrets of sessions.
            drives: Whether tests of this process will use the sessions.

        Raises:
            ConfigError: The service could not start.
        """
        self._open = ExitStack()
        if running is None:
            running = self._start(settings, reporter, requests, drives=drives)

        url = running["url"]
        token = running["token"]
        self.log_path = log_path = Path(running["log_path"])
        super().__init__(settings, Endpoint(url, token), reporter, log_path.parent)

        # Uses the vendor prefix of the document: the one in the settings belongs to a remote account.
        self._client = self._open.enter_context(
            LocalClient(url, token, redactor=redactor)
        )

    def _start(
        self,
        settings: Settings,
        reporter: Reporter,
        requests: "Collection[SessionRequest]",
        *,
        drives: bool,
    ) -> dict[str, str]:
        bodies = [request.to_wire() for request in requests]
        # Many tests request the same device.
        devices = dict.fromkeys(
            tuple(body.get(name) for name in _CHOOSES_DEVICE) for body in bodies
        )
        service = LocalService.start(
            progress=reporter.progress,
            meanwhile=partial(_load_clients, requests) if drives else _nothing,
            types=sorted({str(request.type) for request in requests}),
            requests=[
                dict(zip(_CHOOSES_DEVICE, device, strict=True)) for device in devices
            ],
            **settings.local_service_config(),
        )
        self._open.callback(service.close)

        return {
            "url": service.url,
            "token": service.token,
            "log_path": str(service.log_path),
        }

    def sessions(self) -> SessionClient:
        """Return the client of this process."""
        return self._client

    def keep(self, session_id: str) -> None:
        """Refuse to leave a session running: the service ends with the run."""
        raise ConfigError(
            f"session {session_id} cannot be kept: the local service ends with the run"
        )

    def on_termination(self) -> None:
        """Do nothing: the service ends with the run."""

    def awaited(self, timeout_seconds: float) -> str:
        """Return nothing: its sessions end with it."""
        del timeout_seconds
        return ""

    def close(
        self, timeout_seconds: float, is_skipped: Callable[[], bool] = never
    ) -> list[Event]:
        """End the service, if this process started it, and its sessions with it."""
        del timeout_seconds, is_skipped
        self._open.close()
        return []


def _nothing() -> None:
    """Do nothing."""


def _load_clients(requests: "Collection[SessionRequest]") -> None:
    """Import what the first Appium driver needs: that takes half as long as the start of the service."""
    if any(request.type is SessionType.APPIUM for request in requests):
        for name in _APPIUM_CLIENT:
            # Raised again where a test needs it.
            with suppress(Exception):
                import_module(name)


class RemoteBackend(_Backend):
    """A service that outlives the run: this process owns its sessions."""

    def __init__(
        self,
        settings: Settings,
        service: Endpoint,
        *,
        run: OwnRun | None,
        worker: str | None,
        reporter: Reporter,
        redactor: "Redactor | None" = None,
    ) -> None:
        state_dir = Path(settings.state_dir) if settings.state_dir else None
        super().__init__(
            settings,
            service,
            reporter,
            state_dir,
        )

        self._run = run
        self._worker = worker
        self._redactor = redactor
        self._is_reconciled = (
            worker is not None and run is not None and run.is_joined_by(MAIN)
        )
        """Whether the coordinator reconciles this process's ledger: not for a worker on a machine that does not share
        its disk."""
        if worker is None and shares_slots(self._settings):
            # A worker checks it with its first test, which can report an error.
            shared_slots(settings, self.service.url, reporter).check()

        self._owner = self._make(run)

    def _make(self, run: OwnRun | None) -> ReaperClient:
        client = DeviceClient(
            self.service.url,
            self.service.token,
            reply_seconds=min(REPLY_SECONDS, self._settings.wait_timeout_seconds),
            redactor=self._redactor,
        )

        return ReaperClient(
            client,
            self.service,
            vendor=self._settings.vendor,
            run=run,
            config=ReaperConfig(
                detached=self._settings.reaper,
                follow=(os.getppid(),) if self._worker is not None else (),
                leaves_tombstones=self._is_reconciled,
                stop_seconds=min(STOP_SECONDS, self._settings.stop_timeout_seconds),
                requirement=_requirement(self._settings),
            ),
            reporter=self._reporter,
        )

    def sessions(self) -> ReaperClient:
        """Return the reaper client of this process."""
        return self._owner

    def _shared_store(self) -> Store | None:
        if not shares_slots(self._settings):
            return None
        return shared_slots(self._settings, self.service.url, self._reporter)

    def keep(self, session_id: str) -> None:
        """Leave a session running until its own limits end it."""
        self.sessions().keep(session_id)

    def on_termination(self) -> None:
        """Let the reaper stop this process's sessions while pytest shuts down."""
        if self._owner.pid == os.getpid():
            self._owner.on_termination()

    def awaited(self, timeout_seconds: float) -> str:
        """Return what ``close`` would wait for, and for how long, for the user; empty if nothing is left."""
        return self._owner.awaited(timeout_seconds)

    def close(
        self, timeout_seconds: float, is_skipped: Callable[[], bool] = never
    ) -> list[Event]:
        """Stop all remaining sessions concurrently; return the events of ends that were not reported yet.

        ``is_skipped`` returns whether to stop waiting for them.
        """
        return self._owner.close(timeout_seconds, is_skipped)


def shares_slots(settings: Settings) -> bool:
    """Return whether a run shares its limit of sessions with other machines."""
    return settings.slots_url is not None and settings.max_sessions is not None


def shared_slots(
    settings: Settings, service_url: str, reporter: Reporter
) -> "RedisStore":
    """Return a service's slots on the Redis server of ``slots_url``; nothing is sent yet.

    Raises ConfigError without the Redis client.
    """
    source = settings.source("slots_url")
    try:
        from pytest_device.sessions.quota import redis_store
    except ImportError as error:
        raise ConfigError(
            f"{source} needs the Redis client ({error}): pip install 'pytest-device[redis]'"
        ) from None

    return redis_store.RedisStore(
        redis_store.RedisConfig(
            str(settings.slots_url),
            source,
            key_of(service_url),
            reporter,
        )
    )


Backend = LocalBackend | RemoteBackend
"""The service as a run uses it, besides leasing."""


def joined(
    settings: Settings, run_name: str, owner: str, reporter: Reporter
) -> OwnRun | None:
    """Return this process's part of the run in the state directory, None if that is not writable.

    The main process creates the run, the others join it. Raises ConfigError if the ledger is required.
    """
    state_dir = settings.state_dir
    reason = "this user has no home directory"
    if state_dir is not None:
        join = OwnRun.start if owner == MAIN else OwnRun.join
        try:
            return join(Path(state_dir), run_name, owner)
        except OSError as error:
            reason = str(error)

    if requirement := _requirement(settings):
        raise ConfigError(
            f"no ledger ({reason}), but {requirement} is set: set a writable directory with {Options.state_dir.flag}, "
            "or remove that setting"
        )

    warning = f"no ledger ({reason}): later runs cannot stop sessions that this run leaves running"
    reporter.warn(SafetyNet.LEDGER, f"{warning}. Set {Options.state_dir.flag}")
    return None


def _requirement(settings: Settings) -> str:
    """Return where ledger and reaper are required, empty if they are not."""
    return settings.source("require_ledger") if settings.require_ledger else ""


_IS_INIT: Final = (
    "pytest was process 1 of its container, so the reaper ended with it: start the container with an init process "
    "(docker run --init)"
)
_IN_ORDER: Final = frozenset(
    {
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.INTERRUPTED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    }
)


class Sweeper:
    """Stops sessions that earlier runs left on this machine, concurrently with the tests."""

    def __init__(self, settings: Settings, service: Endpoint, run_name: str) -> None:
        self._settings = settings
        self._service = service
        self._run_name = run_name
        self._notes: list[str] = []
        self._thread = threading.Thread(
            target=self._sweep, name="pytest-device-sweep", daemon=True
        )
        self._thread.start()

    def _sweep(self) -> None:
        state_dir = self._settings.state_dir
        if state_dir is None:
            return

        try:
            swept = sweep(
                Path(state_dir),
                self._service,
                exclude=self._run_name,
                timeout_seconds=self._settings.stop_timeout_seconds,
            )
        except OSError as error:
            self._notes.append(f"could not check for sessions of earlier runs: {error}")
        else:
            self._notes += swept.notes()

    def notes(self, until: float) -> list[str]:
        """Return its notes; wait for its end until ``until`` on the monotonic clock."""
        self._thread.join(max(MIN_STOP_SECONDS, until - time.monotonic()))
        return self._notes


class Housekeeping:
    """Used once per run, in the process that was started as pytest."""

    def __init__(
        self,
        settings: Settings,
        service: Endpoint,
        run_name: str,
        terminal: Terminal,
    ) -> None:
        self._settings = settings
        self._service = service
        self._terminal = terminal
        self._notes: list[str] = []
        self.run: OwnRun | None = None
        self._sweeper: Sweeper | None = None

        if settings.local:
            return

        self.run = joined(settings, run_name, MAIN, terminal)
        self._sweeper = Sweeper(
            settings, self._service, self.run.name if self.run else ""
        )

    def finish(
        self, session: pytest.Session, *, until: float, others: bool, by_signal: bool
    ) -> None:
        """Stop what other processes of this run left, count it, and fail a run that may have leaked.

        Stops are retried until ``until``, on the monotonic clock. ``by_signal``: whether a signal ended the run.
        """
        leaves_warm = not was_interrupted(session, by_signal=by_signal)
        receipt = self._terminal.receipt
        tried = (
            self._reconciled(self.run, until, leaves_warm=leaves_warm)
            if self.run
            else set[str]()
        )

        if others:
            left = [
                Entry.of_session(
                    of.session_id,
                    label=of.label,
                    url=of.url,
                    minutes=of.minutes or LONGEST_MINUTES,
                )
                for of in (event.session for event in receipt.not_stopped())
                if of.session_id not in tried
            ]
            for event in stop_all(self._service, left, until - time.monotonic()):
                self._terminal.event(event)

        if self._sweeper:
            self._notes += self._sweeper.notes(until)
        if os.getpid() == 1:
            self._notes.append(_IS_INIT)

        for text in self._notes:
            self._terminal.note(text)

        if (
            receipt.not_stopped() or receipt.lost
        ) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _reconciled(self, run: OwnRun, until: float, *, leaves_warm: bool) -> set[str]:
        """Return the IDs of the sessions that other processes left."""
        try:
            known = self._terminal.receipt.settled()
            events = reconcile(
                run, self._service, known=known, until=until, leaves_warm=leaves_warm
            )
            run.leave()
        except OSError as error:
            self._notes.append(f"the ledger is no longer readable: {error}")
            return set()

        for event in events:
            self._terminal.event(event)

        return {event.session.session_id for event in events}


def was_interrupted(session: pytest.Session, *, by_signal: bool) -> bool:
    """Return whether a run was interrupted: then it keeps no sessions warm."""
    if by_signal or ended_by_interrupt(session):
        return True
    return session.exitstatus not in _IN_ORDER

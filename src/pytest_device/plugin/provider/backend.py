"""A process's way to the service: through a reaper, or straight to a local service, which ends with the run."""

import os
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pytest_device.errors import ConfigError
from pytest_device.local import LocalService
from pytest_device.options import Options
from pytest_device.sessions.client import REPLY_SECONDS, DeviceClient, SessionClient
from pytest_device.sessions.events import Event
from pytest_device.sessions.network import endpoint_at
from pytest_device.sessions.quota import Claim, Slots, Store, key_of, slots_directory
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import STOP_SECONDS, ReaperClient, ReaperConfig
from pytest_device.sessions.reporter import Reporter
from pytest_device.sessions.runs import OwnRun
from pytest_device.settings import Settings

if TYPE_CHECKING:
    from pytest_device.sessions.quota.leases import LeaseStore
    from pytest_device.sessions.request import SessionRequest

MAIN: Final = "main"
"""The owner's name of the process that the run was started as."""
_CHOOSES_DEVICE: Final = ("platform", "type", "deviceIdentifier")
"""What of a request decides which device of this machine it gets."""


class Backend(Protocol):
    """What a run does with the service, besides leasing."""

    service: Endpoint
    log_path: Path | None

    def sessions(self) -> SessionClient:
        """Return what makes the calls in this process."""
        ...

    def keep(self, session_id: str) -> None:
        """Leave a session to its own limits."""
        ...

    def slots(self, holder: str) -> Slots | None:
        """Return what bounds how many sessions there are at once, None when nothing does."""
        ...

    def pending(self) -> int:
        """Return how many sessions there are still to be stopped."""
        ...

    def close(self, timeout_seconds: float) -> list[Event]:
        """Stop what is left; return how each session ended of which that was not reported."""
        ...


class LocalBackend:
    """The local service of the run: started here, or by the coordinator, which sends its address.

    What sessions for ``requests`` run on is installed before the first of them is created.
    """

    def __init__(
        self,
        settings: Settings,
        given: dict[str, str] | None,
        reporter: Reporter,
        requests: "Collection[SessionRequest]" = (),
    ) -> None:
        self._open = ExitStack()
        self._settings, self._reporter = settings, reporter
        if given is None:
            bodies = [request.to_wire() for request in requests]
            asked = dict.fromkeys(tuple(body.get(name) for name in _CHOOSES_DEVICE) for body in bodies)
            service = LocalService.start(
                progress=reporter.progress,
                types=sorted({str(request.type) for request in requests}),
                requests=[dict(zip(_CHOOSES_DEVICE, one, strict=True)) for one in asked],
                **settings.of_local_service(),
            )
            self._open.callback(service.close)
            given = {"url": service.url, "token": service.token, "log_path": str(service.log_path)}
        self.log_path: Path | None = Path(given["log_path"])
        self.service = Endpoint(given["url"], given["token"])
        self._client = self._open.enter_context(DeviceClient(given["url"], given["token"], vendor=settings.vendor))

    def sessions(self) -> SessionClient:
        """Return the client."""
        return self._client

    def slots(self, holder: str) -> Slots | None:
        """Count in a directory of the service, which its workers share and which goes with it."""
        directory = self.log_path.parent if self.log_path else None
        return _slots_in(directory, self._settings, self.service.url, holder, self._reporter)

    def keep(self, session_id: str) -> None:
        """Refuse: the service ends with the run."""
        raise ConfigError(f"session {session_id} cannot be kept: the local service ends with the run")

    def pending(self) -> int:
        """Return none: each is stopped by its lease."""
        return 0

    def close(self, timeout_seconds: float) -> list[Event]:
        """End the service, when it is this process's, and its sessions with it."""
        del timeout_seconds
        self._open.close()
        return []


class RemoteBackend:
    """A service that outlives the run: this process owns its sessions, and so does each process forked from it."""

    log_path: Path | None = None

    def __init__(self, settings: Settings, *, run: OwnRun | None, worker: str | None, reporter: Reporter) -> None:
        self.service = endpoint_at(str(settings.url), settings.token)
        self._settings, self._run, self._worker, self._reporter = settings, run, worker, reporter
        self._pid = os.getpid()
        self._is_settled = worker is not None and run is not None and run.is_joined_by(MAIN)
        """Whether the coordinator reads what this one leaves: not on a machine that shares no disk with it."""
        if worker is None and self._shares_slots():
            self._store().check()  # a worker finds it out with its first test, which can say so
        self._owner = self._make(run)

    def _make(self, run: OwnRun | None) -> ReaperClient:
        client = DeviceClient(
            self.service.url,
            self.service.token,
            reply_seconds=min(REPLY_SECONDS, self._settings.wait_timeout_seconds),
        )
        return ReaperClient(
            client,
            self.service,
            vendor=self._settings.vendor,
            run=run,
            config=ReaperConfig(
                detached=self._settings.reaper,
                follow=(os.getppid(),) if self._has_somebody_behind() else (),
                leaves_tombstones=self._is_settled or os.getpid() != self._pid,
                stop_seconds=min(STOP_SECONDS, self._settings.stop_timeout_seconds),
            ),
            reporter=self._reporter,
        )

    def _has_somebody_behind(self) -> bool:
        """Return whether another process settles the run: for a worker, and for a forked child."""
        return self._worker is not None or os.getpid() != self._pid

    def _owner_here(self) -> ReaperClient:
        """Return the owner of this process; a forked child has neither the threads nor the lock of its parent's."""
        if self._owner.pid != os.getpid():
            self._owner = self._make(self._run.in_fork() if self._run else None)
        return self._owner

    def sessions(self) -> SessionClient:
        """Return the owner."""
        return self._owner_here()

    def slots(self, holder: str) -> Slots | None:
        """Count in the state directory, which all runs of this user share."""
        if self._shares_slots():
            return _slots_of(_OnFirstUse(self._store), self._settings, holder, self._reporter)
        directory = Path(self._settings.state_dir) if self._settings.state_dir else None
        return _slots_in(directory, self._settings, self.service.url, holder, self._reporter)

    def _shares_slots(self) -> bool:
        return None not in (self._settings.slots_url, self._settings.max_sessions)

    def _store(self) -> "LeaseStore":
        source = self._settings.source("slots_url")
        try:
            from pytest_device.sessions.quota import leases
        except ImportError as error:
            raise ConfigError(
                f"{source} needs the Redis client ({error}): pip install 'pytest-device[redis]'"
            ) from None
        return leases.LeaseStore(
            leases.LeaseConfig(str(self._settings.slots_url), source, key_of(self.service.url), self._reporter)
        )

    def keep(self, session_id: str) -> None:
        """Leave a session to its own limits."""
        self._owner_here().keep(session_id)

    def pending(self) -> int:
        """Return how many are not done with."""
        return self._owner.pending()

    def close(self, timeout_seconds: float) -> list[Event]:
        """Stop what is left, side by side."""
        return self._owner.close(timeout_seconds)


class _OnFirstUse:
    """A store that is opened by the first claim, whose test can report an error."""

    def __init__(self, opened: Callable[[], Store]) -> None:
        self._opened = opened
        self._store: Store | None = None

    def claim(self, count: int, most: int, holder: str) -> Claim:
        """Return a claim of the store."""
        self._store = self._store or self._opened()
        return self._store.claim(count, most, holder)


def _slots_in(state_dir: Path | None, settings: Settings, url: str, holder: str, reporter: Reporter) -> Slots | None:
    if settings.max_sessions is None:
        return None
    if state_dir is None:
        raise ConfigError(f"{settings.source('max_sessions')} needs a state directory: set {Options.state_dir.flag}")
    return _slots_of(slots_directory(state_dir, url), settings, holder, reporter)


def _slots_of(place: Path | Store, settings: Settings, holder: str, reporter: Reporter) -> Slots | None:
    most, timeout = settings.max_sessions, settings.wait_timeout_seconds
    return Slots(place, most, holder=holder, timeout_seconds=timeout, reporter=reporter) if most else None


def joined(settings: Settings, run_name: str, owner: str, reporter: Reporter) -> OwnRun | None:
    """Return this process's part of the run in the state directory, None where that cannot be written."""
    state_dir = settings.state_dir
    reason = "this user has no home directory"
    if state_dir is not None:
        try:
            return OwnRun.join(Path(state_dir), run_name, owner)
        except OSError as error:
            reason = str(error)
    warning = f"no ledger ({reason}): no later run can stop what this one leaves running"
    reporter.note(f"{warning}. Set {Options.state_dir.flag}")
    return None

"""The sessions of the service, updated on every access."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from pytest_device.service.devices.base import Device
from pytest_device.service.lifecycle import (
    Event,
    Occurrence,
    Session,
    change,
    due,
)
from pytest_device.service.logs import Log, no_log
from pytest_device.service.rules import CreateBody
from pytest_device.service.runners.base import Runner, Running
from pytest_device.service.store import Store
from pytest_device.spec import (
    DEFAULT_SESSION_TYPE,
    TERMINAL,
    Platform,
    SessionType,
    Status,
)

KEEP_SECONDS: Final = 30 * 24 * 3600
"""Not in the document; chosen here: seconds for which ended sessions are kept across restarts."""


ClientUrl = Callable[[Platform, str | None], str | None]
"""Returns the URL of the development client for a platform and an SDK version, None if there is none."""


class Sessions:
    """The sessions in memory, with a store and a runner.

    Sessions have no timers: each access updates a session from the clock and the runner. ``sweep`` updates all of them,
    so that limits take effect without requests.

    Arguments:
        store: Keeps the sessions across restarts.
        runner: Runs the devices and controllers.
        clock: Returns Unix seconds.
        log: Called with a line for every change.
        new_id: Returns a new UUID.
        client_url: Returns the URL of the development client.
        changed: Called with each session whose status changed.
    """

    def __init__(
        self,
        *,
        store: Store,
        runner: Runner,
        clock: Callable[[], float],
        log: Log = no_log,
        new_id: Callable[[], str] = lambda: str(uuid4()),
        client_url: ClientUrl = lambda _platform, _sdk_version: None,
        changed: Callable[[Session], object] = lambda _session: None,
    ) -> None:
        self._store = store
        self.runner = runner
        self._clock = clock
        self._log = log
        self._new_id = new_id
        self._client_url = client_url
        self._changed = changed

        store.forget(clock() - KEEP_SECONDS)
        self._sessions = {session.id: session for session in store.load()}
        self._active = {
            session.id
            for session in self._sessions.values()
            if session.status not in TERMINAL
        }
        """IDs of the sessions that have not ended: a sweep need not look at the others."""
        self._end_orphans()

    def create(self, body: CreateBody, *, default_minutes: int) -> Session:
        """Create a session from a valid request and start booting its device."""
        now = self._clock()
        session = Session(
            id=self._new_id(),
            app_id=body["appId"],
            job_run_id=self._new_id(),
            name=body.get("name"),
            type=SessionType(body.get("type", DEFAULT_SESSION_TYPE)),
            package_version=body.get("packageVersion"),
            build_id=body.get("buildId"),
            application_archive_url=_archive_url(body, self._client_url),
            platform=Platform(body["platform"]),
            max_duration_minutes=body.get("maxDurationMinutes", default_minutes),
            max_idle_time_minutes=body.get("maxIdleTimeMinutes"),
            created_at=now,
            updated_at=now,
        )

        # Stored before its device starts: a service that dies in between reports the session as errored later.
        self._store.save(session)
        self._sessions[session.id] = session
        self._active.add(session.id)
        self._log(
            f"session {session.id}: {session.status}, {session.type} on {session.platform}, {session.name!r}"
        )
        self._changed(session)
        self.runner.start(session.id, body)
        return session

    def get(self, session_id: str) -> Session | None:
        """Return a session's current state, None for an unknown ID."""
        session = self._sessions.get(session_id)
        return None if session is None else self._up_to_date(session)

    def stop(self, session_id: str, reason: str = "requested by a client") -> Session:
        """Stop a known session; one that has ended is returned unchanged, as the document says ("POST stop")."""
        return self._apply(session_id, Occurrence(Event.STOP, self._clock(), reason))

    def expire(self, session_id: str) -> Session:
        """Make a known session reach its limit now."""
        reason = "limit reached early, by a test"
        return self._apply(session_id, Occurrence(Event.EXPIRE, self._clock(), reason))

    def remote_config(self, session: Session) -> Mapping[str, Any] | None:
        """Return the connection details of a session in progress; only the runner's memory holds them."""
        if session.status is not Status.IN_PROGRESS:
            return None

        boot = self.runner.record(session.id).boot
        return boot.remote_config if isinstance(boot, Running) else None

    def device(self, session: Session) -> Device | None:
        """Return the device of a session in progress."""
        if session.status is not Status.IN_PROGRESS:
            return None
        return self.runner.record(session.id).device

    def count_active(self) -> int:
        """Return the number of sessions that have not ended."""
        self.sweep()
        return len(self._active)

    def sweep(self) -> None:
        """Update every active session."""
        for session_id in tuple(self._active):
            self._up_to_date(self._sessions[session_id])

    def stop_all(self, reason: str) -> None:
        for session_id in tuple(self._active):
            self.stop(session_id, reason)

    def __iter__(self) -> Iterator[Session]:
        """Iterate over all sessions in their last known state."""
        return iter(self._sessions.values())

    def _end_orphans(self) -> None:
        """End the sessions of an earlier service that died.

        Not in the document; chosen here: they end as errored, since no client stopped them.
        """
        for session_id in tuple(self._active):
            reason = "the service stopped before the session ended"
            self._apply(session_id, Occurrence(Event.FAIL, self._clock(), reason))

    def _up_to_date(self, session: Session) -> Session:
        # At most twice: every event leads to another status.
        while session.status not in TERMINAL:
            record = self.runner.record(session.id)
            occurrence = due(session, record.boot, record.last_activity, self._clock())
            if occurrence is None:
                break
            session = self._apply(session.id, occurrence)
        return session

    def _apply(self, session_id: str, occurrence: Occurrence) -> Session:
        session = self._sessions[session_id]
        changed = change(session, occurrence)
        if changed is session:
            return session

        self._sessions[session_id] = changed
        reason = f", {changed.reason}" if changed.reason else ""
        self._log(f"session {session_id}: {changed.status}{reason}")

        # Before anything that can fail: a full disk must not keep a device running.
        if changed.status in TERMINAL:
            self._active.discard(session_id)
            self.runner.stop(session_id)
        self._store.save(changed)
        self._changed(changed)
        return changed


def _archive_url(body: CreateBody, client_url: ClientUrl) -> str | None:
    """Return the session's archive URL.

    Not in the document; chosen here: a missing development client gets a URL that never resolves.
    """
    if not body.get("vendorGo"):
        return body.get("applicationArchiveUrl")

    platform, sdk_version = Platform(body["platform"]), body.get("sdkVersion")
    url = client_url(platform, sdk_version)
    if url is not None:
        return url
    return f"https://vendor.invalid/development-client/{platform}/{sdk_version or 'current'}"

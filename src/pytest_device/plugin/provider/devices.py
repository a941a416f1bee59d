"""Gives a test its sessions, from the pool or from a wider-scoped driver, and takes them back afterwards."""

import math
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.controllers.appium.refusal import crash
from pytest_device.controllers.health import problem_of
from pytest_device.errors import (
    AppError,
    ConfigError,
    ControllerError,
    DeviceError,
    ServiceError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.plugin.limits import note_limit
from pytest_device.plugin.provider.acquired import ACQUIRED, Sessions, sessions_of
from pytest_device.plugin.provider.backend import Backend, RemoteBackend
from pytest_device.plugin.provider.cleanup import Cleanup
from pytest_device.plugin.provider.held_drivers import HeldDrivers
from pytest_device.plugin.provider.reach import refuse_unreachable
from pytest_device.plugin.provider.requirements import (
    Lookahead,
    Plan,
    Requirements,
    note_defaults,
    runs_again,
)
from pytest_device.plugin.provider.timeouts import timer_paused
from pytest_device.plugin.state import (
    ACCESSES,
    FAILED,
    STARTS,
    WAITED,
    note_session,
    providing,
    requirements_of,
)
from pytest_device.redact import Redactor
from pytest_device.report.verdict import verdict_of
from pytest_device.sessions.attempt import SessionConfig
from pytest_device.sessions.breaker import (
    Breaker,
    LocalBreaker,
    Permits,
    key_of,
)
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import Note
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.warm import WarmConfig, WarmStore
from pytest_device.settings import Settings

if TYPE_CHECKING:
    from pytest_device.plugin.markers import SessionNaming
    from pytest_device.plugin.output.event_log import EventLog
    from pytest_device.plugin.output.terminal import Pause
    from pytest_device.sessions.models import Session


CURRENT_DEVICES: Final = pytest.StashKey["Devices"]()
_TIMEOUT_ERRORS: Final = (SessionTimeoutError, pytest.fail.Exception, TimeoutError)
"""Errors by which a test stops waiting; pytest-timeout raises the second."""
_CLIENTS: Final = frozenset(
    {"appium", "selenium", "urllib3", "httpx", "httpcore", "requests", "subprocess"}
)
"""Packages whose errors may mean that a controller is gone."""


class Devices:
    """The devices for the tests of this process.

    Arguments:
        settings: the settings of the run.
        backend: the service, with the reaper and the slots.
        names: names the sessions.
        redactor: masks secrets in the errors that are passed to other processes.
        log: gets the events of sessions.
        pause: may hold the run at a failure, for the user to look at the device.
        lookahead: knows what later tests need.
        breaker: decides which attempts all processes of the run make; if None, this process decides alone.
    """

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        names: "SessionNaming",
        *,
        redactor: Redactor,
        log: "EventLog",
        pause: "Pause",
        lookahead: Lookahead,
        breaker: Breaker | None = None,
    ) -> None:
        self.settings = settings
        self.backend = backend
        self._names = names
        self._log = log
        self._pause = pause
        self._relay = Relay(log.event)
        self._cleanup = Cleanup()
        self._pid = os.getpid()
        self._lookahead = lookahead
        self._requirements = Requirements(settings, names, lookahead)
        self.item: pytest.Item | None = None
        """The current or last test."""
        self._plan: Plan | None = None
        self.permits = _permits(settings, redactor, breaker)
        self.warm = _warm_store(settings, backend, relay=self._relay)
        self._pool = self._new_pool()
        self.held_drivers = HeldDrivers(self._pool, self._keep)

    def policy(self) -> WaitPolicy:
        """Return the default policy for waiting for a session."""
        settings = self.settings

        return WaitPolicy(
            settings.wait_timeout_seconds,
            settings.poll_interval_seconds,
            settings.controller_timeout_seconds,
        )

    def note(self, text: str) -> None:
        """Add a line to the summary at the end of the run, which shows each once."""
        self._log.note(text)

    def acquire(
        self,
        item: pytest.Item,
        defaults: Mapping[str, Any],
        policy: WaitPolicy,
        check: Callable[[pytest.Item, Mapping[str, DeviceRequirement]], None]
        | None = None,
    ) -> "Mapping[str, Session]":
        """Return the test's sessions by device name, the same ones until ``release``.

        Arguments:
            item: the test.
            defaults: what the suite's fixture adds to the marker's arguments.
            policy: how to wait for a session.
            check: raises for a test that cannot use its devices, before they boot.

        Raises:
            DeviceError: the test cannot have its devices.
        """
        if item.stash.get(ACQUIRED, None):
            return self.sessions(item)

        # What refuses the test without a device comes first: a session would be billed.
        self._refuse_fork(item)
        refuse_unreachable(item, self.settings)

        plan = self._plan
        if not plan or plan.item is not item or not plan.requirements or defaults != {}:
            requirements = self._requirements.for_item(item, defaults)
            plan = self._requirements.plan(item, requirements)

        if check:
            check(item, plan.requirements)

        self._prefetch(plan, policy)
        if self.held_drivers.held and self.held_drivers.share(
            item, plan.timed_requirements
        ):
            return self.sessions(item)

        acquired = self._acquire(item, plan.timed_requirements, policy)
        item.stash[ACQUIRED] = dict(zip(plan.requirements, acquired, strict=True))
        for session in acquired:
            if session.assignment.is_new:
                self._note_start(session)
                item.ihook.pytest_device_ready(
                    item=item, device_session=session.session
                )

        return self.sessions(item)

    def resume(self, item: pytest.Item) -> None:
        """Give a test the session and driver held by its wider-scoped fixture, or let pytest set that up again."""
        plan = self._plan
        if plan and plan.item is item and plan.requirements:
            timed_requirements = plan.timed_requirements
        else:  # it has none, or requested them in an earlier attempt at the test
            timed_requirements = self._requirements.with_test_minutes(
                item, requirements_of(item).values()
            )

        self.held_drivers.resume(item, timed_requirements)

        if plan and sessions_of(item):
            self._prefetch(plan, self.policy())

    def look_ahead(self, item: pytest.Item) -> None:
        """Boot devices of later tests during a test; a test with a device does so when it acquires its own."""
        self._plan = self._requirements.plan(item, requirements_of(item))
        if not self._plan.requirements:
            self._prefetch(self._plan, self.policy())

    def _prefetch(self, plan: Plan, policy: WaitPolicy) -> None:
        if not plan.prefetch:
            return

        with suppress(DeviceError):  # raised again when the test acquires the session
            self._pool.prefetch(plan.timed_requirements, policy)
            self._pool.prefetch(plan.prefetch, self.policy())

    @contextmanager
    def lease(self, arguments: Mapping[str, Any]) -> "Generator[Session]":
        """Provide an unshared session for the block."""
        item = self.item
        if item is None:
            raise RuntimeError(
                "device_lease() was called outside of tests and their fixtures"
            )

        with providing(item), timer_paused(item):
            self._refuse_fork(item)
            requirement = self._requirements.unshared(item, arguments)
            (leased,) = self._acquire(
                item,
                self._requirements.with_test_minutes(item, [requirement]),
                self.policy(),
            )

        try:
            yield leased.session
        finally:
            # Stops this session only: it is unusable, and all others count as needed.
            self._pool.mark_unusable([leased])
            self._pool.release([leased], lambda _requirement: math.inf)

    @contextmanager
    def reporting_once(self) -> "Generator[None]":
        """Provide a test's devices in the block; report a mistake of several tests only once in the run.

        Raises the ConfigError itself for the first of them, NotAttemptedError for the others.
        """
        try:
            yield
        except ConfigError as error:
            permit = self.permits.new(key_of(None, str(error)))
            permit.may_begin()
            permit.failed(error)
            raise

    def mark_unusable(self, sessions: Sessions) -> None:
        """Give these sessions to no other test."""
        self._pool.mark_unusable(sessions.values())

    def leaves_driver(self, session: DeviceSession) -> bool:
        """Return whether to leave the driver on a session as it is."""
        # A held session was kept already.
        return session.is_over or self._keeps(self.item)

    def _keeps(self, item: pytest.Item | None) -> bool:
        """Return whether to leave the sessions of a failed test running."""
        has_failed = item is not None and item.stash.get(FAILED, False)
        may_keep = self.settings.keep_on_failure and not self._pause.is_possible()
        return has_failed and may_keep

    def _keep(self, sessions: Sessions) -> None:
        for session in sessions.values():
            if not (
                session.assignment.is_unusable
                or session.is_over
                or session.requirement.attach
            ):
                self.backend.keep(str(session.session.id))
                self._pool.keep(session)

    def release(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Take the test's sessions back: stop those that no test will need, or leave them running after a failure."""
        if self._is_forked():  # the process that acquired them releases them
            return

        is_repeated = runs_again(item)
        release_starts(item)
        keep = self._keeps(item)
        released = self.held_drivers.released(sessions_of(item), keep=keep)
        item.stash[ACQUIRED] = {}
        self._lookahead.done(item)

        if keep:
            self._keep(released)
        elif released:
            self._reset(item, released, nextitem, is_repeated=is_repeated)

        # A skipped test may be the last that needed a device.
        if released or self._pool.has_any:
            self._stop_unneeded(released, nextitem, is_repeated=is_repeated)

    def _stop_unneeded(
        self, released: Sessions, nextitem: pytest.Item | None, *, is_repeated: bool
    ) -> None:
        """Give released sessions back to the pool, which stops those that no later test needs."""
        repeated_requirements: list[DeviceRequirement] = []
        if is_repeated:
            repeated_requirements = [
                session.requirement for session in released.values()
            ]

        def needed(requirement: DeviceRequirement) -> float:
            return max(
                self._requirements.needed_at_once(requirement, nextitem),
                repeated_requirements.count(requirement),
            )

        self._pool.release(released.values(), needed)

    def _note_start(self, session: DeviceSession) -> None:
        """Record the start page of a new session's device, if it is to be reset to it."""
        if session.requirement.returns_to_start:
            self._cleanup.note_start(session.session)

    def _reset(
        self,
        item: pytest.Item,
        released: Sessions,
        nextitem: pytest.Item | None,
        *,
        is_repeated: bool,
    ) -> None:
        """Reset the devices that other tests will use if the test used the controller's own tools."""
        accesses = item.stash.setdefault(ACCESSES, {})
        for name, session in released.items():
            if name not in accesses or session.assignment.is_unusable:
                continue

            requirement = session.requirement
            stays_warm = self.warm is not None and self.warm.may_stay(requirement)
            is_left = (
                stays_warm
                or is_repeated
                or self._requirements.needed_at_once(requirement, nextitem)
            )
            if is_left and not self._cleanup.reset(session.session, accesses[name]):
                self._pool.mark_unusable([session])

        accesses.clear()

    def sessions(self, item: pytest.Item) -> "Mapping[str, Session]":
        """Return the sessions that a test has now."""
        return {name: session.session for name, session in sessions_of(item).items()}

    def failure_cause(
        self,
        sessions: Sessions,
        error: BaseException,
        explain_end: "Callable[[str, Session], str]",
    ) -> DeviceError | None:
        """Check the sessions of a failed test once; return the problem with one, which is then not reused.

        ``explain_end`` returns what may have ended a session, by the name of its device.

        A device whose app crashed is reused: the next test restarts the app.
        """
        # A call needs a thread, and starting one hangs without memory.
        if isinstance(error, MemoryError):
            return None

        for name, session in sessions.items():
            problem = _fault_of(session, error, partial(explain_end, name))
            if problem is None:
                continue

            if driver := self.held_drivers.of(session):
                driver.is_broken = True
            if not isinstance(problem, AppError):
                self._pool.mark_unusable([session])

            return problem

        return None

    def close(self, *, interrupted: bool = False) -> None:
        """Stop all sessions except warm ones; after an interrupt, those, too."""
        if interrupted and self.warm:
            self.warm.end()

        try:
            with suppress(StopFailedError):  # its event reports it
                self._pool.release([], lambda _requirement: 0)
        finally:
            self._pool.close()

    def _acquire(
        self,
        item: pytest.Item,
        requirements: Sequence[DeviceRequirement],
        policy: WaitPolicy,
    ) -> list[DeviceSession]:
        since = time.monotonic()
        try:
            acquired = self._pool.acquire(requirements, policy, user=item)
        except DeviceError as error:
            note_defaults(error, requirements)
            note_limit(error, policy.timeout_seconds, self.settings)
            raise
        finally:
            item.stash[WAITED] = item.stash.get(WAITED, 0.0) + time.monotonic() - since

        for session in acquired:
            if session.assignment.is_new:
                self._log.preview(session.session)
            else:
                note_session(item, session.ref())

        return acquired

    def _is_forked(self) -> bool:
        """Return whether a test has forked this process: its parent's sessions are not its own."""
        return os.getpid() != self._pid

    def _refuse_fork(self, item: pytest.Item) -> None:
        if self._is_forked():
            raise ConfigError(
                f"{item.nodeid} requests a device in a process that a test forked, which can't use the run's "
                "devices: request it before the fork"
            )

    def _new_pool(self) -> Pool:
        return Pool(
            SessionConfig(
                self.backend.sessions(),
                time.monotonic,
                self._relay,
                problem_of,
                attempts=self.settings.start_attempts,
                permits=self.permits,
                distinct_name=self._names.distinct(),
            ),
            sleep=self._log.sleep,
            warm=self.warm,
            before_stop=_notify_stopping,
            slots=self.backend.slots(self._names.holder()),
            exclusive=lambda session_id: self.backend.exclusive(
                self._names.holder(), session_id
            ),
            patience=_TIMEOUT_ERRORS,
        )


def devices_of(request: pytest.FixtureRequest) -> Devices:
    """Return the devices of this run; raises ConfigError if it has none."""
    if devices := request.config.stash.get(CURRENT_DEVICES, None):
        return devices

    raise ConfigError(
        f"{request.node.nodeid} requests a device at run time, but no test requested one at collection: mark it with "
        "@pytest.mark.device(platform=...)"
    )


def release_starts(item: pytest.Item) -> None:
    """Release the driver starts that a test has reserved but not made."""
    for start in item.stash.setdefault(STARTS, {}).values():
        start.release()


def _notify_stopping(session: DeviceSession) -> None:
    """Notify the suite's hooks of a used session that is about to be stopped."""
    user = session.assignment.user
    if isinstance(user, pytest.Item) and not session.requirement.attach:
        user.ihook.pytest_device_stopping(item=user, device_session=session.session)


def _permits(
    settings: Settings, redactor: Redactor, breaker: Breaker | None = None
) -> Permits:
    """Return the permits that each attempt needs; without a ``breaker`` of the run, this process decides alone."""
    breaker = breaker or LocalBreaker(settings.start_attempts, time.monotonic)
    return Permits(breaker, verdict_of=verdict_of, mask=redactor.text)


def _warm_store(
    settings: Settings, backend: Backend, *, relay: Relay
) -> WarmStore | None:
    """Return the store of warm sessions, None if none are kept; report the reason if they were requested."""
    if settings.keep_warm_ignored_because:
        relay.event(Note(settings.keep_warm_ignored_because))

    if not (
        settings.keep_warm and settings.state_dir and isinstance(backend, RemoteBackend)
    ):
        return None

    if not backend.sessions().can_keep_warm:
        return None

    config = WarmConfig(
        settings.keep_warm,
        Path(settings.state_dir),
        owner=backend.sessions,
        problem_of=problem_of,
        relay=relay,
    )

    return WarmStore(config)


def _fault_of(
    session: DeviceSession,
    error: BaseException,
    explain_end: "Callable[[Session], str]",
) -> DeviceError | None:
    """Return the problem with a session or its app; check its controller if the error may come from its client."""
    used = session.session  # the lookup may return other connection details
    session_error = session.check_alive(explain_end)
    if session_error or not _of_client(error):
        return session_error

    try:
        problem = problem_of(used)
    except ServiceError:  # a plugin blocks the test's calls
        return None

    if problem:
        return ControllerError(
            f"the session is in progress, but {problem} ({used.page})"
        )

    return crash(used, error)


def _of_client(error: BaseException) -> bool:
    return (
        isinstance(error, OSError | ControllerError)
        or type(error).__module__.partition(".")[0] in _CLIENTS
    )

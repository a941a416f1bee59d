"""Gives a test its sessions from the pool and takes them back afterwards."""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.errors import (
    AppError,
    ConfigError,
    DeviceError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.plugin.provider.factory import (
    new_gate,
    notify_stopping,
    session_config,
    wait_policy,
    warm_store,
)
from pytest_device.plugin.provider.fault import fault_of
from pytest_device.plugin.provider.forks import ForkedJudge
from pytest_device.plugin.provider.held_drivers import (
    ACQUIRED,
    HeldDrivers,
    Sessions,
    sessions_of,
)
from pytest_device.plugin.provider.lookahead import Lookahead, is_forked, runs_again
from pytest_device.plugin.provider.requirements import Plan, Requirements, note_defaults
from pytest_device.plugin.provider.timeouts import timer_paused
from pytest_device.plugin.state import (
    FAILED,
    USES,
    WAITED,
    needs_of,
    note_session,
    providing,
    release_starts,
)
from pytest_device.sessions.breaker import (
    WAIT_FOR_OTHERS_SECONDS,
    WAIT_WITH_DEVICE_SECONDS,
    Judge,
    key_of,
)
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.requirement import DeviceRequirement

if TYPE_CHECKING:
    from pytest_device.plugin.markers import Names
    from pytest_device.plugin.output.event_log import EventLog
    from pytest_device.plugin.output.pause import Pause
    from pytest_device.plugin.provider.backend import Backend
    from pytest_device.plugin.provider.cleanup import Cleanup
    from pytest_device.redact import Redactor
    from pytest_device.sessions.lifecycle import WaitPolicy
    from pytest_device.sessions.models import Session
    from pytest_device.settings import Settings

CURRENT_DEVICES: Final = pytest.StashKey["Devices"]()
_PATIENCE: Final = (SessionTimeoutError, pytest.fail.Exception, TimeoutError)
"""Errors by which a test stops waiting; pytest-timeout raises the second."""


class Devices:
    """The devices for the tests of this process; ``lookahead`` knows what later tests need.

    ``judge`` decides which attempts all processes of the run make; if None, this process decides alone.
    """

    def __init__(
        self,
        settings: "Settings",
        backend: "Backend",
        names: "Names",
        *,
        redactor: "Redactor",
        log: "EventLog",
        pause: "Pause",
        lookahead: Lookahead,
        judge: Judge | None = None,
    ) -> None:
        self.settings, self.backend, self._names = settings, backend, names
        self._redactor, self._log, self._pause = redactor, log, pause
        self._relay = Relay(log)
        self._pid = os.getpid()
        self._is_forked = False
        self._lookahead = lookahead
        self._requirements = Requirements(settings, names, lookahead.history)
        self.item: pytest.Item | None = None
        """The current or last test."""
        self._plan: Plan | None = None
        self.held_drivers = HeldDrivers(self._keep)
        self.gate = new_gate(settings, redactor, judge)
        self.children = ForkedJudge(settings.start_attempts)
        self.warm = warm_store(settings, backend, relay=self._relay)
        self._pool = self._new_pool()

    def policy(self) -> "WaitPolicy":
        """Return the default policy for waiting for a session."""
        return wait_policy(self.settings)

    def patience_seconds(self) -> float:
        """Return the seconds to wait for other workers: few while holding a session, since they may need its slot."""
        return (
            WAIT_WITH_DEVICE_SECONDS if self._pool.has_any else WAIT_FOR_OTHERS_SECONDS
        )

    def acquire(
        self,
        item: pytest.Item,
        defaults: Mapping[str, Any],
        policy: "WaitPolicy",
        check: Callable[[pytest.Item, Mapping[str, DeviceRequirement]], None]
        | None = None,
    ) -> "Mapping[str, Session]":
        """Return the test's sessions by device name, the same ones until ``release``; ``check`` may refuse the test."""
        if not item.stash.get(ACQUIRED, None):
            self._notice_fork()
            plan = self._plan
            if not plan or plan.item is not item or not plan.needs or defaults != {}:
                plan = self._requirements.plan(
                    item, self._requirements.of(item, defaults), self._lookahead
                )
            if check:
                check(item, plan.needs)
            if defaults:
                self._pool.release(
                    [],
                    lambda need: (
                        not self._requirements.is_outdated(need, plan.needs.values())
                    ),
                )
            self._prefetch(plan, policy)
            if self.held_drivers.held and self.held_drivers.share(
                item, plan.timed_needs
            ):
                return self.sessions(item)
            acquired = self._acquire(item, plan.timed_needs, policy)
            item.stash[ACQUIRED] = dict(zip(plan.needs, acquired, strict=True))
            for one in acquired:
                if one.is_new:
                    self._note_start(one)
                    item.ihook.pytest_device_ready(
                        item=item, device_session=one.session
                    )
        return self.sessions(item)

    def resume(self, item: pytest.Item) -> None:
        """Give a test the session and driver held by its wider-scoped fixture, or let pytest set that up again."""
        self.held_drivers.resume(
            item, self._requirements.with_test_minutes(item, needs_of(item).values())
        )
        if sessions_of(item) and self._plan:
            self._prefetch(self._plan, self.policy())

    def look_ahead(self, item: pytest.Item) -> None:
        """Boot devices of later tests during a test; a test with a device does so when it acquires its own."""
        self._plan = self._requirements.plan(item, needs_of(item), self._lookahead)
        if not (self._plan.needs or is_forked(item)):
            self._prefetch(self._plan, self.policy())

    def _prefetch(self, plan: Plan, policy: "WaitPolicy") -> None:
        if not plan.ahead or self._is_forked or os.getpid() != self._pid:
            return
        with suppress(DeviceError):  # raised again when the test acquires the session
            self._pool.prefetch(plan.timed_needs, policy)
            self._pool.prefetch(plan.ahead, self.policy())

    @contextmanager
    def lease(self, arguments: Mapping[str, Any]) -> "Generator[Session]":
        """Provide an unshared session for the block."""
        item = self.item
        if item is None:
            raise RuntimeError(
                "device_lease() was called outside of tests and their fixtures"
            )
        with providing(item), timer_paused(item):
            need = self._requirements.unshared(item, arguments)
            (leased,) = self._acquire(
                item, self._requirements.with_test_minutes(item, [need]), self.policy()
            )
        try:
            yield leased.session
        finally:
            leased.unusable = True  # so that no other test gets it
            self._pool.release([leased], lambda _need: True)

    def leaves_driver(self, session: DeviceSession) -> bool:
        """Return whether to leave the driver on a session as it is."""
        return session.is_over or self._keeps(
            self.item
        )  # a held session was kept already

    def _keeps(self, item: pytest.Item | None) -> bool:
        """Return whether to leave the sessions of a failed test running."""
        has_failed = item is not None and item.stash.get(FAILED, False)
        return (
            self.settings.keep_on_failure
            and has_failed
            and not self._pause.is_possible()
        )

    def _keep(self, sessions: Sessions) -> None:
        for one in sessions.values():
            if not (one.unusable or one.is_over or one.requirement.attach):
                self.backend.keep(str(one.session.id))
                self._pool.keep(one)

    def release(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Take the test's sessions back: stop those that no test will need, or leave them running after a failure."""
        release_starts(item)
        keep = self._keeps(item)
        released = self.held_drivers.released(sessions_of(item), keep=keep)
        item.stash[ACQUIRED] = {}
        self._lookahead.done(item)
        if keep:
            self._keep(released)
        elif released:
            self._reset(item, released, nextitem)
        if (
            released or self._pool.has_any
        ):  # a skipped test may be the last that needed a device
            kept: Counter[DeviceRequirement] = Counter()
            again = Counter(
                one.requirement for one in released.values() if runs_again(item)
            )

            def is_needed(need: DeviceRequirement) -> bool:
                kept[need] += 1
                return kept[need] <= max(
                    self._needed_at_once(need, nextitem), again[need]
                )

            self._pool.release(released.values(), is_needed)

    def _note_start(self, session: DeviceSession) -> None:
        """Record the start page of a new session's device, if it is to be reset to it."""
        if session.requirement.returns_to_start:
            self._cleanup.note_start(session.session)

    def _reset(
        self, item: pytest.Item, released: Sessions, nextitem: pytest.Item | None
    ) -> None:
        """Reset the devices that other tests will use if the test used the controller's own tools."""
        uses = item.stash.setdefault(USES, {})
        for name, one in released.items():
            need = one.requirement
            stays_warm = self.warm is not None and self.warm.may_stay(need)
            is_left = (
                stays_warm or runs_again(item) or self._needed_at_once(need, nextitem)
            )
            if name in uses and not one.unusable and is_left:
                one.unusable = not self._cleanup.reset(one.session, uses[name])
        uses.clear()

    @cached_property
    def _cleanup(self) -> "Cleanup":
        from pytest_device.plugin.provider.cleanup import Cleanup

        return Cleanup()

    def sessions(self, item: pytest.Item) -> "Mapping[str, Session]":
        """Return the sessions that a test has now."""
        return {name: one.session for name, one in sessions_of(item).items()}

    def failure_cause(
        self, item: pytest.Item, error: BaseException
    ) -> DeviceError | None:
        """Check the sessions of a failed test once; return the problem with one, which is then not reused.

        A device whose app crashed is reused: the next test restarts the app.
        """
        if isinstance(
            error, MemoryError
        ):  # a call needs a thread, and starting one hangs without memory
            return None
        for one in sessions_of(item).values():
            if problem := fault_of(one, error):
                if driver := self.held_drivers.of(one):
                    driver.is_broken = True
                one.unusable = one.unusable or not isinstance(problem, AppError)
                return problem
        return None

    def close(self, *, interrupted: bool = False) -> None:
        """Stop all sessions except warm ones; after an interrupt, those, too."""
        if os.getpid() != self._pid:
            return
        if interrupted and self.warm:
            self.warm.end()
        with suppress(StopFailedError):  # its event reports it
            self._pool.release([], lambda _need: False)
        self._pool.close()
        self.children.close()

    def _acquire(
        self,
        item: pytest.Item,
        needs: Sequence[DeviceRequirement],
        policy: "WaitPolicy",
    ) -> list[DeviceSession]:
        self._notice_fork()
        since = time.monotonic()
        try:
            acquired = self._pool.acquire(needs, policy)
        except DeviceError as error:
            note_defaults(error, needs)
            for need in needs:
                self.gate.note_affected_test(
                    key_of(need.request, need.attach or None), item.nodeid
                )
            raise
        finally:
            item.stash[WAITED] = item.stash.get(WAITED, 0.0) + time.monotonic() - since
        for one in acquired:
            one.user = item
            if one.is_new:
                self._log.preview(one.session)
            else:
                note_session(item, one.ref())
        return acquired

    def _notice_fork(self) -> None:
        """Start afresh in a forked child: its parent's sessions are not its own."""
        if os.getpid() != self._pid:
            self._pid, self._is_forked = os.getpid(), True
            self.gate = new_gate(self.settings, self._redactor, self.children)
            self._pool = self._new_pool()

    def _needed_at_once(
        self, need: DeviceRequirement, nextitem: pytest.Item | None
    ) -> float:
        """Return the maximum number of sessions for a requirement that one of the later tests uses at once."""
        # A forked child runs one test only.
        return (
            0
            if self._is_forked
            else self._lookahead.needed_at_once(
                self._requirements.planned(need), nextitem
            )
        )

    def _new_pool(self) -> Pool:
        return Pool(
            session_config(
                self.settings,
                self.backend,
                self._lookahead.history,
                self._relay,
                self.gate,
            ),
            sleep=self._log.sleep,
            warm=self.warm,
            before_stop=notify_stopping,
            slots=self.backend.slots(self._names.holder(), self.gate),
            exclusive=lambda one: self.backend.exclusive(self._names.holder(), one),
            patience=() if self._is_forked else _PATIENCE,
        )


def devices_of(request: pytest.FixtureRequest) -> Devices:
    """Return the devices of this run; raises ConfigError if it has none."""
    if devices := request.config.stash.get(CURRENT_DEVICES, None):
        return devices
    raise ConfigError(
        f"{request.node.nodeid} requests a device at run time, but no test requested one at collection: mark it with "
        "@pytest.mark.device(platform=...)"
    )

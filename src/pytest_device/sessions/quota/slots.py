"""The interface to a service's slots: all or none, first come, first served, with progress messages while waiting."""

import time
from collections import Counter
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.sessions.quota.claim import Claim, Slot, Store
from pytest_device.sessions.quota.files import FileStore
from pytest_device.sessions.reporter import PROGRESS_SECONDS, ProgressReporter

_PAUSE_WITH_SLOTS_SECONDS: Final = 0.5
"""Longest pause of a process that holds slots: its other threads may make one of them dispensable meanwhile."""
_FIRST_WORD_SECONDS: Final = 5.0
"""Seconds until the first message: shorter waits are normal when tests end often, longer ones puzzle users."""
_EARLY_SECONDS: Final = 3.0
"""A later message may be this early rather than wake a claim that waits for longer: thousands keep a server busy."""


class Slots:
    """The slots of one service: their number is the maximum number of concurrent sessions.

    No claim starves: one that cannot be served at once queues in order of arrival, and is served when enough slots, all
    or none, are free that no earlier claim uses. So released slots stay free until the first claim has enough. When a
    process dies, its claims and slots are released.

    No claim blocks another: a call never waits while it holds a slot, and ``release_idle`` releases unused slots of
    earlier calls. A claim whose process still uses other slots is urgent, and served before those of processes without
    any, which may be waiting for these very slots. Two tests that each use sessions, and together need more than the
    maximum, end by the timeout.

    Runs with different limits use the first ``limit`` slots each. So none exceeds its own limit, and all together do not
    exceed the highest one; but a run with a lower limit waits while others hold the first slots.
    """

    def __init__(
        self,
        place: Path | Store,
        limit: int,
        *,
        holder: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        reporter: ProgressReporter,
        of: str = "",
    ) -> None:
        """Use the slots in a directory or store; ``holder``, which must not be secret, names this process to others.

        ``of`` is the existing session whose only slot this is; empty for sessions that are created. ``sleep`` replaces
        the wait of a claim, which ends early when the claim may be served.
        """
        self.limit = limit
        self._store: Store = FileStore(place) if isinstance(place, Path) else place
        self._holder = holder
        self._timeout = timeout_seconds
        self._of = of
        self._clock = clock
        self._sleep = sleep
        self._reporter = reporter
        self._given: set[Slot] = set()

    def acquire(
        self, count: int, release_idle: Callable[[], bool] = lambda: False
    ) -> list[Slot]:
        """Wait for ``count`` slots at once; raises LeaseTimeoutError, and ConfigError if waiting cannot help.

        Before each wait, ``release_idle`` is called to release one dispensable slot, and returns whether it did; in the
        end that includes the slots of unused starting sessions. An interrupt leaves no slot taken.
        """
        if count > self.limit:
            raise ConfigError(
                f"{count} sessions are needed at once, but {Options.max_sessions.flag} allows {self.limit}: "
                "increase it, or use fewer devices in one test"
            )

        if not count:
            return []

        claim = self._store.claim(count, self.limit, self._holder)
        try:
            self._wait(claim, release_idle)
            claim.leave()
            return self._granted(claim)
        except BaseException:
            claim.withdraw()
            raise

    def try_acquire(self, count: int) -> list[Slot] | None:
        """Take ``count`` slots at once, or return None if another claim waits for one of them; never waits.

        Raises ConfigError if slots cannot be kept. An interrupt leaves no slot taken.
        """
        claim = self._store.claim(count, self.limit, self._holder)
        try:
            return self._granted(claim) if claim.try_acquire() else None
        except BaseException:
            claim.withdraw()
            raise

    def has_room(self, count: int) -> bool:
        """Return whether ``count`` slots are free now."""
        if count > self.limit:
            return False

        # Only a claim knows whether others wait for the same slots.
        free = self.try_acquire(count)
        for slot in free or ():
            slot.release()

        return free is not None

    def _wait(self, claim: Claim, release_idle: Callable[[], bool]) -> None:
        started = self._clock()
        deadline = started + self._timeout
        word_at = started + _FIRST_WORD_SECONDS
        early = 0.0

        while not claim.try_acquire():
            gave = release_idle()
            if gave and not claim.is_behind:
                continue

            now = self._clock()
            if now >= deadline:
                more = "" if self._of else f"{Options.max_sessions.flag} or "
                raise LeaseTimeoutError(
                    f"{self._waited(claim, now - started)}. Increase {more}{Options.wait_timeout_seconds.flag}"
                )

            if now >= word_at - early:
                word_at = now + PROGRESS_SECONDS
                early = min(claim.pause_seconds, _EARLY_SECONDS)
                self._reporter.progress(self._waited(claim, now - started))

            claim.queue(urgent=not gave and self._has_some())
            if claim.slots:
                return

            pause = claim.pause_seconds
            if self._has_some():
                pause = min(pause, _PAUSE_WITH_SLOTS_SECONDS)

            # Messages need no precision: a claim blocks for whole seconds.
            pause = min(pause, deadline - now, ceil(word_at - now))
            (self._sleep or claim.wait)(pause)

    def _granted(self, claim: Claim) -> list[Slot]:
        # It forgets released slots, of which a long run has many.
        self._has_some()
        slots = list(claim.slots)
        self._given.update(slots)
        return slots

    def _has_some(self) -> bool:
        """Return whether this process holds slots of earlier calls; forget released ones."""
        # A copy, since another thread may add to it.
        for slot in tuple(self._given):
            if not slot.is_held:
                self._given.discard(slot)

        return bool(self._given)

    def _waited(self, claim: Claim, seconds: float) -> str:
        blocker = claim.blocked_by()
        holders = ", ".join(
            f"{number} by {holder}" for holder, number in Counter(blocker.held).items()
        )
        several = (
            f"{claim.count} of {self.limit} sessions ({Options.max_sessions.flag})"
        )

        return (
            f"waited {seconds:.0f} s for {f'session {self._of}' if self._of else several}; "
            f"in use: {holders or 'none'}; position in the queue: {blocker.ahead + 1}"
        )

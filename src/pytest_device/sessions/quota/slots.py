"""The interface to a service's slots: all or none, with progress messages while waiting."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.sessions.reporter import PROGRESS_SECONDS, ProgressReporter

_FIRST_WORD_SECONDS: Final = 5.0
"""Seconds until the first message: shorter waits are normal when tests end often, longer ones puzzle users."""


class Slot(Protocol):
    """A slot: allows one session."""

    @property
    def is_held(self) -> bool:
        """Return whether this process still holds it."""
        ...

    def release(self) -> None:
        """Release it; repeated calls, and calls in a forked child, do nothing."""


class Claim(Protocol):
    """The slots that one call requests, and its place in the queue."""

    @property
    def slots(self) -> Sequence[Slot]:
        """Return the slots that it took."""
        ...

    @property
    def is_first(self) -> bool:
        """Return whether no other claim came first at the last attempt."""
        ...

    def try_acquire(self, *, skips_queue: bool) -> bool:
        """Take all slots and return True; otherwise keep the queue's first place, if that is free."""
        ...

    @property
    def pause_seconds(self) -> float:
        """Return for how long to wait before the next attempt."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or less if the next attempt may succeed."""

    def holders(self) -> Sequence[str]:
        """Return who holds each of the slots."""
        ...

    def leave(self) -> None:
        """Leave the queue."""

    def withdraw(self) -> None:
        """Release everything, after an interrupt at any point."""


class Store(Protocol):
    """The place where slots are kept, shared by all processes."""

    def claim(self, count: int, limit: int, holder: str) -> Claim:
        """Return a claim on ``count`` of ``limit`` slots, with no slot taken yet."""
        ...


class Slots:
    """The slots of one service: their number is the maximum number of concurrent sessions.

    No claim starves: of those that cannot be served at once, one is first in the queue, and is served when enough slots,
    all or none, are free; the others wait for its place. When a process dies, its place and its slots are released.

    No claim blocks another: a call never waits while it holds a slot, and ``release_idle`` releases unused slots of
    earlier calls. A claim whose process still uses other slots skips the queue, since the first claim may be waiting for
    these very slots. Two tests that each use sessions, and together need more than the maximum, end by the timeout.

    Runs may have different limits: none exceeds its own, and all together do not exceed the highest one.
    """

    def __init__(
        self,
        store: Store,
        limit: int,
        *,
        holder: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        reporter: ProgressReporter,
        of: str = "",
    ) -> None:
        """Use the slots of a store; ``holder``, which must not be secret, names this process to others.

        ``of`` is the existing session whose only slot this is; empty for sessions that are created. ``sleep`` replaces
        the wait of a claim, which ends early when the claim may be served.
        """
        self.limit = limit
        self._store = store
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
            try:
                self._wait(claim, count, release_idle)
            finally:
                claim.leave()
            return self._granted(claim)
        except BaseException:
            claim.withdraw()
            raise

    def try_acquire(self, count: int) -> list[Slot] | None:
        """Take ``count`` slots at once, or return None if they are in use or another claim waits; never waits.

        Raises ConfigError if slots cannot be kept. An interrupt leaves no slot taken.
        """
        claim = self._store.claim(count, self.limit, self._holder)
        try:
            is_taken = claim.try_acquire(skips_queue=False)
            claim.leave()
            return self._granted(claim) if is_taken else None
        except BaseException:
            claim.withdraw()
            raise

    def _wait(self, claim: Claim, count: int, release_idle: Callable[[], bool]) -> None:
        started = self._clock()
        deadline = started + self._timeout
        word_at = started + _FIRST_WORD_SECONDS
        skips_queue = False

        while not claim.try_acquire(skips_queue=skips_queue):
            gave = release_idle()
            if gave and claim.is_first:
                continue

            now = self._clock()
            if now >= deadline:
                more = "" if self._of else f"{Options.max_sessions.flag} or "
                raise LeaseTimeoutError(
                    f"{self._waited(claim, count, now - started)}. "
                    f"Increase {more}{Options.wait_timeout_seconds.flag}"
                )

            if now >= word_at:
                word_at = now + PROGRESS_SECONDS
                self._reporter.progress(self._waited(claim, count, now - started))

            skips_queue = not gave and self._has_some()
            pause = min(claim.pause_seconds, deadline - now, word_at - now)
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

    def _waited(self, claim: Claim, count: int, seconds: float) -> str:
        holders = ", ".join(
            f"{number} by {holder}"
            for holder, number in Counter(claim.holders()).items()
        )
        several = f"{count} of {self.limit} sessions ({Options.max_sessions.flag})"
        queue = "" if claim.is_first else "; another test is before it in the queue"

        return (
            f"waited {seconds:.0f} s for {f'session {self._of}' if self._of else several}; "
            f"in use: {holders or 'none'}{queue}"
        )

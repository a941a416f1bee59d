"""The door to the slots of a service: taken all or none, first come first served, waited for in words."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Final

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.sessions.quota.claim import Claim, Slot, Store
from pytest_device.sessions.quota.files import FileStore
from pytest_device.sessions.reporter import ProgressReporter

_FIRST_PAUSE_SECONDS: Final = (0.03, 0.09)
"""Between two attempts of who is served next: short, since a slot that lies free is a device that nobody
uses. Of unequal length, so that two do not always try at the same time."""
_PAUSE_SECONDS: Final = (0.1, 0.3)
"""Between two attempts of all others: they cannot be served yet, and each attempt locks the directory."""
_FIRST_WORD_SECONDS: Final = 5.0
"""A person begins to wonder after that; shorter waits are the rule where tests end often."""
_HEARTBEAT_SECONDS: Final = 30.0
"""A CI log that stands still for longer looks like a hang."""

_pause: Final = SystemRandom().uniform  # not seeded: workers that seed theirs alike would wait in step


class Slots:
    """The slots of one service: as many as there may be sessions at once.

    No claim starves: one that cannot be served at once queues in order of arrival, and is served when enough slots are
    free, all or none, that no earlier claim uses. So released slots stay free until the first claim has enough. When a
    process dies, its claims and slots are gone.

    No claim blocks another: a call never waits while it holds a slot, and ``gives_way`` releases those of earlier calls
    that are not in use. A claim whose process still has slots in use is urgent, and served before those without any,
    which may be waiting for these very slots. Two tests that each use sessions and together want more than there may be
    are ended by the time-out.

    Runs with different limits use the first ``most`` slots each. So none exceeds its own limit, and all together do not
    exceed the greatest one; but a run with a lower limit waits while others hold the first slots.
    """

    def __init__(
        self,
        place: Path | Store,
        most: int,
        *,
        holder: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        reporter: ProgressReporter,
        of: str = "",
    ) -> None:
        """Use the slots in a directory or store; ``holder``, no secret, names this process to others.

        ``of`` is the session whose only slot it is, empty for sessions that are created.
        """
        self.most = most
        self._store: Store = FileStore(place) if isinstance(place, Path) else place
        self._holder, self._timeout, self._of = holder, timeout_seconds, of
        self._clock, self._sleep, self._reporter = clock, sleep, reporter
        self._given: set[Slot] = set()

    def take(self, count: int, gives_way: Callable[[], bool] = lambda: False) -> list[Slot]:
        """Wait for so many slots at once; raises LeaseTimeoutError, and ConfigError where waiting cannot help.

        Before each wait ``gives_way`` is asked to give back one slot that can be done without, and says whether it
        did: all of them in the end, those of sessions that nobody uses yet, too. An interrupt leaves none taken.
        """
        if count > self.most:
            raise ConfigError(
                f"{count} sessions are needed at once, but {Options.max_sessions.flag} allows {self.most}: "
                "increase it, or use fewer devices in one test"
            )
        if not count:
            return []
        claim = self._store.claim(count, self.most, self._holder)
        try:
            self._wait(claim, gives_way)
            claim.leave()
            return self._handed_out(claim)
        except BaseException:
            claim.withdraw()
            raise

    def try_take(self, count: int) -> list[Slot] | None:
        """Take so many slots at once if nobody waits for one of them, None if not; never waits.

        Raises ConfigError where no slots can be kept. An interrupt leaves none taken.
        """
        claim = self._store.claim(count, self.most, self._holder)
        try:
            return self._handed_out(claim) if claim.fill() else None
        except BaseException:
            claim.withdraw()
            raise

    def _wait(self, claim: Claim, gives_way: Callable[[], bool]) -> None:
        started = self._clock()
        deadline, word_at = started + self._timeout, started + _FIRST_WORD_SECONDS
        while not claim.fill():
            gave = gives_way()
            if gave and not claim.is_behind:
                continue
            now = self._clock()
            if now >= deadline:
                more = "" if self._of else f"{Options.max_sessions.flag} or "
                raise LeaseTimeoutError(
                    f"{self._waited(claim, now - started)}. Increase {more}{Options.wait_timeout_seconds.flag}"
                )
            if now >= word_at:
                word_at = now + _HEARTBEAT_SECONDS
                self._reporter.progress(self._waited(claim, now - started))
            claim.queue(urgent=not gave and self._has_some())
            pause = _pause(*(_PAUSE_SECONDS if claim.is_behind else _FIRST_PAUSE_SECONDS))
            self._sleep(min(pause, deadline - now))

    def _handed_out(self, claim: Claim) -> list[Slot]:
        self._has_some()
        slots = list(claim.slots)
        self._given.update(slots)
        return slots

    def _has_some(self) -> bool:
        """Return whether this process holds slots of earlier calls; forget those it has released."""
        for slot in tuple(self._given):  # a copy, since another thread may add to it
            if not slot.is_held:
                self._given.discard(slot)
        return bool(self._given)

    def _waited(self, claim: Claim, seconds: float) -> str:
        found = claim.obstacle()
        holders = ", ".join(f"{number} by {holder}" for holder, number in Counter(found.held).items())
        several = f"{claim.count} of {self.most} sessions ({Options.max_sessions.flag})"
        return (
            f"waited {seconds:.0f} s for {f'session {self._of}' if self._of else several}; "
            f"in use: {holders or 'none'}; position in the queue: {found.ahead + 1}"
        )

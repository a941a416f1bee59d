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

    Nobody waits for ever. Whoever cannot be served at once takes a place in the queue, in the order of asking. A claim
    is served when so many slots are free as it wants, all or none, that no earlier claim looks at: so what is given
    back stays free until the first has enough, whether it wants one or several, and nobody passes it again and again.
    A claim whose process dies is gone from the queue, as are that process's slots.

    Nobody blocks another. A call never waits with a slot of its own in its hands; for the slots of earlier calls it
    asks ``gives_way`` to give back what can be done without. Who cannot, has them in use and still wants more: such a
    claim is urgent and served before those that hold none, which may be waiting for just these slots. What is left is
    two tests that each have sessions in use and want more, all together more than there may be: the time-out ends it.

    Runs that are told different numbers at the same time look each at its own first ``most`` slots. So none has more
    sessions than it was told, and all together have no more than the greatest number that one of them was told; but a
    run that was told less waits while others hold the first slots, and others go on past its number.
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
        progress: Callable[[str], None],
    ) -> None:
        """Look at the slots in a directory or store; ``holder`` is who others are told has them: no secret."""
        self.most = most
        self._store: Store = FileStore(place) if isinstance(place, Path) else place
        self._holder, self._timeout = holder, timeout_seconds
        self._clock, self._sleep, self._progress = clock, sleep, progress
        self._given: set[Slot] = set()

    def take(self, count: int, gives_way: Callable[[], bool] = lambda: False) -> list[Slot]:
        """Wait for so many slots at once; raises LeaseTimeoutError, and ConfigError where waiting cannot help.

        Before each wait ``gives_way`` is asked to give back one slot that can be done without, and says whether it
        did: all of them in the end, those of sessions that nobody uses yet, too. An interrupt leaves none taken.
        """
        if count > self.most:
            raise ConfigError(
                f"{count} sessions are needed at once, {Options.max_sessions.flag} allows {self.most}: "
                "allow more, or use fewer devices in one test"
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
                raise LeaseTimeoutError(
                    f"{self._waited(claim, now - started)}. Allow more with {Options.max_sessions.flag}, "
                    f"or a longer wait with {Options.wait_timeout_seconds.flag}"
                )
            if now >= word_at:
                word_at = now + _HEARTBEAT_SECONDS
                self._progress(self._waited(claim, now - started))
            claim.queue(urgent=not gave and self._has_some())
            pause = _pause(*(_PAUSE_SECONDS if claim.is_behind else _FIRST_PAUSE_SECONDS))
            self._sleep(min(pause, deadline - now))

    def _handed_out(self, claim: Claim) -> list[Slot]:
        self._has_some()
        slots = list(claim.slots)
        self._given.update(slots)
        return slots

    def _has_some(self) -> bool:
        """Tell whether this process has slots of earlier calls; forget those that it has given back."""
        for slot in tuple(self._given):  # a copy, since another thread may add to it
            if not slot.is_held:
                self._given.discard(slot)
        return bool(self._given)

    def _waited(self, claim: Claim, seconds: float) -> str:
        found = claim.obstacle()
        holders = ", ".join(f"{number} by {holder}" for holder, number in Counter(found.held).items())
        return (
            f"waited {seconds:.0f} s for {claim.count} of the {self.most} sessions that {Options.max_sessions.flag} "
            f"allows at once; held: {holders or 'none'}; place in the queue: {found.ahead + 1}"
        )

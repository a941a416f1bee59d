"""The sessions that a reaper keeps warm until a run claims them or their time is up."""

import time
from collections.abc import Iterator
from typing import Final

from pytest_device.sessions.ledger import Entry, Ledger

POLL_SECONDS: Final = 2.0
"""Seconds between checks of the ledger for claims, and of the wall clock in case the machine slept."""


class WarmRegistry:
    """The warm sessions of one reaper; false if there are none."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._kept: dict[str, tuple[Entry, float, float]] = {}
        """Entry and end time: on the monotonic clock, which may pause while the machine sleeps, and on the wall clock,
        which may be set back."""

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __contains__(self, intent: str) -> bool:
        return intent in self._kept

    def keep(self, entry: Entry, seconds: float) -> None:
        """Keep a session warm for ``seconds``; raises OSError if no run could find it."""
        if self._ledger is None:
            raise OSError("there is no ledger")
        self._ledger.keep_warm(entry)
        self._kept[entry.intent] = (entry, time.monotonic() + seconds, time.time() + seconds)

    def claim(self, entry: Entry, of: Ledger) -> bool:
        """Claim a warm session of a ledger; False if another process has it."""
        if self._ledger is None:
            return False
        try:
            if is_had := of.claim(entry.intent, self._ledger):
                self._kept.pop(entry.intent, None)
        except OSError:  # as good as gone: the run boots another device
            return False
        return is_had

    def reclaim(self, intent: str) -> Entry | None:
        """Return a session that is no longer kept warm, None if another run has it."""
        entry, *_ = self._kept.pop(intent, (None,))
        if entry is None or self._ledger is None:
            return None
        try:
            is_had = self._ledger.claim(intent, self._ledger) or self._ledger.is_untracked(intent)
        except OSError:  # no other process can claim it either: it must not keep running
            is_had = True
        return entry if is_had else None

    def expired(self) -> Iterator[Entry]:
        """Yield sessions whose time is up or that no run can find any more; forget claimed ones."""
        for intent, (_, *ends) in list(self._kept.items()):
            is_over = time.monotonic() >= ends[0] or time.time() >= ends[1]
            is_free = self._ledger is not None and self._ledger.keeps_warm(intent)
            if (is_over or not is_free) and (entry := self.reclaim(intent)):
                yield entry

    def pause(self) -> float:
        ends = (end - time.monotonic() for _, end, _ in self._kept.values())
        return max(0.0, min(POLL_SECONDS, *ends))

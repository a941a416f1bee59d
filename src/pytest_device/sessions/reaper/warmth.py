"""What a reaper keeps warm: until somebody claims it, or its time is over."""

import time
from collections.abc import Iterator
from typing import Final

from pytest_device.sessions.ledger import Entry, Ledger

LOOK_SECONDS: Final = 2.0
"""How often the ledger is looked at for what others have claimed, and the wall clock for a time of sleep."""


class Warmth:
    """The sessions that one reaper keeps warm; false when there are none."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._kept: dict[str, tuple[Entry, float, float]] = {}
        """With the end of their time: on the monotonic clock, which may stand still while the machine sleeps, and on
        the wall clock, which may be put back."""

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __contains__(self, intent: str) -> bool:
        return intent in self._kept

    def keep(self, entry: Entry, seconds: float) -> None:
        """Leave a session up for so long; raises OSError when nobody could find it."""
        if self._ledger is None:
            raise OSError("there is no ledger")
        self._ledger.keep_warm(entry)
        self._kept[entry.intent] = (entry, time.monotonic() + seconds, time.time() + seconds)

    def claim(self, entry: Entry, of: Ledger) -> bool:
        """Have a session that is kept warm in a ledger, once for all; False when somebody else has it."""
        if self._ledger is None:
            return False
        try:
            is_had = of.claim(entry.intent, self._ledger)
        except OSError:  # as good as gone: a device is booted
            is_had = False
        if is_had:
            self._kept.pop(entry.intent, None)
        return is_had

    def taken_back(self, intent: str) -> Entry | None:
        """Return a session that is not to be kept warm any longer, None when it is somebody else's."""
        entry, *_ = self._kept.pop(intent, (None,))
        if entry is None or self._ledger is None:
            return None
        try:
            return entry if self._ledger.claim(intent, self._ledger) else None
        except OSError:  # nor can anybody else have it: it must not run on
            return entry

    def over(self) -> Iterator[Entry]:
        """Yield those whose time is over and that are this reaper's to stop, and forget what others have."""
        for intent, (entry, *ends) in list(self._kept.items()):
            if self._ledger is None or not self._ledger.keeps_warm(intent):
                del self._kept[intent]
            elif (time.monotonic() >= ends[0] or time.time() >= ends[1]) and self.taken_back(intent):
                yield entry

    def pause(self) -> float:
        """Return after how many seconds to look again."""
        ends = (end - time.monotonic() for _, end, _ in self._kept.values())
        return max(0.0, min(LOOK_SECONDS, *ends))

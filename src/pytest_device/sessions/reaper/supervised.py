"""The sessions that a reaper supervises: the one whose next call is due, and those that it keeps warm."""

import time
from collections.abc import Iterator
from typing import Final

from pytest_device.sessions.ledger import Entry, Ledger
from pytest_device.sessions.partial import path_of
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.retry_policy import is_missing
from pytest_device.sessions.states import PHASES, Phase, moved
from pytest_device.spec import SESSIONS_PATH

CALL_SECONDS: Final = 15.0
"""Maximum seconds of a stop or lookup: both can be repeated."""
LOOKUP_SECONDS: Final = 2.0
"""Seconds between lookups of a session whose stop call is unanswered."""
POLL_SECONDS: Final = 2.0
"""Seconds between checks of the ledger for claims, and of the wall clock in case the machine slept."""


class WatchedSession:
    """One session from its create request until it is finished."""

    def __init__(
        self, entry: Entry, body: str | None = None, due: float | None = None
    ) -> None:
        self.entry = entry
        self.body = body
        self.due = due
        """``due`` is when to send its next call; None if it needs none or awaits a response."""
        self.deadline = time.monotonic() + entry.minutes * 60
        self.phase = Phase.LIVE if entry.session_id else Phase.CREATING
        self.attempts = 0
        """How often its create call was sent or, once it is created, its stop call."""
        self.refusal: messages.Answer | None = None
        """Latest response to a stop call that does not prove the end."""
        self.missing_since: float | None = None
        """Since when the service has only returned 404."""
        self.is_due = False
        """Whether it is stopped on schedule, which needs no report to a later run."""
        self.is_foreign = False
        """Whether another token created it."""

    def request_stop(self) -> None:
        """Stop it as soon as its ID is known."""
        if self.phase is Phase.CREATING:
            self._move(Phase.ABANDONED, self.due)
        elif self.phase is Phase.LIVE:
            self._move(Phase.STOP_DUE, time.monotonic())

    def created(self, entry: Entry) -> None:
        """Record its ID. Its time counts from now: the service may have created it only now."""
        self.deadline = time.monotonic() + entry.minutes * 60
        self.entry = entry
        self.attempts = 0
        if self.phase is Phase.ABANDONED:
            self._move(Phase.STOP_DUE, time.monotonic())
        else:
            self._move(Phase.LIVE, None)

    def refused(self, answer: messages.Answer) -> None:
        """Record the response to a stop call that does not prove the end."""
        self.refusal = answer
        self._move(Phase.CHECKING, time.monotonic())

    def retry_stop(self, at: float) -> None:
        self._move(Phase.STOP_DUE, at)

    def call(self, number: int) -> messages.Call:
        """Return its next call, which awaits a response."""
        path = path_of(self.entry.session_id)
        self.due = None
        match self.phase:
            case Phase.CREATING | Phase.ABANDONED:
                self.attempts += 1
                # Until the session would have ended by itself: a late response still has its ID.
                seconds = max(0.0, self.deadline - time.monotonic())
                return messages.Call(number, "POST", SESSIONS_PATH, self.body, seconds)
            case Phase.STOP_DUE:
                self.attempts += 1
                self._move(Phase.STOPPING, time.monotonic() + LOOKUP_SECONDS)
                return messages.Call(
                    number, "POST", f"{path}/stop", seconds=CALL_SECONDS
                )
            case _:
                return messages.Call(number, "GET", path, seconds=CALL_SECONDS)

    def end(self, phase: Phase) -> Entry:
        """Move to a phase without work; return the entry that records it."""
        self._move(phase, None)
        return self.entry._replace(state=phase)

    def _move(self, to: Phase, due: float | None) -> None:
        self.phase = moved(self.phase, to, PHASES)
        self.due = due

    def note(self, answer: messages.Answer, now: float) -> None:
        """Record a response that does not prove the end."""
        if not (
            isinstance(answer, messages.Reply)
            and is_missing(answer.status, answer.body)
        ):
            self.missing_since = None
        elif self.missing_since is None:
            self.missing_since = now


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
        self._kept[entry.intent] = (
            entry,
            time.monotonic() + seconds,
            time.time() + seconds,
        )

    def claim(self, entry: Entry, of: Ledger) -> bool:
        """Claim a warm session of a ledger; False if another process has it."""
        if self._ledger is None:
            return False

        try:
            if is_claimed := of.claim(entry.intent, self._ledger):
                self._kept.pop(entry.intent, None)
        except OSError:  # as good as gone: the run boots another device
            return False

        return is_claimed

    def reclaim(self, intent: str) -> Entry | None:
        """Return a session that is no longer kept warm, None if another run has it."""
        kept = self._kept.pop(intent, None)
        if kept is None or self._ledger is None:
            return None

        entry = kept[0]

        try:
            is_ours = self._ledger.claim(intent, self._ledger)
        # No other process can claim it either: it must not keep running.
        except OSError:
            is_ours = True

        return entry if is_ours else None

    def expired(self) -> Iterator[Entry]:
        """Yield sessions whose time is up; forget claimed ones."""
        for intent, (_, end, wall_end) in list(self._kept.items()):
            is_over = time.monotonic() >= end or time.time() >= wall_end
            is_free = self._ledger is not None and self._ledger.keeps_warm(intent)
            if (is_over or not is_free) and (entry := self.reclaim(intent)):
                yield entry

    def pause(self) -> float:
        ends = (end - time.monotonic() for _, end, _ in self._kept.values())
        return max(0.0, min(POLL_SECONDS, *ends))

"""A session that a reaper supervises, and its next call."""

import time
from typing import Final

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.partial import path_of
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.retry_policy import is_missing
from pytest_device.spec import SESSIONS_PATH

STOP_SECONDS: Final = 15.0
"""Maximum seconds of a stop or lookup: both can be repeated."""
LOOKUP_SECONDS: Final = 2.0
"""Seconds between lookups of a session whose stop call is unanswered."""


class WatchedSession:
    """One session from its create request until it is finished."""

    def __init__(self, entry: Entry, body: str | None = None, due: float | None = None) -> None:
        self.entry, self.body, self.due = entry, body, due
        """``due`` is when to send its next call; None if it needs none or awaits a response."""
        self.deadline = time.monotonic() + entry.minutes * 60
        self.attempts = 0
        self.wanted = True
        self.is_stopping = False
        """Whether a stop call is open: meanwhile the session is looked up."""
        self.refusal: messages.Answer | None = None
        """Response to a stop call that does not prove the end; the session is then looked up, too."""
        self.missing_since: float | None = None
        """Since when the service has only returned 404."""
        self.is_due = False
        """Whether it is stopped on schedule, which needs no report to a later run."""

    def request_stop(self) -> None:
        """Stop it as soon as its ID is known."""
        if self.wanted and self.entry.session_id:
            self.attempts, self.due = 0, time.monotonic()
        self.wanted = False

    def call(self, number: int) -> messages.Call:
        self.due = None
        path = path_of(self.entry.session_id)
        if self.is_stopping or self.refusal:
            return messages.Call(number, "GET", path, seconds=STOP_SECONDS)
        self.attempts += 1
        if not self.entry.session_id:
            return messages.Call(number, "POST", SESSIONS_PATH, self.body)
        self.is_stopping, self.due = True, time.monotonic() + LOOKUP_SECONDS
        return messages.Call(number, "POST", f"{path}/stop", seconds=STOP_SECONDS)

    def note(self, answer: messages.Answer, now: float) -> None:
        """Record a response that does not prove the end."""
        if not (isinstance(answer, messages.Reply) and is_missing(answer.status, answer.body)):
            self.missing_since = None
        elif self.missing_since is None:
            self.missing_since = now

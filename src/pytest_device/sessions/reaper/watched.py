"""A session that a reaper watches over, and its next call."""

import time
from typing import Final

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.partial import path_of
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.retry_policy import is_missing
from pytest_device.spec import SESSIONS_PATH

STOP_SECONDS: Final = 15.0
"""The longest that a stop or a lookup may take: both can be repeated."""
LOOKUP_SECONDS: Final = 2.0
"""Between the lookups of a session whose stop is not answered."""


class WatchedSession:
    """One session from its create request until it is done with."""

    def __init__(self, entry: Entry, body: str | None = None, due: float | None = None) -> None:
        self.entry, self.body, self.due = entry, body, due
        """``due`` is when to send its next call, None while it needs none or has to be answered first."""
        self.deadline = time.monotonic() + entry.minutes * 60
        self.attempts = 0
        self.wanted = True
        self.is_stopping = False
        """Whether a stop call is on its way: meanwhile the session itself is asked for."""
        self.refusal: messages.Answer | None = None
        """What a stop was answered that does not prove it: then the session itself is asked for, too."""
        self.missing_since: float | None = None
        """Since when the service has said nothing but that it does not know the session."""
        self.is_due = False
        """Whether its stop is the end that it was to have, which needs no report to a later run."""

    def request_stop(self) -> None:
        """Stop it as soon as its id is known."""
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
        """Note an answer that does not prove its end."""
        if not (isinstance(answer, messages.Reply) and is_missing(answer.status, answer.body)):
            self.missing_since = None
        elif self.missing_since is None:
            self.missing_since = now

"""A session that a reaper watches over, and its next call."""

import time

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.partial import path_of
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.retry_policy import is_missing
from pytest_device.spec import SESSIONS_PATH


class WatchedSession:
    """One session from its create request until it is done with."""

    def __init__(self, entry: Entry, body: str | None = None, due: float | None = None) -> None:
        self.entry, self.body, self.due = entry, body, due
        """``due`` is when to send its next call, None while it needs none or one is on its way."""
        self.deadline = time.monotonic() + entry.minutes * 60
        self.attempts = 0
        self.wanted = True
        self.refusal: messages.Answer | None = None
        """What a stop was answered that does not prove it: then the session itself is asked for."""
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
        if self.refusal:
            return messages.Call(number, "GET", path)
        self.attempts += 1
        if not self.entry.session_id:
            return messages.Call(number, "POST", SESSIONS_PATH, self.body)
        return messages.Call(number, "POST", f"{path}/stop")

    def note(self, answer: messages.Answer, now: float) -> None:
        """Note an answer that does not prove its end."""
        if not (isinstance(answer, messages.Reply) and is_missing(answer.status, answer.body)):
            self.missing_since = None
        elif self.missing_since is None:
            self.missing_since = now

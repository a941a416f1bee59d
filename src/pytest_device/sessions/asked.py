"""What an owner asked its reaper for, and what came of it."""

import queue
import time
from collections.abc import Iterator
from typing import Any, Final

from pytest_device.errors import ServiceError
from pytest_device.sessions.events import CreateUnknown, Event, Note, SessionRef, StopFailed, stop_event
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.models import Session
from pytest_device.sessions.replies import read_session

_DONE: Final = frozenset({"stopped", "refused", "gave-up", "kept", "gone"})


class Asked:
    """A session that was asked for, and what the reaper told of it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.since = time.monotonic()
        self.news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.last: dict[str, Any] = {"what": "asked"}
        self.sent = False
        self.wanted = True
        self.told = False
        """Whether whoever asked for it knows how it ended."""
        self.is_claim = False
        """Whether it was asked of another, and whoever asked does not know yet that it was had."""

    def note_sent(self) -> None:
        """Take note that the reaper has the command."""
        self.sent = True

    def hear(self, told: dict[str, Any]) -> None:
        """Take note of what the reaper tells; what comes of a session after it was left up nobody knows yet."""
        if told["what"] == "kept" or self.last["what"] == "kept":
            self.told = told["what"] == "kept"
        if told["what"] == "due":
            self.wanted = False
        self.last = told
        self.news.put(told)

    @property
    def done(self) -> bool:
        """Tell whether there is nothing left to do for it."""
        if not self.sent and (self.is_claim or not self.entry.session_id):
            return True
        return self.last["what"] in _DONE or (self.last["what"] == "answer" and not self.entry.session_id)

    def minutes_left(self) -> int:
        """Return how long it may run on at most."""
        return max(0, round(self.entry.minutes - (time.monotonic() - self.since) / 60))


def body_of(told: dict[str, Any]) -> bytes:
    """Return the body of the answer that the reaper tells of."""
    text: str = told["body"]
    return text.encode("latin-1")


def stop_answer(told: dict[str, Any]) -> Session:
    """Return what the service answered to a stop call; raises a ServiceError."""
    return read_session("stop", told["status"], body_of(told), told.get("retry_after"))


def reason_of(told: dict[str, Any]) -> str:
    """Return why a session is not stopped yet."""
    if "status" not in told:
        return str(told.get("problem", "no answer yet"))
    try:
        session = stop_answer(told)
    except ServiceError as error:
        return str(error)
    return f"its status is {session.status}"


def ends_of(asked: Asked) -> Iterator[Event]:
    """Yield how a session ended, nothing where there was none or where it is another's."""
    entry, last = asked.entry, asked.last
    if last["what"] == "gone" or (asked.is_claim and last["what"] == "asked"):  # it is another's
        return
    if asked.is_claim:
        text = f"{entry.label} {entry.session_id}, which was kept warm, was to be stopped: its take-over was broken off"
        yield Note(text, session_id=entry.session_id)
    of = SessionRef(entry.label, entry.session_id, entry.page, minutes=asked.minutes_left())
    if not entry.session_id:
        if asked.sent and not last.get("refused", False):
            yield CreateUnknown(of, entry.name)
    elif last["what"] in {"stopped", "refused"}:
        yield stop_event(of, lambda: stop_answer(last))
    else:
        reason = reason_of(last) if last["what"] != "answer" else "no answer yet"
        yield StopFailed(of, reason)

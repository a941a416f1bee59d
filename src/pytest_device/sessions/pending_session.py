"""One session as a process knows it from its reaper's reports."""

import queue
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar, assert_never

from pytest_device.errors import ServiceError, SessionGoneError, StopDelayedError
from pytest_device.sessions.events import (
    CreateUnknown,
    Event,
    Gone,
    Note,
    SessionRef,
    StopFailed,
    stop_event,
)
from pytest_device.sessions.ledger import Entry, time_of_day
from pytest_device.sessions.lifecycle import NEVER_THERE, SLICE_SECONDS
from pytest_device.sessions.models import Session
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.replies import read_session, shown

Report = TypeVar("Report", bound=messages.SessionReport)


class PendingSession:
    """A session, from its request until its end is reported."""

    def __init__(self, entry: Entry, *, is_claim: bool = False) -> None:
        self.entry = entry
        self.is_claim = is_claim
        """Whether another run kept it warm and the claim has not succeeded yet."""
        self.last: messages.SessionReport | None = None
        self.is_sent = False
        """Whether the reaper has received it."""
        self.stop_requested = False
        self.is_reported = False
        """Whether its end has been reported."""
        self.is_seen = is_claim
        """Whether the service has returned it for its ID."""
        self.is_given_up = False
        """Whether its test stopped waiting for the response to its create call."""
        self._since = time.monotonic()
        self._answered_after = 0.0
        """Seconds until the response to its create call."""
        self._reports: queue.SimpleQueue[messages.SessionReport] = queue.SimpleQueue()

    def note_sent(self) -> None:
        self.is_sent = True

    def on_report(self, report: messages.SessionReport) -> None:
        """Record a report; if the session is kept warm, its end is unknown again."""
        if isinstance(report, messages.Kept) or isinstance(self.last, messages.Kept):
            self.is_reported = isinstance(report, messages.Kept)

        if isinstance(report, messages.Due):
            self.stop_requested = True

        if isinstance(report, messages.Answered):
            self._answered_after = time.monotonic() - self._since
            self.entry = self.entry.created(
                report.session_id, report.url, report.answer.body
            )

        self.last = report
        self._reports.put(report)

    def reports(self, seconds: float) -> Iterator[messages.SessionReport]:
        """Yield the reports that arrive within ``seconds``."""
        until = time.monotonic() + seconds

        while True:
            left = max(0.0, until - time.monotonic())
            try:
                yield self._reports.get(timeout=min(left, SLICE_SECONDS))
            except queue.Empty:
                if left <= SLICE_SECONDS:
                    return

    def first(self, seconds: float, *kinds: type[Report]) -> Report | None:
        """Return the first report of these kinds that arrives within ``seconds``."""
        for report in self.reports(seconds):
            if isinstance(report, kinds):
                return report

        return None

    @property
    def is_done(self) -> bool:
        """Whether no work is left for it."""
        if not self.is_sent and (self.is_claim or not self.entry.session_id):
            return True

        match self.last:
            case (
                messages.Stopped()
                | messages.Missing()
                | messages.GaveUp()
                | messages.Kept()
                | messages.Gone()
                | messages.NotSent()
            ):
                return True
            case messages.Answered():
                return not self.entry.session_id
            case (
                None
                | messages.Delayed()
                | messages.NotKept()
                | messages.Due()
                | messages.Claimed()
            ):
                return False
            case _:
                assert_never(self.last)

    @property
    def is_unanswered(self) -> bool:
        """Whether its create call has no response yet."""
        return not (self.is_done or self.entry.session_id or self.is_claim)

    def reopen(self) -> None:
        """Forget its outcome: it was kept warm, but must be stopped after all."""
        self.last = None
        self.is_reported = False

    def end_events(self, *, outlives_run: bool) -> Iterator[Event]:
        """Yield the events of its end; none if it was never created or belongs to another run.

        ``outlives_run``: whether the reaper keeps waiting for the response to its create call.
        """
        entry = self.entry
        is_of_another_run = isinstance(self.last, messages.Gone) or (
            self.is_claim and self.last is None
        )
        if is_of_another_run:
            return

        if self.is_claim:
            text = f"stopping {entry.label} {entry.session_id}, which was kept warm: its take-over was interrupted"
            yield Note(text, session_id=entry.session_id)

        of = SessionRef(
            entry.label, entry.session_id, entry.url, minutes=self._minutes_left()
        )
        if self.is_given_up and (text := self._late_answer()):
            yield Note(text)

        match self.last:
            case messages.Stopped() | messages.Missing() if entry.session_id:
                yield stop_event(of, self.stopped)
            case _ if entry.session_id:
                yield StopFailed(of, self.reason())
            case messages.Answered(refused=True) | messages.NotSent():
                return
            case _ if self.is_sent:
                yield CreateUnknown(
                    of, entry.name, self._awaited_until() if outlives_run else ""
                )
            case _:  # it was never requested
                return

    def _awaited_until(self) -> str:
        """Return until when a reaper waits for the response to its create call, empty if it has one."""
        if not self.is_unanswered:
            return ""
        return time_of_day(datetime.now(UTC) + timedelta(minutes=self._minutes_left()))

    def _late_answer(self) -> str:
        """Return what a response after the end of the wait says, empty without one or if it was lost."""
        device = self.entry.label
        if self.entry.name:
            device += f" named {self.entry.name!r}"

        late = f"the response to a create call arrived after {self._answered_after:.0f} s, when its test had given up"

        if self.entry.session_id:
            is_stopped = isinstance(self.last, messages.Stopped)
            end = "stopped" if is_stopped else "not confirmed as stopped"
            return f"{late}: {device}: {end}"

        match self.last:
            case messages.Answered(refused=True):
                return f"{late}: {device}: refused, no session was created"
            case _:
                return ""

    def stopped(self) -> Session:
        """Return the stopped session; raises a ServiceError if the stop is not confirmed."""
        match self.last:
            case messages.Stopped(_, answer):
                return read_session("stop", answer.status, answer.body)
            case messages.Missing() if not self.is_seen:
                raise ServiceError(NEVER_THERE)
            case messages.Missing(_, messages.Reply(status, body)):
                raise SessionGoneError(
                    f"stop: {Gone.status}", status=status, detail=shown(body)
                )
            case messages.GaveUp(_, messages.Reply(status, body)):
                # Raises the service's own error, if the reply is one.
                read_session("stop", status, body)
            case _:
                pass

        raise StopDelayedError(self.reason())

    def reason(self) -> str:
        match self.last:
            case messages.Delayed(_, answer) | messages.GaveUp(_, answer):
                return _shown(answer)
            case _:
                return "no response yet"

    def _minutes_left(self) -> int:
        return max(0, round(self.entry.minutes - (time.monotonic() - self._since) / 60))


def _shown(answer: messages.Reply | messages.NoReply) -> str:
    if isinstance(answer, messages.NoReply):
        return answer.problem

    try:
        session = read_session("stop", answer.status, answer.body)
    except ServiceError as error:
        return str(error)

    return f"its status is {session.status}"

"""A session that was handed to the reaper, with the reaper's reports."""

import queue
import time
from collections.abc import Iterator
from typing import TypeVar, assert_never

from pytest_device.errors import (
    ConfigError,
    ServiceError,
    SessionGoneError,
    StopDelayedError,
    UnexpectedReplyError,
)
from pytest_device.options import Options
from pytest_device.sessions.events import (
    CreateUnknown,
    Event,
    Gone,
    Note,
    SessionRef,
    StopFailed,
    stop_event,
)
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.lifecycle import NEVER_THERE
from pytest_device.sessions.models import Session
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.replies import no_answer, read_session, shown
from pytest_device.sessions.retry_policy import is_refusal

R = TypeVar("R", bound=messages.SessionReport)


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
        self._since = time.monotonic()
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
            self.entry = self.entry.created(
                report.session_id, report.url, report.answer.body
            )
        self.last = report
        self._reports.put(report)

    def reports(self, seconds: float) -> Iterator[messages.SessionReport]:
        """Yield the reports that arrive within ``seconds``."""
        until = time.monotonic() + seconds
        while True:
            try:
                yield self._reports.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return

    def first(self, seconds: float, *kinds: type[R]) -> R | None:
        """Return the first report of these kinds that arrives within ``seconds``."""
        return next(
            (report for report in self.reports(seconds) if isinstance(report, kinds)),
            None,
        )

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
            ):
                return True
            case messages.NotSent():
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

    def reopen(self) -> None:
        """Forget its outcome: it was kept warm, but must be stopped after all."""
        self.last, self.is_reported = None, False

    def end_events(self) -> Iterator[Event]:
        """Yield the events of its end; none if it was never created or belongs to another run."""
        entry = self.entry
        if isinstance(self.last, messages.Gone) or (
            self.is_claim and self.last is None
        ):  # it belongs to another run
            return
        if self.is_claim:
            text = f"stopping {entry.label} {entry.session_id}, which was kept warm: its take-over was interrupted"
            yield Note(text, session_id=entry.session_id)
        of = SessionRef(
            entry.label, entry.session_id, entry.url, minutes=self._minutes_left()
        )
        match self.last:
            case messages.Stopped() | messages.Missing() if entry.session_id:
                yield stop_event(of, self.stopped)
            case _ if entry.session_id:
                yield StopFailed(of, self.reason())
            case messages.Answered(refused=True) | messages.NotSent():
                return
            case _ if self.is_sent:
                yield CreateUnknown(of, entry.name)
            case _:  # it was never requested
                return

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
                read_session("stop", status, body)
            case _:
                pass
        raise StopDelayedError(self.reason())

    def reason(self) -> str:
        match self.last:
            case messages.Delayed(_, answer) | messages.GaveUp(_, answer):
                return _shown(answer)
            case _:
                return "no answer yet"

    def _minutes_left(self) -> int:
        return max(0, round(self.entry.minutes - (time.monotonic() - self._since) / 60))


def is_refused(report: messages.SessionReport) -> bool:
    """Return whether the service itself refuses the stop for now, so that waiting briefly does not help."""
    match report:
        case messages.Delayed(_, messages.Reply(status, body)):
            return is_refusal(status, body)
        case _:
            return False


def unwritten(problem: str) -> ConfigError:
    """Return the error for a create call that was not sent because of a ledger problem."""
    return ConfigError(
        f"the ledger cannot be written ({problem}). No session was requested, because no later run could stop it. Free "
        f"disk space or make the directory writable, or set another with {Options.state_dir.flag}"
    )


def read_created(
    report: messages.Answered | messages.NotSent, base_url: str
) -> Session:
    """Return the created session; raises a ServiceError, which carries the session's ID if one was created."""
    if isinstance(report, messages.NotSent):
        raise unwritten(report.problem)
    try:
        match report.answer:
            case messages.Reply(status, body, retry_after):
                return read_session("create", status, body, retry_after)
            case messages.NoReply(problem, sent):
                raise no_answer("create", base_url, problem, sent=sent)
    except ServiceError as error:
        if not report.session_id:
            raise
        raise UnexpectedReplyError(str(error), session_id=report.session_id) from None


def _shown(answer: messages.Reply | messages.NoReply) -> str:
    if isinstance(answer, messages.NoReply):
        return answer.problem
    try:
        session = read_session("stop", answer.status, answer.body)
    except ServiceError as error:
        return str(error)
    return f"its status is {session.status}"

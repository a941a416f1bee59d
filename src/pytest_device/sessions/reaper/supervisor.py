"""Decides which calls to send for which session, until all sessions are done. No I/O except the ledger's.

The ledger is written before each report, so that reports can be relied on.
"""

import time
from collections.abc import Callable, Iterator
from math import inf
from typing import assert_never

from pytest_device.sessions.ledger import Entry, Ledger
from pytest_device.sessions.partial import says_stopped, session_id_in, url_in
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.reaper.supervised import (
    LOOKUP_SECONDS,
    WarmRegistry,
    WatchedSession,
)
from pytest_device.sessions.retry_policy import (
    ATTEMPTS,
    created_nothing,
    is_access_refusal,
    is_page,
    is_success,
    pause_after,
)
from pytest_device.sessions.states import Phase


class Supervisor:
    """The sessions of one run; the caller passes in requests and answers, and sends the calls that are due.

    If ``leaves_tombstones`` is set, and once the run is gone, a stopped session stays in the ledger as a tombstone for
    the next sweep. A session page's URL that contains the ``token`` is not reported.
    """

    def __init__(
        self, start: messages.Start, report: Callable[[messages.Report], None]
    ) -> None:
        self._ledger = Ledger(start.ledger) if start.ledger else None
        self._token = start.endpoint.token
        self._leaves_tombstones = start.leaves_tombstones
        self._gone_seconds = start.gone_seconds
        self._report = report
        self._warm = WarmRegistry(self._ledger)
        self._sessions: dict[str, WatchedSession] = {}
        self._calls: dict[int, tuple[str, str]] = {}
        """Intent and method of each open call."""
        self._number = 0
        self._is_alone = self._is_ending = False

    @property
    def is_done(self) -> bool:
        """Whether the run has ended or is gone, and no session is left to stop."""
        return not self._sessions and (self._is_ending or self._is_alone)

    @property
    def has_warm(self) -> bool:
        """Whether any session is kept warm."""
        return bool(self._warm)

    @property
    def open_calls(self) -> list[int]:
        return list(self._calls)

    def next_due(self) -> float | None:
        """Return when the next call is due, on the monotonic clock; None if none is planned."""
        times = [
            session.due
            for session in self._sessions.values()
            if session.due is not None
        ]
        if self._warm:
            times.append(time.monotonic() + self._warm.pause())

        return min(times, default=None)

    def handle(self, request: messages.Request) -> None:
        """Handle a request of the run; ignore those for finished sessions."""
        match request:
            case messages.Create(entry, body, needs_entry):
                self._create(entry, body, needs_entry=needs_entry)
            case messages.Register(entry, is_foreign):
                self._begin(entry).is_foreign = is_foreign
            case messages.Stop(intent):
                self._stop(intent)
            case messages.Keep(intent):
                self._keep(intent)
            case messages.KeepWarm(entry, seconds):
                self._keep_warm(entry, seconds)
            case messages.Claim(entry, directory):
                self._claim(entry, Ledger(directory))
            case messages.End():
                self._is_ending = True
                self._stop_all()
            case _:
                assert_never(request)

    def on_run_gone(self) -> None:
        """Stop all sessions: the run has died or closed the channel."""
        self._is_alone = True
        self._stop_all()

    def end_warm(self) -> None:
        """Stop warm sessions whose time is up."""
        for entry in self._warm.expired():
            self._stop_warm(entry)

    def due_calls(self) -> Iterator[messages.Call]:
        """Yield the calls to send now; each needs an answer."""
        now = time.monotonic()

        for session in list(self._sessions.values()):
            if session.due is None or session.due > now:
                continue

            # It was never sent, and need not be.
            if session.phase is Phase.ABANDONED:
                self._forget(session)
                answer = messages.NoReply("it was not sent", sent=False)
                self._report(
                    messages.Answered(session.entry.intent, answer, refused=True)
                )
                continue

            self._number += 1
            call = session.call(self._number)
            self._calls[self._number] = session.entry.intent, call.method
            yield call

    def on_answer(self, returned: messages.Returned) -> None:
        intent, method = self._calls.pop(returned.number)
        session = self._sessions.get(intent)
        if session is None:
            return

        if not session.entry.session_id:
            self._on_create_answer(session, returned.answer)
        elif isinstance(returned.answer, messages.Reply) and _proves_end(
            returned.answer, session.entry.session_id
        ):
            self._forget(session, Phase.STOPPED)
            self._report(messages.Stopped(intent, returned.answer))
        elif method == "GET":
            self._on_lookup(session, returned.answer)
        else:
            session.note(returned.answer, time.monotonic())
            session.refused(returned.answer)

    # Requests.

    def _create(self, entry: Entry, body: str, *, needs_entry: bool) -> None:
        """Write the intent before the call is sent."""
        # Not by the clock of the run: by a frozen one, the session would seem to have ended long ago.
        now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        entry = entry._replace(asked_at=now)
        try:
            if self._ledger:
                self._ledger.add(entry)
        except OSError as error:
            if needs_entry:
                self._report(messages.NotSent(entry.intent, self._problem(error)))
                return
            self._report(messages.LedgerFailed(self._problem(error)))

        self._begin(entry, body, due=time.monotonic())

    def _begin(
        self, entry: Entry, body: str | None = None, due: float | None = None
    ) -> WatchedSession:
        session = self._sessions[entry.intent] = WatchedSession(entry, body, due)
        if self._is_ending or self._is_alone:
            session.request_stop()
        return session

    def _stop_all(self) -> None:
        for session in self._sessions.values():
            session.request_stop()

    def _stop(self, intent: str) -> None:
        if intent in self._sessions:
            self._sessions[intent].request_stop()
        elif intent not in self._warm:
            return
        elif entry := self._warm.reclaim(intent):
            self._stop_warm(entry)
        else:
            self._report(messages.Gone(intent))

    def _stop_warm(self, entry: Entry) -> None:
        session = self._begin(entry)
        session.is_due = True
        self._report(messages.Due(entry.intent))
        session.request_stop()

    def _keep(self, intent: str) -> None:
        if intent in self._sessions:
            self._record(self._sessions.pop(intent).end(Phase.KEPT))
            self._report(messages.Kept(intent))

    def _keep_warm(self, entry: Entry, seconds: float) -> None:
        if entry.intent not in self._sessions:
            return

        if self._is_written(lambda: self._warm.keep(entry, seconds)):
            self._sessions.pop(entry.intent).end(Phase.WARM)
            self._report(messages.Kept(entry.intent))
        else:
            self._report(messages.NotKept(entry.intent))

    def _claim(self, entry: Entry, of: Ledger) -> None:
        if not self._warm.claim(entry, of):
            self._report(messages.Gone(entry.intent))
            return

        self._begin(entry)
        self._record(entry)
        self._report(messages.Claimed(entry.intent))

    # Answers.

    def _on_create_answer(
        self, session: WatchedSession, answer: messages.Answer
    ) -> None:
        match answer:  # whether it certainly created no session
            case messages.Reply(status, body, retry_after, located_id):
                refused = not located_id and created_nothing(status, body, retry_after)
            case messages.NoReply(sent=False) if (
                session.phase is Phase.CREATING and session.attempts < ATTEMPTS
            ):
                session.due = time.monotonic() + pause_after(session.attempts)
                return
            case messages.NoReply(sent=sent):
                refused = not sent

        session_id, url = ("", "") if refused else _created_session(answer)
        if self._token in url:
            url = ""

        if session_id:
            session.created(
                session.entry.created(session_id, url, answer.body)._replace(
                    state=Phase.LIVE
                )
            )
            self._record(session.entry)
        elif refused:
            self._forget(session)
        else:  # stays in the ledger until its time is up
            del self._sessions[session.entry.intent]
            self._record(session.end(Phase.LOST))

        self._report(
            messages.Answered(session.entry.intent, answer, session_id, url, refused)
        )

    def _on_lookup(self, session: WatchedSession, answer: messages.Answer) -> None:
        now = time.monotonic()
        session.note(answer, now)

        if session.phase is Phase.STOPPING:
            session.due = now + LOOKUP_SECONDS
        # Else it began before, and another one has decided.
        elif session.phase is Phase.CHECKING and session.refusal:
            self._on_unproven_stop(session, session.refusal, answer)

    def _on_unproven_stop(
        self, session: WatchedSession, refusal: messages.Answer, lookup: messages.Answer
    ) -> None:
        """Decide the next step after a stop and a lookup that do not prove the end. No refusal is final."""
        intent = session.entry.intent
        now = time.monotonic()
        reason = (
            lookup
            if isinstance(refusal, messages.Reply) and is_success(refusal.status)
            else refusal
        )
        missing_seconds = (
            None if session.missing_since is None else now - session.missing_since
        )

        match lookup:
            case messages.Reply() if (
                missing_seconds is not None
                and missing_seconds >= self._gone_after(session)
            ):
                self._forget(session, Phase.GONE)
                self._report(messages.Missing(intent, lookup))
            case _ if now >= session.deadline or self._gives_up(session, refusal):
                del self._sessions[intent]
                self._report(messages.GaveUp(intent, reason))
            case _:
                delays = [
                    answer.retry_after or 0.0
                    for answer in (refusal, lookup)
                    if isinstance(answer, messages.Reply)
                ]
                session.retry_stop(
                    now + pause_after(session.attempts, max(delays, default=None))
                )
                self._report(messages.Delayed(intent, reason))

    def _gives_up(self, session: WatchedSession, refusal: messages.Answer) -> bool:
        """Return whether to stop trying before the session's limit."""
        is_never_gone = (
            session.missing_since is not None and self._gone_after(session) == inf
        )
        return is_never_gone or (
            session.is_foreign and _is_final(refusal, session.attempts)
        )

    def _gone_after(self, session: WatchedSession) -> float:
        """Return the seconds of 404 answers after which it counts as gone; infinite if it was never seen here."""
        if self._gone_seconds is None or not session.entry.service:
            return inf
        return self._gone_seconds

    # The ledger.

    def _forget(self, session: WatchedSession, end: Phase | None = None) -> None:
        """Remove a session that has ended, or was never created; leave a tombstone if its report may go unread."""
        entry = session.end(end) if end else session.entry
        ledger = self._ledger
        del self._sessions[entry.intent]
        leaves_tombstone = (
            self._is_alone or self._leaves_tombstones
        ) and not session.is_due

        # If a full disk takes no tombstone, the process that reconciles the run stops it once more.
        is_noted = bool(
            ledger and leaves_tombstone and end and ledger.holds(entry.intent)
        ) and (self._record(entry) or not self._is_alone)
        if ledger and not is_noted:
            self._is_written(lambda: ledger.remove(entry.intent))

    def _record(self, entry: Entry) -> bool:
        ledger = self._ledger
        return ledger is None or self._is_written(lambda: ledger.write(entry))

    def _is_written(self, write: Callable[[], None]) -> bool:
        """Write to the ledger; return False and report the problem if that fails."""
        try:
            write()
        except OSError as error:
            self._report(messages.LedgerFailed(self._problem(error)))
            return False

        return True

    def _problem(self, error: OSError) -> str:
        """Describe an error alike for all files, so that the run shows it once."""
        return f"{error.strerror or error} ({self._ledger.directory if self._ledger else ''})"


def _created_session(answer: messages.Answer) -> tuple[str, str]:
    """Return the ID and the page of a session that a create call may have created, each empty if it is unknown."""
    session_id = session_id_in(answer.body) or ""
    if not session_id and isinstance(answer, messages.Reply):
        session_id = answer.located_id

    return session_id, url_in(answer.body)


def _is_final(refusal: messages.Answer, attempts: int) -> bool:
    """Return whether the service leaves a session to another token, which created it.

    An intermediary's page proves less than the service's own words, so the call is repeated a few times after one.
    """
    match refusal:
        case messages.Reply(status, body) if is_access_refusal(status):
            return attempts >= ATTEMPTS or not is_page(body)
        case _:
            return False


def _proves_end(reply: messages.Reply, session_id: str) -> bool:
    return is_success(reply.status) and says_stopped(reply.body, session_id)

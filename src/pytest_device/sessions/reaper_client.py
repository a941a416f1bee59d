"""A process's connection to its reaper, which makes all create and stop calls and outlives the process."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid4

from pytest_device.errors import ServiceError, TransportError
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import Event
from pytest_device.sessions.ledger import LIVE, Entry, Ledger, in_utc, seconds_until
from pytest_device.sessions.models import Session
from pytest_device.sessions.partial import is_same
from pytest_device.sessions.pending import (
    PendingSession,
    R,
    is_refused,
    read_created,
    unwritten,
)
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.reaper.channel import NoReaper, ReaperChannel
from pytest_device.sessions.reporter import Reporter
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.retry_policy import GONE_SECONDS
from pytest_device.sessions.runs import OwnRun
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

CREATE_SECONDS: Final = 120.0
"""Seconds to wait for the response to a create call: all of the reaper's attempts, and a margin."""
STOP_SECONDS: Final = 5.0
"""Seconds that a test's teardown waits for the stop; after that the reaper continues alongside the next test."""


@dataclass(frozen=True, slots=True)
class ReaperConfig:
    """Settings for the supervision of a process's sessions."""

    detached: bool = True
    """Use a reaper that outlives the process; if False or impossible, the process itself supervises them."""
    follow: tuple[int, ...] = ()
    """Processes whose end also counts as the end of this one."""
    leaves_tombstones: bool = False
    """Leave stopped sessions in the ledger for the process that reconciles the run at its end."""
    stop_seconds: float = STOP_SECONDS
    gone_seconds: float | None = GONE_SECONDS
    """Seconds of 404 responses after which a known session counts as gone; None: it never does."""


class ReaperClient:
    """Creates, gets and stops sessions so that they end with this process, however it ends.

    Use one per process: a forked child creates its own. Closing it closes ``client``, too.
    """

    def __init__(
        self,
        client: DeviceClient,
        endpoint: messages.Endpoint,
        *,
        vendor: str,
        run: OwnRun | None,
        config: ReaperConfig,
        reporter: Reporter,
    ) -> None:
        self.base_url = client.base_url
        self.pid = os.getpid()
        self.account = run.account(endpoint.token) if run else ""
        """Identifies the token in the ledger's entries."""
        self._stop_seconds = config.stop_seconds
        self._client, self._vendor, self._run, self._reporter = (
            client,
            vendor,
            run,
            reporter,
        )
        self._sessions: dict[str, PendingSession] = {}
        self._is_damage_reported = self._is_ending = False
        self._change = threading.Condition()
        ledger = run.ledger.directory if run else None
        self._channel = ReaperChannel(
            messages.Start(
                endpoint,
                ledger,
                (self.pid, *config.follow),
                config.leaves_tombstones,
                config.gone_seconds,
            ),
            detached=config.detached,
            on_report=self._on_report,
            restore=self._restore,
        )

    def create(self, request: SessionRequest) -> Session:
        """Create a session; after an interrupt the reaper stops it. Raises ConfigError without a writable ledger."""
        report = self._created(request)
        if isinstance(report, messages.NotSent) and self._run:
            try:
                self._run.rejoin()
            except OSError as error:
                raise unwritten(str(error)) from None
            report = self._created(request)
        return self._client.hide(read_created(report, self.base_url))

    def _created(self, request: SessionRequest) -> messages.Answered | messages.NotSent:
        pending = self._add(self._intent(request))
        create = messages.Create(
            pending.entry, json.dumps(request.to_wire(self._vendor))
        )
        report = self._answer(
            pending, create, CREATE_SECONDS, messages.Answered, messages.NotSent
        )
        if not isinstance(report, messages.Answered | messages.NotSent):
            raise TransportError(
                f"create: no response within {CREATE_SECONDS:.0f} s", sent=True
            )
        pending.is_reported = pending.is_done
        if (
            isinstance(report, messages.NotSent) or report.refused
        ):  # nothing to keep track of
            del self._sessions[pending.entry.intent]
        return report

    def get(self, session_id: UUID | str) -> Session:
        session = self._client.get(session_id)
        for pending in list(self._sessions.values()):
            pending.is_seen |= is_same(pending.entry.session_id, str(session.id))
        return session

    def stop(self, session_id: UUID | str) -> Session:
        """Stop a session; raises StopDelayedError if that takes longer and continues in the background."""
        pending = self._of(session_id)
        if not isinstance(pending.last, messages.Stopped):  # stopped by an earlier call
            self._request_stop(pending)
            for report in pending.reports(self._stop_seconds):
                pending.is_reported = isinstance(
                    report, messages.Stopped | messages.Missing | messages.GaveUp
                )
                if pending.is_reported or is_refused(report):
                    break
        return pending.stopped()

    def keep(self, session_id: UUID | str) -> None:
        """Deliberately leave a session running until its own limits end it."""
        pending = self._of(session_id)
        self._channel.send(messages.Keep(pending.entry.intent))
        pending.first(STOP_SECONDS, messages.Kept)

    @property
    def can_keep_warm(self) -> bool:
        """Whether later runs can find warm sessions."""
        return self._run is not None

    def keep_warm(
        self,
        session_id: UUID | str,
        *,
        until: datetime,
        ends: datetime,
        request_digest: str,
    ) -> bool:
        """Keep a session warm for an equal request until ``until``; returns False if that is impossible.

        ``ends`` is when it reaches its maximum duration.
        """
        pending = self._of(session_id)
        if self._run is None:
            return False
        pending.entry = pending.entry._replace(
            request_digest=request_digest, until=in_utc(until), ends=in_utc(ends)
        )
        self._channel.send(messages.KeepWarm(pending.entry, seconds_until(until)))
        return isinstance(
            pending.first(STOP_SECONDS, messages.Kept, messages.NotKept), messages.Kept
        )

    def take_over(self, entry: Entry, of: Ledger) -> bool:
        """Take over a session that another run kept warm; False if it is no longer available."""
        if self._run is None:
            return False
        entry = entry._replace(
            owner=self._run.owner, state=LIVE, until="", ends="", request_digest=""
        )
        pending = self._add(entry, is_claim=True)
        claim = messages.Claim(entry, of.directory)
        report = self._answer(
            pending, claim, STOP_SECONDS, messages.Claimed, messages.Gone
        )
        pending.is_claim = not isinstance(report, messages.Claimed)
        return not pending.is_claim

    def is_of_run(self, ledger: Ledger) -> bool:
        """Return whether a ledger belongs to this process's run."""
        return self._run is not None and self._run.ledger.directory == ledger.directory

    def end_warm(self) -> None:
        """Stop this process's unclaimed warm sessions; ``close`` returns the results."""
        for pending in list(self._sessions.values()):
            if self._keeps_warm(pending):
                pending.reopen()
                self._request_stop(pending)

    def register(self, entry: Entry) -> PendingSession:
        """Supervise a session that was created elsewhere: ``close`` stops it."""
        pending = self._add(entry)
        self._channel.send(messages.Register(entry))
        return pending

    def leaves_unknown(self, error: BaseException) -> bool:
        """Return whether the response was lost; not if the call was interrupted, since the reaper receives it."""
        return isinstance(error, ServiceError) and self._client.leaves_unknown(error)

    def pending(self) -> int:
        """Return the number of unfinished sessions."""
        return sum(not pending.is_done for pending in list(self._sessions.values()))

    def on_termination(self) -> None:
        """Request the stop of all sessions; safe in a signal handler."""
        self._is_ending = self._channel.try_send(messages.End())

    def close(self, timeout_seconds: float) -> list[Event]:
        """Stop all remaining sessions concurrently; return the events of ends that were not reported yet.

        Sessions that are not stopped after ``timeout_seconds`` are reported as such; a detached reaper continues.
        """
        self._is_ending = True
        self._channel.send(messages.End())
        try:
            with (
                self._change
            ):  # a report that arrives after the wait belongs to the reaper alone
                with suppress(
                    KeyboardInterrupt
                ):  # ends the wait only: the reaper continues
                    self._change.wait_for(lambda: not self.pending(), timeout_seconds)
                unreported = [
                    pending
                    for pending in list(self._sessions.values())
                    if not pending.is_reported
                ]
            return [event for pending in unreported for event in pending.end_events()]
        finally:
            self._channel.close()
            self._client.close()
            if self._run:
                self._run.leave()

    def _intent(self, request: SessionRequest) -> Entry:
        longest = request.max_duration_minutes or DURATION_MAX_MINUTES
        return Entry(
            intent=uuid4().hex,
            owner=self._run.owner if self._run else "",
            service=self.base_url,
            label=f"{request.platform} {request.type}",
            name=request.name or "",
            asked_at=in_utc(datetime.now(UTC)),
            minutes=longest + CLEANUP_MINUTES,
            account=self.account,
        )

    def _add(self, entry: Entry, *, is_claim: bool = False) -> PendingSession:
        pending = self._sessions[entry.intent] = PendingSession(
            entry, is_claim=is_claim
        )
        return pending

    def _of(self, session_id: UUID | str) -> PendingSession:
        for pending in list(
            self._sessions.values()
        ):  # another thread may create a session meanwhile
            if is_same(pending.entry.session_id, str(session_id)):
                return pending
        return self.register(Entry.of_session(str(session_id)))

    def _answer(
        self,
        pending: PendingSession,
        request: messages.Request,
        seconds: float,
        *kinds: type[R],
    ) -> R | None:
        """Send a request and return its response; without a response, request the stop of the session."""
        if self._is_ending:
            raise TransportError(
                "create: not sent, because a signal is ending the run", sent=False
            )
        try:
            for _ in range(2):  # a killed reaper is replaced
                self._channel.await_ready()
                if self._channel.send(request, on_sent=pending.note_sent):
                    break
            report = pending.first(seconds, *kinds)
        except BaseException:
            self._request_stop(pending)
            raise
        if report is None:
            self._request_stop(pending)
        return report

    def _keeps_warm(self, pending: PendingSession) -> bool:
        """Return whether this process keeps a session warm that no run has claimed."""
        return bool(
            self._run
            and pending.entry.until
            and self._run.ledger.keeps_warm(pending.entry.intent)
        )

    def _request_stop(self, pending: PendingSession) -> None:
        pending.stop_requested = True
        self._channel.send(messages.Stop(pending.entry.intent))

    # Called by the reaper, in a thread of the channel.

    def _on_report(
        self, report: messages.SessionReport | messages.LedgerFailed | NoReaper
    ) -> None:
        if isinstance(report, messages.LedgerFailed):
            self._report_damage(report.problem)
        elif isinstance(report, NoReaper):
            self._reporter.note(report.problem)
        elif pending := self._sessions.get(report.intent):
            self._note(pending, report)

    def _note(self, pending: PendingSession, report: messages.SessionReport) -> None:
        with self._change:
            pending.on_report(report)
            self._change.notify_all()

    def _restore(self) -> Iterator[messages.Request]:
        """Yield the requests that the successor of a killed reaper needs."""
        for pending in list(self._sessions.values()):
            if self._keeps_warm(pending):
                yield from self._restore_warm(pending)
            elif not pending.is_done:
                yield from self._restore_live(pending)
        if self._is_ending:
            yield messages.End()

    def _restore_live(self, pending: PendingSession) -> Iterator[messages.Request]:
        entry = pending.entry
        if pending.is_claim and not (
            self._run and self._run.ledger.holds(entry.intent)
        ):
            self._note(pending, messages.Gone(entry.intent))
        elif entry.session_id:
            yield messages.Register(entry)
            if pending.stop_requested:
                yield messages.Stop(entry.intent)
        elif pending.is_sent:
            self._note(
                pending,
                messages.Answered(
                    entry.intent, messages.NoReply("the reaper was killed", sent=True)
                ),
            )

    def _restore_warm(self, pending: PendingSession) -> Iterator[messages.Request]:
        """Yield the requests that keep a session warm, or stop it, unless another run claims it."""
        entry = pending.entry._replace(state=LIVE)
        yield messages.Claim(entry, self._run.ledger.directory if self._run else "")
        if pending.stop_requested:
            yield messages.Stop(entry.intent)
        else:
            yield messages.KeepWarm(
                entry, seconds_until(datetime.fromisoformat(entry.until))
            )

    def _report_damage(self, problem: str) -> None:
        text = f"the ledger cannot be written ({problem}): later runs cannot stop sessions that this run leaves running"
        if not self._is_damage_reported:
            self._is_damage_reported = True
            self._reporter.note(text)

"""A process's connection to its reaper, which makes all create and stop calls and outlives the process."""

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Final
from uuid import UUID

from pytest_device.errors import (
    ConfigError,
    CreateDelayedError,
    ServiceError,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.figures import counted
from pytest_device.options import Options
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import Event
from pytest_device.sessions.ledger import Entry, Ledger, in_utc, seconds_until
from pytest_device.sessions.lifecycle import SLICE_SECONDS
from pytest_device.sessions.models import Session
from pytest_device.sessions.partial import is_same
from pytest_device.sessions.pending_session import PendingSession, Report
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.reaper.channel import NoReaper, ReaperChannel, ReaperLimited
from pytest_device.sessions.replies import no_answer, read_session
from pytest_device.sessions.reporter import PROGRESS_SECONDS, Reporter, SafetyNet
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.retry_policy import GONE_SECONDS, is_refusal
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.states import Phase
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

CREATE_SECONDS: Final = 120.0
"""Seconds to wait for the response to a create call, unless the caller sets another limit."""
MIN_CREATE_SECONDS: Final = 5.0
"""Minimum seconds to wait for it, whatever limit is set: a session that is created later is paid for and not used."""
LATE_SECONDS: Final = 10.0
"""Seconds that the end of a run waits for responses to create calls; after that, only the reaper does."""
_WITHOUT_REAPER: Final = (
    "the run stops its sessions itself; if it is killed, they run until their limits"
)
STOP_SECONDS: Final = 5.0
"""Seconds that a test's teardown waits for the stop; after that the reaper continues alongside the next test."""


def never() -> bool:
    """Return False: a wait is not skipped."""
    return False


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
    min_create_seconds: float = MIN_CREATE_SECONDS
    progress_seconds: float = PROGRESS_SECONDS
    late_seconds: float = LATE_SECONDS
    gone_seconds: float | None = GONE_SECONDS
    """Seconds of 404 responses after which a known session counts as gone; None: it never does."""
    requirement: str = ""
    """Where ledger and reaper are required, so that no session is created without them; empty if they are not."""


class ReaperClient:
    """Creates, gets and stops sessions so that they end with this process, however it ends.

    A forked child is refused: it has neither the threads nor the lock. Closing it closes ``client``, too.
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
        self._config = config
        self._client = client
        self._vendor = vendor
        self._run = run
        self._reporter = reporter
        self._requirement = config.requirement
        self._sessions: dict[str, PendingSession] = {}
        self._numbers = count(1)
        self._is_ending = False
        self._missing_reaper = ""
        """Why no reaper process supervises the sessions; empty if one does, or if none is wanted."""
        self._warnings: queue.SimpleQueue[tuple[SafetyNet, str]] = queue.SimpleQueue()
        """Unreported warnings, which the channel's thread must not show: the terminal belongs to the tests' thread."""
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

    def create(
        self, request: SessionRequest, *, timeout_seconds: float | None = None
    ) -> Session:
        """Create a session; after an interrupt the reaper stops it.

        The reaper sends the call: a process that is killed meanwhile would lose the response, and with it the ID.

        Arguments:
            request: What to create.
            timeout_seconds: How long to wait for the response.

        Raises:
            CreateDelayedError: There was none in time. The reaper waits for it until the session's limit has passed, and
                stops a session that was created.
            ConfigError: Ledger and reaper are required, and one is missing.
            ServiceError: The service refused, or the response was lost.
        """
        self._refuse_fork()
        seconds = CREATE_SECONDS
        if timeout_seconds is not None:
            seconds = max(timeout_seconds, self._config.min_create_seconds)
        report = self._request(request, seconds)
        if isinstance(report, messages.NotSent):
            raise ConfigError(
                f"the ledger cannot be written ({report.problem}). No session was requested, because "
                f"{self._requirement} is set. Free disk space or make the directory writable, or set another with "
                f"{Options.state_dir.flag}"
            )

        return self._client.hide(_read_created(report, self.base_url))

    def _request(
        self, request: SessionRequest, seconds: float
    ) -> messages.Answered | messages.NotSent:
        pending = self._track(self._new_entry(request))
        body = json.dumps(request.to_wire(self._vendor))
        create = messages.Create(pending.entry, body, bool(self._requirement))

        report = self._exchange(
            pending, create, seconds, messages.Answered, messages.NotSent
        )
        if not isinstance(report, messages.Answered | messages.NotSent):
            pending.is_given_up = True
            raise CreateDelayedError(
                f"create: no response within {seconds:.0f} s. The call stays open: a session named {request.name!r} "
                "that it still creates is stopped, and the end of the run reports it"
            )

        self._show_warnings()
        pending.is_reported = pending.is_done
        # No session: there is nothing to keep track of.
        if isinstance(report, messages.NotSent) or report.refused:
            del self._sessions[pending.entry.intent]

        return report

    def get(self, session_id: UUID | str) -> Session:
        self._refuse_fork()
        session = self._client.get(session_id)
        # A comparison takes time, and a run may have thousands of sessions: nearly all were seen before.
        for pending in list(self._sessions.values()):
            if not pending.is_seen and is_same(
                pending.entry.session_id, str(session.id)
            ):
                pending.is_seen = True

        return session

    def stop(self, session_id: UUID | str) -> Session:
        """Stop a session; raises StopDelayedError if that takes longer and continues in the background."""
        self._refuse_fork()
        pending = self._pending_of(session_id)
        # An earlier call may have stopped it.
        if isinstance(pending.last, messages.Stopped):
            return pending.stopped()

        self._request_stop(pending)
        for report in pending.reports(self._config.stop_seconds):
            pending.is_reported = isinstance(
                report, messages.Stopped | messages.Missing | messages.GaveUp
            )
            if pending.is_reported or _is_refused(report):
                break

        return pending.stopped()

    def _refuse_fork(self) -> None:
        if os.getpid() != self.pid:
            raise ConfigError(
                "a process that a test forked can't use the run's devices: make the call before the fork"
            )

    def keep(self, session_id: UUID | str) -> None:
        """Deliberately leave a session running until its own limits end it."""
        pending = self._pending_of(session_id)
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
        pending = self._pending_of(session_id)
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
            owner=self._run.owner,
            state=Phase.LIVE,
            until="",
            ends="",
            request_digest="",
            account=self.account,
        )
        pending = self._track(entry, is_claim=True)
        claim = messages.Claim(entry, of.directory)
        report = self._exchange(
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

    def register(self, entry: Entry, *, is_foreign: bool = False) -> PendingSession:
        """Supervise a session that was created elsewhere: ``close`` stops it.

        ``is_foreign``: another token created it, so ``close`` does not repeat a stop that is refused to this one.
        """
        pending = self._track(entry)
        self._channel.send(messages.Register(entry, is_foreign))
        return pending

    def leaves_unknown(self, error: BaseException) -> bool:
        """Return whether the response was lost; not if the call was interrupted, since the reaper receives it."""
        # Not lost yet: ``close`` reports the result.
        if isinstance(error, CreateDelayedError):
            return False
        return isinstance(error, ServiceError) and self._client.leaves_unknown(error)

    def unfinished(self) -> int:
        """Return the number of unfinished sessions, without those whose create call has no response yet."""
        return sum(
            not (pending.is_done or pending.is_unanswered)
            for pending in list(self._sessions.values())
        )

    def awaited(self, timeout_seconds: float) -> str:
        """Return what ``close`` would wait for, and for how long, for the user; empty if nothing is left."""
        if unfinished := self.unfinished():
            return f"waiting up to {timeout_seconds:.0f} s for {counted(unfinished, 'session')} to stop"

        if unanswered := self._unanswered():
            seconds = self._late_seconds(timeout_seconds)
            return f"waiting up to {seconds:.0f} s for the response to {counted(unanswered, 'create call')}"

        return ""

    def _unanswered(self) -> int:
        """Return the number of create calls without a response."""
        return sum(pending.is_unanswered for pending in list(self._sessions.values()))

    def _late_seconds(self, timeout_seconds: float) -> float:
        """Return for how many of ``timeout_seconds`` ``close`` waits for them: briefly if a reaper waits longer."""
        if self._channel.is_detached:
            return min(self._config.late_seconds, timeout_seconds)
        return timeout_seconds

    def on_termination(self) -> None:
        """Request the stop of all sessions; safe in a signal handler."""
        self._is_ending = self._channel.try_send(messages.End())

    def close(
        self,
        timeout_seconds: float,
        is_skipped: Callable[[], bool] = never,
    ) -> list[Event]:
        """Stop all remaining sessions concurrently; return the events of ends that were not reported yet.

        Sessions that are not stopped after ``timeout_seconds`` are reported as such; a detached reaper continues. It
        also continues to wait for responses to create calls, which this waits for only briefly. A KeyboardInterrupt ends
        the wait, too, and so does ``is_skipped`` if a detached reaper continues.
        """
        self._is_ending = True
        self._channel.send(messages.End())

        try:
            # A report that arrives after the wait belongs to the reaper alone.
            with self._change:
                # Ends the wait only: the reaper continues.
                with suppress(KeyboardInterrupt):
                    self._await_ends(timeout_seconds, is_skipped)

                unreported = [
                    pending
                    for pending in list(self._sessions.values())
                    if not pending.is_reported
                ]

            outlives_run = self._channel.is_detached
            return [
                event
                for pending in unreported
                for event in pending.end_events(outlives_run=outlives_run)
            ]
        finally:
            self._show_warnings()
            self._channel.close()
            self._client.close()
            # Last: while this process holds its lock, no sweep touches its sessions.
            if self._run:
                self._run.leave()

    def _await_ends(
        self, timeout_seconds: float, is_skipped: Callable[[], bool]
    ) -> None:
        began = time.monotonic()
        late_until = began + self._late_seconds(timeout_seconds)
        until = began + timeout_seconds

        while (now := time.monotonic()) < until:
            # Without a reaper, nobody else would stop them.
            if is_skipped() and self._channel.is_detached:
                return
            if not self.unfinished() and (now >= late_until or not self._unanswered()):
                return

            # A signal is handled during the wait, but does not end it.
            self._change.wait(min(SLICE_SECONDS, until - now))

    def _new_entry(self, request: SessionRequest) -> Entry:
        # Also for 0, whose meaning the document leaves open: rather an entry for too long than a session without one.
        longest = request.max_duration_minutes or DURATION_MAX_MINUTES
        return Entry(
            intent=self._new_name(),
            owner=self._run.owner if self._run else "",
            service=self.base_url,
            label=f"{request.platform} {request.type}",
            name=request.name or "",
            asked_at=in_utc(datetime.now(UTC)),
            minutes=longest + CLEANUP_MINUTES,
            account=self.account,
        )

    def _new_name(self) -> str:
        """Return a name that no entry has, even of a dead process with this one's ID."""
        run = self._run
        prefix = f"{run.name}-{run.owner}" if run else str(self.pid)
        names = (f"{prefix}-{number}" for number in self._numbers)
        return next(name for name in names if run is None or run.ledger.is_free(name))

    def _track(self, entry: Entry, *, is_claim: bool = False) -> PendingSession:
        pending = self._sessions[entry.intent] = PendingSession(
            entry, is_claim=is_claim
        )
        return pending

    def _pending_of(self, session_id: UUID | str) -> PendingSession:
        # A copy, since another thread may create a session meanwhile. The latest first: it is nearly always one of these,
        # and a run may have thousands.
        for pending in reversed(list(self._sessions.values())):
            if is_same(pending.entry.session_id, str(session_id)):
                return pending
        return self.register(Entry.of_session(str(session_id)))

    def _exchange(
        self,
        pending: PendingSession,
        request: messages.Request,
        seconds: float,
        *kinds: type[Report],
    ) -> Report | None:
        """Send a request and return its response; without a response, request the stop of the session."""
        if self._is_ending:
            raise _run_ending()

        try:
            self._send(pending, request)
            report = self._first_report(pending, seconds, *kinds)
        except BaseException:
            self._request_stop(pending)
            raise

        if report is None:
            self._request_stop(pending)

        return report

    def _send(self, pending: PendingSession, request: messages.Request) -> None:
        """Send a request, to the successor of a killed reaper if necessary."""
        # A second process follows the first one, and then this process itself.
        for _ in range(3):
            self._channel.await_ready()
            if isinstance(request, messages.Create):
                self._check_reaper()
            if self._channel.send(request, on_sent=pending.note_sent):
                return

        # The process that this one follows has ended, and with it the reaper.
        raise _run_ending()

    def _first_report(
        self, pending: PendingSession, seconds: float, *kinds: type[Report]
    ) -> Report | None:
        """Return the first report of these kinds within ``seconds``; report a long wait."""
        began = time.monotonic()
        until = began + seconds
        while (left := until - time.monotonic()) > self._config.progress_seconds:
            if report := pending.first(self._config.progress_seconds, *kinds):
                return report

            waited = time.monotonic() - began
            self._reporter.progress(
                f"{pending.entry.label}: no response to the create call after {waited:.0f} s"
            )

        return pending.first(max(0.0, left), *kinds)

    def _check_reaper(self) -> None:
        """Show whether a reaper is missing, which is known once the channel is ready; raise ConfigError if required."""
        if self._requirement and self._missing_reaper:
            raise ConfigError(
                f"{self._missing_reaper}. No session was requested, because {self._requirement} is set: run pytest "
                "where processes can be started, or remove that setting"
            )

        self._show_warnings()

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
        self,
        report: messages.SessionReport
        | messages.LedgerFailed
        | NoReaper
        | ReaperLimited,
    ) -> None:
        if isinstance(report, messages.LedgerFailed):
            self._warnings.put((SafetyNet.LEDGER, _unwritten(report.problem)))
        elif isinstance(report, ReaperLimited):
            self._warnings.put((SafetyNet.DETACHED_REAPER, report.limit))
        elif isinstance(report, NoReaper):
            self._missing_reaper = report.problem
            # Else the next create call is refused, with the reason.
            if not self._requirement:
                self._warnings.put(
                    (SafetyNet.REAPER, f"{report.problem}: {_WITHOUT_REAPER}")
                )
        elif pending := self._sessions.get(report.intent):
            self._record(pending, report)

    def _record(self, pending: PendingSession, report: messages.SessionReport) -> None:
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
            self._record(pending, messages.Gone(entry.intent))
        elif entry.session_id:
            yield messages.Register(entry)
            if pending.stop_requested:
                yield messages.Stop(entry.intent)
        # The response has died with the reaper, and a second call could create a second session.
        elif pending.is_sent:
            self._record(
                pending,
                messages.Answered(
                    entry.intent, messages.NoReply("the reaper was killed", sent=True)
                ),
            )

    def _restore_warm(self, pending: PendingSession) -> Iterator[messages.Request]:
        """Yield the requests that keep a session warm, or stop it, unless another run claims it."""
        entry = pending.entry._replace(state=Phase.LIVE)
        yield messages.Claim(entry, self._run.ledger.directory if self._run else "")

        if pending.stop_requested:
            yield messages.Stop(entry.intent)
        else:
            yield messages.KeepWarm(
                entry, seconds_until(datetime.fromisoformat(entry.until))
            )

    # The terminal, in the thread that uses this client.

    def _show_warnings(self) -> None:
        while not self._warnings.empty():
            self._reporter.warn(*self._warnings.get())


def _run_ending() -> TransportError:
    """Return the error of a request that is not sent, since nobody would supervise the session."""
    text = "create: not sent, because the run is ending"
    return TransportError(text, sent=False, is_run_ending=True)


def _unwritten(problem: str) -> str:
    return f"the ledger cannot be written ({problem}): later runs cannot stop sessions that this run leaves running"


def _is_refused(report: messages.SessionReport) -> bool:
    """Return whether the service itself refuses the stop for now, so that waiting briefly does not help."""
    match report:
        case messages.Delayed(_, messages.Reply(status, body)):
            return is_refusal(status, body)
        case _:
            return False


def _read_created(report: messages.Answered, base_url: str) -> Session:
    """Return the created session; raises a ServiceError, which carries the session's ID if one was created."""
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

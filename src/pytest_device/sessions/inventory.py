"""Sessions in this machine's ledger, for users who list or stop them."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pytest_device.figures import counted
from pytest_device.sessions.events import detail_of, is_proof
from pytest_device.sessions.ledger import Entry, date_and_time, time_of, time_of_day
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.runs import PastRun, account_of, past_runs
from pytest_device.sessions.session_id import SessionId
from pytest_device.sessions.states import TOMBSTONES, WITHOUT_ID, Phase
from pytest_device.sessions.sweep import (
    Findings,
    hidden,
    is_free,
    is_over,
    look_up_sessions,
    proven_in,
    stop_all,
)
from pytest_device.spec import CLEANUP_MINUTES


class Known(NamedTuple):
    """A session in the ledger."""

    entry: Entry
    run: PastRun
    is_alive: bool
    """Whether a process of its run may be alive, and thus responsible for it."""

    def to_json(self) -> dict[str, Any]:
        facts = self.entry._asdict()
        # The ledger's own names and digests say nothing to users.
        for name in ("intent", "owner", "request_digest", "ends", "account"):
            del facts[name]

        facts["page"] = facts.pop("url")
        facts["until"] = self.entry.until or None

        return {**facts, "run": self.run.directory.name, "run_alive": self.is_alive}

    def lines(self) -> Iterator[str]:
        entry = self.entry
        run = "active" if self.is_alive else "finished"
        state = (
            f"kept warm until {time_of_day(time_of(entry.until))}"
            if entry.state == Phase.WARM
            else entry.state
        )
        yield f"{entry.session_id or 'ID unknown'}  {state} (run {run}): {entry.label} {entry.name!r}"
        page = f", session page: {entry.url}" if entry.url else ""
        limit = f"max. duration {entry.minutes - CLEANUP_MINUTES} min (+{CLEANUP_MINUTES} min cleanup)"
        yield f"    created {date_and_time(entry.asked_at)}, {limit}, at {entry.service}{page}"


@contextmanager
def opened(state_dir: Path) -> Generator[tuple[list[Known], dict[str, str]]]:
    """Yield the known sessions, and the damaged files' paths with their problems.

    Holds the locks of finished runs meanwhile, so that no other process sweeps them. Raises OSError for an unreadable
    state directory.
    """
    sessions: list[Known] = []
    damaged: dict[str, str] = {}

    with ExitStack() as held:
        for run in past_runs(state_dir):
            is_alive = not held.enter_context(run.claimed())
            entries, broken = run.ledger.read()
            sessions += [Known(entry, run, is_alive) for entry in entries]
            damaged |= broken

        yield sessions, damaged


@dataclass(frozen=True, slots=True)
class Choice:
    """Sessions to stop: those with the given IDs; otherwise all, those of live runs only ``with_live_runs``."""

    ids: frozenset[SessionId] = frozenset()
    with_live_runs: bool = False

    def includes(self, known: Known) -> bool:
        if self.ids:
            return any(
                session_id.names(known.entry.session_id) for session_id in self.ids
            )
        return self.with_live_runs or not known.is_alive


@dataclass(frozen=True, slots=True)
class StopResult(Findings):
    """Results of stopping the chosen sessions."""

    skipped_live: int = 0
    """Number of sessions of live runs."""
    unknown_ids: list[str] = field(default_factory=list[str])
    """IDs that neither the ledger nor the service knows."""

    def problems(self) -> Iterator[str]:
        """Yield a line for each session that is not confirmed as stopped."""
        for event in self.stopped:
            if not is_proof(event):
                of = event.session
                where = of.url or of.session_id
                cost = f"may run up to {of.minutes} more minutes"
                yield f"not stopped: {of.label} {where}: {detail_of(event)}; {cost}"

        for entry in self.unknown:
            yield (
                f"cannot be stopped: {entry.label} named {entry.name!r}, because the response to its create call was "
                f"lost; it ends at most {entry.minutes} minutes after its creation at {date_and_time(entry.asked_at)}"
            )

        for entry in self.other_services:
            yield f"skipped: {entry.label} {entry.session_id or repr(entry.name)} belongs to {entry.service}"

        for session_id in self.unknown_ids:
            yield f"not stopped: session {session_id} is unknown to both the ledger and the service"

        for event in self.left_to_other_tokens:
            of = event.session
            yield (
                f"not stopped: {of.label} {of.url or of.session_id}: {detail_of(event)}; another access token created "
                f"it: with that token, run pytest-device stop {of.session_id}"
            )

        yield from self.damages()

    def lines(self) -> Iterator[str]:
        for event in self.stopped:
            if is_proof(event):
                yield f"stopped: {event.session.label} {event.session.session_id} ({detail_of(event)})"

        if self.already_stopped:
            yield f"{counted(len(self.already_stopped), 'session')} already stopped"

        if self.skipped_live:
            yield f"{counted(self.skipped_live, 'session')} of live runs skipped: use --all to stop them"


def stop_known(
    state_dir: Path, endpoint: Endpoint, choice: Choice, timeout_seconds: float
) -> StopResult:
    """Stop sessions of this service concurrently, and remove those confirmed as stopped from the ledger."""
    with opened(state_dir) as (known, damaged):
        account = account_of(state_dir, endpoint.token) if known else ""
        candidates = [session for session in known if choice.includes(session)]
        invisible = _invisible(candidates, endpoint, account)
        chosen = [
            session
            for session in candidates
            if session in invisible or _is_free_at(endpoint.url, session) or choice.ids
        ]
        here = [
            session
            for session in chosen
            if session.entry.state not in TOMBSTONES
            and session.entry.service == endpoint.url
        ]
        running = [
            session.entry
            for session in here
            if session.entry.state not in WITHOUT_ID and session not in invisible
        ]
        running.sort(key=lambda entry: not entry.is_of(account))

        unlisted = {
            str(session_id)
            for session_id in choice.ids
            if not any(session_id.names(session.entry.session_id) for session in known)
        }
        # For a mistyped ID, a 404 to the stop call would prove nothing.
        unknown = {
            session_id
            for session_id, session in look_up_sessions(endpoint, unlisted).items()
            if session is None
        }
        added = [
            Entry.of_session(session_id, label="session")
            for session_id in sorted(unlisted - unknown)
        ]

        events = stop_all(
            endpoint, [*running, *added], timeout_seconds, account=account
        )
        _forget(chosen, proven_in(events))

        now = datetime.now(UTC)
        result = StopResult(
            already_stopped=[
                session.entry for session in chosen if session.entry.state in TOMBSTONES
            ],
            left_to_other_tokens=[hidden(session.entry) for session in invisible],
            skipped_live=0 if choice.ids else len(known) - len(chosen),
            unknown=[
                session.entry
                for session in here
                if session.entry.state in WITHOUT_ID and not is_over(session.entry, now)
            ],
            other_services=[
                session.entry
                for session in chosen
                if session.entry.state not in TOMBSTONES and session not in here
            ],
            unknown_ids=sorted(unknown),
            damaged={} if choice.ids else damaged,
        )
        result.add_stops(events, running, account)

        return result


def _invisible(
    candidates: list[Known], endpoint: Endpoint, account: str
) -> list[Known]:
    """Return warm sessions that another token created and this one cannot look up: their owner may still use them."""
    warm = [
        session
        for session in candidates
        if session.entry.state == Phase.WARM
        and session.entry.service == endpoint.url
        and not session.entry.is_of(account)
    ]
    by_id = look_up_sessions(endpoint, [session.entry.session_id for session in warm])

    return [session for session in warm if by_id.get(session.entry.session_id) is None]


def _is_free_at(service_url: str, known: Known) -> bool:
    return known.entry.service != service_url or is_free(known.run, known.entry)


def _forget(chosen: list[Known], proven: set[str]) -> None:
    """Remove stopped sessions; a live run removes those that its own processes stopped."""
    for known in chosen:
        is_past = known.entry.state in TOMBSTONES or (
            known.entry.state in WITHOUT_ID and is_over(known.entry, datetime.now(UTC))
        )
        is_done = known.entry.session_id in proven or (is_past and not known.is_alive)
        known.run.clear([known.entry] if is_done else [])

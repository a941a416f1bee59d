"""Stops the sessions left in the ledger by earlier runs, and by the dead processes of this one."""

import time
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pytest_device.errors import NotFoundError, ServiceError
from pytest_device.figures import counted
from pytest_device.sessions import events, ledger
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import ReaperClient, ReaperConfig
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.sessions.runs import (
    OwnRun,
    PastRun,
    account_of,
    past_runs,
)
from pytest_device.sessions.states import TOMBSTONES, WITHOUT_ID, Phase
from pytest_device.spec import TERMINAL, Status

MIN_STOP_SECONDS: Final = 1.0
"""Minimum seconds for a stop, even if time is up."""
POLL_SECONDS: Final = 0.05
"""Seconds between reads of the ledger while a reaper is still working."""

OLD: Final = timedelta(days=1)
"""Time after a session's latest end at which one that cannot be looked up or stopped is reported for the last time."""
NAMED: Final = 5
"""Maximum number of stopped sessions that a sweep names."""


LeftoverSession = tuple[PastRun, ledger.Entry]


@dataclass(frozen=True, slots=True)
class Findings:
    """The sessions found in the ledger, by result."""

    stopped: list[events.StopEvent] = field(default_factory=list[events.StopEvent])
    """One event for each session that was stopped now, or that this access token created and could not stop."""
    left_to_other_tokens: list[events.StopEvent] = field(
        default_factory=list[events.StopEvent]
    )
    """One event for each session that another access token created and this one could not stop."""
    already_stopped: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Sessions that had been stopped before, or were gone."""
    unknown: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Create calls whose response was lost and whose session may still be running."""
    other_services: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Sessions at other services."""
    damaged: dict[str, str] = field(default_factory=dict[str, str])

    def add_stops(
        self,
        happened: Iterable[events.StopEvent],
        entries: Iterable[ledger.Entry],
        account: str,
    ) -> None:
        """Add the results of stop calls for these entries, which were made with the token of ``account``."""
        foreign = {entry.session_id for entry in entries if not entry.is_of(account)}
        for event in happened:
            is_left = not events.is_proof(event) and event.session.session_id in foreign
            (self.left_to_other_tokens if is_left else self.stopped).append(event)

    def damages(self) -> Iterator[str]:
        for path, reason in self.damaged.items():
            yield f"damaged ledger file {path} ({reason}): its session may still be running"


@dataclass(frozen=True, slots=True)
class SweepResult(Findings):
    """The sessions that a sweep found left by earlier runs."""

    kept: list[ledger.Entry] = field(default_factory=list[ledger.Entry])

    def notes(self) -> Iterator[str]:
        """Yield the notes for users."""
        proven = [
            event.session.session_id for event in self.stopped if events.is_proof(event)
        ]
        if proven:
            yield f"stopped {counted(len(proven), 'session')} left by earlier runs: {named(proven)}"

        for event in self.stopped:
            if not events.is_proof(event):
                of = event.session
                why = f"{events.detail_of(event)}\n    {of.url or of.session_id}"
                yield f"could not stop a session left by an earlier run: {of.label}: {why}"

        for what, state in (
            ("already stopped", Phase.STOPPED),
            ("no longer known to the service", Phase.GONE),
        ):
            if number := sum(entry.state == state for entry in self.already_stopped):
                yield f"{what}: {counted(number, 'session')} of interrupted runs"

        for entry in self.unknown:
            yield (
                f"an earlier run lost the response to a create call: {entry.label} named {entry.name!r}, created "
                f"{ledger.date_and_time(entry.asked_at)}, may be running; it ends after at most {entry.minutes} minutes"
            )

        yield from self._skipped()
        yield from self.damages()

    def _skipped(self) -> Iterator[str]:
        if others := self.other_services:
            services = ", ".join(sorted({entry.service for entry in others}))
            yield f"skipped {counted(len(others), 'session')} of earlier runs at another service ({services})"

        if unseen := self.left_to_other_tokens:
            ids = named((event.session.session_id for event in unseen), separator=" ")
            yield (
                f"could not stop {counted(len(unseen), 'session')} of earlier runs that another access token created "
                f"({events.detail_of(unseen[0])}). With that token: pytest-device stop {ids}"
            )


def named(ids: Iterable[str], separator: str = ", ") -> str:
    """Return the first IDs, as many as fit on a line."""
    ids = list(ids)
    more = ["…"] if len(ids) > NAMED else []
    return separator.join([*ids[:NAMED], *more])


def sweep(
    state_dir: Path, endpoint: Endpoint, *, exclude: str, timeout_seconds: float
) -> SweepResult:
    """Stop the sessions that finished runs left at this service, except for kept and warm ones.

    ``exclude`` is the name of the run that sweeps. A run is finished when all its locks are free; they are held meanwhile.
    """
    swept = SweepResult()
    runs = list[PastRun]()
    leftovers = list[LeftoverSession]()

    with ExitStack() as held:
        for run in past_runs(state_dir):
            try:
                if run.directory.name != exclude and held.enter_context(run.claimed()):
                    entries, damaged = run.ledger.read()
                    swept.damaged.update(damaged)
                    runs.append(run)
                    leftovers += [(run, entry) for entry in entries]
            except OSError as error:
                swept.damaged[str(run.directory)] = str(error)

        done = list[LeftoverSession]()
        if leftovers:
            done = _Sweep(swept, endpoint, state_dir).stopped(
                leftovers, timeout_seconds
            )

        for run in runs:
            run.clear([entry for of, entry in done if of is run])

    return swept


class _Sweep:
    """Stops sessions of finished runs, all at once, also those that another token created.

    Any other token of the service may be of the same account: CI services issue a new one for each job. What this token
    may not stop stays in the ledger for its owner.
    """

    def __init__(self, swept: SweepResult, endpoint: Endpoint, state_dir: Path) -> None:
        self._swept = swept
        self._endpoint = endpoint
        self._account = account_of(state_dir, endpoint.token)
        self._now = datetime.now(UTC)

    def stopped(
        self, leftovers: Iterable[LeftoverSession], timeout_seconds: float
    ) -> list[LeftoverSession]:
        """Return the entries that can be removed from the ledger."""
        done, kept, live = self._sorted(leftovers)
        done += self._stopped(live, timeout_seconds)

        ended, expired = self._looked_up(kept)
        done += [(run, entry) for run, entry in ended if is_free(run, entry)]
        done += self._stopped(
            [(run, entry) for run, entry in expired if is_free(run, entry)],
            timeout_seconds,
        )

        return done

    def _sorted(
        self, leftovers: Iterable[LeftoverSession]
    ) -> tuple[list[LeftoverSession], list[LeftoverSession], list[LeftoverSession]]:
        """Sort sessions into finished, to be looked up, and to be stopped; record the others as found."""
        done = list[LeftoverSession]()
        kept = list[LeftoverSession]()
        live = list[LeftoverSession]()

        for run, entry in leftovers:
            if entry.state in TOMBSTONES:
                self._swept.already_stopped.append(entry)
                done.append((run, entry))
            elif entry.service != self._endpoint.url or entry.state in WITHOUT_ID:
                if not self._is_noted(entry):
                    done.append((run, entry))
            elif (
                entry.state == Phase.KEPT
                or self._is_warm(entry)
                or self._is_warm_elsewhere(entry)
            ):
                kept.append((run, entry))
            elif is_free(run, entry):
                live.append((run, entry))

        return done, kept, live

    def _is_noted(self, entry: ledger.Entry) -> bool:
        """Record a session that cannot be stopped from here; return False if it ended too long ago."""
        is_here = entry.service == self._endpoint.url
        if is_over(entry, self._now, timedelta() if is_here else OLD):
            return False
        (self._swept.unknown if is_here else self._swept.other_services).append(entry)
        return True

    def _is_warm(self, entry: ledger.Entry) -> bool:
        is_due = self._now >= ledger.time_of(entry.until) or is_over(entry, self._now)
        return entry.state == Phase.WARM and not is_due

    def _is_warm_elsewhere(self, entry: ledger.Entry) -> bool:
        """Return whether a token that sees the session must claim it: its own reaper may be about to do so."""
        return entry.state == Phase.WARM and not entry.is_of(self._account)

    def _looked_up(
        self, kept: Iterable[LeftoverSession]
    ) -> tuple[list[LeftoverSession], list[LeftoverSession]]:
        """Return those that have ended, and expired ones that this token may stop; record the others as found."""
        ended = list[LeftoverSession]()
        expired = list[LeftoverSession]()
        by_id = look_up_sessions(
            self._endpoint, [entry.session_id for _, entry in kept]
        )

        for run, entry in kept:
            session = by_id.get(entry.session_id)
            is_missing = entry.session_id in by_id and session is None
            if self._has_ended(entry, session, is_missing=is_missing):
                ended.append((run, entry))
            elif entry.state == Phase.KEPT or self._is_warm(entry):
                self._swept.kept.append(entry)
            elif session:
                expired.append((run, entry))
            else:
                self._swept.left_to_other_tokens.append(hidden(entry))

        return ended, expired

    def _has_ended(
        self, entry: ledger.Entry, session: Session | None, *, is_missing: bool
    ) -> bool:
        """Return whether a kept session has ended; another token's is reported for a day longer, and never missing."""
        if session:
            return session.status in TERMINAL
        if entry.is_of(self._account):
            return is_missing and is_over(entry, self._now)
        return is_over(entry, self._now, OLD)

    def _stopped(
        self, live: Collection[LeftoverSession], timeout_seconds: float
    ) -> list[LeftoverSession]:
        entries = [entry for _, entry in live]
        happened = stop_all(
            self._endpoint, entries, timeout_seconds, account=self._account
        )
        self._swept.add_stops(happened, entries, self._account)
        proven = proven_in(happened)

        return [
            (run, entry)
            for run, entry in live
            if entry.session_id in proven or is_over(entry, self._now, OLD)
        ]


def hidden(entry: ledger.Entry) -> events.StopFailed:
    """Return the event for a warm session of another token that this one cannot even look up."""
    of = events.SessionRef(entry.label, entry.session_id, entry.url, entry.minutes)
    return events.StopFailed(of, "this access token cannot look it up")


def is_free(run: PastRun, entry: ledger.Entry) -> bool:
    """Return whether this process may remove an entry; claims a warm one."""
    return entry.state != Phase.WARM or run.ledger.claim(entry.intent, run.ledger)


def is_over(
    entry: ledger.Entry, now: datetime, margin: timedelta = timedelta()
) -> bool:
    """Return whether a session must have ended by itself ``margin`` ago; decides only how long it is reported."""
    try:
        asked_at = datetime.fromisoformat(entry.asked_at)
        return now > asked_at + timedelta(minutes=entry.minutes) + margin
    except (ValueError, TypeError, OverflowError):
        return False


def look_up_sessions(
    endpoint: Endpoint, session_ids: Collection[str]
) -> dict[str, Session | None]:
    """Look up sessions: None for those that the service does not know; those without a response are omitted."""
    sessions: dict[str, Session | None] = {}
    if not session_ids:
        return sessions

    with DeviceClient(endpoint.url, endpoint.token) as client:
        for session_id in session_ids:
            try:
                sessions[session_id] = client.get(session_id)
            except NotFoundError:
                sessions[session_id] = None
            except ServiceError:
                continue

    return sessions


def stop_all(
    endpoint: Endpoint,
    entries: Iterable[ledger.Entry],
    timeout_seconds: float,
    *,
    account: str | None = None,
) -> list[events.StopEvent]:
    """Stop sessions concurrently, retrying failed stops; return one event for each.

    ``account`` identifies the endpoint's token: a stop that is refused to it is not repeated for another token's
    session. None: the endpoint's token created them all.
    """
    entries = list(entries)
    if not entries:
        return []

    client = DeviceClient(endpoint.url, endpoint.token)
    # In this process, since its caller waits for the result. A 404 is no proof for sessions that it has not seen: it may
    # be that of another account's token.
    config = ReaperConfig(detached=False, gone_seconds=None)
    reaper = ReaperClient(
        client, endpoint, vendor="", run=None, config=config, reporter=SilentReporter()
    )

    for entry in entries:
        reaper.register(
            entry, is_foreign=account is not None and not entry.is_of(account)
        )

    return [
        event
        for event in reaper.close(max(timeout_seconds, MIN_STOP_SECONDS))
        if isinstance(event, events.StopEvent)
    ]


def proven_in(happened: Iterable[events.Event]) -> set[str]:
    """Return the IDs of the sessions that these events confirm as stopped."""
    return {events.session_id_of(event) for event in happened if events.is_proof(event)}


def reconcile(
    run: OwnRun,
    endpoint: Endpoint,
    *,
    known: Container[str],
    until: float,
    leaves_warm: bool = True,
) -> list[events.SessionEvent]:
    """Stop the sessions of this run's dead processes; return their final events.

    Their reapers may still be working, until ``until`` on the monotonic clock. A session whose end is ``known`` is not
    reported again. Sessions that they kept warm for the next run are stopped, too, unless the run ``leaves_warm``.
    """

    def entries_of_dead() -> list[ledger.Entry]:
        return [
            entry
            for entry in run.ledger.read()[0]
            if entry.owner != run.owner and not run.has_living(entry.owner)
        ]

    def awaits_response() -> bool:
        # A process that has ended in order has waited itself, and has reported that there is no response yet.
        return any(
            entry.state == Phase.CREATING and entry.name not in known
            for entry in entries_of_dead()
        )

    while awaits_response() and time.monotonic() < until:
        time.sleep(POLL_SECONDS)

    entries = entries_of_dead()
    reclaimed = set[str]()
    if not leaves_warm:
        reclaimed = {
            entry.session_id
            for entry in entries
            if entry.state == Phase.WARM and is_free(run, entry)
        }
    entries = [
        entry._replace(state=Phase.LIVE) if entry.session_id in reclaimed else entry
        for entry in entries
    ]
    reported: list[events.SessionEvent] = [
        _found(entry) for entry in entries if entry.state != Phase.LIVE
    ]
    reported += stop_all(
        endpoint,
        [entry for entry in entries if entry.state == Phase.LIVE],
        until - time.monotonic(),
    )
    stopped_ids = proven_in(reported)

    for entry in entries:
        if entry.session_id in stopped_ids:
            run.ledger.remove(entry.intent)

    mine = [event for event in reported if event.session.session_id in reclaimed]
    others = [event for event in reported if event.session.session_id not in reclaimed]
    return [*mine, *(event for event in others if _key(event) not in known)]


def _key(event: events.SessionEvent) -> str:
    """Return the key of a session in receipts: its ID, or its name if the ID is unknown."""
    return (
        event.name
        if isinstance(event, events.CreateUnknown)
        else event.session.session_id
    )


def _found(entry: ledger.Entry) -> events.SessionEvent:
    of = events.SessionRef(entry.label, entry.session_id, entry.url, entry.minutes)

    match entry.state:
        case Phase.STOPPED:
            return events.Stopped(of, Status.STOPPED.value)
        case Phase.GONE:
            return events.Gone(of)
        case Phase.KEPT:
            return events.Kept(of)
        case Phase.WARM:
            return events.KeptWarm(of, ledger.time_of_day(ledger.time_of(entry.until)))
        case _:
            return events.CreateUnknown(of, entry.name)

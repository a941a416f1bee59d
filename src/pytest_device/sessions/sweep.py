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
from pytest_device.sessions.runs import OwnRun, PastRun, account_of, past_runs
from pytest_device.spec import TERMINAL, Status

LEAST_SECONDS: Final = 1.0
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
    """One event for each session that was stopped now or could not be stopped."""
    already_stopped: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Sessions that had been stopped before, or were gone."""
    unknown: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Create calls whose response was lost and whose session may still be running."""
    other_services: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Sessions at other services."""
    other_tokens: list[ledger.Entry] = field(default_factory=list[ledger.Entry])
    """Sessions created with another access token."""
    damaged: dict[str, str] = field(default_factory=dict[str, str])

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
            ("already stopped", ledger.STOPPED),
            ("no longer known to the service", ledger.GONE),
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
        if others := self.other_tokens:
            sessions, ids = (
                counted(len(others), "session"),
                named(entry.session_id for entry in others),
            )
            yield f"skipped {sessions} of earlier runs that another access token created: {ids}"


def named(ids: Iterable[str]) -> str:
    """Return the first IDs, as many as fit on a line."""
    ids = list(ids)
    return ", ".join([*ids[:NAMED], *("…" for _ in ids[NAMED : NAMED + 1])])


def sweep(
    state_dir: Path, endpoint: Endpoint, *, but: str, timeout_seconds: float
) -> SweepResult:
    """Stop the sessions that finished runs left at this service, except for kept and warm ones.

    ``but`` is the name of the run that sweeps. A run is finished when all its locks are free; they are held meanwhile.
    """
    swept, runs, left = SweepResult(), list[PastRun](), list[LeftoverSession]()
    with ExitStack() as held:
        for run in past_runs(state_dir):
            try:
                if run.directory.name != but and held.enter_context(run.claimed()):
                    entries, damaged = run.ledger.read()
                    swept.damaged.update(damaged)
                    runs.append(run)
                    left += [(run, entry) for entry in entries]
            except OSError as error:
                swept.damaged[str(run.directory)] = str(error)
        account = account_of(state_dir, endpoint.token) if left else ""
        done = _stopped(left, swept, endpoint, account, timeout_seconds)
        for run in runs:
            run.clear([entry for of, entry in done if of is run])
    return swept


def _stopped(
    left: Iterable[LeftoverSession],
    swept: SweepResult,
    endpoint: Endpoint,
    account: str,
    timeout_seconds: float,
) -> list[LeftoverSession]:
    """Stop the sessions of finished runs; return the entries that can be removed from the ledger."""
    done, kept, live = _sorted(left, swept, endpoint.url, account)
    found = look_up_sessions(endpoint, [entry.session_id for _, entry in kept])
    ended = {
        session_id
        for session_id, one in found.items()
        if one and one.status in TERMINAL
    }
    ended |= {
        entry.session_id
        for _, entry in kept
        if is_over(entry) and found.get(entry.session_id, entry) is None
    }
    swept.kept.extend(entry for _, entry in kept if entry.session_id not in ended)
    swept.stopped.extend(
        stop_all(endpoint, [entry for _, entry in live], timeout_seconds)
    )
    proven = proven_in(swept.stopped)
    done += [
        (run, entry)
        for run, entry in kept
        if entry.session_id in ended and is_free(run, entry)
    ]
    done += [
        (run, entry)
        for run, entry in live
        if entry.session_id in proven or is_over(entry, OLD)
    ]
    return done


def _sorted(
    left: Iterable[LeftoverSession], swept: SweepResult, service_url: str, account: str
) -> tuple[list[LeftoverSession], list[LeftoverSession], list[LeftoverSession]]:
    """Sort sessions into finished, kept, and to be stopped; record the others in ``swept``."""
    done, kept, live = (
        list[LeftoverSession](),
        list[LeftoverSession](),
        list[LeftoverSession](),
    )
    other_tokens: list[LeftoverSession] = []
    for run, entry in left:
        if entry.state in ledger.ENDED:
            swept.already_stopped.append(entry)
            done.append((run, entry))
        elif entry.service != service_url or entry.state in ledger.UNKNOWN:
            is_here = entry.service == service_url
            if is_over(entry, timedelta() if is_here else OLD):
                done.append((run, entry))
            else:
                (swept.unknown if is_here else swept.other_services).append(entry)
        elif not entry.is_of(account):
            (done if is_over(entry, OLD) else other_tokens).append((run, entry))
        elif entry.state == ledger.KEPT or _is_warm(entry):
            kept.append((run, entry))
        elif is_free(run, entry):
            live.append((run, entry))
    swept.other_tokens.extend(entry for _, entry in other_tokens)
    return done, kept, live


def _is_warm(entry: ledger.Entry) -> bool:
    return entry.state == ledger.WARM and datetime.now(UTC) < ledger.time_of(
        entry.until
    )


def is_free(run: PastRun, entry: ledger.Entry) -> bool:
    """Return whether this process may remove an entry; claims a warm one."""
    return entry.state != ledger.WARM or run.ledger.claim(entry.intent, run.ledger)


def is_over(entry: ledger.Entry, margin: timedelta = timedelta()) -> bool:
    """Return whether a session must have ended by itself ``margin`` ago; decides only how long it is reported."""
    try:
        asked_at = datetime.fromisoformat(entry.asked_at)
        return datetime.now(UTC) > asked_at + timedelta(minutes=entry.minutes) + margin
    except (ValueError, TypeError, OverflowError):
        return False


def look_up_sessions(
    endpoint: Endpoint, session_ids: Collection[str]
) -> dict[str, Session | None]:
    """Look up sessions: None for those that the service does not know; those without a response are omitted."""
    found: dict[str, Session | None] = {}
    if not session_ids:
        return found
    with DeviceClient(endpoint.url, endpoint.token) as client:
        for session_id in session_ids:
            try:
                found[session_id] = client.get(session_id)
            except NotFoundError:
                found[session_id] = None
            except ServiceError:
                continue
    return found


def stop_all(
    endpoint: Endpoint, entries: Iterable[ledger.Entry], timeout_seconds: float
) -> list[events.StopEvent]:
    """Stop sessions concurrently, retrying failed stops; return one event for each."""
    entries = list(entries)
    if not entries:
        return []
    client = DeviceClient(endpoint.url, endpoint.token)
    config = ReaperConfig(detached=False, gone_seconds=None)
    reaper = ReaperClient(
        client, endpoint, vendor="", run=None, config=config, reporter=SilentReporter()
    )
    for entry in entries:
        reaper.register(entry)
    return [
        event
        for event in reaper.close(max(timeout_seconds, LEAST_SECONDS))
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

    def of_others() -> list[ledger.Entry]:
        return [
            entry
            for entry in run.ledger.read()[0]
            if entry.owner != run.owner and not run.has_living(entry.owner)
        ]

    while (
        any(entry.state == ledger.REQUESTED for entry in of_others())
        and time.monotonic() < until
    ):
        time.sleep(POLL_SECONDS)
    entries = of_others()
    warm = (
        []
        if leaves_warm
        else [entry for entry in entries if entry.state == ledger.WARM]
    )
    reclaimed = {entry.session_id for entry in warm if is_free(run, entry)}
    entries = [
        entry._replace(state=ledger.LIVE) if entry.session_id in reclaimed else entry
        for entry in entries
    ]
    found: list[events.SessionEvent] = [
        _found(entry) for entry in entries if entry.state != ledger.LIVE
    ]
    found += stop_all(
        endpoint,
        [entry for entry in entries if entry.state == ledger.LIVE],
        until - time.monotonic(),
    )
    proven = proven_in(found)
    for entry in entries:
        if entry.session_id in proven:
            run.ledger.remove(entry.intent)
    mine = [event for event in found if event.session.session_id in reclaimed]
    others = [event for event in found if event.session.session_id not in reclaimed]
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
        case ledger.STOPPED:
            return events.Stopped(of, Status.STOPPED.value)
        case ledger.GONE:
            return events.Gone(of)
        case ledger.KEPT:
            return events.Kept(of)
        case ledger.WARM:
            return events.KeptWarm(of, ledger.time_of_day(ledger.time_of(entry.until)))
        case _:
            return events.CreateUnknown(of, entry.name)

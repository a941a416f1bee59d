"""Sessions that a run keeps warm for the next one: who may claim them, until when, and how they are found.

    run A    its reaper writes <run A>/<intent>.json, then renames it to <run A>/<intent>.warm.json
    run B    its reaper renames that to <run B>/<intent>.json: from then on the session belongs to run B

The file name is the claim. A rename succeeds only once, so only one of these claims a warm session, without locks:

- a process of a starting run, to use it. Its reaper renames, so that a reaper supervises the session at any moment: the
old one before the rename, the new one after it. The session is checked first, unless it is to be stopped;
- the reaper of the run that kept it warm, which stays until the time is up, to stop it;
- a sweep after that time, if that reaper is gone, and ``pytest-device stop``: to stop it.

A process that claims an entry and dies leaves a file without ``.warm`` in its name: the next sweep stops that session
like any other. An unclaimed session ends by its own limits.
"""

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from pytest_device.errors import ServiceError
from pytest_device.sessions.attempt import ProblemOf, WarmSession
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import (
    Note,
    SessionRef,
    StopEvent,
    is_proof,
    stop_event,
)
from pytest_device.sessions.ledger import Entry, Ledger, time_of, time_of_day
from pytest_device.sessions.lifecycle import as_requested, other_kind
from pytest_device.sessions.models import Session
from pytest_device.sessions.reaper_client import ReaperClient
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement, SessionRequest
from pytest_device.sessions.runs import keyed_digest, past_runs
from pytest_device.sessions.states import Phase
from pytest_device.spec import Share, Status

MIN_SECONDS: Final = 30.0
"""Minimum remaining seconds: a session that could be used for less is stopped."""
LIMITS: Final = frozenset({"max_duration_minutes", "max_idle_time_minutes"})
"""Not properties of the device: they are compared with the session's remaining time."""


@dataclass(frozen=True, slots=True)
class WarmConfig:
    """Settings of warm sessions, and the objects that handle them."""

    minutes: int
    state_dir: Path
    owner: Callable[[], ReaperClient]
    """Returns the client that owns this process's sessions: a forked child has its own."""
    problem_of: ProblemOf
    relay: Relay
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Returns the current time, in any time zone."""
    shuffle: Callable[[list["WarmEntry"]], None] = random.shuffle
    """Shuffles sessions, so that processes that start together do not all want the same one."""


class WarmStore:
    """Claims sessions that earlier runs kept warm, and keeps sessions warm for later runs."""

    def __init__(self, config: WarmConfig) -> None:
        self._config = config
        self._is_over = False

    def claim(self, requirement: DeviceRequirement) -> WarmSession | None:
        """Return a warm session that meets the requirement, claimed for this process."""
        if not self.may_stay(requirement):
            return None

        digest = self._digest(requirement)
        equal = [warm for warm in self._all() if warm.entry.request_digest == digest]
        self._config.shuffle(equal)
        equal.sort(key=lambda warm: not self._is_own(warm))

        for warm in equal:
            if claimed := self._try_claim(requirement, warm):
                return claimed

        return None

    def make_room(self) -> bool:
        """Stop a warm session that this run's token created, the service having no capacity; False if there is none."""
        own = [warm for warm in self._all() if self._is_own(warm)]
        own.sort(key=lambda warm: warm.entry.until)
        return any(self._end(warm, "to make room") for warm in own)

    def _all(self) -> list["WarmEntry"]:
        owner = self._config.owner()
        return left_warm(self._config.state_dir, owner.base_url, self._config.now())

    def _is_own(self, warm: "WarmEntry") -> bool:
        """Return whether this run's token created it: only then may it be stopped without a lookup."""
        return warm.entry.is_of(self._config.owner().account)

    def _digest(self, requirement: DeviceRequirement) -> str | None:
        # Then sessions can't be found or kept, which only costs boots.
        with suppress(OSError):
            return request_digest(requirement, self._config.state_dir)
        return None

    def _try_claim(
        self, requirement: DeviceRequirement, warm: "WarmEntry"
    ) -> WarmSession | None:
        owner = self._config.owner()
        session = self._in_progress(requirement, warm)
        if session is None:
            return None

        seconds = warm.seconds_left(session, self._config.now())
        if seconds < requirement.minutes * 60 or not _is_within(
            requirement.request, session, seconds
        ):
            return None

        if problem := self._config.problem_of(session):
            self._end(warm, problem)
            return None
        if not owner.take_over(warm.entry, warm.ledger):
            return None

        return WarmSession(
            session, self._config.clock() + seconds - session.limit_minutes * 60
        )

    def _in_progress(
        self, requirement: DeviceRequirement, warm: "WarmEntry"
    ) -> Session | None:
        """Return the session if it matches; leave it alone if it has ended or is hidden from this run."""
        request = requirement.request
        try:
            session = self._config.owner().get(warm.entry.session_id)
        except ServiceError:  # this run's token cannot see it
            return None

        is_of_app = session.app_id in {None, request.app_id}
        is_same = is_of_app and not other_kind(request, as_requested(request, session))
        is_there = (
            session.status == Status.IN_PROGRESS and session.remote_config is not None
        )

        return session if is_same and is_there else None

    def _end(self, warm: "WarmEntry", reason: str) -> bool:
        owner = self._config.owner()
        entry = warm.entry
        if not owner.take_over(entry, warm.ledger):
            return False

        of = SessionRef(entry.label, entry.session_id, entry.url)
        event = stop_event(of, lambda: owner.stop(entry.session_id))
        self._report_end(event, reason, is_own=owner.is_of_run(warm.ledger))

        return True

    def _report_end(self, event: StopEvent, reason: str, *, is_own: bool) -> None:
        """Report it as a note, with the session's ID if it belongs to an earlier run."""
        of = event.session
        done = "stopped" if is_proof(event) else "tried to stop"
        text = f"{done} {of.label} {of.session_id}, which was kept warm: {reason}"
        self._config.relay.event(Note(text, session_id="" if is_own else of.session_id))
        if is_own or not is_proof(event):
            self._config.relay.event(event)

    def keep_warm(self, held: DeviceSession) -> str | None:
        """Keep a session warm if the next run can use it; return until when, None if it cannot."""
        if not self.may_stay(held.requirement):
            return None

        ready_at = self._config.clock() if held.ready_at is None else held.ready_at
        left_seconds = held.session.limit_minutes * 60 - (
            self._config.clock() - ready_at
        )
        idle_minutes = held.session.max_idle_time_minutes or self._config.minutes

        seconds = min(
            60.0 * self._config.minutes,
            60.0 * idle_minutes,
            left_seconds - 60.0 * max(held.requirement.minutes, 1),
        )
        if seconds < MIN_SECONDS or held.check_alive():
            return None

        digest = self._digest(held.requirement)
        if digest is None:
            return None

        now = self._config.now()
        until = now + timedelta(seconds=seconds)
        ends = now + timedelta(seconds=left_seconds)
        is_kept = self._config.owner().keep_warm(
            held.session.id, until=until, ends=ends, request_digest=digest
        )

        return time_of_day(until) if is_kept else None

    def may_stay(self, requirement: DeviceRequirement) -> bool:
        """Return whether several runs may use a session: not if each test requested a fresh one."""
        return not self._is_over and requirement.share != Share.TEST

    def end(self) -> None:
        """Stop all warm sessions of this run: it was interrupted."""
        if not self._is_over:
            self._is_over = True
            self._config.owner().end_warm()


class WarmEntry(NamedTuple):
    """A warm session, and its ledger."""

    entry: Entry
    ledger: Ledger

    def seconds_left(self, session: Session, now: datetime) -> float:
        """Return the seconds it may still run: the minimum by this machine's clock and by the service's times."""
        ends = [time_of(self.entry.ends)]
        if session.started_at is not None:
            # A time beyond the calendar is no limit.
            with suppress(OverflowError):
                limit = timedelta(minutes=session.limit_minutes)
                ends.append(session.started_at + limit)

        return (min(ends) - now).total_seconds()


def _is_within(request: SessionRequest, session: Session, seconds_left: float) -> bool:
    """Return whether a session ends by itself no later than the requested one would."""
    longest = request.max_duration_minutes
    idle = request.max_idle_time_minutes
    if idle is not None and (
        session.max_idle_time_minutes is None or session.max_idle_time_minutes > idle
    ):
        return False

    return longest is None or seconds_left <= longest * 60


def request_digest(requirement: DeviceRequirement, state_dir: Path) -> str:
    """Return the key by which an equal requirement finds a session: a keyed digest of all but its name and limits.

    Requests may hold credentials in launch arguments and URLs, which must not be guessable from the digest. Raises
    OSError if the key cannot be stored.
    """
    fields = requirement.request.model_dump(
        mode="json", exclude={"name", *LIMITS}, exclude_none=True
    )
    text = json.dumps([requirement.sharing_key, fields], sort_keys=True)
    return keyed_digest(state_dir, text)


def left_warm(state_dir: Path, service_url: str, now: datetime) -> list[WarmEntry]:
    """Return the unexpired warm sessions of a service."""
    return [
        WarmEntry(entry, run.ledger)
        for run in past_runs(state_dir)
        for entry in _entries(run.ledger)
        if entry.state == Phase.WARM
        and entry.service == service_url
        and now < time_of(entry.until)
    ]


def _entries(ledger: Ledger) -> list[Entry]:
    try:
        return ledger.read()[0]
    except OSError:  # it belongs to another user
        return []

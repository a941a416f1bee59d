"""A session kept warm goes to one later run, or is stopped when its time expires."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from pytest_device import DeviceClient, SessionRequest, WaitPolicy
from pytest_device.events import (
    Created,
    Event,
    KeptWarm,
    Note,
    Ready,
    StateChanged,
    StopFailed,
    Stopped,
    TakenOver,
    detail_of,
    session_id_of,
)
from pytest_device.sessions.device_session import DeviceSession, SessionConfig
from pytest_device.sessions.inventory import Choice, opened, stop_known
from pytest_device.sessions.ledger import Entry, Ledger
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.reaper_client import ReaperClient, ReaperConfig
from pytest_device.sessions.reporter import Relay, SilentReporter
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.runs import OwnRun, past_runs
from pytest_device.sessions.states import Phase
from pytest_device.sessions.sweep import reconcile, sweep
from pytest_device.sessions.warm import WarmConfig, WarmStore, left_warm, request_digest
from pytest_device.testing import FaultyService
from tests.fakes.reporter import RecordingReporter
from tests.sessions.reaper_clients import DETACHED, IN_THE_RUN, entry_of, reapers
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

ENTRY = Entry(
    "0" * 32,
    "main",
    "https://devices.example",
    "ios argent",
    "a test",
    "2026-01-01T00:00:00+00:00",
    35,
)
SOON = timedelta(seconds=0.3)
REFUSAL = {"effect": "reply", "status": 403, "body": "{}", "times": None}


class Run:
    """One pytest process, which acquires sessions from a pool and releases them."""

    def __init__(
        self,
        at: FaultyService,
        state_dir: Path,
        minutes: int,
        watched: ReaperConfig,
        *,
        has_room: bool = True,
        has_ledger: bool = True,
        token: str = "",
    ) -> None:
        token = token or at.token
        self.recorder = RecordingReporter()
        self.events = self.recorder.events
        self.problem: str | None = None
        self.later = timedelta()
        self._is_closed = False
        self._at = at
        self.run = OwnRun.join(state_dir, uuid4().hex, "main")
        self.owner = ReaperClient(
            DeviceClient(at.url, token),
            Endpoint(at.url, token),
            vendor="vendor",
            run=self.run if has_ledger else None,
            config=watched,
            reporter=SilentReporter(),
        )
        self.warm = WarmStore(
            WarmConfig(
                minutes,
                state_dir,
                owner=lambda: self.owner,
                problem_of=lambda _session: self.problem,
                relay=Relay(self.recorder.event),
                has_room=lambda _sessions: has_room,
                clock=lambda: time.monotonic() + self.later.total_seconds(),
                now=lambda: datetime.now(UTC) + self.later,
                shuffle=lambda _left: None,
            )
        )
        config = SessionConfig(self.owner, time.monotonic, Relay(self.recorder.event))
        self.pool = Pool(config, sleep=lambda _seconds: None, warm=self.warm)

    def acquire(self, need: DeviceRequirement) -> DeviceSession:
        (held,) = self.pool.acquire([need], WaitPolicy(30, 0.01))
        return held

    def use(self, need: DeviceRequirement) -> str:
        """Use a session for a test and release it; return its ID."""
        held = self.acquire(need)
        self.pool.release([held], lambda _need: 0)
        return str(held.session.id)

    def close(self) -> list[Event]:
        self._is_closed = True
        self.pool.close()
        return self.owner.close(10)

    def leave_at_once(self) -> list[Event]:
        """End like a killed process: wait for nothing."""
        self._is_closed = True
        return self.owner.close(0)

    def end(self) -> None:
        """Close it unless the test has, keeping nothing warm."""
        if not self._is_closed:
            self.warm.end()
            self.close()

    def kinds(self) -> list[type[Event]]:
        return [
            type(event)
            for event in self.events
            if not isinstance(event, StateChanged | Ready)
        ]


class Runs:
    """Consecutive runs of one user at one service."""

    def __init__(self, at: FaultyService, state_dir: Path, open_: ExitStack) -> None:
        self.at, self.state_dir, self._open = at, state_dir, open_

    def start(
        self,
        minutes: int = 10,
        *,
        has_room: bool = True,
        watched: ReaperConfig = DETACHED,
        token: str = "",
    ) -> Run:
        run = Run(
            self.at, self.state_dir, minutes, watched, has_room=has_room, token=token
        )
        self._open.callback(run.end)
        return run

    def left(self, need: DeviceRequirement, *, watched: ReaperConfig = DETACHED) -> str:
        """Let a finished run keep a session warm; return its ID."""
        run = self.start(watched=watched)
        session_id = run.use(need)
        run.close()
        return session_id

    def ending(
        self,
        need: DeviceRequirement,
        after: timedelta,
        *,
        watched: ReaperConfig = DETACHED,
    ) -> str:
        """Let a finished run keep a session warm for this long; return its ID."""
        run = self.start(watched=watched)
        session_id = self.keep(run, need, after)
        run.close()
        return session_id

    def keep(self, run: Run, need: DeviceRequirement, after: timedelta) -> str:
        """Let a run keep a session warm for this long; return its ID."""
        held, now = run.acquire(need), datetime.now(UTC)
        wanted = request_digest(need, self.state_dir)
        assert run.owner.keep_warm(
            held.session.id,
            until=now + after,
            ends=now + timedelta(hours=1),
            request_digest=wanted,
        )
        run.pool.keep(held)
        return str(held.session.id)

    def entries(self) -> list[Entry]:
        return [
            entry for run in past_runs(self.state_dir) for entry in run.ledger.read()[0]
        ]

    def states(self) -> list[str]:
        return [entry.state for entry in self.entries()]

    @property
    def service(self) -> Endpoint:
        return Endpoint(self.at.url, self.at.token)


@pytest.fixture
def runs(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Runs]:
    # By which the reapers of this test are known.
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    with ExitStack() as open_:
        yield Runs(service, tmp_path / "state", open_)
    for reaper in reapers(str(tmp_path)):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            reaper.kill()


@pytest.fixture
def need(service: FaultyService) -> DeviceRequirement:
    return need_at(service)


def need_at(
    at: FaultyService, among: str = "run", minutes: int = 1, **arguments: object
) -> DeviceRequirement:
    given = {
        "platform": "android",
        "type": "appium",
        "name": "a test",
        "max_duration_minutes": 30,
        **arguments,
    }
    return DeviceRequirement(
        SessionRequest.from_arguments(app_id=at.app_id, **given), among, minutes
    )


def test_the_next_run_with_an_equal_requirement_takes_over_the_session(
    runs: Runs, need: DeviceRequirement
) -> None:
    first = runs.start()
    session_id = first.use(need)
    assert runs.states() == [Phase.WARM]
    assert first.close() == []
    second = runs.start()

    held = second.acquire(need)

    assert str(held.session.id) == session_id
    assert [
        (entry.session_id, entry.owner, entry.state) for entry in runs.entries()
    ] == [(session_id, second.run.owner, Phase.LIVE)]
    assert (first.kinds(), second.kinds()) == ([Created, KeptWarm], [TakenOver])
    assert runs.at.statuses() == ["in-progress"]


@pytest.mark.parametrize(
    ("minutes", "idle", "is_taken_over"),
    [(30, 15, True), (19, 15, False), (30, 9, False)],
)
def test_another_name_does_not_prevent_a_takeover_but_shorter_limits_do(
    runs: Runs, minutes: int, idle: int, *, is_taken_over: bool
) -> None:
    session_id = runs.left(
        need_at(runs.at, max_duration_minutes=20, max_idle_time_minutes=10)
    )

    other = need_at(
        runs.at,
        name="another test",
        max_duration_minutes=minutes,
        max_idle_time_minutes=idle,
    )

    assert (runs.start().use(other) == session_id) is is_taken_over


@pytest.mark.parametrize(
    ("among", "arguments"),
    [
        ("run", {"platform": "ios"}),
        ("run", {"device_identifier": "Pixel 8"}),
        ("module test_a.py", {}),
    ],
)
def test_another_requirement_gets_its_own_session(
    runs: Runs, need: DeviceRequirement, among: str, arguments: dict[str, Any]
) -> None:
    session_id = runs.left(need)

    assert runs.start().use(need_at(runs.at, among, **arguments)) != session_id


def test_a_test_with_a_fresh_device_neither_keeps_nor_takes_over_one(
    runs: Runs,
) -> None:
    fresh = need_at(runs.at, "test test_a.py::test_x")

    assert runs.left(fresh) != runs.left(fresh)

    assert runs.at.statuses() == ["stopped", "stopped"]


def test_a_lost_session_is_not_kept_warm(runs: Runs, need: DeviceRequirement) -> None:
    run = runs.start()
    held = run.acquire(need)
    run.pool.mark_unusable([held])

    run.pool.release([held], lambda _need: 0)

    assert runs.at.statuses() == ["stopped"]


def test_an_expired_session_is_not_reported_as_warm(
    runs: Runs, need: DeviceRequirement
) -> None:
    run = runs.start()
    held = run.acquire(need)
    runs.at.expire(str(held.session.id))

    run.pool.release([held], lambda _need: 0)

    assert KeptWarm not in run.kinds()
    assert runs.entries() == []


def test_a_session_with_too_little_time_for_a_test_is_not_kept_warm(runs: Runs) -> None:
    run = runs.start()
    held = run.acquire(need_at(runs.at, minutes=29))
    run.later = timedelta(seconds=50)

    run.pool.release([held], lambda _need: 0)

    assert runs.at.statuses() == ["stopped"]


@pytest.mark.parametrize(("idle", "minutes"), [(3, 3), (20, 10)])
def test_a_session_is_not_kept_warm_beyond_its_idle_limit(
    runs: Runs, idle: int, minutes: int
) -> None:
    runs.start(10).use(need_at(runs.at, max_idle_time_minutes=idle))

    (entry,) = runs.entries()
    left = datetime.fromisoformat(entry.until) - datetime.now(UTC)
    assert timedelta(minutes=minutes - 1) < left <= timedelta(minutes=minutes)


@pytest.mark.parametrize(("minutes", "is_taken_over"), [(5, True), (25, False)])
def test_a_session_with_too_little_time_for_a_test_is_not_taken_over(
    runs: Runs, need: DeviceRequirement, minutes: int, *, is_taken_over: bool
) -> None:
    session_id = runs.left(need)
    run = runs.start()
    run.later = timedelta(minutes=8)

    assert (run.use(need_at(runs.at, minutes=minutes)) == session_id) is is_taken_over


def test_a_start_at_the_end_of_the_calendar_does_not_prevent_a_takeover(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    late = {"startedAt": "9999-12-31T23:59:00.000Z"}
    runs.at.add_fault("get", "change", fields=late, times=None)

    assert runs.start().use(need) == session_id


def test_a_warm_session_with_a_dead_controller_is_stopped_and_replaced(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    run = runs.start()
    run.problem = "its Appium server does not answer"

    assert run.use(need) != session_id

    assert runs.at.statuses()[0] == "stopped"
    assert detail_of(run.events[0]).endswith(
        f"{session_id}, which was kept warm: its Appium server does not answer"
    )


def test_an_ended_warm_session_is_skipped_and_removed_by_the_sweep(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    runs.at.expire(session_id)

    assert runs.start().use(need) != session_id
    sweep(runs.state_dir, runs.service, exclude="", timeout_seconds=5)

    assert session_id not in [entry.session_id for entry in runs.entries()]


def test_concurrent_runs_never_take_over_the_same_session(
    runs: Runs, need: DeviceRequirement
) -> None:
    left = {runs.left(need) for _ in range(2)}
    had: list[str] = []
    starting = [runs.start(watched=IN_THE_RUN) for _ in range(4)]
    threads = [
        threading.Thread(
            target=lambda run=run: had.append(str(run.acquire(need).session.id))
        )
        for run in starting
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(set(had)) == 4
    assert left < set(had)


def test_a_late_claim_gets_nothing_and_has_nothing_to_stop(
    runs: Runs, need: DeviceRequirement
) -> None:
    runs.left(need)
    ((entry, ledger),) = left_warm(runs.state_dir, runs.at.url, datetime.now(UTC))
    first, second = runs.start(), runs.start()

    assert first.owner.take_over(entry, ledger)
    assert not second.owner.take_over(entry, ledger)

    assert second.close() == []
    assert runs.at.statuses() == ["in-progress"]


def test_only_one_of_many_claims_on_an_entry_succeeds(tmp_path: Path) -> None:
    directories = [tmp_path / str(number) for number in range(9)]
    for directory in directories:
        directory.mkdir()
    warm, *others = (Ledger(str(directory)) for directory in directories)
    warm.keep_warm(ENTRY._replace(session_id=str(uuid4())))
    start, had = threading.Barrier(8), list[bool]()

    def claim(other: Ledger) -> None:
        start.wait()
        had.append(warm.claim(ENTRY.intent, other))

    threads = [threading.Thread(target=claim, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(had) == [False] * 7 + [True]
    assert [
        entry.state for ledger in [warm, *others] for entry in ledger.read()[0]
    ] == [Phase.LIVE]


def test_the_reaper_of_a_finished_run_stops_an_expired_warm_session_and_ends(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    runs.ending(need, timedelta(seconds=1))
    assert runs.at.statuses() == ["in-progress"]

    assert eventually(lambda: runs.at.statuses() == ["stopped"])

    assert eventually(lambda: not reapers(str(tmp_path)))
    assert runs.entries() == []
    assert (
        list(sweep(runs.state_dir, runs.service, exclude="", timeout_seconds=5).notes())
        == []
    )


def moved(path: Path) -> None:
    path.rename(f"{path}-moved")


@pytest.mark.parametrize("takes_away", [shutil.rmtree, moved])
def test_a_warm_session_without_an_entry_is_stopped_immediately(
    runs: Runs,
    need: DeviceRequirement,
    tmp_path: Path,
    takes_away: Callable[[Path], object],
) -> None:
    runs.left(need)

    takes_away(runs.state_dir)

    assert eventually(lambda: runs.at.statuses() == ["stopped"])
    assert eventually(lambda: not reapers(str(tmp_path)))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [({"effect": "delay", "seconds": 2}, Stopped), (REFUSAL, StopFailed)],
)
def test_a_run_reports_a_warm_session_that_expires_before_its_end(
    runs: Runs, need: DeviceRequirement, fault: dict[str, Any], kind: type[Event]
) -> None:
    run = runs.start()
    runs.at.add_fault("stop", **fault)
    session_id = runs.keep(run, need, SOON)
    assert eventually(
        lambda: "stop" in [operation for operation, _ in runs.at.requests()]
    )
    assert eventually(lambda: run.owner.pending() == 1)

    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (kind, session_id)
    ]


def test_the_successor_of_a_killed_reaper_stops_an_expired_warm_session(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    run = runs.start()
    session_id = runs.keep(run, need, timedelta(seconds=2))
    (former,) = reapers(str(tmp_path))

    former.kill()

    assert eventually(lambda: runs.at.statuses() == ["stopped"])
    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (Stopped, session_id)
    ]


def test_the_successor_of_a_killed_reaper_leaves_claimed_sessions_alone(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    run = runs.start()
    runs.keep(run, need, timedelta(minutes=5))
    (former,) = reapers(str(tmp_path))
    former.suspend()
    runs.start(watched=IN_THE_RUN).acquire(need)

    former.kill()
    assert eventually(lambda: len(set(reapers(str(tmp_path))) - {former}) == 1)

    assert run.close() == []
    assert runs.states() == [Phase.LIVE]
    assert runs.at.statuses() == ["in-progress"]


def test_the_reaper_of_a_finished_run_ends_once_another_run_claimed_the_session(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    runs.left(need)
    (former,) = reapers(str(tmp_path))

    runs.start(watched=IN_THE_RUN).acquire(need)

    assert eventually(lambda: former not in reapers(str(tmp_path)))
    assert runs.at.statuses() == ["in-progress"]


def test_a_taken_over_session_is_supervised_by_its_new_run(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    runs.left(need)
    (former,) = reapers(str(tmp_path))
    second = runs.start()
    second.acquire(need)
    os.kill(former.pid, signal.SIGKILL)

    second.leave_at_once()

    assert eventually(lambda: runs.at.statuses() == ["stopped"])


@pytest.mark.parametrize(
    ("after", "status"), [(timedelta(minutes=5), "in-progress"), (SOON, "stopped")]
)
def test_a_sweep_stops_an_expired_warm_session(
    runs: Runs, need: DeviceRequirement, after: timedelta, status: str
) -> None:
    session_id = runs.ending(need, after, watched=IN_THE_RUN)
    assert eventually(
        lambda: (
            datetime.now(UTC) > datetime.fromisoformat(runs.entries()[0].until)
            or status != "stopped"
        )
    )

    swept = sweep(runs.state_dir, runs.service, exclude="", timeout_seconds=5)

    assert runs.at.statuses() == [status]
    assert [session_id_of(event) for event in swept.stopped] == (
        [session_id] if status == "stopped" else []
    )


def test_a_run_with_another_token_of_the_account_takes_over_a_warm_session(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    runs.at.add_token("rotated")

    assert runs.start(token="rotated").use(need) == session_id


@pytest.mark.parametrize("has_room", [True, False])
def test_a_warm_session_that_a_token_cannot_look_up_is_left_to_its_owner(
    runs: Runs, need: DeviceRequirement, *, has_room: bool
) -> None:
    runs.left(need)
    runs.at.add_token("theirs", is_foreign=True)

    assert runs.start(token="theirs", has_room=has_room).warm.claim(need, list) is None

    assert runs.states() == [Phase.WARM]
    assert runs.at.statuses() == ["in-progress"]


def test_with_a_session_limit_a_warm_session_of_a_former_token_makes_room(
    runs: Runs, need: DeviceRequirement
) -> None:
    runs.left(need)
    runs.at.add_token("rotated")

    runs.start(token="rotated", has_room=False).warm.claim(
        need_at(runs.at, platform="ios"), list
    )

    assert runs.at.statuses() == ["stopped"]


def test_an_expired_warm_session_is_swept_by_a_token_that_sees_it_only(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.ending(need, SOON, watched=IN_THE_RUN)
    assert eventually(
        lambda: datetime.now(UTC) > datetime.fromisoformat(runs.entries()[0].until)
    )
    runs.at.add_token("theirs", is_foreign=True)
    runs.at.add_token("rotated")

    (note,) = sweep(
        runs.state_dir, Endpoint(runs.at.url, "theirs"), exclude="", timeout_seconds=5
    ).notes()

    assert note.endswith(
        f"(this access token cannot look it up). With that token: pytest-device stop {session_id}"
    )
    assert runs.states() == [Phase.WARM]
    swept = sweep(
        runs.state_dir, Endpoint(runs.at.url, "rotated"), exclude="", timeout_seconds=5
    )
    assert [session_id_of(event) for event in swept.stopped] == [session_id]
    assert runs.entries() == []


def test_a_warm_session_that_a_token_cannot_look_up_is_not_stopped_on_request(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    runs.at.add_token("theirs", is_foreign=True)

    outcome = stop_known(runs.state_dir, Endpoint(runs.at.url, "theirs"), Choice(), 5)

    (problem,) = outcome.problems()
    assert problem.endswith(
        f"another access token created it: with that token, run pytest-device stop {session_id}"
    )
    assert runs.states() == [Phase.WARM]


def test_a_session_claimed_by_a_dead_run_is_swept(
    runs: Runs, need: DeviceRequirement
) -> None:
    runs.left(need, watched=IN_THE_RUN)
    (run,) = past_runs(runs.state_dir)
    assert run.ledger.claim(runs.entries()[0].intent, run.ledger)

    sweep(runs.state_dir, runs.service, exclude="", timeout_seconds=5)

    assert runs.at.statuses() == ["stopped"]
    assert runs.entries() == []


def test_a_warm_session_is_listed_with_its_time_and_stopped_on_request(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    with opened(runs.state_dir) as ((known,), _damaged):
        until = datetime.fromisoformat(known.entry.until).astimezone()
        assert f"{session_id}  kept warm until {until:%H:%M} (run finished)" in next(
            known.lines()
        )
        assert known.to_json()["until"] == known.entry.until

    outcome = stop_known(runs.state_dir, runs.service, Choice(), 5)

    assert [(type(event), session_id_of(event)) for event in outcome.stopped] == [
        (Stopped, session_id)
    ]
    assert runs.at.statuses() == ["stopped"]
    assert runs.entries() == []


def test_warm_sessions_of_an_interrupted_run_are_stopped(
    runs: Runs, need: DeviceRequirement
) -> None:
    run = runs.start()
    session_id = run.use(need)

    run.warm.end()

    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (Stopped, session_id)
    ]
    assert runs.at.statuses() == ["stopped"]


def test_sessions_already_claimed_by_others_are_left_alone(
    runs: Runs, need: DeviceRequirement
) -> None:
    first, second = runs.start(), runs.start()
    first.use(need)
    second.acquire(need)

    first.warm.end()

    assert first.close() == []
    assert runs.at.statuses() == ["in-progress"]


@pytest.mark.parametrize(("leaves_warm", "kind"), [(True, KeptWarm), (False, Stopped)])
def test_warm_sessions_of_workers_are_reported_or_stopped_with_the_run(
    runs: Runs, need: DeviceRequirement, *, leaves_warm: bool, kind: type[Event]
) -> None:
    run = runs.start()
    session = run.acquire(need).session
    entry = entry_of(
        str(session.id), runs.at, owner="gw0", until="2999-01-01T00:00:00+00:00"
    )
    run.run.ledger.keep_warm(entry)

    events = reconcile(
        run.run,
        runs.service,
        known=(),
        until=time.monotonic() + 5,
        leaves_warm=leaves_warm,
    )

    assert [(type(event), session_id_of(event)) for event in events] == [
        (kind, str(session.id))
    ]


def test_with_a_session_limit_a_warm_session_makes_room(
    runs: Runs, need: DeviceRequirement
) -> None:
    session_id = runs.left(need)
    run = runs.start(has_room=False)

    run.acquire(need_at(runs.at, platform="ios"))

    assert {session["id"]: session["status"] for session in runs.at.sessions()}[
        session_id
    ] == "stopped"


@pytest.mark.parametrize("is_ahead", [True, False])
def test_a_session_about_to_be_taken_over_does_not_make_room(
    runs: Runs, need: DeviceRequirement, *, is_ahead: bool
) -> None:
    session_id = runs.left(need)
    run = runs.start(has_room=False)
    needs = [need_at(runs.at, platform="ios"), need]
    if is_ahead:
        run.pool.prefetch(needs, WaitPolicy(30, 0.01))

    _, held = run.pool.acquire(needs, WaitPolicy(30, 0.01))

    assert str(held.session.id) == session_id
    assert runs.at.statuses() == ["in-progress", "in-progress"]


def test_a_fresh_device_can_replace_a_warm_one(
    runs: Runs, need: DeviceRequirement
) -> None:
    runs.left(need)

    runs.start(has_room=False).acquire(need_at(runs.at, "test test_a.py::test_x"))

    assert runs.at.statuses() == ["stopped", "in-progress"]


def test_a_run_that_stops_its_own_warm_session_reports_its_end(
    runs: Runs, need: DeviceRequirement
) -> None:
    run = runs.start(has_room=False)
    session_id = run.use(need)

    run.acquire(need_at(runs.at, platform="ios"))

    assert [
        type(event)
        for event in run.events
        if session_id_of(event) == session_id and not isinstance(event, Ready)
    ] == [
        Created,
        KeptWarm,
        Stopped,
    ]


def test_an_unreadable_run_does_not_hide_the_warm_sessions_of_others(
    runs: Runs, need: DeviceRequirement, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = runs.left(need)
    locked = runs.state_dir / "runs" / "0-of-another-user"
    locked.mkdir()
    listed = os.listdir

    def listdir(path: str) -> list[str]:
        if path == str(locked):
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)

    assert runs.start().use(need) == session_id


def test_the_session_of_an_interrupted_takeover_is_stopped_and_reported(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    session_id = runs.left(need)
    run, reaper = broken_off(runs, need, tmp_path)

    reaper.resume()

    assert eventually(lambda: runs.at.statuses()[0] == "stopped")
    reported = [event for event in run.close() if session_id_of(event) == session_id]
    assert [type(event) for event in reported] == [Note, Stopped]


def test_an_unanswered_claim_is_not_reported_as_the_runs_session(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> None:
    session_id = runs.left(need)
    run, reaper = broken_off(runs, need, tmp_path)

    assert session_id not in [session_id_of(event) for event in run.leave_at_once()]

    reaper.resume()
    assert eventually(lambda: runs.at.statuses() == ["stopped", "stopped"])


def broken_off(
    runs: Runs, need: DeviceRequirement, tmp_path: Path
) -> tuple[Run, psutil.Process]:
    """Interrupt the takeover by a run whose reaper is suspended; return both."""
    formers, run = reapers(str(tmp_path)), runs.start()
    run.acquire(need_at(runs.at, platform="ios"))  # its reaper takes commands by then
    (reaper,) = set(reapers(str(tmp_path))) - set(formers)
    reaper.suspend()

    def interrupt() -> None:
        eventually(lambda: run.owner.pending() == 2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run.acquire(need)
    interrupting.join(60)
    return run, reaper


def test_a_process_without_a_ledger_keeps_nothing_warm(
    runs: Runs, need: DeviceRequirement
) -> None:
    run = Run(runs.at, runs.state_dir, 10, IN_THE_RUN, has_ledger=False)

    run.use(need)

    assert runs.at.statuses() == ["stopped"]
    run.close()
    run.run.leave()


def test_the_time_of_use_counts_from_the_takeover(
    runs: Runs, need: DeviceRequirement
) -> None:
    runs.left(need)
    run = runs.start()
    held = run.acquire(need)
    run.pool.mark_unusable([held])
    before = time.monotonic()

    run.pool.release([held], lambda _need: 0)

    (stopped,) = (event for event in run.events if isinstance(event, Stopped))
    assert stopped.running_seconds is not None
    assert held.ready_at is not None
    assert stopped.running_seconds < before - held.ready_at + 1


def test_the_ledger_reveals_nothing_of_a_request(runs: Runs) -> None:
    secret = need_at(
        runs.at,
        application_archive_url="https://cdn.example/app?sig=s3cret",
        launch_args=["--password=s3cret"],
    )
    runs.left(secret)

    assert all(
        "s3cret" not in path.read_text(errors="replace")
        for path in runs.state_dir.rglob("*")
        if path.is_file()
    )
    (entry,) = runs.entries()
    # Another user's key.
    assert entry.request_digest != request_digest(secret, runs.state_dir.parent)
    assert (runs.state_dir / "warm.salt").stat().st_mode & 0o777 == 0o600


def test_a_kept_session_is_not_taken_over(runs: Runs, need: DeviceRequirement) -> None:
    run = runs.start()
    held = run.acquire(need)
    run.owner.keep(held.session.id)
    run.pool.keep(held)
    run.close()

    assert runs.states() == [Phase.KEPT]
    assert left_warm(runs.state_dir, runs.at.url, datetime.now(UTC)) == []

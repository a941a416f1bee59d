"""A session kept warm goes to one later run, or is stopped when its time expires."""

import json
import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_device.events import (
    Created,
    Event,
    KeptWarm,
    Note,
    Ready,
    StopFailed,
    Stopped,
    TakenOver,
    detail_of,
    session_id_of,
)
from pytest_device.testing import FaultyService
from tests.sessions.reaper_clients import entry_of, reapers
from tests.sessions.warm_runs import (
    Requirement,
    WarmRun,
    WarmRuns,
    digest_of,
    requirement_at,
)
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

SOON = timedelta(seconds=0.3)
NO_CAPACITY = {"status": 429, "body": "{}"}
REFUSAL = {"effect": "reply", "status": 403, "body": "{}", "times": None}


@pytest.fixture
def runs(service: FaultyService, tmp_path: Path, mark: str) -> Generator[WarmRuns]:
    with ExitStack() as open_runs:
        yield WarmRuns(service, tmp_path / "state", open_runs)
    for reaper in reapers(mark):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            reaper.kill()


@pytest.fixture
def requirement(service: FaultyService) -> Requirement:
    return requirement_at(service)


def test_the_next_run_with_an_equal_requirement_takes_over_the_session(
    runs: WarmRuns, requirement: Requirement
) -> None:
    first = runs.start(is_detached=True)
    session_id = first.use(requirement)
    assert runs.states() == ["warm"]
    assert first.close() == []
    second = runs.start(is_detached=True)

    held = second.acquire(requirement)

    assert str(held.session.id) == session_id
    assert [
        (entry.session_id, entry.owner, entry.state) for entry in runs.entries()
    ] == [(session_id, second.run.owner, "live")]
    assert (first.kinds(), second.kinds()) == ([Created, KeptWarm], [TakenOver])
    assert runs.service.statuses() == ["in-progress"]


@pytest.mark.parametrize(
    ("minutes", "idle", "is_taken_over"),
    [(30, 15, True), (19, 15, False), (30, 9, False)],
)
def test_another_name_does_not_prevent_a_takeover_but_shorter_limits_do(
    runs: WarmRuns, minutes: int, idle: int, *, is_taken_over: bool
) -> None:
    session_id = runs.left(
        requirement_at(runs.service, max_duration_minutes=20, max_idle_time_minutes=10)
    )

    other = requirement_at(
        runs.service,
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
    runs: WarmRuns, requirement: Requirement, among: str, arguments: dict[str, Any]
) -> None:
    session_id = runs.left(requirement)

    assert (
        runs.start().use(requirement_at(runs.service, among, **arguments)) != session_id
    )


def test_a_test_with_a_fresh_device_neither_keeps_nor_takes_over_one(
    runs: WarmRuns,
) -> None:
    fresh = requirement_at(runs.service, "test test_a.py::test_x")

    assert runs.left(fresh) != runs.left(fresh)

    assert runs.service.statuses() == ["stopped", "stopped"]


def test_a_lost_session_is_not_kept_warm(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = runs.start()
    held = run.acquire(requirement)
    run.pool.mark_unusable([held])

    run.release(held)

    assert runs.service.statuses() == ["stopped"]


def test_an_expired_session_is_not_reported_as_warm(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = runs.start()
    held = run.acquire(requirement)
    runs.service.expire(str(held.session.id))

    run.release(held)

    assert KeptWarm not in run.kinds()
    assert runs.entries() == []


def test_a_session_with_too_little_time_for_a_test_is_not_kept_warm(
    runs: WarmRuns,
) -> None:
    run = runs.start()
    held = run.acquire(requirement_at(runs.service, minutes=29))
    run.later = timedelta(seconds=50)

    run.release(held)

    assert runs.service.statuses() == ["stopped"]


@pytest.mark.parametrize(("idle", "minutes"), [(3, 3), (20, 10)])
def test_a_session_is_not_kept_warm_beyond_its_idle_limit(
    runs: WarmRuns, idle: int, minutes: int
) -> None:
    runs.start(10).use(requirement_at(runs.service, max_idle_time_minutes=idle))

    (entry,) = runs.entries()
    left = datetime.fromisoformat(entry.until) - datetime.now(UTC)
    assert timedelta(minutes=minutes - 1) < left <= timedelta(minutes=minutes)


@pytest.mark.parametrize(("minutes", "is_taken_over"), [(5, True), (25, False)])
def test_a_session_with_too_little_time_for_a_test_is_not_taken_over(
    runs: WarmRuns, requirement: Requirement, minutes: int, *, is_taken_over: bool
) -> None:
    session_id = runs.left(requirement)
    run = runs.start()
    run.later = timedelta(minutes=8)

    assert (
        run.use(requirement_at(runs.service, minutes=minutes)) == session_id
    ) is is_taken_over


@pytest.mark.parametrize(
    "fields",
    [
        {"startedAt": "9999-12-31T23:59:00.000Z"},
        {"platform": "hologram", "type": None, "appId": None},
    ],
    ids=["the end of the calendar", "as a service may describe it"],
)
def test_a_session_is_taken_over_whatever_its_service_says_about_it(
    runs: WarmRuns, requirement: Requirement, fields: dict[str, str | None]
) -> None:
    session_id = runs.left(requirement)
    runs.service.add_fault("get", "change", fields=fields, times=None)

    assert runs.start().use(requirement) == session_id


def test_a_warm_session_with_a_dead_controller_is_stopped_and_replaced(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.left(requirement)
    run = runs.start()
    run.problem = "its Appium server does not answer"

    assert run.use(requirement) != session_id

    assert runs.service.statuses()[0] == "stopped"
    assert detail_of(run.events[0]).endswith(
        f"{session_id}, which was kept warm: its Appium server does not answer"
    )


def test_an_ended_warm_session_is_skipped_and_removed_by_the_sweep(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.left(requirement)
    runs.service.expire(session_id)

    assert runs.start().use(requirement) != session_id
    runs.sweep()

    assert session_id not in [entry.session_id for entry in runs.entries()]


def test_concurrent_runs_never_take_over_the_same_session(
    runs: WarmRuns, requirement: Requirement
) -> None:
    left = {runs.left(requirement) for _ in range(2)}
    had: list[str] = []
    starting = [runs.start() for _ in range(4)]
    threads = [
        threading.Thread(
            target=lambda run=run: had.append(str(run.acquire(requirement).session.id))
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
    runs: WarmRuns, requirement: Requirement
) -> None:
    runs.left(requirement, is_detached=True)
    ((entry, ledger),) = runs.offered()
    first, second = runs.start(is_detached=True), runs.start(is_detached=True)

    assert first.owner.take_over(entry, ledger)
    assert not second.owner.take_over(entry, ledger)

    assert second.close() == []
    assert runs.service.statuses() == ["in-progress"]


def test_the_reaper_of_a_finished_run_stops_an_expired_warm_session_and_ends(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    runs.ending(requirement, timedelta(seconds=3), is_detached=True)
    assert runs.service.statuses() == ["in-progress"]

    assert eventually(lambda: runs.service.statuses() == ["stopped"])

    assert eventually(lambda: not reapers(mark))
    assert runs.entries() == []
    assert list(runs.sweep().notes()) == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [({"effect": "delay", "seconds": 3600}, Stopped), (REFUSAL, StopFailed)],
)
def test_a_run_reports_a_warm_session_that_expires_before_its_end(
    runs: WarmRuns, requirement: Requirement, fault: dict[str, Any], kind: type[Event]
) -> None:
    run = runs.start(is_detached=True)
    runs.service.add_fault("stop", **fault)
    session_id = runs.keep(run, requirement, SOON)
    assert eventually(
        lambda: "stop" in [operation for operation, _ in runs.service.requests()]
    )
    assert eventually(lambda: run.owner.unfinished() == 1)
    if kind is Stopped:
        runs.service.remove_faults()

    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (kind, session_id)
    ]


def test_the_successor_of_a_killed_reaper_stops_an_expired_warm_session(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    run = runs.start(is_detached=True)
    session_id = runs.keep(run, requirement, timedelta(seconds=2))
    (former,) = reapers(mark)

    former.kill()

    assert eventually(lambda: runs.service.statuses() == ["stopped"])
    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (Stopped, session_id)
    ]


def test_the_successor_of_a_killed_reaper_leaves_claimed_sessions_alone(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    run = runs.start(is_detached=True)
    runs.keep(run, requirement, timedelta(minutes=5))
    (former,) = reapers(mark)
    former.suspend()
    runs.start().acquire(requirement)

    former.kill()
    assert eventually(lambda: len(set(reapers(mark)) - {former}) == 1)

    assert run.close() == []
    assert runs.states() == ["live"]
    assert runs.service.statuses() == ["in-progress"]


def test_the_reaper_of_a_finished_run_ends_once_another_run_claimed_the_session(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    runs.left(requirement, is_detached=True)
    (former,) = reapers(mark)

    runs.start().acquire(requirement)

    assert eventually(lambda: former not in reapers(mark))
    assert runs.service.statuses() == ["in-progress"]


def test_a_taken_over_session_is_supervised_by_its_new_run(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    runs.left(requirement, is_detached=True)
    (former,) = reapers(mark)
    second = runs.start(is_detached=True)
    second.acquire(requirement)
    os.kill(former.pid, signal.SIGKILL)

    second.leave_at_once()

    assert eventually(lambda: runs.service.statuses() == ["stopped"])


@pytest.mark.parametrize(
    ("after", "status"), [(timedelta(minutes=5), "in-progress"), (SOON, "stopped")]
)
def test_a_sweep_stops_an_expired_warm_session(
    runs: WarmRuns, requirement: Requirement, after: timedelta, status: str
) -> None:
    session_id = runs.ending(requirement, after)
    assert eventually(
        lambda: (
            datetime.now(UTC) > datetime.fromisoformat(runs.entries()[0].until)
            or status != "stopped"
        )
    )

    swept = runs.sweep()

    assert runs.service.statuses() == [status]
    assert [session_id_of(event) for event in swept.stopped] == (
        [session_id] if status == "stopped" else []
    )


def test_a_run_with_another_token_of_the_account_takes_over_a_warm_session(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.left(requirement)
    runs.service.add_token("rotated")

    assert runs.start(token="rotated").use(requirement) == session_id


def test_a_warm_session_that_a_token_cannot_look_up_is_left_to_its_owner(
    runs: WarmRuns, requirement: Requirement
) -> None:
    runs.left(requirement)
    runs.service.add_token("theirs", is_foreign=True)
    theirs = runs.start(token="theirs").warm

    assert (theirs.claim(requirement), theirs.make_room()) == (None, False)

    assert runs.states() == ["warm"]
    assert runs.service.statuses() == ["in-progress"]


def test_an_expired_warm_session_is_swept_by_a_token_that_sees_it_only(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.ending(requirement, SOON)
    assert eventually(
        lambda: datetime.now(UTC) > datetime.fromisoformat(runs.entries()[0].until)
    )
    runs.service.add_token("theirs", is_foreign=True)
    runs.service.add_token("rotated")

    (note,) = runs.sweep(token="theirs").notes()

    assert note.endswith(
        f"(this access token cannot look it up). With that token: pytest-device stop {session_id}"
    )
    assert runs.states() == ["warm"]
    swept = runs.sweep(token="rotated")
    assert [session_id_of(event) for event in swept.stopped] == [session_id]
    assert runs.entries() == []


def test_a_warm_session_that_a_token_cannot_look_up_is_not_stopped_on_request(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.left(requirement)
    runs.service.add_token("theirs", is_foreign=True)

    stopped = runs.command("stop", token="theirs")

    assert (
        f"another access token created it: with that token, run pytest-device stop {session_id}"
        in stopped.stderr
    )
    assert runs.states() == ["warm"]


def test_a_session_claimed_by_a_dead_run_is_swept(
    runs: WarmRuns, requirement: Requirement
) -> None:
    runs.left(requirement)
    (run,) = runs.runs()
    assert run.ledger.claim(runs.entries()[0].intent, run.ledger)

    runs.sweep()

    assert runs.service.statuses() == ["stopped"]
    assert runs.entries() == []


def test_a_warm_session_is_listed_with_its_time_and_stopped_on_request(
    runs: WarmRuns, requirement: Requirement
) -> None:
    session_id = runs.left(requirement)
    (entry,) = runs.entries()
    until = datetime.fromisoformat(entry.until).astimezone()

    listed = runs.command("sessions")
    (as_json,) = json.loads(runs.command("sessions", "--json").stdout)["sessions"]
    stopped = runs.command("stop")

    assert (
        f"{session_id}  kept warm until {until:%H:%M} (run finished)" in listed.stdout
    )
    assert as_json["until"] == entry.until
    assert f"stopped: android appium {session_id} (stopped)" in stopped.stdout
    assert runs.service.statuses() == ["stopped"]
    assert runs.entries() == []


def test_warm_sessions_of_an_interrupted_run_are_stopped(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = runs.start(is_detached=True)
    session_id = run.use(requirement)

    run.warm.end()

    assert [(type(event), session_id_of(event)) for event in run.close()] == [
        (Stopped, session_id)
    ]
    assert runs.service.statuses() == ["stopped"]


def test_sessions_already_claimed_by_others_are_left_alone(
    runs: WarmRuns, requirement: Requirement
) -> None:
    first, second = runs.start(is_detached=True), runs.start(is_detached=True)
    first.use(requirement)
    second.acquire(requirement)

    first.warm.end()

    assert first.close() == []
    assert runs.service.statuses() == ["in-progress"]


@pytest.mark.parametrize(("leaves_warm", "kind"), [(True, KeptWarm), (False, Stopped)])
def test_warm_sessions_of_workers_are_reported_or_stopped_with_the_run(
    runs: WarmRuns, requirement: Requirement, *, leaves_warm: bool, kind: type[Event]
) -> None:
    run = runs.start()
    session = run.acquire(requirement).session
    entry = entry_of(
        str(session.id), runs.service, owner="gw0", until="2999-01-01T00:00:00+00:00"
    )
    run.run.ledger.keep_warm(entry)

    events = runs.reconcile(run.run, leaves_warm=leaves_warm)

    assert [(type(event), session_id_of(event)) for event in events] == [
        (kind, str(session.id))
    ]


def test_a_warm_session_makes_room_once_the_service_has_no_capacity(
    runs: WarmRuns, requirement: Requirement
) -> None:
    runs.left(requirement)
    run = runs.start()
    runs.service.add_fault("create", "reply", **NO_CAPACITY)

    run.acquire(requirement_at(runs.service, platform="ios"))

    assert runs.service.statuses() == ["stopped", "in-progress"]


def test_a_run_that_stops_its_own_warm_session_reports_its_end(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = runs.start()
    session_id = run.use(requirement)
    runs.service.add_fault("create", "reply", **NO_CAPACITY)

    run.acquire(requirement_at(runs.service, platform="ios"))

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
    runs: WarmRuns, requirement: Requirement, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = runs.left(requirement)
    locked = runs.path / "runs" / "0-of-another-user"
    locked.mkdir()
    listed = os.listdir

    def listdir(path: str) -> list[str]:
        if path == str(locked):
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)

    assert runs.start().use(requirement) == session_id


def test_the_session_of_an_interrupted_takeover_is_stopped_and_reported(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    session_id = runs.left(requirement, is_detached=True)
    run, reaper = broken_off(runs, requirement, mark)

    reaper.resume()

    assert eventually(lambda: runs.service.statuses()[0] == "stopped")
    reported = [event for event in run.close() if session_id_of(event) == session_id]
    assert [type(event) for event in reported] == [Note, Stopped]


def test_an_unanswered_claim_is_not_reported_as_the_runs_session(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> None:
    session_id = runs.left(requirement, is_detached=True)
    run, reaper = broken_off(runs, requirement, mark)

    assert session_id not in [session_id_of(event) for event in run.leave_at_once()]

    reaper.resume()
    assert eventually(lambda: runs.service.statuses() == ["stopped", "stopped"])


def broken_off(
    runs: WarmRuns, requirement: Requirement, mark: str
) -> tuple[WarmRun, psutil.Process]:
    """Interrupt the takeover by a run whose reaper is suspended; return both."""
    formers, run = reapers(mark), runs.start(is_detached=True)
    run.acquire(
        requirement_at(runs.service, platform="ios")
    )  # its reaper takes commands by then
    (reaper,) = set(reapers(mark)) - set(formers)
    reaper.suspend()

    def interrupt() -> None:
        eventually(lambda: run.owner.unfinished() == 2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run.acquire(requirement)
    interrupting.join(60)
    return run, reaper


def test_a_process_without_a_ledger_keeps_nothing_warm(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = WarmRun(runs.service, runs.path, has_ledger=False)

    run.use(requirement)

    assert runs.service.statuses() == ["stopped"]
    run.close()
    run.run.leave()


def test_the_time_of_use_counts_from_the_takeover(
    runs: WarmRuns, requirement: Requirement
) -> None:
    runs.left(requirement)
    run = runs.start()
    held = run.acquire(requirement)
    run.pool.mark_unusable([held])

    run.release(held)

    after = time.monotonic()
    (stopped,) = (event for event in run.events if isinstance(event, Stopped))
    assert stopped.running_seconds is not None
    assert held.ready_at is not None
    assert stopped.running_seconds <= after - held.ready_at


def test_the_ledger_reveals_nothing_of_a_request(runs: WarmRuns) -> None:
    secret = requirement_at(
        runs.service,
        application_archive_url="https://cdn.example/app?sig=s3cret",
        launch_args=["--password=s3cret"],
    )
    runs.left(secret)

    assert all(
        "s3cret" not in path.read_text(errors="replace")
        for path in runs.path.rglob("*")
        if path.is_file()
    )
    (entry,) = runs.entries()
    # Another user's key.
    assert entry.request_digest != digest_of(secret, runs.path.parent)
    assert (runs.path / "warm.salt").stat().st_mode & 0o777 == 0o600


def test_a_kept_session_is_not_taken_over(
    runs: WarmRuns, requirement: Requirement
) -> None:
    run = runs.start()
    held = run.acquire(requirement)
    run.owner.keep(held.session.id)
    run.pool.keep(held)
    run.close()

    assert runs.states() == ["kept"]
    assert runs.offered() == []

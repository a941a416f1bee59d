"""The sessions that the service holds, over time and across restarts."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_device.service.faults import Fault, Faults, FaultyRunner
from pytest_device.service.lifecycle import Session
from pytest_device.service.rules import check
from pytest_device.service.runners.base import GONE
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import KEEP_SECONDS, Sessions
from pytest_device.service.store import Store
from pytest_device.spec import Platform, Status
from tests.service.world import APP_ID, BOOT_SECONDS, NOW, Clock, World, data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def kept(path: Path) -> Iterator[Store]:
    with closing(Store.open(path)) as store:
        yield store


def one(world: World) -> Session:
    (session,) = world.sessions
    return session


def test_a_session_boots_by_the_clock(world: World) -> None:
    session_id = world.created()
    statuses = []

    for seconds in (0.0, BOOT_SECONDS - 0.1, 0.1):
        world.clock.now += seconds
        statuses.append(data(world.get(session_id))["status"])

    assert statuses == ["new", "new", "in-progress"]


def test_create_returns_before_the_device_is_ready_however_fast_it_boots(
    store: Store,
) -> None:
    assert data(World(store, boot_seconds=0).create())["status"] == "new"


def test_timestamps_have_the_time_of_their_events(world: World) -> None:
    session_id = world.created()
    world.clock.now += BOOT_SECONDS
    world.get(session_id)
    world.clock.now += 60
    session = data(world.stop(session_id))

    assert (
        session["createdAt"],
        session["startedAt"],
        session["finishedAt"],
        session["updatedAt"],
    ) == (
        "2027-01-15T08:00:00.250Z",
        "2027-01-15T08:00:10.250Z",
        "2027-01-15T08:01:10.250Z",
        "2027-01-15T08:01:10.250Z",
    )


def test_reading_a_session_does_not_update_it(world: World) -> None:
    session_id = world.created()
    world.clock.now += 1

    assert (
        data(world.get(session_id))["updatedAt"]
        == data(world.get(session_id))["createdAt"]
    )


def test_a_sweep_enforces_limits_without_requests(world: World) -> None:
    world.created(maxDurationMinutes=1)
    world.clock.now += BOOT_SECONDS
    world.sessions.sweep()
    world.clock.now += 60
    world.sessions.sweep()

    assert one(world).status is Status.STOPPED
    assert one(world).reason == "maximum duration of 1 min reached"


def test_a_session_without_any_duration_ends_when_it_is_ready(world: World) -> None:
    session_id = world.created(maxDurationMinutes=0)
    world.clock.now += BOOT_SECONDS
    session = data(world.get(session_id))

    assert session["status"] == "stopped"
    assert session["startedAt"] == session["finishedAt"] == "2027-01-15T08:00:10.250Z"


def test_every_change_is_logged_with_its_reason(store: Store) -> None:
    said: list[str] = []
    clock = Clock()
    runner = SimulatedRunner(clock=clock)
    sessions = Sessions(
        store=store, runner=runner, clock=clock, log=said.append, new_id=lambda: "7"
    )
    session = sessions.create(
        {"appId": APP_ID, "platform": "ios", "name": "a\nb"}, default_minutes=30
    )
    sessions.sweep()
    sessions.stop(session.id)

    assert said == [
        "session 7: new, agent-device on ios, 'a\\nb'",
        "session 7: in-progress",
        "session 7: stopped, requested by a client",
    ]


def test_use_of_the_controller_postpones_the_idle_limit(world: World) -> None:
    session_id = world.created(maxIdleTimeMinutes=5)
    world.clock.now += BOOT_SECONDS
    world.sessions.sweep()
    world.clock.now += 4 * 60
    record = world.runner.record(session_id)
    record.begin_request()
    record.end_request()
    world.clock.now += 4 * 60

    assert data(world.get(session_id))["status"] == "in-progress"

    world.clock.now += 60

    assert data(world.get(session_id))["status"] == "stopped"
    assert one(world).reason == "controller not used for 5 min"


def test_reading_a_session_does_not_count_as_use_of_its_controller(
    world: World,
) -> None:
    session_id = world.created(maxIdleTimeMinutes=1)
    world.clock.now += BOOT_SECONDS
    for _ in range(4):
        world.get(session_id)
        world.send("GET", f"/sessions/{session_id}", token=None)
        world.clock.now += 20

    assert data(world.get(session_id))["status"] == "stopped"


@pytest.mark.parametrize("end", [Sessions.stop, Sessions.expire])
@pytest.mark.parametrize("seconds", [0, BOOT_SECONDS])
def test_programs_are_stopped_when_and_only_when_the_session_ends(
    world: World, end: Callable[[Sessions, str], Session], seconds: float
) -> None:
    session_id = world.created()
    world.clock.now += seconds
    world.sessions.sweep()
    assert world.runner.record(session_id).boot != GONE

    end(world.sessions, session_id)

    assert world.runner.record(session_id).boot == GONE


def test_programs_are_stopped_when_the_session_fails(store: Store) -> None:
    runner, faults = SimulatedRunner(clock=Clock()), Faults()
    faults.add(Fault("boot", "fail"))
    sessions = Sessions(
        store=store, runner=FaultyRunner(runner, faults, Clock()), clock=Clock()
    )
    session = sessions.create({"appId": APP_ID, "platform": "ios"}, default_minutes=30)

    sessions.sweep()

    assert sessions.get(session.id) != session
    assert runner.record(session.id).boot == GONE


def test_a_passed_limit_takes_precedence_over_a_later_stop(world: World) -> None:
    session_id = world.created(maxDurationMinutes=1)
    world.clock.now += BOOT_SECONDS
    world.sessions.sweep()
    world.clock.now += 3600

    assert data(world.stop(session_id))["finishedAt"] == "2027-01-15T08:01:10.250Z"


def test_all_active_sessions_are_stopped_with_the_service(world: World) -> None:
    for _ in range(3):
        world.created()
    world.sessions.stop_all("the service was ended")

    assert [(session.status, session.reason) for session in world.sessions] == [
        (Status.STOPPED, "the service was ended")
    ] * 3


def test_a_restarted_service_remembers_its_sessions(kept: Store) -> None:
    before = World(kept)
    session_id = before.created(
        name="login", type="argent", maxIdleTimeMinutes=7, maxDurationMinutes=30
    )
    stopped = data(before.stop(session_id))

    assert data(World(kept).get(session_id)) == stopped


def test_a_session_that_was_active_when_the_service_died_is_errored_after_the_restart(
    kept: Store,
) -> None:
    session_id = World(kept).created()
    after = World(kept)

    assert data(after.get(session_id))["status"] == "errored"
    assert one(after).reason == "the service stopped before the session ended"


def test_a_session_ended_long_ago_is_forgotten_at_a_restart(kept: Store) -> None:
    before = World(kept)
    before.stop(before.created(name="old"))
    before.clock.now += KEEP_SECONDS
    before.stop(before.created(name="new"))
    after = World(kept, now=before.clock.now + 1)

    assert [session.name for session in after.sessions] == ["new"]


def test_an_active_session_is_never_forgotten(kept: Store) -> None:
    World(kept).created(name="old")
    after = World(kept, now=NOW + 2 * KEEP_SECONDS)

    assert [(session.name, session.status) for session in after.sessions] == [
        ("old", Status.ERRORED)
    ]


def test_connection_details_and_launch_arguments_are_never_written(
    path: Path, kept: Store
) -> None:
    world = World(kept)
    session_id = world.created(
        type="agent-device", vendorGo=True, launchArgs=["--password=hunter2"]
    )
    world.clock.now += BOOT_SECONDS
    config = data(world.get(session_id))["remoteConfig"]
    written = b"".join(file.read_bytes() for file in path.parent.iterdir())

    assert session_id.encode() in written
    assert config["agentDeviceRemoteSessionToken"].encode() not in written
    assert config["agentDeviceRemoteSessionUrl"].encode() not in written
    assert b"hunter2" not in written


def test_a_stop_ends_the_programs_even_if_it_cannot_be_stored(
    world: World, store: Store
) -> None:
    session_id = world.created()
    store.close()

    with pytest.raises(sqlite3.ProgrammingError):
        world.stop(session_id)
    assert world.runner.record(session_id).boot == GONE


def test_the_reported_archive_of_a_development_client_is_the_installed_one(
    store: Store, world: World
) -> None:
    clients = {(Platform.IOS, None): "https://clients.example/55.zip"}
    sessions = Sessions(
        store=store,
        runner=world.runner,
        clock=world.clock,
        client_url=lambda *asked: clients.get(asked),
    )

    def archive(**source: Any) -> str | None:
        body = check({"appId": APP_ID, "platform": "ios", **source})
        return sessions.create(body, default_minutes=5).application_archive_url

    assert archive(vendorGo=True) == "https://clients.example/55.zip"
    assert (
        archive(vendorGo=True, sdkVersion="54")
        == "https://vendor.invalid/development-client/ios/54"
    )
    assert (
        archive(applicationArchiveUrl="https://a.example/a.zip")
        == "https://a.example/a.zip"
    )

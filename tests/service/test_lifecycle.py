"""The life of a session as its client sees it: what happens to it, its limits, and the end of its programs."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from itertools import product
from typing import Any

import pytest

from tests.fakes.devices import FakeRunner
from tests.fakes.local_service import BOOT_SECONDS, NOW, InProcessService, data

STARTED = 10.0
"""When a session becomes ready here, in seconds after its creation, as all times here."""
MINUTE = 60.0
NEVER = 9e6
READY = {"appiumUrl": "http://127.0.0.1:4723", "capabilities": {}}
EVENTS = ("ready", "failure", "stop", "limit")


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def played(runner: FakeRunner) -> Iterator[InProcessService]:
    """A service whose devices do what the test says."""
    with closing(InProcessService(runner=runner)) as service:
        yield service


def one_in(
    service: InProcessService, runner: FakeRunner, status: str, **options: Any
) -> str:
    """Return the ID of a session that has a status."""
    session_id = service.created(type="appium", **options)
    if status == "in-progress":
        service.clock.now = NOW + STARTED
        happens(service, runner, "ready", session_id)
    elif status == "stopped":
        happens(service, runner, "stop", session_id)
    elif status == "errored":
        happens(service, runner, "failure", session_id)
    return session_id


def happens(
    service: InProcessService, runner: FakeRunner, event: str, session_id: str
) -> Mapping[str, Any]:
    """Let something happen to a session; return the session afterwards."""
    match event:
        case "ready":
            runner.boot(session_id, READY)
        case "failure":
            runner.fail(session_id, "no device")
        case "stop":
            service.stop(session_id)
        case _:
            service.send("POST", f"/testing/sessions/{session_id}/expire")
    return data(service.get(session_id))


def seconds(time: str | None) -> float | None:
    """Return a time in seconds after the creation."""
    return None if time is None else datetime.fromisoformat(time).timestamp() - NOW


def reason(service: InProcessService) -> str:
    (session,) = service.listed("sessions")
    return str(session["reason"])


def has_programs(service: InProcessService, session_id: str) -> bool:
    """Return whether the simulated controller of a session answers."""
    health = service.send("GET", f"/simulated/{session_id}/health", token=None)
    return health.status_code == 200


@pytest.mark.parametrize(
    ("status", "event"), [*product(("stopped", "errored"), EVENTS)]
)
def test_nothing_changes_an_ended_session(
    played: InProcessService, runner: FakeRunner, status: str, event: str
) -> None:
    session_id = one_in(played, runner, status)
    before = data(played.get(session_id)), reason(played)
    played.clock.advance(60)

    assert (happens(played, runner, event, session_id), reason(played)) == before


@pytest.mark.parametrize(
    ("status", "event", "to", "started_at", "finished_at", "why"),
    [
        ("new", "ready", "in-progress", 100.0, None, "None"),
        ("new", "stop", "stopped", None, 100.0, "requested by a client"),
        ("new", "limit", "stopped", None, 100.0, "limit reached early, by a test"),
        ("new", "failure", "errored", None, None, "no device"),
        ("in-progress", "stop", "stopped", STARTED, 100.0, "requested by a client"),
        ("in-progress", "limit", "stopped", STARTED, 100.0, "limit reached early, by a test"),
        ("in-progress", "failure", "errored", STARTED, None, "no device"),
    ],
)  # fmt: skip
def test_an_event_leads_to_its_status(
    played: InProcessService,
    runner: FakeRunner,
    status: str,
    event: str,
    to: str,
    started_at: float | None,
    finished_at: float | None,
    why: str,
) -> None:
    session_id = one_in(played, runner, status)
    played.clock.now = NOW + 100

    session = happens(played, runner, event, session_id)

    assert session["status"] == to
    assert reason(played) == why
    assert seconds(session["createdAt"]) == 0
    assert seconds(session["startedAt"]) == started_at
    assert seconds(session["finishedAt"]) == finished_at
    assert seconds(session["updatedAt"]) == 100


def test_a_second_ready_event_keeps_the_first_start_time(
    played: InProcessService, runner: FakeRunner
) -> None:
    session_id = one_in(played, runner, "in-progress")
    before = data(played.get(session_id))
    played.clock.advance(60)

    assert happens(played, runner, "ready", session_id) == before


@pytest.mark.parametrize(
    ("options", "used", "boot", "now", "status", "changed"),
    [
        pytest.param({}, None, None, NEVER, "new", 0, id="booting-has-no-limit"),
        pytest.param(
            {}, None, "ready", STARTED + 30 * MINUTE - 0.1, "in-progress", STARTED,
            id="just-before-its-duration",
        ),
        pytest.param(
            {}, None, "ready", STARTED + 30 * MINUTE, "stopped", STARTED + 30 * MINUTE,
            id="at-its-duration",
        ),
        pytest.param(
            {}, None, "ready", NEVER, "stopped", STARTED + 30 * MINUTE,
            id="long-after-its-duration",
        ),
        pytest.param(
            {}, None, "failure", NEVER, "stopped", STARTED + 30 * MINUTE,
            id="a-limit-comes-before-a-failure-seen-after-it",
        ),
        pytest.param(
            {"maxDurationMinutes": 0}, None, "ready", STARTED, "stopped", STARTED,
            id="no-duration-at-all",
        ),
        pytest.param(
            {"maxIdleTimeMinutes": 5}, None, "ready", STARTED + 5 * MINUTE, "stopped", STARTED + 5 * MINUTE,
            id="never-used",
        ),
        pytest.param(
            {"maxIdleTimeMinutes": 5}, STARTED + 60, "ready", STARTED + 6 * MINUTE - 0.1, "in-progress", STARTED,
            id="used-since",
        ),
        pytest.param(
            {"maxIdleTimeMinutes": 5}, STARTED + 60, "ready", NEVER, "stopped", STARTED + 6 * MINUTE,
            id="idle-since-its-last-use",
        ),
        pytest.param(
            {"maxIdleTimeMinutes": 5}, STARTED - 5, "ready", STARTED + 5 * MINUTE - 0.1, "in-progress", STARTED,
            id="use-before-it-was-ready-does-not-count",
        ),
        pytest.param(
            {"maxIdleTimeMinutes": 5}, STARTED + 29 * MINUTE, "ready", NEVER, "stopped", STARTED + 30 * MINUTE,
            id="use-does-not-prolong-the-duration",
        ),
    ],
)  # fmt: skip
def test_a_session_ends_at_the_first_of_its_limits(
    played: InProcessService,
    runner: FakeRunner,
    options: dict[str, Any],
    used: float | None,
    boot: str | None,
    now: float,
    status: str,
    changed: float,
) -> None:
    limits = {"maxDurationMinutes": 30} | options
    session_id = one_in(played, runner, "in-progress" if boot else "new", **limits)
    if used is not None:
        runner.record(session_id).last_request = NOW + used
    if boot == "failure":
        runner.fail(session_id, "no device")

    played.clock.now = NOW + now
    session = data(played.get(session_id))

    assert session["status"] == status
    assert seconds(session["updatedAt"]) == pytest.approx(changed)
    assert seconds(session["finishedAt"]) == (
        pytest.approx(changed) if status == "stopped" else None
    )


def test_a_session_boots_by_the_clock(service: InProcessService) -> None:
    session_id = service.created()
    statuses = []

    for passed in (0.0, BOOT_SECONDS - 0.1, 0.1):
        service.clock.advance(passed)
        statuses.append(data(service.get(session_id))["status"])

    assert statuses == ["new", "new", "in-progress"]


def test_create_returns_before_the_device_is_ready_however_fast_it_boots() -> None:
    with closing(InProcessService(boot_seconds=0)) as service:
        assert data(service.create())["status"] == "new"


def test_timestamps_are_in_utc_with_milliseconds(service: InProcessService) -> None:
    assert data(service.create())["createdAt"] == "2027-01-15T08:00:00.250Z"


def test_reading_a_session_does_not_update_it(service: InProcessService) -> None:
    session_id = service.created()
    service.clock.advance(1)

    assert (
        data(service.get(session_id))["updatedAt"]
        == data(service.get(session_id))["createdAt"]
    )


def test_a_sweep_enforces_limits_without_requests(service: InProcessService) -> None:
    session_id = service.created(maxDurationMinutes=1)
    service.clock.advance(BOOT_SECONDS)
    service.sessions.sweep()
    service.clock.advance(60)
    service.sessions.sweep()

    assert not has_programs(service, session_id)
    assert reason(service) == "maximum duration of 1 min reached"


def test_every_change_is_logged_with_its_reason() -> None:
    log: list[str] = []
    with closing(InProcessService(boot_seconds=0, log=log.append)) as service:
        session_id = service.created(platform="ios", name="a\nb")
        service.get(session_id)
        service.stop(session_id)

    assert log == [
        f"session {session_id}: new, agent-device on ios, 'a\\nb'",
        f"session {session_id}: in-progress",
        f"session {session_id}: stopped, requested by a client",
    ]


def test_use_of_the_controller_postpones_the_idle_limit(
    played: InProcessService, runner: FakeRunner
) -> None:
    session_id = one_in(played, runner, "in-progress", maxIdleTimeMinutes=5)
    played.clock.advance(4 * 60)
    record = runner.record(session_id)
    record.clock = played.clock
    record.begin_request()
    played.clock.advance(9 * 60)
    record.end_request()
    played.clock.advance(4 * 60)

    assert data(played.get(session_id))["status"] == "in-progress"

    played.clock.advance(60)

    assert data(played.get(session_id))["status"] == "stopped"
    assert reason(played) == "controller not used for 5 min"


def test_reading_a_session_does_not_count_as_use_of_its_controller(
    service: InProcessService,
) -> None:
    session_id = service.created(maxIdleTimeMinutes=1)
    service.clock.advance(BOOT_SECONDS)
    for _ in range(4):
        service.get(session_id)
        service.send("GET", f"/sessions/{session_id}", token=None)
        service.clock.advance(20)

    assert data(service.get(session_id))["status"] == "stopped"


@pytest.mark.parametrize("end", ["stop", "expire"])
@pytest.mark.parametrize("passed", [0, BOOT_SECONDS])
def test_programs_are_stopped_when_and_only_when_the_session_ends(
    service: InProcessService, end: str, passed: float
) -> None:
    session_id = service.created()
    service.clock.advance(passed)
    service.get(session_id)
    assert has_programs(service, session_id)

    path = {
        "stop": f"/v2/device-run-sessions/{session_id}/stop",
        "expire": f"/testing/sessions/{session_id}/expire",
    }
    service.send("POST", path[end])

    assert not has_programs(service, session_id)


def test_programs_are_stopped_when_the_session_fails(service: InProcessService) -> None:
    service.fault("boot", "fail")
    session_id = service.created()
    assert has_programs(service, session_id)

    service.get(session_id)

    assert not has_programs(service, session_id)


def test_a_stop_ends_the_programs_even_if_it_cannot_be_stored(
    service: InProcessService,
) -> None:
    session_id = service.created()
    service.store.close()

    with pytest.raises(sqlite3.ProgrammingError):
        service.stop(session_id)
    assert not has_programs(service, session_id)


def test_a_passed_limit_takes_precedence_over_a_later_stop(
    service: InProcessService,
) -> None:
    session_id = service.created(maxDurationMinutes=1)
    service.clock.advance(BOOT_SECONDS)
    service.get(session_id)
    service.clock.advance(3600)

    assert data(service.stop(session_id))["finishedAt"] == "2027-01-15T08:01:10.250Z"


def test_all_active_sessions_are_stopped_with_the_service(
    service: InProcessService,
) -> None:
    for _ in range(3):
        service.created()
    service.sessions.stop_all("the service was ended")

    assert [
        (session["status"], session["reason"]) for session in service.listed("sessions")
    ] == [("stopped", "the service was ended")] * 3


@pytest.mark.parametrize(
    ("source", "archive"),
    [
        ({"vendorGo": True}, "https://clients.example/55.zip"),
        (
            {"vendorGo": True, "sdkVersion": "54"},
            "https://vendor.invalid/development-client/ios/54",
        ),
        (
            {"applicationArchiveUrl": "https://a.example/a.zip"},
            "https://a.example/a.zip",
        ),
    ],
)
def test_the_reported_archive_of_a_development_client_is_the_installed_one(
    source: dict[str, Any], archive: str
) -> None:
    clients = {("ios", None): "https://clients.example/55.zip"}
    with closing(
        InProcessService(client_url=lambda *wanted: clients.get(wanted))
    ) as service:
        session = data(service.create(platform="ios", **source))

    assert session["applicationArchiveUrl"] == archive

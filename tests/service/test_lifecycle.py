"""The life of a session, event by event."""

from dataclasses import replace
from itertools import product

import pytest

from pytest_device.service.lifecycle import (
    TERMINAL,
    TRANSITIONS,
    Event,
    Occurrence,
    Session,
    change,
    due,
)
from pytest_device.service.runners.base import Boot, Booting, Failed, Running
from pytest_device.spec import Platform, SessionType, Status
from tests.service.world import APP_ID, UNKNOWN_ID

CREATED, STARTED = 1000.0, 1010.0
MINUTE = 60.0
READY = Running({"appiumUrl": "http://127.0.0.1:4723"})


def session(status: Status, *, minutes: int = 30, idle: int | None = None) -> Session:
    started = None if status is Status.NEW else STARTED
    return Session(
        id=UNKNOWN_ID,
        app_id=APP_ID,
        job_run_id="run",
        name=None,
        type=SessionType.APPIUM,
        package_version=None,
        build_id=None,
        application_archive_url=None,
        platform=Platform.IOS,
        status=status,
        reason=None,
        max_duration_minutes=minutes,
        max_idle_time_minutes=idle,
        started_at=started,
        finished_at=None,
        created_at=CREATED,
        updated_at=started or CREATED,
    )


def test_the_table_has_every_event_in_every_status() -> None:
    assert set(TRANSITIONS) == set(product(Status, Event))


@pytest.mark.parametrize(("status", "event"), [*product(sorted(TERMINAL), Event)])
def test_nothing_changes_an_ended_session(status: Status, event: Event) -> None:
    before = session(status)

    assert change(before, Occurrence(event, 2000.0, "a reason")) is before


CHANGES = [
    # status, event, then: status, startedAt, finishedAt
    (Status.NEW, Event.READY, Status.IN_PROGRESS, 2000.0, None),
    (Status.NEW, Event.STOP, Status.STOPPED, None, 2000.0),
    (Status.NEW, Event.EXPIRE, Status.STOPPED, None, 2000.0),
    (Status.NEW, Event.FAIL, Status.ERRORED, None, None),
    (Status.IN_PROGRESS, Event.STOP, Status.STOPPED, STARTED, 2000.0),
    (Status.IN_PROGRESS, Event.EXPIRE, Status.STOPPED, STARTED, 2000.0),
    (Status.IN_PROGRESS, Event.FAIL, Status.ERRORED, STARTED, None),
]


@pytest.mark.parametrize(
    ("status", "event", "to", "started_at", "finished_at"), CHANGES
)
def test_an_event_leads_to_its_status(
    status: Status,
    event: Event,
    to: Status,
    started_at: float | None,
    finished_at: float | None,
) -> None:
    before = session(status)

    after = change(before, Occurrence(event, 2000.0, "a reason"))

    expected = replace(
        before,
        status=to,
        reason="a reason",
        started_at=started_at,
        finished_at=finished_at,
        updated_at=2000.0,
    )
    assert after == expected


def test_a_second_ready_event_keeps_the_first_start_time() -> None:
    before = session(Status.IN_PROGRESS)

    assert change(before, Occurrence(Event.READY, 2000.0)) is before


DUE = [
    # what is given, boot, last activity, now, then: event and its moment
    pytest.param(
        session(Status.NEW), Booting(), None, 9e9, None, id="booting-has-no-limit"
    ),
    pytest.param(
        session(Status.NEW), READY, None, 1012.0, (Event.READY, 1012.0), id="ready"
    ),
    pytest.param(
        session(Status.NEW),
        Failed("x"),
        None,
        1012.0,
        (Event.FAIL, 1012.0),
        id="boot-fails",
    ),
    pytest.param(session(Status.IN_PROGRESS), READY, None, 1012.0, None, id="running"),
    pytest.param(
        session(Status.IN_PROGRESS),
        Failed("x"),
        None,
        1012.0,
        (Event.FAIL, 1012.0),
        id="controller-dies",
    ),
    pytest.param(
        session(Status.IN_PROGRESS),
        READY,
        None,
        STARTED + 30 * MINUTE - 0.1,
        None,
        id="just-before-its-duration",
    ),
    pytest.param(
        session(Status.IN_PROGRESS),
        READY,
        None,
        STARTED + 30 * MINUTE,
        (Event.EXPIRE, STARTED + 30 * MINUTE),
        id="at-its-duration",
    ),
    pytest.param(
        session(Status.IN_PROGRESS),
        READY,
        None,
        9e9,
        (Event.EXPIRE, STARTED + 30 * MINUTE),
        id="long-after-its-duration",
    ),
    pytest.param(
        session(Status.IN_PROGRESS),
        Failed("x"),
        None,
        9e9,
        (Event.EXPIRE, STARTED + 30 * MINUTE),
        id="a-limit-comes-before-a-failure-seen-after-it",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, minutes=0),
        READY,
        None,
        STARTED,
        (Event.EXPIRE, STARTED),
        id="no-duration-at-all",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, idle=5),
        READY,
        None,
        STARTED + 5 * MINUTE,
        (Event.EXPIRE, STARTED + 5 * MINUTE),
        id="never-used",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, idle=5),
        READY,
        STARTED + 60,
        STARTED + 6 * MINUTE - 0.1,
        None,
        id="used-since",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, idle=5),
        READY,
        STARTED + 60,
        9e9,
        (Event.EXPIRE, STARTED + 6 * MINUTE),
        id="idle-since-its-last-use",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, idle=5),
        READY,
        STARTED - 60,
        STARTED + 5 * MINUTE - 0.1,
        None,
        id="use-before-it-was-ready-does-not-count",
    ),
    pytest.param(
        session(Status.IN_PROGRESS, idle=5),
        READY,
        STARTED + 29 * MINUTE,
        9e9,
        (Event.EXPIRE, STARTED + 30 * MINUTE),
        id="use-does-not-prolong-the-duration",
    ),
]


@pytest.mark.parametrize(("given", "boot", "last_activity", "now", "expected"), DUE)
def test_clock_and_runner_cause_the_right_events(
    given: Session,
    boot: Boot,
    last_activity: float | None,
    now: float,
    expected: tuple[Event, float] | None,
) -> None:
    occurrence = due(given, boot, last_activity, now)

    assert (occurrence and (occurrence.event, occurrence.at)) == expected


def test_the_reason_of_a_failure_is_kept() -> None:
    occurrence = due(session(Status.NEW), Failed("no device"), None, 1012.0)

    assert occurrence == Occurrence(Event.FAIL, 1012.0, "no device")

"""Leftover sessions are stopped and reported once; those of live runs are left alone."""

import json
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from pytest_device.events import (
    CreateUnknown,
    Kept,
    StopFailed,
    Stopped,
    detail_of,
    session_id_of,
)
from pytest_device.testing import FaultyService
from tests.sessions.reaper_clients import entry_of
from tests.sessions.state_directory import StateDirectory

RECENTLY = "2999-01-01T00:00:00+00:00"


@pytest.fixture
def past(service: FaultyService, tmp_path: Path) -> Generator[StateDirectory]:
    with closing(StateDirectory(service, tmp_path)) as past:
        yield past


def test_leftover_sessions_are_stopped_reported_and_removed(
    past: StateDirectory,
) -> None:
    first, second = past.entry(), past.entry()
    past.run(first)
    past.run(second)

    swept = past.sweep()

    assert past.service.statuses() == ["stopped"] * 2
    (note,) = swept.notes()
    assert note.startswith("stopped 2 sessions left by earlier runs: ")
    assert first.session_id in note
    assert past.runs() == []


def test_the_sweep_leaves_live_runs_alone(past: StateDirectory) -> None:
    entry = past.entry()
    past.run(entry, alive=True)

    swept = past.sweep()

    assert list(swept.notes()) == []
    assert ("stop", 200) not in past.service.requests()
    assert past.entries() == [entry]


def test_the_sweeping_run_is_not_mistaken_for_an_earlier_one(
    past: StateDirectory,
) -> None:
    run = past.run(entry := past.entry())

    past.sweep(exclude=run.name)

    assert past.entries() == [entry]


def test_without_leftover_sessions_nothing_is_reported(past: StateDirectory) -> None:
    assert list(past.sweep().notes()) == []
    assert past.service.requests() == []


def test_a_kept_session_stays_running_and_in_the_ledger(past: StateDirectory) -> None:
    past.run(entry := past.entry(state="kept"))

    swept = past.sweep()

    assert swept.kept == [entry]
    assert past.entries() == [entry]
    assert ("stop", 200) not in past.service.requests()


def test_an_ended_kept_session_is_removed(past: StateDirectory) -> None:
    past.run(entry := past.entry(state="kept"))
    past.service.expire(entry.session_id)

    assert past.sweep().kept == []

    assert past.runs() == []


def test_a_kept_session_that_the_service_no_longer_knows_is_removed(
    past: StateDirectory,
) -> None:
    past.run(entry_of(str(uuid4()), past.service, state="kept"))

    assert past.sweep().kept == []

    assert past.runs() == []


def test_a_kept_session_that_cannot_be_looked_up_counts_as_running(
    past: StateDirectory,
) -> None:
    past.run(entry := past.entry(state="kept"))
    past.service.add_fault("get", "reply", status=403, body="{}")

    assert past.sweep().kept == [entry]

    assert past.entries() == [entry]


def test_a_session_at_another_service_is_reported_and_left_alone(
    past: StateDirectory,
) -> None:
    past.run(entry := past.entry(service="https://other.example", asked_at=RECENTLY))

    (note,) = past.sweep().notes()

    assert (
        "1 session of earlier runs at another service (https://other.example)" in note
    )
    assert past.entries() == [entry]
    assert ("stop", 200) not in past.service.requests()


def test_a_create_call_without_a_response_is_reported_until_its_limit(
    past: StateDirectory,
) -> None:
    lost = entry_of("", past.service, state="asked", name="lost one")
    past.run(lost._replace(asked_at="2999-01-01T00:00:00+00:00"))
    past.run(lost._replace(asked_at="2001-01-01T00:00:00+00:00"))

    (note,) = past.sweep().notes()

    assert "lost the response to a create call: android appium named 'lost one'" in note
    assert [entry.asked_at for entry in past.entries()] == ["2999-01-01T00:00:00+00:00"]


def test_sessions_that_a_reaper_stopped_after_its_run_are_reported_once(
    past: StateDirectory,
) -> None:
    past.run(past.entry(state="stopped"), past.entry(state="gone"))

    assert list(past.sweep().notes()) == [
        "already stopped: 1 session of interrupted runs",
        "no longer known to the service: 1 session of interrupted runs",
    ]

    assert list(past.sweep().notes()) == []


def test_a_session_that_cannot_be_stopped_is_reported_and_stays_in_the_ledger(
    past: StateDirectory,
) -> None:
    past.run(entry := past.entry(url="https://devices.example/1", asked_at=RECENTLY))
    past.service.add_fault("stop", "reply", status=403, body="{}", times=None)

    (note,) = past.sweep().notes()

    assert note.startswith(
        "could not stop a session left by an earlier run: android appium: "
    )
    assert note.endswith("\n    https://devices.example/1")
    assert past.entries() == [entry]


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_session_that_must_have_ended_long_ago_is_no_longer_reported(
    past: StateDirectory, *, elsewhere: bool
) -> None:
    past.run(
        past.entry(service="https://other.example" if elsewhere else past.service.url)
    )
    past.service.add_fault("stop", "reply", status=403, body="{}", times=None)

    past.sweep()

    assert past.entries() == []


def test_an_unreadable_run_does_not_prevent_sweeping_others(
    past: StateDirectory,
) -> None:
    past.run(past.entry())
    (past.path / "runs" / "bad").mkdir()
    (past.path / "runs" / "bad" / "main.lock").mkdir()

    notes = list(past.sweep().notes())

    assert any("stopped 1 session" in note for note in notes)
    assert any("runs/bad" in note for note in notes)


def test_a_session_that_the_service_no_longer_knows_is_removed(
    past: StateDirectory,
) -> None:
    past.run(entry_of(str(uuid4()), past.service))

    past.sweep()

    assert past.runs() == []


def test_a_session_that_a_former_token_of_the_account_created_is_stopped(
    past: StateDirectory,
) -> None:
    past.run(
        entry := past.entry(asked_at=RECENTLY, account=past.account("a former token"))
    )

    assert list(past.sweep().notes()) == [
        f"stopped 1 session left by earlier runs: {entry.session_id}"
    ]

    assert past.service.statuses() == ["stopped"]
    assert past.entries() == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_session_that_is_refused_to_another_token_stays_in_the_ledger_and_is_named(
    past: StateDirectory, status: int
) -> None:
    past.run(
        mine := past.entry(asked_at=RECENTLY, account=past.account(past.service.token))
    )
    past.run(
        entry := past.entry(asked_at=RECENTLY, account=past.account("another token"))
    )
    past.service.add_token("a-token-of-neither")
    hide(past, status)

    first, second = (past.sweep(token="a-token-of-neither").notes() for _ in range(2))

    for (note,) in (first, second):
        assert note.startswith(
            "could not stop 2 sessions of earlier runs that another access token created ("
        )
        assert f"(status {status})" in note
        assert {*note.rpartition("pytest-device stop ")[2].split()} == {
            mine.session_id,
            entry.session_id,
        }
    assert {*past.entries()} == {mine, entry}
    # Once in each sweep; a reaper of an earlier test may still stop its own.
    for session_id in (mine.session_id, entry.session_id):
        requests = past.service.requests(session_id)
        assert [operation for operation, _ in requests].count("stop") == 2


def hide(past: StateDirectory, status: int) -> None:
    """Let the service refuse sessions to every request: how many a reaper of an earlier test still sends is unknown."""
    body = json.dumps({"errors": [{"code": "REFUSED"}]})
    for operation in ("stop", "get"):
        past.service.add_fault(operation, "reply", status=status, body=body, times=None)


def test_a_token_of_another_account_stops_nothing(past: StateDirectory) -> None:
    past.run(
        entry := past.entry(asked_at=RECENTLY, account=past.account(past.service.token))
    )
    past.service.add_token("a-strangers-token", is_foreign=True)

    (note,) = past.sweep(token="a-strangers-token").notes()

    assert "(status 403)" in note
    assert note.endswith(f"With that token: pytest-device stop {entry.session_id}")
    assert past.entries() == [entry]
    assert "stopped" not in past.service.statuses()


def test_a_page_that_refuses_another_tokens_session_is_not_the_services_last_word(
    past: StateDirectory,
) -> None:
    past.run(past.entry(asked_at=RECENTLY, account=past.account("a former token")))
    past.service.add_fault("stop", "reply", status=403, body="<html>", times=2)

    past.sweep()

    assert past.service.statuses() == ["stopped"]


def test_a_page_refuses_another_tokens_session_a_few_times(
    past: StateDirectory,
) -> None:
    past.run(
        entry := past.entry(asked_at=RECENTLY, account=past.account("another token"))
    )
    past.service.add_fault("stop", "reply", status=403, body="<html>", times=None)

    (note,) = past.sweep().notes()

    assert entry.session_id in note
    stops = [operation for operation, _ in past.service.requests()].count("stop")
    # A lookup that was under way decides about an answer before it: one more.
    assert stops in {3, 4}


def test_a_failing_service_does_not_refuse_another_tokens_session(
    past: StateDirectory,
) -> None:
    past.run(past.entry(asked_at=RECENTLY, account=past.account("a former token")))
    past.service.add_fault("stop", "reply", status=503, body="{}", times=3)

    past.sweep()

    assert past.service.statuses() == ["stopped"]


def test_a_session_that_another_token_kept_stays_running_and_in_the_ledger(
    past: StateDirectory,
) -> None:
    past.run(
        entry := past.entry(
            state="kept", asked_at=RECENTLY, account=past.account("another token")
        )
    )

    swept = past.sweep()

    assert (swept.kept, list(swept.notes())) == ([entry], [])
    assert past.entries() == [entry]


def test_a_kept_session_is_not_removed_because_another_token_cannot_find_it(
    past: StateDirectory,
) -> None:
    yesterday = (datetime.now(UTC) - timedelta(hours=20)).isoformat(timespec="seconds")
    theirs = past.entry(
        state="kept", asked_at=yesterday, account=past.account("another token")
    )
    past.run(theirs._replace(session_id=str(uuid4())))

    past.sweep()

    assert [entry.intent for entry in past.entries()] == [theirs.intent]


@pytest.mark.parametrize("state", ["live", "kept"])
def test_an_unknown_session_stays_in_the_ledger_until_its_limit(
    past: StateDirectory, state: str
) -> None:
    past.run(
        entry := entry_of(str(uuid4()), past.service, state=state, asked_at=RECENTLY)
    )

    notes = list(past.sweep().notes())

    assert past.entries() == [entry]
    assert ["404" in note for note in notes] == ([True] if state == "live" else [])


def test_every_sweep_reports_a_damaged_file(past: StateDirectory) -> None:
    run = past.run(past.entry())
    broken = run.directory / "broken.json"
    broken.write_text("{")

    for swept in (past.sweep(), past.sweep()):
        assert any(f"damaged ledger file {broken}" in note for note in swept.notes())

    assert past.service.statuses() == ["stopped"]


def test_other_sessions_are_stopped_even_if_one_cannot_be(past: StateDirectory) -> None:
    entries = [
        *[past.entry() for _ in range(2)],
        entry_of(str(uuid4()), past.service),
    ]

    events = past.stop_all(*entries)

    assert Counter(type(event) for event in events) == {StopFailed: 1, Stopped: 2}
    assert past.service.statuses().count("stopped") == 2


def test_sessions_of_a_dead_process_of_this_run_are_stopped_and_counted(
    past: StateDirectory,
) -> None:
    left, stopped, kept = (
        past.entry(owner="gw0"),
        past.entry(owner="gw1", state="stopped"),
        past.entry(state="kept"),
    )
    run = past.run(left, stopped, kept._replace(owner="gw1"), alive=True)

    events = past.reconcile(run)

    assert {session_id_of(event): type(event) for event in events} == {
        left.session_id: Stopped,
        stopped.session_id: Stopped,
        kept.session_id: Kept,
    }
    assert [entry.state for entry in run.ledger.read()[0]] == ["kept"]


def test_known_ends_of_a_dead_processs_sessions_are_not_reported_again(
    past: StateDirectory,
) -> None:
    run = past.run(entry := past.entry(owner="gw0", state="stopped"), alive=True)

    assert past.reconcile(run, known=(entry.session_id,)) == []


def test_sessions_of_a_live_process_are_not_reconciled_by_others(
    past: StateDirectory,
) -> None:
    run = past.run(alive=True)
    run.ledger.write(past.entry(owner=run.owner))

    assert past.reconcile(run) == []

    assert len(past.service.statuses()) == 1
    # The requests may have a late one of the test before.
    assert "stopped" not in past.service.statuses()


def test_a_create_call_that_its_process_has_reported_is_not_waited_for(
    past: StateDirectory,
) -> None:
    run = past.run(
        entry_of("", past.service, state="asked", name="late one", owner="gw0"),
        alive=True,
    )
    began = time.monotonic()

    assert past.reconcile(run, known=("late one",), seconds=30) == []

    assert time.monotonic() - began < 15


def test_a_create_call_of_a_dead_process_is_waited_for_and_then_reported(
    past: StateDirectory,
) -> None:
    run = past.run(
        entry_of("", past.service, state="asked", name="lost one", owner="gw0"),
        alive=True,
    )

    (event,) = past.reconcile(run, seconds=0.2)

    assert (type(event), detail_of(event)) == (CreateUnknown, "lost one")

"""Leftover sessions are stopped and reported once; those of live runs are left alone."""

import json
import time
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_device import DeviceClient
from pytest_device.events import (
    CreateUnknown,
    Kept,
    StopFailed,
    Stopped,
    detail_of,
    session_id_of,
)
from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.sessions.runs import OwnRun, account_of, past_runs
from pytest_device.sessions.states import Phase
from pytest_device.sessions.sweep import SweepResult, reconcile, stop_all, sweep
from pytest_device.testing import FaultyService
from tests.sessions.reaper_clients import entry_of, request_at

RECENTLY = "2999-01-01T00:00:00+00:00"


class PastRuns:
    """Runs with leftover sessions, in a state directory and at a service."""

    def __init__(
        self, service: FaultyService, client: DeviceClient, state_dir: Path
    ) -> None:
        self.faults, self.state_dir = service, state_dir
        self.service = Endpoint(service.url, service.token)
        self._client = client

    def entry(self, **values: Any) -> Entry:
        """Return a running session with its entry."""
        session = self._client.create(request_at(self.faults))
        return entry_of(str(session.id), self.faults, **values)

    def left(self, *entries: Entry) -> OwnRun:
        """Write entries into a run that then ends."""
        run = self.live(*entries)
        run.leave()
        return run

    def live(self, *entries: Entry) -> OwnRun:
        """Write entries into a live run."""
        run = OwnRun.join(self.state_dir, uuid4().hex, "main")
        for entry in entries:
            run.ledger.write(entry)
        return run

    def sweep(self) -> SweepResult:
        return sweep(self.state_dir, self.service, exclude="", timeout_seconds=5)

    def account(self, token: str) -> str:
        """Return what entries hold of a token."""
        return account_of(self.state_dir, token)

    def entries(self) -> list[Entry]:
        return [
            entry for run in past_runs(self.state_dir) for entry in run.ledger.read()[0]
        ]


@pytest.fixture
def past(service: FaultyService, tmp_path: Path) -> Generator[PastRuns]:
    with DeviceClient(service.url, service.token) as client:
        yield PastRuns(service, client, tmp_path)


def test_leftover_sessions_are_stopped_reported_and_removed(past: PastRuns) -> None:
    first, second = past.entry(), past.entry()
    past.left(first)
    past.left(second)

    swept = past.sweep()

    assert past.faults.statuses() == ["stopped"] * 2
    (note,) = swept.notes()
    assert note.startswith("stopped 2 sessions left by earlier runs: ")
    assert first.session_id in note
    assert past_runs(past.state_dir) == []


def test_the_sweep_leaves_live_runs_alone(past: PastRuns) -> None:
    entry = past.entry()
    run = past.live(entry)

    swept = past.sweep()

    assert list(swept.notes()) == []
    assert ("stop", 200) not in past.faults.requests()
    assert past.entries() == [entry]
    run.leave()


def test_the_sweeping_run_is_not_mistaken_for_an_earlier_one(past: PastRuns) -> None:
    run = past.left(entry := past.entry())

    sweep(past.state_dir, past.service, exclude=run.name, timeout_seconds=5)

    assert past.entries() == [entry]


def test_without_leftover_sessions_nothing_is_reported(past: PastRuns) -> None:
    assert list(past.sweep().notes()) == []
    assert past.faults.requests() == []


def test_a_kept_session_stays_running_and_in_the_ledger(past: PastRuns) -> None:
    past.left(entry := past.entry(state=Phase.KEPT))

    swept = past.sweep()

    assert swept.kept == [entry]
    assert past.entries() == [entry]
    assert ("stop", 200) not in past.faults.requests()


def test_an_ended_kept_session_is_removed(past: PastRuns) -> None:
    past.left(entry := past.entry(state=Phase.KEPT))
    past.faults.expire(entry.session_id)

    assert past.sweep().kept == []

    assert past_runs(past.state_dir) == []


def test_a_kept_session_that_the_service_no_longer_knows_is_removed(
    past: PastRuns,
) -> None:
    past.left(past.entry(state=Phase.KEPT)._replace(session_id=str(uuid4())))

    assert past.sweep().kept == []

    assert past_runs(past.state_dir) == []


def test_a_kept_session_that_cannot_be_looked_up_counts_as_running(
    past: PastRuns,
) -> None:
    past.left(entry := past.entry(state=Phase.KEPT))
    past.faults.add_fault("get", "reply", status=403, body="{}")

    assert past.sweep().kept == [entry]

    assert past.entries() == [entry]


def test_a_session_at_another_service_is_reported_and_left_alone(
    past: PastRuns,
) -> None:
    past.left(entry := past.entry(service="https://other.example", asked_at=RECENTLY))

    (note,) = past.sweep().notes()

    assert (
        "1 session of earlier runs at another service (https://other.example)" in note
    )
    assert past.entries() == [entry]
    assert ("stop", 200) not in past.faults.requests()


def test_a_create_call_without_a_response_is_reported_until_its_limit(
    past: PastRuns,
) -> None:
    answered = past.entry()._replace(
        session_id="", state=Phase.CREATING, name="lost one"
    )
    past.left(answered._replace(asked_at="2999-01-01T00:00:00+00:00"))
    past.left(answered._replace(asked_at="2001-01-01T00:00:00+00:00"))

    (note,) = past.sweep().notes()

    assert "lost the response to a create call: android appium named 'lost one'" in note
    assert [entry.asked_at for entry in past.entries()] == ["2999-01-01T00:00:00+00:00"]


def test_sessions_that_a_reaper_stopped_after_its_run_are_reported_once(
    past: PastRuns,
) -> None:
    past.left(past.entry(state=Phase.STOPPED), past.entry(state=Phase.GONE))

    assert list(past.sweep().notes()) == [
        "already stopped: 1 session of interrupted runs",
        "no longer known to the service: 1 session of interrupted runs",
    ]

    assert list(past.sweep().notes()) == []


def test_a_session_that_cannot_be_stopped_is_reported_and_stays_in_the_ledger(
    past: PastRuns,
) -> None:
    past.left(entry := past.entry(url="https://devices.example/1", asked_at=RECENTLY))
    past.faults.add_fault("stop", "reply", status=403, body="{}", times=None)

    (note,) = past.sweep().notes()

    assert note.startswith(
        "could not stop a session left by an earlier run: android appium: "
    )
    assert note.endswith("\n    https://devices.example/1")
    assert past.entries() == [entry]


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_session_that_must_have_ended_long_ago_is_no_longer_reported(
    past: PastRuns, *, elsewhere: bool
) -> None:
    past.left(
        past.entry(service="https://other.example" if elsewhere else past.service.url)
    )
    past.faults.add_fault("stop", "reply", status=403, body="{}", times=None)

    past.sweep()

    assert past.entries() == []


def test_an_unreadable_run_does_not_prevent_sweeping_others(past: PastRuns) -> None:
    past.left(past.entry())
    bad = past.live()
    bad.leave()
    (past.state_dir / "runs" / "bad").mkdir()
    (past.state_dir / "runs" / "bad" / "main.lock").mkdir()

    notes = list(past.sweep().notes())

    assert any("stopped 1 session" in note for note in notes)
    assert any("runs/bad" in note for note in notes)


def test_a_session_that_the_service_no_longer_knows_is_removed(past: PastRuns) -> None:
    past.left(past.entry()._replace(session_id=str(uuid4())))

    past.sweep()

    assert past_runs(past.state_dir) == []


def test_a_session_that_a_former_token_of_the_account_created_is_stopped(
    past: PastRuns,
) -> None:
    past.left(
        entry := past.entry(asked_at=RECENTLY, account=past.account("a former token"))
    )

    assert list(past.sweep().notes()) == [
        f"stopped 1 session left by earlier runs: {entry.session_id}"
    ]

    assert past.faults.statuses() == ["stopped"]
    assert past.entries() == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_session_that_is_refused_to_another_token_stays_in_the_ledger_and_is_named(
    past: PastRuns, status: int
) -> None:
    past.left(
        mine := past.entry(asked_at=RECENTLY, account=past.account(past.faults.token))
    )
    past.left(
        entry := past.entry(asked_at=RECENTLY, account=past.account("another token"))
    )
    past.service = past.service._replace(token="a-token-of-neither")
    past.faults.add_token(past.service.token)
    hide(past, status, count=2)

    first, second = past.sweep().notes(), past.sweep().notes()

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
        requests = past.faults.requests(session_id)
        assert [operation for operation, _ in requests].count("stop") == 2


def hide(past: PastRuns, status: int, count: int) -> None:
    """Let the service refuse its sessions to a token, so often that the second sweep finds the same."""
    body = json.dumps({"errors": [{"code": "REFUSED"}]})
    for operation in ("stop", "get"):
        past.faults.add_fault(
            operation, "reply", status=status, body=body, times=2 * count
        )


def test_a_token_of_another_account_stops_nothing(past: PastRuns) -> None:
    past.left(
        entry := past.entry(asked_at=RECENTLY, account=past.account(past.faults.token))
    )
    past.service = past.service._replace(token="a-strangers-token")
    past.faults.add_token(past.service.token, is_foreign=True)

    (note,) = past.sweep().notes()

    assert "(status 403)" in note
    assert note.endswith(f"With that token: pytest-device stop {entry.session_id}")
    assert past.entries() == [entry]
    assert "stopped" not in past.faults.statuses()


def test_a_page_that_refuses_another_tokens_session_is_not_the_services_last_word(
    past: PastRuns,
) -> None:
    past.left(past.entry(asked_at=RECENTLY, account=past.account("a former token")))
    past.faults.add_fault("stop", "reply", status=403, body="<html>", times=2)

    past.sweep()

    assert past.faults.statuses() == ["stopped"]


def test_a_page_refuses_another_tokens_session_a_few_times(past: PastRuns) -> None:
    past.left(
        entry := past.entry(asked_at=RECENTLY, account=past.account("another token"))
    )
    past.faults.add_fault("stop", "reply", status=403, body="<html>", times=None)

    (note,) = past.sweep().notes()

    assert entry.session_id in note
    stops = [operation for operation, _ in past.faults.requests()].count("stop")
    # A lookup that was under way decides about an answer before it: one more.
    assert stops in {3, 4}


def test_a_failing_service_does_not_refuse_another_tokens_session(
    past: PastRuns,
) -> None:
    past.left(past.entry(asked_at=RECENTLY, account=past.account("a former token")))
    past.faults.add_fault("stop", "reply", status=503, body="{}", times=3)

    past.sweep()

    assert past.faults.statuses() == ["stopped"]


def test_a_session_that_another_token_kept_stays_running_and_in_the_ledger(
    past: PastRuns,
) -> None:
    past.left(
        entry := past.entry(
            state=Phase.KEPT, asked_at=RECENTLY, account=past.account("another token")
        )
    )

    swept = past.sweep()

    assert (swept.kept, list(swept.notes())) == ([entry], [])
    assert past.entries() == [entry]


def test_a_kept_session_is_not_removed_because_another_token_cannot_find_it(
    past: PastRuns,
) -> None:
    yesterday = (datetime.now(UTC) - timedelta(hours=20)).isoformat(timespec="seconds")
    theirs = past.entry(
        state=Phase.KEPT, asked_at=yesterday, account=past.account("another token")
    )
    past.left(theirs._replace(session_id=str(uuid4())))

    past.sweep()

    assert [entry.intent for entry in past.entries()] == [theirs.intent]


@pytest.mark.parametrize("state", [Phase.LIVE, Phase.KEPT])
def test_an_unknown_session_stays_in_the_ledger_until_its_limit(
    past: PastRuns, state: str
) -> None:
    past.left(
        entry := past.entry(state=state, asked_at=RECENTLY)._replace(
            session_id=str(uuid4())
        )
    )

    notes = list(past.sweep().notes())

    assert past.entries() == [entry]
    assert ["404" in note for note in notes] == ([True] if state == Phase.LIVE else [])


def test_every_sweep_reports_a_damaged_file(past: PastRuns) -> None:
    run = past.live(past.entry())
    broken = run.directory / "broken.json"
    broken.write_text("{")
    run.leave()

    for swept in (past.sweep(), past.sweep()):
        assert any(f"damaged ledger file {broken}" in note for note in swept.notes())

    assert past.faults.statuses() == ["stopped"]


def test_other_sessions_are_stopped_even_if_one_cannot_be(past: PastRuns) -> None:
    entries = [
        *[past.entry() for _ in range(2)],
        past.entry()._replace(session_id=str(uuid4())),
    ]

    events = stop_all(past.service, entries, 5)

    assert Counter(type(event) for event in events) == {StopFailed: 1, Stopped: 2}
    assert past.faults.statuses().count("stopped") == 2


def test_sessions_of_a_dead_process_of_this_run_are_stopped_and_counted(
    past: PastRuns,
) -> None:
    left, stopped, kept = (
        past.entry(owner="gw0"),
        past.entry(owner="gw1", state=Phase.STOPPED),
        past.entry(state=Phase.KEPT),
    )
    run = past.live(left, stopped, kept._replace(owner="gw1"))

    events = reconcile(run, past.service, known=(), until=time.monotonic() + 5)

    assert {session_id_of(event): type(event) for event in events} == {
        left.session_id: Stopped,
        stopped.session_id: Stopped,
        kept.session_id: Kept,
    }
    assert [entry.state for entry in run.ledger.read()[0]] == [Phase.KEPT]
    run.leave()


def test_known_ends_of_a_dead_processs_sessions_are_not_reported_again(
    past: PastRuns,
) -> None:
    run = past.live(entry := past.entry(owner="gw0", state=Phase.STOPPED))

    assert (
        reconcile(
            run, past.service, known={entry.session_id}, until=time.monotonic() + 5
        )
        == []
    )

    run.leave()


def test_sessions_of_a_live_process_are_not_reconciled_by_others(
    past: PastRuns,
) -> None:
    run = past.live()
    run.ledger.write(past.entry(owner=run.owner))

    assert reconcile(run, past.service, known=(), until=time.monotonic() + 5) == []

    assert len(past.faults.statuses()) == 1
    # The requests may have a late one of the test before.
    assert "stopped" not in past.faults.statuses()
    run.leave()


def test_a_create_call_that_its_process_has_reported_is_not_waited_for(
    past: PastRuns,
) -> None:
    run = past.live(
        past.entry(owner="gw0")._replace(
            session_id="", state=Phase.CREATING, name="late one"
        )
    )
    began = time.monotonic()

    assert reconcile(run, past.service, known={"late one"}, until=began + 30) == []

    assert time.monotonic() - began < 15
    run.leave()


def test_a_create_call_of_a_dead_process_is_waited_for_and_then_reported(
    past: PastRuns,
) -> None:
    run = past.live(
        past.entry(owner="gw0")._replace(
            session_id="", state=Phase.CREATING, name="lost one"
        )
    )

    (event,) = reconcile(run, past.service, known=(), until=time.monotonic() + 0.2)

    assert (type(event), detail_of(event)) == (CreateUnknown, "lost one")
    run.leave()

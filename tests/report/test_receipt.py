"""The receipt of a run, counted from events."""

import json

from pytest_device.report.receipt import Incident, Receipt, colour_of, line_of
from pytest_device.sessions.events import Event, Kind

PAGE = "https://devices.example/sessions/one"


def receipt_of(*events: Event) -> Receipt:
    receipt = Receipt()
    for event in events:
        receipt.add(event)
    return receipt


def event(kind: Kind, session_id: str = "one", text: str = "", **more: float) -> Event:
    return Event(
        kind,
        label="ios appium",
        session_id=session_id,
        url=f"https://devices.example/sessions/{session_id}",
        text=text,
        waited_seconds=more.get("waited", 0.0),
        running_seconds=more.get("running"),
        late_seconds=more.get("late"),
    )


def test_every_kind_of_event_has_a_line_or_needs_none() -> None:
    for kind in Kind:
        assert line_of(event(kind, text="why"), verbose=True)


def test_what_tests_wait_in_the_queue_of_sessions_is_a_figure_of_its_own() -> None:
    receipt = Receipt()
    for seconds in (0.2, 29.0):
        receipt.add(Event(Kind.QUEUED, waited_seconds=seconds))
    receipt.add(Event(Kind.CREATED, "android appium", "one"))

    assert "waited 0.0 s, queued 29.2 s" in next(receipt.lines()).text
    assert receipt.to_json()["queued_seconds"] == 29.2


def test_a_run_without_sessions_says_nothing() -> None:
    assert list(Receipt().lines()) == []


def test_sessions_that_are_all_stopped_are_told_in_one_green_line() -> None:
    receipt = receipt_of(
        event(Kind.CREATED), event(Kind.READY, waited=4), event(Kind.STOPPED, text="stopped", waited=70, running=66)
    )

    told = "sessions: created 1, proven stopped 1, unknown 0; device time 1.1 min, waited 4.0 s"
    assert list(receipt.lines()) == [(told, "green")]


def test_what_may_still_run_is_red() -> None:
    left = receipt_of(event(Kind.CREATED), event(Kind.STOP_FAILED, text="500"))
    lost = receipt_of(event(Kind.CREATE_UNKNOWN, session_id=""))

    assert {line.colour for line in left.lines()} == {line.colour for line in lost.lines()} == {"red"}
    assert f"ios appium: NOT PROVEN STOPPED: one; {PAGE}; 500" in [line.text for line in left.lines()]


def test_what_was_kept_is_yellow_until_it_is_stopped_after_all() -> None:
    receipt = receipt_of(event(Kind.CREATED), event(Kind.KEPT))
    assert [line.colour for line in receipt.lines()] == ["yellow", "yellow"]
    assert receipt.to_json()["kept"] == 1

    receipt.add(event(Kind.STOPPED, text="stopped"))

    (line,) = receipt.lines()
    assert line.text.startswith("sessions: created 1, proven stopped 1, unknown 0; ")
    assert line.colour == "green"


def test_what_was_kept_warm_and_stopped_by_the_same_run_is_stopped_and_its_time_counts_once() -> None:
    receipt = receipt_of(
        event(Kind.CREATED), event(Kind.WARM, running=40), event(Kind.STOPPED, text="stopped", running=70)
    )
    values = receipt.to_json()
    assert (values["created"], values["stopped"], values["kept_warm"], values["device_seconds"]) == (1, 1, 0, 70)


def test_the_time_of_a_session_that_went_from_worker_to_worker_is_theirs_once() -> None:
    receipt = receipt_of(
        event(Kind.TAKEN_OVER),
        event(Kind.STOPPED, text="stopped", running=30),
        event(Kind.CREATED),
        event(Kind.WARM, running=40),
    )
    assert receipt.to_json()["device_seconds"] == 70

    whole = receipt_of(
        *[event(Kind.CREATED), event(Kind.WARM, running=40)],
        *[event(Kind.TAKEN_OVER), event(Kind.WARM, running=30), event(Kind.STOPPED, text="stopped", running=90)],
    )
    assert whole.to_json()["device_seconds"] == 90


def test_the_time_that_an_earlier_run_had_a_session_is_not_counted() -> None:
    receipt = receipt_of(
        event(Kind.TAKEN_OVER), event(Kind.WARM, running=40), event(Kind.STOPPED, text="stopped", running=900)
    )

    assert receipt.to_json()["device_seconds"] == 40


def test_what_was_kept_warm_and_could_not_be_stopped_is_not_called_warm() -> None:
    receipt = receipt_of(
        event(Kind.CREATED), event(Kind.STOP_FAILED, text="403"), event(Kind.WARM, text="12:34", running=40)
    )

    values = receipt.to_json()
    assert (values["created"], values["kept_warm"]) == (1, 0)
    assert f"ios appium: NOT PROVEN STOPPED: one; {PAGE}; 403" in [line.text for line in receipt.lines()]


def test_a_session_that_only_an_earlier_run_has_had_is_not_counted_but_told_while_it_may_run() -> None:
    receipt = receipt_of(event(Kind.STOP_DELAYED, text="503"), event(Kind.NOTE, text="began to stop it"))
    values = receipt.to_json()
    assert (values["created"], values["stopped"], [one["id"] for one in values["not_stopped"]]) == (0, 0, ["one"])

    receipt.add(event(Kind.STOPPED, text="stopped", running=900))

    values = receipt.to_json()
    assert (values["created"], values["stopped"], values["not_stopped"], values["device_seconds"]) == (0, 0, [], 0)
    assert "began to stop it" in [line.text for line in receipt.lines()]


def test_a_boot_that_was_tried_again_is_never_hidden() -> None:
    receipt = receipt_of(
        event(Kind.CREATED),
        event(Kind.START_FAILED, text="no booted device"),
        event(Kind.STOPPED, text="errored"),
        event(Kind.CREATED, session_id="two"),
        event(Kind.STOPPED, session_id="two", text="stopped"),
    )

    counted, named = receipt.lines()
    assert counted.text.endswith(", 1 did not start")
    assert named == (f"did not start: ios appium: no booted device ({PAGE})", "yellow")
    assert colour_of(event(Kind.START_FAILED)) == "yellow"


def test_what_was_booted_ahead_and_used_by_nobody_is_counted() -> None:
    receipt = receipt_of(
        event(Kind.CREATED, late=8),
        event(Kind.UNUSED, late=1),
        event(Kind.STOPPED, text="stopped", running=0, late=1),
    )

    (line,) = receipt.lines()
    assert line.text.endswith("waited 0.0 s, booted ahead and unused 1")
    assert receipt.to_json()["unused"] == 1


def test_the_run_does_not_wait_for_a_session_while_it_boots_behind_the_tests() -> None:
    receipt = receipt_of(
        event(Kind.CREATED, "in time", waited=1, late=30),
        event(Kind.READY, "in time", waited=20, late=11),
        event(Kind.CREATED, "not yet", waited=1, late=11),
        event(Kind.READY, "not yet", waited=20),
    )

    assert receipt.to_json()["waited_seconds"] == 8


def test_an_error_is_told_with_its_pages_unless_it_names_the_right_one_itself() -> None:
    pages = [PAGE, "https://devices.example/sessions/two", PAGE, ""]

    assert Incident("infrastructure", "test_a.py::test_x", "infrastructure: no answer", pages).told() == (
        f"infrastructure: test_a.py::test_x: no answer ({PAGE} https://devices.example/sessions/two)"
    )
    assert Incident("infrastructure", "test_a.py::test_x", f"gone: {PAGE}", pages).told() == (
        f"infrastructure: test_a.py::test_x: gone: {PAGE}"
    )
    assert Incident("config", "test_a.py::test_x", "forbidden").told() == "config: test_a.py::test_x: forbidden"


def test_the_receipt_is_also_plain_values() -> None:
    receipt = receipt_of(
        event(Kind.CREATED),
        event(Kind.START_FAILED, text="no booted device", waited=3),
        event(Kind.STOPPED, text="errored", waited=3),
        event(Kind.CREATED, session_id="two"),
        event(Kind.READY, session_id="two", waited=4),
        event(Kind.STOPPED, session_id="two", text="stopped", waited=70, running=66.5),
        event(Kind.CREATED, session_id="three"),
        event(Kind.KEPT, session_id="three", waited=5),
        event(Kind.CREATED, session_id="four"),
        event(Kind.CREATE_UNKNOWN, session_id="", text="name"),
    )
    receipt.incidents += [Incident("infrastructure", "test_a.py::test_x", "gone")] * 2

    values = receipt.to_json()

    assert json.loads(json.dumps(values)) == values
    assert values == {
        "created": 4,
        "taken_over": 0,
        "stopped": 2,
        "kept": 1,
        "kept_warm": 0,
        "unknown": 1,
        "not_stopped": [{"id": "four", "page": "https://devices.example/sessions/four"}],
        "start_failed": 1,
        "unused": 0,
        "device_seconds": 66.5,
        "waited_seconds": 12.0,
        "queued_seconds": 0.0,
        "errors": {"infrastructure": 2},
    }

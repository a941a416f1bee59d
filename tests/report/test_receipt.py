"""The receipt of a run, counted from events."""

import json

import pytest

from pytest_device.events import (
    Created,
    CreateUnknown,
    Event,
    Gone,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionRef,
    StartFailed,
    StateChanged,
    StopDelayed,
    StopFailed,
    Stopped,
    TakenOver,
    Unused,
)
from pytest_device.report.lines import (
    Incident,
    IncidentGroup,
    color_of,
    line_of,
    needs_line,
)
from pytest_device.report.receipt import Receipt
from pytest_device.sessions.events import SessionEvent
from pytest_device.verdict import Verdict
from tests.sessions.test_events import EVENTS

pytestmark = pytest.mark.every_python

PAGE = "https://devices.example/sessions/one"


def receipt_of(*events: Event) -> Receipt:
    receipt = Receipt()
    for event in events:
        receipt.add(event)
    return receipt


def ref(
    session_id: str = "one", *, waited: float = 0.0, late: float | None = None
) -> SessionRef:
    url = f"https://devices.example/sessions/{session_id}"
    return SessionRef(
        "ios appium", session_id, url, waited_seconds=waited, late_seconds=late
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_kind_of_event_has_a_line(event: Event) -> None:
    assert line_of(event)


@pytest.mark.parametrize(
    ("event", "usual", "shown"),
    [
        (Created(ref()), None, False),
        (Ready(ref(waited=4)), None, False),
        (Ready(ref(waited=6)), None, True),
        (Ready(ref(waited=60)), 50.0, False),
        (Ready(ref(waited=80)), 50.0, True),
        (StateChanged(ref(waited=30), "new"), 50.0, False),
        (StateChanged(ref(waited=90), "new"), 50.0, True),
        (Stopped(ref(), "errored"), None, False),
        (StartFailed(ref(), "no disk", 2, 2), None, True),
        (StartFailed(ref(), "no disk"), None, False),
        (StopFailed(ref(), "500"), None, True),
    ],
    ids=str,
)
def test_without_v_only_trouble_and_long_boots_have_a_line(
    event: Event, usual: float | None, *, shown: bool
) -> None:
    assert needs_line(event, usual) is shown


def test_lines_and_pages_use_the_same_words_for_states() -> None:
    assert (
        line_of(StateChanged(ref(waited=30), "new"))
        == "ios appium: after 30 s: starting"
    )
    assert line_of(Stopped(ref(), "errored")) == "ios appium: failed"
    assert line_of(
        StartFailed(ref(), f"the session failed to start: no disk ({PAGE})", 2, 3)
    ) == (
        f"ios appium: failed to start, retrying with a new session (2/3): no disk\n    {PAGE}"
    )
    assert line_of(
        StartFailed(ref(), f"the session failed to start: no disk ({PAGE})")
    ) == (f"ios appium: failed to start: no disk\n    {PAGE}")


def test_a_receipt_names_no_page_that_ended_with_the_run() -> None:
    receipt = Receipt(has_pages=False)
    receipt.add(Created(ref()))
    receipt.add(
        StartFailed(ref(), f"the session failed to start: no disk ({PAGE})", 2, 3)
    )

    assert "failed to start: ios appium: no disk" in [
        one.text for one in receipt.lines()
    ]


def test_the_time_in_the_queue_is_counted_separately() -> None:
    receipt = Receipt()
    for seconds in (0.2, 29.0):
        receipt.add(Queued(seconds))
    receipt.add(Created(SessionRef("android appium", "one")))

    assert "0 s waiting for devices, 29 s queued" in next(receipt.lines()).text
    assert receipt.to_json()["queued_seconds"] == 29.2


def test_a_run_without_sessions_has_an_empty_receipt() -> None:
    assert list(Receipt().lines()) == []


def test_if_all_sessions_are_stopped_one_green_line_reports_it() -> None:
    receipt = receipt_of(
        Created(ref()),
        Ready(ref(waited=4)),
        Stopped(ref(waited=70), "stopped", running_seconds=66),
    )

    text = "devices: 1 created, 1 stopped (confirmed); 1 min 6 s of device time, 4 s waiting for devices"
    assert list(receipt.lines()) == [(text, "green")]


ERRORED = Stopped(ref("errored"), "errored", None, max_running_seconds=30)
LEFT = Kept(ref("left"))


@pytest.mark.parametrize(
    ("ends", "seconds", "bound", "words"),
    [
        (
            [Stopped(ref(), "stopped", running_seconds=60)],
            60,
            "exactly",
            "1 min 0 s of device time",
        ),
        (
            [Stopped(ref(), "stopped", running_seconds=60), ERRORED],
            90,
            "at most",
            "at most 1 min 30 s of device time",
        ),
        (
            [Stopped(ref(), "stopped", running_seconds=60), LEFT],
            60,
            "at least",
            "at least 1 min 0 s of device time",
        ),
        ([Gone(ref())], 0, "at least", "at least 0 s of device time"),
        ([ERRORED, LEFT], 30, "about", "about 30 s of device time"),
        ([CreateUnknown(ref(""), "")], 0, "at least", "at least 0 s of device time"),
    ],
)
def test_device_time_that_is_not_known_exactly_is_given_as_a_bound(
    ends: list[SessionEvent], seconds: float, bound: str, words: str
) -> None:
    created = [Created(event.session) for event in ends if event.session.session_id]

    receipt = receipt_of(*created, *ends)

    assert f"; {words}, " in next(receipt.lines()).text
    values = receipt.to_json()
    assert (values["device_seconds"], values["device_seconds_bound"]) == (
        seconds,
        bound,
    )


def test_gone_sessions_are_counted_separately_from_stopped_ones() -> None:
    receipt = receipt_of(
        Created(ref()), Gone(ref()), Created(ref("two")), Stopped(ref("two"), "stopped")
    )

    (line,) = receipt.lines()
    assert line.text.startswith("devices: 2 created, 1 stopped (confirmed), 1 gone; ")
    assert (receipt.to_json()["gone"], receipt.to_json()["not_stopped"]) == (1, [])


def test_sessions_that_may_still_run_are_red() -> None:
    left = receipt_of(Created(ref()), StopFailed(ref(), "500"))
    lost = receipt_of(CreateUnknown(ref(""), ""))

    assert (
        {line.color for line in left.lines()}
        == {line.color for line in lost.lines()}
        == {"red"}
    )
    words = f"ios appium: NOT CONFIRMED AS STOPPED: 500\n    {PAGE}\n    pytest-device stop one"
    assert words in [line.text for line in left.lines()]


def test_a_kept_session_is_yellow_until_it_is_stopped_after_all() -> None:
    receipt = receipt_of(Created(ref()), Kept(ref()))
    assert [line.color for line in receipt.lines()] == ["yellow", "yellow"]
    assert receipt.to_json()["kept"] == 1

    receipt.add(Stopped(ref(), "stopped"))

    (line,) = receipt.lines()
    assert line.text.startswith("devices: 1 created, 1 stopped (confirmed); ")
    assert line.color == "green"


def test_a_warm_session_that_the_same_run_stops_is_stopped_and_its_time_counts_once() -> (
    None
):
    receipt = receipt_of(
        Created(ref()),
        KeptWarm(ref(), "", used_seconds=40),
        Stopped(ref(), "stopped", running_seconds=70),
    )
    values = receipt.to_json()
    assert (
        values["created"],
        values["stopped"],
        values["kept_warm"],
        values["device_seconds"],
    ) == (1, 1, 0, 70)


def test_the_time_of_a_session_passed_between_workers_counts_once() -> None:
    receipt = receipt_of(
        TakenOver(ref()),
        Stopped(ref(), "stopped", running_seconds=30),
        Created(ref()),
        KeptWarm(ref(), "", used_seconds=40),
    )
    assert receipt.to_json()["device_seconds"] == 70

    whole = receipt_of(
        Created(ref()),
        KeptWarm(ref(), "", used_seconds=40),
        TakenOver(ref()),
        KeptWarm(ref(), "", used_seconds=30),
        Stopped(ref(), "stopped", running_seconds=90),
    )
    assert whole.to_json()["device_seconds"] == 90


def test_an_earlier_runs_share_of_a_sessions_time_is_not_counted() -> None:
    receipt = receipt_of(
        TakenOver(ref()),
        KeptWarm(ref(), "", used_seconds=40),
        Stopped(ref(), "stopped", running_seconds=900),
    )

    assert receipt.to_json()["device_seconds"] == 40


def test_a_warm_session_that_could_not_be_stopped_is_not_called_warm() -> None:
    receipt = receipt_of(
        Created(ref()),
        StopFailed(ref(), "403"),
        KeptWarm(ref(), "12:34", used_seconds=40),
    )

    values = receipt.to_json()
    assert (values["created"], values["kept_warm"]) == (1, 0)
    assert (
        f"ios appium: NOT CONFIRMED AS STOPPED: 403\n    {PAGE}\n    pytest-device stop one"
        in [line.text for line in receipt.lines()]
    )


def test_an_earlier_runs_session_is_not_counted_but_reported_while_it_may_run() -> None:
    receipt = receipt_of(
        StopDelayed(ref(), "503"), Note("began to stop it", session_id="one")
    )
    values = receipt.to_json()
    assert (
        values["created"],
        values["stopped"],
        [one["id"] for one in values["not_stopped"]],
    ) == (0, 0, ["one"])

    receipt.add(Stopped(ref(), "stopped", running_seconds=900))

    values = receipt.to_json()
    assert (
        values["created"],
        values["stopped"],
        values["not_stopped"],
        values["device_seconds"],
    ) == (0, 0, [], 0)
    assert "began to stop it" in [line.text for line in receipt.lines()]


def test_a_retried_boot_is_never_hidden() -> None:
    receipt = receipt_of(
        Created(ref()),
        StartFailed(ref(), "no booted device", 2, 2),
        Stopped(ref(), "errored"),
        Created(ref("two")),
        Stopped(ref("two"), "stopped"),
    )

    counted, named = receipt.lines()
    assert counted.text.startswith(
        "devices: 2 created, 2 stopped (confirmed), 1 failed to start; "
    )
    assert named == (
        f"failed to start: ios appium: no booted device\n    {PAGE}",
        "yellow",
    )
    assert color_of(StartFailed(ref(), "", 2, 2)) == "yellow"


def test_unused_prefetched_sessions_are_counted() -> None:
    receipt = receipt_of(
        Created(ref(late=8)),
        Unused(ref(late=1)),
        Stopped(ref(late=1), "stopped", running_seconds=0),
    )

    (line,) = receipt.lines()
    assert line.text.startswith("devices: 1 created, 1 stopped (confirmed), 1 unused; ")
    assert receipt.to_json()["unused"] == 1


def test_waiting_for_a_session_that_never_becomes_ready_counts() -> None:
    receipt = receipt_of(
        Created(ref("waited for", waited=1)),
        Stopped(ref("waited for", waited=12, late=0.1), "stopped", running_seconds=11),
        Created(ref("in the background", waited=1, late=30)),
        Stopped(
            ref("in the background", waited=20, late=11), "stopped", running_seconds=19
        ),
    )

    assert receipt.to_json()["waited_seconds"] == 12


def test_a_background_boot_does_not_count_as_waiting() -> None:
    receipt = receipt_of(
        Created(ref("in time", waited=1, late=30)),
        Ready(ref("in time", waited=20, late=11)),
        Created(ref("not yet", waited=1, late=11)),
        Ready(ref("not yet", waited=20)),
    )

    assert receipt.to_json()["waited_seconds"] == 8


def test_an_error_is_reported_with_each_page_once_on_its_own_line() -> None:
    pages = [PAGE, "https://devices.example/sessions/two", PAGE, ""]
    test, listed = (
        "infrastructure: test_a.py::test_x",
        f"\n    {PAGE}\n    https://devices.example/sessions/two",
    )

    for text, shown in (
        ("infrastructure: no answer", "no answer"),
        (f"gone ({PAGE})", "gone"),
    ):
        incident = Incident(Verdict.INFRASTRUCTURE, "test_a.py::test_x", text, pages)
        assert IncidentGroup([incident], []).line() == f"{test}: {shown}{listed}"

    refused = Incident(Verdict.CONFIG, "test_a.py::test_x", "forbidden")
    group = IncidentGroup([refused], [])
    assert group.line() == "config: test_a.py::test_x: forbidden"
    assert group.line(with_cause=False) == "config: test_a.py::test_x"


def test_the_cause_is_repeated_only_where_no_error_of_a_test_shows_it() -> None:
    attempted = Incident(Verdict.CONFIG, "test_a.py::x", "config: forbidden")
    not_attempted = Incident(
        Verdict.CONFIG, "test_a.py::y", "not attempted: forbidden", cause="forbidden"
    )

    # On workers, either may come first.
    for incidents in ([attempted, not_attempted], [not_attempted, attempted]):
        line = IncidentGroup(incidents, []).line(with_cause=False)
        assert line == "config: 2 tests affected, first test_a.py::x"
    line = IncidentGroup([not_attempted], []).line(with_cause=False)
    assert line == "config: test_a.py::y: forbidden"


def test_a_test_that_is_rerun_is_counted_once_among_those_that_a_cause_affects() -> (
    None
):
    receipt = receipt_of()
    receipt.incidents += [
        Incident(Verdict.CONFIG, f"test_a.py::{test}", "forbidden")
        for test in ("x", "x", "y", "y")
    ]

    assert [line.text for line in receipt.lines()] == [
        "4 config errors (not test failures)",
        "config: forbidden: 2 tests affected, first test_a.py::x",
    ]


def test_the_only_test_that_a_cause_affects_is_named_however_often_it_is_rerun() -> (
    None
):
    receipt = receipt_of()
    receipt.incidents += [
        Incident(Verdict.INFRASTRUCTURE, "test_a.py::x", "gone", [page])
        for page in ("https://1", "https://2")
    ]

    assert [line.text for line in receipt.lines()][1:] == [
        "infrastructure: test_a.py::x: gone\n    https://1\n    https://2",
    ]


def test_a_cause_that_ends_with_a_full_stop_has_none_before_the_number_of_its_tests() -> (
    None
):
    receipt = receipt_of()
    receipt.incidents += [
        Incident(Verdict.CONFIG, f"test_a.py::{test}", "forbidden: ask the owner.")
        for test in "xy"
    ]

    lines = [line.text for line in receipt.lines()]

    assert (
        lines[-1]
        == "config: forbidden: ask the owner: 2 tests affected, first test_a.py::x"
    )


def test_the_receipt_converts_to_json() -> None:
    receipt = receipt_of(
        Created(ref()),
        StartFailed(ref(waited=3), "no booted device", 2, 2),
        Stopped(ref(waited=3), "errored"),
        Created(ref("two")),
        Ready(ref("two", waited=4)),
        Stopped(ref("two", waited=70), "stopped", running_seconds=66.5),
        Created(ref("three")),
        Kept(ref("three", waited=5)),
        Created(ref("four")),
        CreateUnknown(ref(""), "name"),
    )
    receipt.incidents += [
        Incident(Verdict.INFRASTRUCTURE, "test_a.py::test_x", "gone")
    ] * 2

    values = receipt.to_json()

    assert json.loads(json.dumps(values)) == values
    assert values == {
        "created": 4,
        "taken_over": 0,
        "attached": 0,
        "stopped": 2,
        "gone": 0,
        "kept": 1,
        "kept_warm": 0,
        "unknown": 1,
        "not_stopped": [
            {"id": "four", "page": "https://devices.example/sessions/four"}
        ],
        "start_failed": 1,
        "unused": 0,
        "device_seconds": 66.5,
        "device_seconds_bound": "at least",
        "waited_seconds": 12.0,
        "queued_seconds": 0.0,
        "errors": {"infrastructure": 2},
    }

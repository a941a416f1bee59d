"""Events in their plain form, as other programs read them."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_device.events import (
    Attached,
    Created,
    CreateUnknown,
    Event,
    EventFormatError,
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
    from_plain,
    to_plain,
)
from pytest_device.sessions.events import masked

pytestmark = pytest.mark.every_python

OF = SessionRef(
    "ios appium", "one", "https://devices.example/sessions/one", 35, 4.5, 0.5
)
EVENTS: list[Event] = [
    Created(OF),
    StateChanged(OF, "in-progress without connection details"),
    Ready(OF, "iPhone 15", "ios appium 0123", 18.0),
    StartFailed(OF, "no booted device", 2, 2),
    StartFailed(OF, "no booted device"),
    Stopped(OF, "stopped", 66.5),
    Stopped(OF, "errored", None, 66.5),
    Gone(OF),
    StopDelayed(OF, "503"),
    StopFailed(OF, "500"),
    Kept(OF),
    KeptWarm(OF, "12:34", 40.0),
    TakenOver(OF, "iPhone 15"),
    Attached(OF),
    Unused(OF),
    CreateUnknown(OF, "suite 12ab"),
    Queued(29.0),
    Note("already stopped: 3 sessions of interrupted runs", "one"),
]
REFERENCE = Path(__file__).parents[2] / "docs" / "development" / "events.md"


def test_there_is_an_example_of_each_kind() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_survives_a_round_trip_through_json(event: Event) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(event)))) == event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_the_reference_describes_each_kind_with_its_fields(event: Event) -> None:
    plain = to_plain(event)
    (row,) = [
        line
        for line in REFERENCE.read_text().splitlines()
        if line.startswith(f"| `{plain['event']}` |")
    ]

    assert [
        name
        for name in plain
        if name not in {"version", "event", "session"} and f"`{name}`" not in row
    ] == []


def test_the_plain_form_of_events_does_not_change_within_a_version() -> None:
    assert to_plain(Stopped(SessionRef("ios appium", "one"), "stopped", 66.5)) == {
        "version": 3,
        "event": "stopped",
        "session": {
            "label": "ios appium",
            "session_id": "one",
            "url": "",
            "minutes": 0,
            "waited_seconds": 0.0,
            "late_seconds": None,
            "at": 0.0,
        },
        "status": "stopped",
        "running_seconds": 66.5,
        "max_running_seconds": None,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, r"events of version 1 are not supported \(only 3\)"),
        (
            {"event": "lost"},
            "unknown event 'lost': the events are created, state-changed, ready,",
        ),
        (
            {"color": "red"},
            "stopped: unknown field 'color': the fields are session, status, running_seconds",
        ),
        ({"status": 4}, "stopped: status cannot be 4"),
        ({"session": "one"}, "stopped: session cannot be 'one'"),
        ({"session": {}}, "session: .* missing .* 'label'"),
        (
            {"session": {"label": "ios", "minutes": True}},
            "session: minutes cannot be True",
        ),
    ],
)
def test_an_invalid_event_is_refused_with_the_reason(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(EventFormatError, match=message):
        from_plain(to_plain(Stopped(OF, "stopped")) | change)


def test_seconds_can_be_whole_numbers_in_json() -> None:
    assert from_plain(
        {"version": 3, "event": "queued", "waited_seconds": 29}
    ) == Queued(29.0)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_masking_covers_every_text_from_the_service(event: Event) -> None:
    hidden = masked(event, lambda _text: "***")

    shown = set(json.dumps(to_plain(hidden)).replace("***", "").split('"'))
    assert shown.isdisjoint(
        {"500", "503", OF.url, "suite 12ab", "iPhone 15", "no booted device"}
    )

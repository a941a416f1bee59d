"""What an app can pass as a trigger, and what the platform receives."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.notifications import (
    DailyTrigger,
    TriggerError,
    YearlyTrigger,
    parse_trigger,
)
from tests.notifications.cases import cases

pytestmark = pytest.mark.every_python

REFUSED = {"time_interval_seconds_string", "unknown_type_android"}
"""Deviations: a wrong field type or an unknown type is an error instead of a notification at once."""
AT_NINE = {"hour": 9, "minute": 0}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in cases(None)]
)
def test_a_reference_case_has_the_same_outcome(case: dict[str, Any]) -> None:
    given = case["input"]
    if "output" in case and case["name"] not in REFUSED:
        trigger = parse_trigger(given["trigger"], given["platform"])
        assert (trigger and trigger.native()) == case["output"]["native_trigger"]
        return
    with pytest.raises(TriggerError) as raised:
        parse_trigger(given["trigger"], given["platform"])
    assert raised.value.name == case.get("error", {"name": "TypeError"})["name"]


@pytest.mark.parametrize(
    ("kind", "name", "low", "high"),
    [
        ("daily", "hour", 0, 23),
        ("daily", "minute", 0, 59),
        ("weekly", "weekday", 1, 7),
        ("monthly", "day", 1, 31),
        ("yearly", "month", 0, 11),
    ],
)
def test_a_component_has_its_range(kind: str, name: str, low: int, high: int) -> None:
    given = {"type": kind, "weekday": 1, "month": 0, "day": 1, **AT_NINE}

    for value in (low, high):
        found = parse_trigger(given | {name: value}, "ios")
        assert found
        assert found.native()[name] == value
    for value in (low - 1, high + 1):
        with pytest.raises(TriggerError, match=f"{name} {value}: ") as raised:
            parse_trigger(given | {name: value}, "ios")
        assert raised.value.name == "RangeError"


@pytest.mark.parametrize("value", [None, "9", True, 9.5, float("nan"), [9]])
def test_a_component_must_be_a_whole_number(value: object) -> None:
    with pytest.raises(TriggerError, match="hour") as raised:
        parse_trigger({"type": "daily", "hour": value, "minute": 0}, "android")
    assert raised.value.name == "TypeError"


@pytest.mark.parametrize(
    "given", [5, "daily", [], True, {}, {"hour": 9}, datetime(2026, 1, 1, tzinfo=UTC)]
)
def test_a_trigger_without_type_and_channel_is_refused(given: Any) -> None:
    with pytest.raises(TriggerError, match="'type' or 'channelId'"):
        parse_trigger(given, "android")


@pytest.mark.parametrize(
    "given",
    [
        {"type": "timeInterval"},
        {"type": "timeInterval", "seconds": 5, "repeats": "yes"},
        {"type": "timeInterval", "seconds": float("inf")},
        {"type": "date"},
        {"type": "date", "date": "2026-01-01"},
        {"type": "date", "date": datetime(2026, 1, 1)},  # noqa: DTZ001  # without a zone it is no moment
        {"type": "date", "date": 8_640_000_000_000_001},
        {"type": "calendar", "hour": "9"},
        {"type": "calendar", "hour": 9, "repeats": 0},
        {"type": "calendar", "hour": 9, "timezone": "Europe/Nowhere"},
        {"type": "calendar", "hour": 9, "timezone": "../../etc/passwd"},
        {"type": "daily", "channelId": 7, **AT_NINE},
        {"type": ["daily"], **AT_NINE},
        {"type": "location"},
    ],
)
def test_a_wrong_field_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TriggerError) as raised:
        parse_trigger(given, "ios")
    assert len(str(raised.value)) < 300


def test_a_date_is_given_in_milliseconds() -> None:
    trigger = parse_trigger(
        {"type": "date", "date": datetime(2026, 1, 1, tzinfo=UTC)}, "ios"
    )

    assert trigger
    assert trigger.native() == {"type": "date", "timestamp": 1767225600000}


def test_a_calendar_trigger_keeps_its_arguments() -> None:
    given = {
        "type": "calendar",
        "weekday": 2,
        "timezone": "Europe/Warsaw",
        "hour": None,
        "another": [1],
        "repeats": True,
    }
    trigger = parse_trigger(given, "ios")

    assert trigger
    assert trigger.native() == given


def test_a_directly_constructed_trigger_is_checked_too() -> None:
    daily = DailyTrigger(hour=9, minute=30, channel_id="")
    assert daily.native() == {"type": "daily", "hour": 9, "minute": 30}
    with pytest.raises(TriggerError, match="day of month 1 30 must be 1 to 29"):
        YearlyTrigger(month=1, day=30, hour=9, minute=0)


def test_an_unknown_platform_is_refused() -> None:
    with pytest.raises(ConfigError, match="'web' must be 'android' or 'ios'"):
        parse_trigger(None, "web")  # type: ignore[arg-type]

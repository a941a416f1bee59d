"""When triggers fire, across clock changes, ends of months and leap days."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pytest_device.notifications import (
    NotSpecified,
    TriggerError,
    fires_between,
    next_trigger_date,
    parse_trigger,
)
from tests.notifications.cases import cases

pytestmark = pytest.mark.every_python

WARSAW = ZoneInfo("Europe/Warsaw")
MORNING = {"type": "daily", "hour": 8, "minute": 0}
AT_NIGHT = {"type": "daily", "hour": 2, "minute": 30}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=WARSAW)


def texts(fires: list[datetime]) -> list[str]:
    return [fire.isoformat() for fire in fires]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in cases("next_trigger_date")]
)
def test_a_reference_case_has_the_same_date(case: dict[str, Any]) -> None:
    given = case["input"]
    now = datetime.fromtimestamp(given["now_ms"] / 1000, UTC)

    found = next_trigger_date(given["trigger"], now, given["timezone"])

    assert found
    assert found.isoformat() == case["output"]["next_local"]
    assert found.timestamp() * 1000 == case["output"]["next_ms"]


def test_a_trigger_moved_before_the_gap_fires_after_it_too() -> None:
    assert texts(
        fires_between(AT_NIGHT, at("2026-03-28T12:00"), at("2026-03-31T00:00"), WARSAW)
    ) == [
        "2026-03-29T01:30:00+01:00",
        "2026-03-29T03:30:00+02:00",
        "2026-03-30T03:30:00+02:00",
    ]


def test_a_trigger_in_the_autumn_overlap_fires_the_second_time() -> None:
    found = next_trigger_date(AT_NIGHT, at("2026-10-25T00:10"), WARSAW)

    assert found
    assert found.isoformat() == "2026-10-25T02:30:00+01:00"


def test_a_monthly_trigger_on_the_last_day_moves_as_the_calendar_does() -> None:
    fires = fires_between(
        {"type": "monthly", "day": 31, "hour": 8, "minute": 0},
        at("2026-03-20"),
        at("2026-06-30"),
        WARSAW,
    )

    days = [fire.isoformat()[5:10] for fire in fires]
    assert days == ["03-31", "04-30", "05-01", "05-31", "06-30"][: len(days)]
    assert len(days) == 4


def test_a_period_includes_its_start_but_not_its_end() -> None:
    assert texts(
        fires_between(MORNING, at("2026-03-10T08:00"), at("2026-03-11T08:00"), WARSAW)
    ) == ["2026-03-10T08:00:00+01:00"]


def test_an_interval_counts_from_the_last_time_and_fires_once_unless_it_repeats() -> (
    None
):
    once = {"type": "timeInterval", "seconds": 90}
    start = at("2026-03-10T08:00")

    assert next_trigger_date(once, start, WARSAW) == start + timedelta(seconds=90)
    assert len(fires_between(once, start, start + timedelta(minutes=5), WARSAW)) == 1
    repeating = fires_between(
        {**once, "repeats": True}, start, start + timedelta(minutes=5), WARSAW
    )
    assert [(fire - start).seconds for fire in repeating] == [90, 180, 270]


def test_a_date_fires_once_and_never_after_it() -> None:
    start = at("2026-03-10T08:00")
    trigger = {"type": "date", "date": start}

    assert next_trigger_date(trigger, start, WARSAW) == start
    assert next_trigger_date(trigger, start + timedelta(milliseconds=1), WARSAW) is None
    assert fires_between(trigger, start, start + timedelta(days=1000), WARSAW) == [
        start
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (MORNING, "2026-03-11T08:00:00+01:00"),
        (
            {"type": "weekly", "weekday": 1, "hour": 9, "minute": 0},
            "2026-03-15T09:00:00+01:00",
        ),
        (
            {"type": "monthly", "day": 5, "hour": 9, "minute": 0},
            "2026-04-05T09:00:00+02:00",
        ),
        (
            {"type": "yearly", "month": 0, "day": 5, "hour": 9, "minute": 0},
            "2027-01-05T09:00:00+01:00",
        ),
        ({"type": "calendar", "hour": 9}, "2026-03-10T09:00:00+01:00"),
        ({"type": "calendar", "minute": 30}, "2026-03-10T08:30:00+01:00"),
        ({"type": "calendar", "second": 5}, "2026-03-10T08:00:05+01:00"),
        ({"type": "calendar", "weekday": 2, "hour": 9}, "2026-03-16T09:00:00+01:00"),
        ({"type": "calendar", "weekday": 2}, "2026-03-16T00:00:00+01:00"),
        ({"type": "calendar", "month": 4, "day": 1}, "2026-04-01T00:00:00+02:00"),
        (
            {"type": "calendar", "year": 2028, "month": 2, "day": 29, "hour": 7},
            "2028-02-29T07:00:00+01:00",
        ),
        (
            {"type": "calendar", "weekday": 2, "weekdayOrdinal": 2, "hour": 9},
            "2026-04-13T09:00:00+02:00",
        ),
        (
            {"type": "calendar", "hour": 9, "timezone": "America/New_York"},
            "2026-03-10T14:00:00+01:00",
        ),
        ({"type": "calendar", "month": 4}, "2026-04-01T00:00:00+02:00"),
        ({"type": "calendar", "year": 2027, "day": 1}, "2027-01-01T00:00:00+01:00"),
        ({"type": "calendar", "day": 31, "hour": 9}, "2026-03-31T09:00:00+02:00"),
        ({"type": "calendar", "hour": 24}, None),
        ({"type": "calendar", "year": 2025, "month": 2, "day": 1}, None),
    ],
)
def test_a_trigger_on_ios_fires_when_the_clock_has_its_components(
    given: dict[str, Any], expected: str | None
) -> None:
    found = next_trigger_date(given, at("2026-03-10T08:00"), WARSAW, platform="ios")
    if given.get("weekdayOrdinal"):
        # The second Monday of March has passed.
        assert at("2026-03-09").isoweekday() == 1
    assert (found and found.isoformat()) == expected


@pytest.mark.parametrize(
    "components",
    [
        {"weekOfMonth": 2, "weekday": 2},
        {"weekOfYear": 2, "weekday": 2},
        {"another": 1, "hour": 9},
        {},
    ],
)
def test_undocumented_ios_behavior_is_not_guessed(components: dict[str, Any]) -> None:
    with pytest.raises(NotSpecified):
        next_trigger_date(
            {"type": "calendar", **components},
            at("2026-03-10T08:00"),
            WARSAW,
            platform="ios",
        )


@pytest.mark.parametrize(
    ("given", "platform", "problem"),
    [
        ({"type": "calendar", "hour": 9}, "android", "for iOS"),
        ({"type": "timeInterval", "seconds": 0}, "android", "more than 0"),
        (
            {"type": "timeInterval", "seconds": -5, "repeats": True},
            "android",
            "more than 0",
        ),
        (
            {"type": "timeInterval", "seconds": 59, "repeats": True},
            "ios",
            "at least 60",
        ),
        ({"type": "timeInterval", "seconds": 10**400}, "android", "years 1 to 9999"),
        ({"type": "timeInterval", "seconds": 1e300}, "android", "years 1 to 9999"),
        ({"type": "date", "date": 8_640_000_000_000_000}, "android", "years 1 to 9999"),
    ],
)
def test_an_impossible_date_is_an_error(
    given: dict[str, Any], platform: Any, problem: str
) -> None:
    with pytest.raises(TriggerError, match=problem):
        next_trigger_date(given, at("2026-03-10T08:00"), WARSAW, platform=platform)


@pytest.mark.parametrize("platform", ["android", "ios"])
def test_a_date_after_the_year_9999_is_an_error(platform: Any) -> None:
    given = {
        "type": "yearly",
        "hour": 1,
        "minute": 0,
        "weekday": 1,
        "month": 11,
        "day": 31,
    }
    with pytest.raises(TriggerError, match="years 1 to 9999"):
        next_trigger_date(
            given, datetime(9999, 12, 31, 22, tzinfo=UTC), "UTC", platform=platform
        )


def test_a_period_with_too_many_dates_is_refused() -> None:
    trigger = parse_trigger(
        {"type": "timeInterval", "seconds": 0.5, "repeats": True}, "android"
    )
    with pytest.raises(TriggerError, match="20000 times"):
        fires_between(trigger, at("2026-01-01"), at("2027-01-01"), WARSAW)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../etc/passwd", "", "Europe", 7])
def test_a_nonexistent_time_zone_is_an_error(zone: Any) -> None:
    with pytest.raises(TriggerError, match="does not exist"):
        next_trigger_date(MORNING, at("2026-03-10"), zone)


def test_the_current_time_needs_a_time_zone() -> None:
    with pytest.raises(TriggerError, match="needs a time zone"):
        next_trigger_date(MORNING, datetime(2026, 3, 10), WARSAW)  # noqa: DTZ001

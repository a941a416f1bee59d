"""Dates of triggers in every time zone, against an independent library where the two must agree."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, available_timezones

from dateutil.rrule import DAILY, MONTHLY, WEEKLY, YEARLY, rrule
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_device.notifications import (
    NotSpecified,
    TriggerError,
    fires_between,
    next_trigger_date,
    parse_trigger,
)
from pytest_device.notifications.triggers import Platform

ZONES = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
MOMENTS = st.integers(0, 21 * 365 * 86400).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
PLATFORMS = st.sampled_from(("android", "ios"))
FREQUENCIES: Final[dict[str, Literal[0, 1, 2, 3]]] = {
    "daily": DAILY,
    "weekly": WEEKLY,
    "monthly": MONTHLY,
    "yearly": YEARLY,
}
TRIGGERS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(list(FREQUENCIES)),
        "hour": st.integers(0, 23),
        "minute": st.integers(0, 59),
        "weekday": st.integers(1, 7),
        "month": st.integers(0, 11),
        "day": st.integers(1, 28),  # each month has it
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(TRIGGERS, MOMENTS, ZONES, PLATFORMS)
def test_the_next_date_matches_a_recurrence_rule(
    trigger: dict[str, Any], now: datetime, zone: ZoneInfo, platform: Platform
) -> None:
    local = now.astimezone(zone)
    wall = local.replace(tzinfo=None)
    rule = _rule(trigger, wall - timedelta(days=800))
    after = rule.after(wall, inc=platform == "android")
    assert after
    before = rule.before(after)
    assert before
    expected = after.replace(tzinfo=zone)
    assume(all(map(_is_plain, (local, expected, before.replace(tzinfo=zone)))))

    assert next_trigger_date(trigger, now, zone, platform=platform) == expected


def _rule(trigger: dict[str, Any], start: datetime) -> rrule:
    limits = {
        "daily": {},
        "weekly": {"byweekday": (trigger["weekday"] - 2) % 7},
        "monthly": {"bymonthday": trigger["day"]},
        "yearly": {"bymonth": trigger["month"] + 1, "bymonthday": trigger["day"]},
    }[trigger["type"]]
    times = {"byhour": trigger["hour"], "byminute": trigger["minute"], "bysecond": 0}
    return rrule(FREQUENCIES[trigger["type"]], dtstart=start, **times, **limits)


def _is_plain(local: datetime) -> bool:
    """Return whether a local time exists exactly once."""
    return local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset()


@given(TRIGGERS, MOMENTS, ZONES)
def test_dates_on_android_are_in_order_and_the_first_is_the_next(
    trigger: dict[str, Any], now: datetime, zone: ZoneInfo
) -> None:
    fires = fires_between(trigger, now, now + timedelta(days=900), zone)

    moments = [fire.astimezone(UTC) for fire in fires]
    assert moments == sorted(set(moments))
    assert len(moments) >= 2
    assert fires[0] == next_trigger_date(trigger, now, zone)


@given(
    JSON,
    PLATFORMS,
    st.sampled_from(("daily", "calendar", "date", "timeInterval", "yearly", None)),
)
def test_any_value_is_a_trigger_or_refused(
    value: Any, platform: Platform, kind: str | None
) -> None:
    fields = dict.fromkeys(
        ("hour", "minute", "month", "day", "seconds", "date", "repeats", "timezone"),
        value,
    )
    for trigger_input in (value, {"type": kind or value, **fields}):
        try:
            trigger = parse_trigger(trigger_input, platform)
            next_trigger_date(
                trigger, datetime(2026, 1, 1, tzinfo=UTC), "UTC", platform=platform
            )
        except (NotSpecified, TriggerError):
            continue
        assert trigger is None or trigger.native()["type"]
